package record_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/history/sqlite"
	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/record"
	"github.com/glassboxhq/glassbox/sandbox"
	"github.com/glassboxhq/glassbox/sandbox/native"
)

// slowStore has written down a beginning before it says so.
type slowStore struct {
	*sqlite.Store
	written chan string
	say     chan struct{}
}

// Begin implements history.Store.
func (s *slowStore) Begin(ctx context.Context, op *history.Operation) error {
	err := s.Store.Begin(ctx, op)
	s.written <- op.ID
	select {
	case <-s.say:
		return err
	case <-ctx.Done():
		return sandbox.FromContext(ctx, "begin operation")
	}
}

// FB-065: of an act that is cancelled while its beginning is written down the
// history has the end, and it is not done.
func TestFB065CancelledAtTheBeginning(t *testing.T) {
	dir := t.TempDir()
	inner, err := native.New(&native.Options{Workdir: dir})
	if err != nil {
		t.Fatal(err)
	}
	kept, err := sqlite.Open(filepath.Join(t.TempDir(), "history.sqlite3"), nil)
	if err != nil {
		t.Fatal(err)
	}
	store := &slowStore{kept, make(chan string), make(chan struct{})}
	s := record.New(inner, store, nil)
	for name, act := range map[string]func(context.Context) error{
		"command": func(ctx context.Context) error {
			_, err := s.Run(ctx, &sandbox.Command{ID: id.New(), Line: "touch done"})
			return err
		},
		"file": func(ctx context.Context) error {
			_, err := s.Write(ctx, "done", strings.NewReader("x"), nil)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- act(ctx) }()
			opID := <-store.written
			cancel()
			var err error
			select {
			case err = <-ended: // it did not wait to be told
			case store.say <- struct{}{}:
				err = <-ended
			}
			if !errors.Is(err, sandbox.ErrCancelled) {
				t.Errorf("got %v, want it cancelled", err)
			}
			if op, err := kept.Get(t.Context(), opID); err != nil || op.Status != sandbox.Cancelled {
				t.Errorf("got %+v, %v, want the record ended", op, err)
			}
			if _, err := os.Stat(filepath.Join(dir, "done")); err == nil {
				t.Error("it was done all the same")
			}
		})
	}
	if err := errors.Join(s.Close(t.Context()), kept.Close()); err != nil {
		t.Error(err)
	}
}
