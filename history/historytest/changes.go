package historytest

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/sandbox"
)

// testChanges asks a store what commands did to files, if it keeps that.
func testChanges(t *testing.T, open opener) {
	s, ok := open(t).(history.ChangesStore)
	if !ok {
		t.Skip("the store does not keep what commands did to files")
	}
	store := s.(history.Store)
	did, nothing, unknown := command("make"), command("true"), command("killed")
	if err := s.SetChanges(t.Context(), did.ID, &history.Changes{}); !errors.Is(err, sandbox.ErrNotFound) {
		t.Errorf("an unknown id: got %v, want not found", err)
	}
	begin(t, store, did, nothing, unknown)
	if ids, _ := list(t, store, &history.Filter{Path: "/workspace"}); len(ids) != 0 {
		t.Errorf("before anything is known: got %v by a path", ids)
	}
	finish(t, store, did.ID, sandbox.Succeeded)
	finish(t, store, nothing.ID, sandbox.Succeeded)
	size, old := int64(12), int64(7)
	want := &history.Changes{
		Created: []history.FileChange{{Path: "/workspace/out dir", Type: "directory"}, {Path: "/workspace/out dir/a \"b\"\n<研>", Size: &size}},
		Changed: []history.FileChange{{Path: "/workspace/src/main.c", Size: &size, PreviousSize: &old}},
		Deleted: []history.FileChange{{Path: "/workspace/src/old.c", PreviousSize: &old}},
		With:    []string{nothing.ID}, Incomplete: "why", CreatedCount: 2, ChangedCount: 1, DeletedCount: 4000,
	}
	before := changes(t, store, 0, 100)
	for range 2 { // the same again changes nothing
		if err := s.SetChanges(t.Context(), did.ID, want); err != nil {
			t.Fatal(err)
		}
		if err := s.SetChanges(t.Context(), nothing.ID, &history.Changes{}); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want, get(t, store, did.ID).Changes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := get(t, store, nothing.ID).Changes; got == nil || got.Any() {
		t.Errorf("got %+v, want that nothing was changed", got)
	}
	if got := get(t, store, unknown.ID).Changes; got != nil {
		t.Errorf("got %+v, want nothing known", got)
	}
	feed := changes(t, store, before.Next, 100).Changes
	if len(feed) != 1 || feed[0].Type != history.StorageChanged || feed[0].Operation != did.ID {
		t.Errorf("got %+v in the feed, want one of the command that changed something", feed)
	}
	findChanges(t, store, did.ID)
	imported := command("elsewhere")
	imported.Status, imported.Changes = sandbox.Succeeded, want
	if err := store.Import(t.Context(), imported); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, get(t, store, imported.ID).Changes); diff != "" {
		t.Errorf("imported (-want +got):\n%s", diff)
	}
	if err := s.SetChanges(t.Context(), did.ID, &history.Changes{With: slices.Repeat([]string{id.New()}, 21)}); !errors.Is(err, sandbox.ErrInvalid) {
		t.Errorf("more than is kept: got %v, want it refused", err)
	}
}

// findChanges finds the command by what it changed.
func findChanges(t *testing.T, store history.Store, want string) {
	t.Helper()
	for filter, found := range map[*history.Filter]bool{
		{Path: "/workspace/src/old.c"}:            true,
		{Path: "/workspace/src"}:                  true,
		{Path: "/workspace/src/"}:                 true,
		{Path: "/"}:                               true,
		{Path: "/workspace/out dir/a \"b\"\n<研>"}: true,
		{Path: "/workspace/out"}:                  false,
		{Path: "/workspace/src/main"}:             false,
		{Path: "/workspace/src", Statuses: []sandbox.Status{sandbox.Started}}: false,
		{Text: "MAIN.c"}:        true,
		{Text: "created_count"}: false,
	} {
		ids, _ := list(t, store, filter)
		if got := slices.Equal(ids, []string{want}); got != found || !found && len(ids) > 0 {
			t.Errorf("%+v: got %v, want it found: %v", filter, ids, found)
		}
	}
}
