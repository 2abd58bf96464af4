package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/history/historytest"
	"github.com/glassboxhq/glassbox/history/sqlite"
)

func TestStore(t *testing.T) {
	historytest.TestStore(t, func(t *testing.T) history.Store {
		return open(t, filepath.Join(t.TempDir(), "history.sqlite3"), nil)
	})
}

// open opens a store that ends with the test.
func open(t *testing.T, path string, opts *sqlite.Options) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(path, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
