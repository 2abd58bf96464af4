package localruntime_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/glassboxhq/glassbox/internal/localruntime"
	"github.com/glassboxhq/glassbox/sandbox"
)

func TestDiagnose(t *testing.T) {
	state := t.TempDir()
	o := startOwner(t, options(t, state))
	box := create(t, o.Runtime, &sandbox.Spec{Env: map[string]string{"SECRET": "s3cret-value"}, Metadata: map[string]string{"team": "a"}}).ID
	access, err := o.Access(t.Context(), box)
	if err != nil {
		t.Fatal(err)
	}
	act := func(_ *sandbox.Info, err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	act(o.Pause(t.Context(), box))
	act(o.Resume(t.Context(), box))
	act(o.Renew(t.Context(), box, time.Now().Add(time.Hour)))
	act(o.SetMetadata(t.Context(), box, values("team", "b")))
	taken := take(t, o.Runtime, box).ID
	// The first process's own output is the console: root in the sandbox may
	// write to it, its token too.
	run(t, o.Runtime, box, "echo last words "+access.Token+" > /proc/1/fd/1")
	words := func(rt *localruntime.Runtime) string {
		d, err := rt.Diagnose(t.Context(), box)
		if err != nil {
			t.Fatal(err)
		}
		var list []string
		for _, e := range d.Events {
			list = append(list, e.What)
		}
		for _, secret := range []string{access.Token, access.ExecdToken, "s3cret-value"} {
			for _, e := range d.Events {
				d.Console += e.Message
			}
			for _, fact := range d.Facts {
				d.Console += fact[1]
			}
			if strings.Contains(d.Console, secret) {
				t.Error("a secret is told")
			}
		}
		if !strings.Contains(d.Console, "last words ***") {
			t.Errorf("the console: %q", d.Console)
		}
		return strings.Join(list, " ")
	}
	want := "CREATED RUNNING PAUSED RUNNING RENEWED METADATA_CHANGED SNAPSHOT_TAKEN"
	if got := words(o.Runtime); got != want {
		t.Errorf("events: %s, want %s", got, want)
	}
	o.stop()
	rt := startRuntime(t, options(t, state))
	if _, err := try(t.Context(), rt, box, "kill -9 1; sleep 5"); err == nil {
		t.Error("the sandbox survived the death of its init")
	}
	wantFailed(t, rt, box, "first process ended")
	eventually(t, "what failed is cleared away", func() bool {
		d, err := rt.Diagnose(t.Context(), box)
		return err == nil && d.Console != ""
	})
	if got := words(rt); got != want+" ENDED" {
		t.Errorf("events of the one that failed: %s", got)
	}
	for range 100 {
		act(rt.SetMetadata(t.Context(), box, values("team", "c")))
	}
	d, err := rt.Diagnose(t.Context(), box)
	if err != nil || len(d.Events) > 64 {
		t.Errorf("%v: %d events", err, len(d.Events))
	}
	if err := rt.DeleteSnapshot(t.Context(), taken); err != nil {
		t.Error(err)
	}
	if err := rt.Delete(t.Context(), box); err != nil {
		t.Error(err)
	}
	if _, err := rt.Diagnose(t.Context(), box); !errors.Is(err, sandbox.ErrNotFound) {
		t.Errorf("of a deleted one: %v", err)
	}
}
