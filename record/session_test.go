package record_test

import (
	"path/filepath"
	"testing"

	"github.com/glassboxhq/glassbox/history/sqlite"
	"github.com/glassboxhq/glassbox/record"
	"github.com/glassboxhq/glassbox/sandbox"
	"github.com/glassboxhq/glassbox/sandbox/native"
	"github.com/glassboxhq/glassbox/sandbox/sandboxtest"
)

// newSession records on this machine in a file of its own.
func newSession(t *testing.T, opts *record.Options) (*record.Session, *sqlite.Store) {
	t.Helper()
	inner, err := native.New(&native.Options{Workdir: t.TempDir(), Scripts: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	store, err := sqlite.Open(filepath.Join(t.TempDir(), "history", "history.sqlite3"), nil)
	if err != nil {
		t.Fatal(err)
	}
	s := record.New(inner, store, opts)
	t.Cleanup(func() {
		if err := s.Close(t.Context()); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, store
}

func TestSession(t *testing.T) {
	sandboxtest.TestSession(t, func(t *testing.T) sandbox.Session {
		s, _ := newSession(t, &record.Options{Spool: t.TempDir()})
		return s
	})
}

func TestSessionUnrecorded(t *testing.T) {
	sandboxtest.TestSession(t, func(t *testing.T) sandbox.Session {
		inner, err := native.New(&native.Options{Workdir: t.TempDir(), Scripts: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		return record.New(inner, nil, nil)
	})
}
