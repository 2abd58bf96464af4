package localruntime_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/internal/localruntime/lifecycle"
	"github.com/glassboxhq/glassbox/sandbox"
)

func values(pairs ...string) map[string]*string {
	change := map[string]*string{}
	for i := 0; i < len(pairs); i += 2 {
		if change[pairs[i]] = &pairs[i+1]; pairs[i+1] == "null" {
			change[pairs[i]] = nil
		}
	}
	return change
}

func TestSetMetadata(t *testing.T) {
	state := t.TempDir()
	o := startOwner(t, options(t, state))
	box := create(t, o.Runtime, &sandbox.Spec{Metadata: map[string]string{"team": "a", "old": "x"}}).ID
	many := map[string]*string{}
	for i := range 63 {
		many["k"+strconv.Itoa(i)] = &box
	}
	for name, change := range map[string]map[string]*string{
		"a space":               values("team", "a b"),
		"a line end":            values("team", "a\n"),
		"a long value":          values("team", strings.Repeat("x", 64)),
		"a key with a space":    values("te am", "x"),
		"no key":                values("", "x"),
		"a reserved key":        values("opensandbox.io/x", "1"),
		"removal of a reserved": values("opensandbox.io/x", "null"),
		"a wrong prefix":        values("Example.com/x", "1"),
		"too many":              many,
	} {
		if info, err := o.SetMetadata(t.Context(), box, change); !errors.Is(err, sandbox.ErrInvalid) {
			t.Errorf("%s: %v %+v", name, err, info)
		}
	}
	if _, err := o.SetMetadata(t.Context(), id.NewRandom(), values("a", "b")); !errors.Is(err, sandbox.ErrNotFound) {
		t.Errorf("of none: %v", err)
	}
	want := map[string]string{"team": "b", "example.com/new": ""}
	info, err := o.SetMetadata(t.Context(), box, values("team", "b", "old", "null", "never", "null", "example.com/new", ""))
	if err != nil || cmp.Diff(info.Metadata, want) != "" {
		t.Errorf("%v %s", err, cmp.Diff(info.Metadata, want))
	}
	var all sync.WaitGroup
	for i := range 20 {
		key := "n" + strconv.Itoa(i)
		want[key] = "1"
		all.Go(func() {
			if _, err := o.SetMetadata(t.Context(), box, values(key, "1")); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	o.stop()
	rt := startRuntime(t, options(t, state))
	if info, err := rt.Get(t.Context(), box); err != nil || cmp.Diff(info.Metadata, want) != "" {
		t.Errorf("the next server: %v %s", err, cmp.Diff(info.Metadata, want))
	}
	if _, err := rt.Pause(t.Context(), box); err != nil {
		t.Fatal(err)
	}
	if info, err := rt.SetMetadata(t.Context(), box, values("n0", "null")); err != nil || info.State != sandbox.Paused || len(info.Metadata) != len(want)-1 {
		t.Errorf("of a paused one: %v %+v", err, info)
	}
}

// A record that cannot be read is not written over by what nobody would know.
func TestUnreadableIsNotChanged(t *testing.T) {
	state := t.TempDir()
	o := startOwner(t, options(t, state))
	box := create(t, o.Runtime, nil).ID
	o.stop()
	name := filepath.Join(state, "sandboxes", box, "sandbox.json")
	if err := os.Truncate(name, 100); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	rt := startRuntime(t, options(t, state))
	if info, err := rt.SetMetadata(t.Context(), box, values("a", "b")); !errors.Is(err, sandbox.ErrState) {
		t.Errorf("metadata: %v %+v", err, info)
	}
	if s, err := rt.TakeSnapshot(t.Context(), box, ""); !errors.Is(err, sandbox.ErrState) {
		t.Errorf("snapshot: %v %+v", err, s)
	}
	rt.Record(t.Context(), box, &lifecycle.Note{Op: &history.Operation{ID: id.New(), Type: history.SandboxPause, Status: sandbox.Unsuccessful}})
	if after, err := os.ReadFile(name); err != nil || string(after) != string(before) {
		t.Errorf("%v, the record is now %s", err, after)
	}
}
