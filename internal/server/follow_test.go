package server_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/console/door"
	"github.com/glassboxhq/glassbox/internal/console/mirror"
	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/internal/server"
	"github.com/glassboxhq/glassbox/sandbox"
)

func TestFollowAll(t *testing.T) {
	t.Parallel()
	s, m, _ := mirroring(t)
	ctx := t.Context()
	viewer := s.user("viewer", door.Viewer)
	add := func(box string) string {
		if err := m.See(ctx, "local", &sandbox.Info{ID: box}, time.Time{}); err != nil {
			t.Fatal(err)
		}
		h, err := m.History(ctx, "local", box, "")
		if err != nil {
			t.Fatal(err)
		}
		op := &history.Operation{ID: id.New(), Seq: 1, Type: history.CommandExecute, Status: sandbox.Succeeded, StartedAt: time.Now(), Command: &history.Command{Line: "true"}}
		change := &history.Change{Seq: 1, ID: id.New(), Operation: op.ID, Type: "operation.completed", At: time.Now()}
		if err := m.Store(ctx, h, &mirror.Batch{Operations: []mirror.Entry{{Operation: op}}, Changes: []*history.Change{change}, Position: 1}); err != nil {
			t.Fatal(err)
		}
		return op.ID
	}
	want := func(e event, box, op string) {
		t.Helper()
		var hit server.Hit
		if err := json.Unmarshal([]byte(e.data), &hit); err != nil || e.name != "operation" || hit.Connection != "local" || hit.Sandbox != box || hit.Operation.ID != op {
			t.Errorf("%+v, %v", e, err)
		}
	}
	first := add("one")
	live, whole := viewer.follow("/api/v1/events"), viewer.follow("/api/v1/events?after=0")
	second := add("two")
	want(live.next(), "two", second) // from now on
	e := whole.next()
	want(e, "one", first)
	want(whole.next(), "two", second)
	want(viewer.follow("/api/v1/events", "Last-Event-ID: "+e.id).next(), "two", second)
	viewer.ask("GET", "/api/v1/events", "", "Last-Event-ID: x").want(t, "no id", 400, sandbox.CodeInvalid)
	without := start(t, nil)
	without.user("viewer", door.Viewer).ask("GET", "/api/v1/events", "").want(t, "no mirror", 409, "mirror_not_kept")
}
