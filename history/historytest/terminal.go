package historytest

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/sandbox"
)

// testTerminal asks a store for the moments of terminals, if it keeps them.
func testTerminal(t *testing.T, open opener) {
	s, ok := open(t).(history.TerminalStore)
	if !ok {
		t.Skip("the store keeps no terminals")
	}
	store := s.(history.Store)
	op := command("bash")
	op.Type = history.TerminalSession
	if events, err := s.Terminal(t.Context(), op.ID); !errors.Is(err, sandbox.ErrNotFound) {
		t.Errorf("before it begins: got %v, %v, want not found", events, err)
	}
	if err := s.AppendTerminal(t.Context(), id.New(), nil); !errors.Is(err, sandbox.ErrNotFound) {
		t.Errorf("an unknown id: got %v, want not found", err)
	}
	if err := store.Begin(t.Context(), op); err != nil {
		t.Fatal(err)
	}
	if events, err := s.Terminal(t.Context(), op.ID); err != nil || len(events) != 0 {
		t.Errorf("before it moves: got %v, %v", events, err)
	}
	want := []history.TerminalEvent{
		{At: time.Millisecond, Size: &sandbox.TerminalSize{Columns: 80, Rows: 24}},
		{At: time.Second, Shown: 12},
		{At: 2 * time.Second, Typed: "研\r"},
		{At: 3 * time.Second, Hidden: 4},
	}
	for _, part := range [][]history.TerminalEvent{want[:1], want[1:]} {
		if err := s.AppendTerminal(t.Context(), op.ID, part); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Finish(t.Context(), op.ID, &history.End{Status: sandbox.Succeeded}); err != nil {
		t.Fatal(err)
	}
	if err := s.AppendTerminal(t.Context(), op.ID, want); !errors.Is(err, sandbox.ErrConflict) {
		t.Errorf("after the end: got %v, want a conflict", err)
	}
	got, err := s.Terminal(t.Context(), op.ID)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v, moments (-want +got):\n%s", err, diff)
	}
}
