package server_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/console/act"
	"github.com/glassboxhq/glassbox/internal/console/door"
	"github.com/glassboxhq/glassbox/internal/console/mirror"
	"github.com/glassboxhq/glassbox/internal/db"
	"github.com/glassboxhq/glassbox/internal/db/dbtest"
	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/internal/server"
	"github.com/glassboxhq/glassbox/sandbox"
)

// mirroring is a server that keeps a mirror.
func mirroring(t *testing.T) (*site, *mirror.Mirror, *db.DB) {
	t.Helper()
	d := dbtest.Open(t, filepath.Join(t.TempDir(), "console.sqlite3"))
	m := mirror.New(d, nil)
	return start(t, &options{db: d, change: func(o *server.Options) { o.Mirror = m }}), m, d
}

func TestMirrorSettings(t *testing.T) {
	t.Parallel()
	s, m, _ := mirroring(t)
	c := s.user("boss", door.Admin)
	const path = "/api/v1/settings/mirror"
	var got server.MirrorSettings
	a := c.ask("GET", path, "")
	a.read(t, &got)
	if got.AgeSeconds != 365*24*3600 || got.Bytes != 20<<30 || got.Dies || len(got.Connections) != 0 || a.header.Get("ETag") != `"0"` {
		t.Errorf("as they came: %s %v", a.body, a.header)
	}
	body := `{"age_seconds":3600,"body_age_seconds":0,"bytes":1000000,"dies_with_sandbox":false,"connections":{"local":{"age_seconds":0,"body_age_seconds":60,"bytes":0,"dies_with_sandbox":true}}}`
	a = c.ask("PUT", path, body, `If-Match: "0"`)
	a.read(t, &got)
	if a.header.Get("ETag") != `"1"` || got.UpdatedAt.IsZero() || !got.Connections["local"].Dies {
		t.Errorf("%s %v", a.body, a.header)
	}
	c.ask("PUT", path, a.body).read(t, &got) // what was read is taken back
	c.ask("PUT", path, body, `If-Match: "1"`).want(t, "an old one", 412, "settings_changed")
	c.ask("PUT", path, body, `If-Match: x`).want(t, "none", 412, "settings_changed")
	c.ask("PUT", path, strings.Replace(body, "local", "lokal", 1)).want(t, "no connection", 400, sandbox.CodeInvalid)
	c.ask("PUT", path, strings.Replace(body, "3600", "-1", 1)).want(t, "negative", 422, sandbox.CodeInvalid)
	limits, err := m.Limits(t.Context())
	if err != nil || limits.Age != time.Hour || limits.Of("local").BodyAge != time.Minute || !limits.Of("local").Dies {
		t.Errorf("%+v, %v", limits, err)
	}
	without := start(t, nil)
	without.user("boss", door.Admin).ask("GET", path, "").want(t, "no mirror", 409, "mirror_not_kept")
}

func TestEraseHistory(t *testing.T) {
	t.Parallel()
	s, m, _ := mirroring(t)
	ctx := t.Context()
	boxID, _ := s.box("研究 box", "x")
	if err := m.See(ctx, "local", &sandbox.Info{ID: boxID, Name: "研究 box"}, time.Time{}); err != nil {
		t.Fatal(err)
	}
	h, err := m.History(ctx, "local", boxID, "")
	if err != nil {
		t.Fatal(err)
	}
	op := &history.Operation{ID: id.New(), Seq: 1, Type: history.CommandExecute, Status: sandbox.Succeeded, StartedAt: time.Now(), Command: &history.Command{Line: "echo secret-word"}}
	if err := m.Store(ctx, h, &mirror.Batch{Operations: []mirror.Entry{{Operation: op}}}); err != nil {
		t.Fatal(err)
	}
	path := "/api/v1/connections/local/sandboxes/" + boxID + "/erase-history"
	boss := s.user("boss", door.Admin)
	confirm := func(text string) string { return fmt.Sprintf(`{"confirm":%q}`, text) }
	s.user("op", door.Operator).ask("POST", path, confirm(boxID)).want(t, "an operator", 403, "forbidden")
	boss.ask("POST", path, confirm("")).want(t, "nothing typed", 422, "confirmation_needed")
	boss.ask("POST", path, confirm("box")).want(t, "another name", 422, "confirmation_needed")
	boss.ask("POST", path, `{}`).want(t, "no confirmation", 422, sandbox.CodeInvalid)
	boss.ask("POST", strings.Replace(path, boxID, "other", 1), confirm("other")).want(t, "no such sandbox", 404, sandbox.CodeSandboxNotFound)
	var left history.Operation
	boss.ask("POST", path, confirm("研究 box")).read(t, &left)
	if left.Type != mirror.HistoryErase || left.Actor.ID != "boss" || left.Actor.Type != history.User || left.Source != history.SourceConsole {
		t.Errorf("%+v", left)
	}
	var hits server.Hits
	boss.ask("GET", "/api/v1/operations", "").read(t, &hits)
	if len(hits.Items) != 1 || hits.Items[0].Operation.ID != left.ID {
		text, _ := json.Marshal(hits)
		t.Errorf("left: %s", text)
	}
	acts, err := s.acts.List(ctx, &act.Query{Target: "local/" + boxID, Limit: 10})
	if err != nil || len(acts) != 5 || acts[0].Action != "history.erase" || acts[0].Outcome != act.Done || acts[4].Outcome != act.Denied {
		t.Errorf("%d acts, %v", len(acts), err)
	}
}
