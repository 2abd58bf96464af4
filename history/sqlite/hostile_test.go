package sqlite_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/history/sqlite"
	"github.com/glassboxhq/glassbox/sandbox"
)

// TestHostile opens files that a sandbox could leave to harm its host.
func TestHostile(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret.sqlite3")
	if err := os.WriteFile(secret, writeHistory(t), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		make func(t *testing.T, path string)
	}{
		{"link", func(t *testing.T, path string) { must(t, os.Symlink(secret, path)) }},
		{"link as the log", func(t *testing.T, path string) {
			must(t, os.WriteFile(path, writeHistory(t), 0o600))
			must(t, os.Symlink(secret, path+"-wal"))
		}},
		{"pipe", func(t *testing.T, path string) { must(t, syscall.Mkfifo(path, 0o600)) }},
		{"folder", func(t *testing.T, path string) { must(t, os.Mkdir(path, 0o700)) }},
		{"too large", func(t *testing.T, path string) {
			must(t, os.WriteFile(path, writeHistory(t), 0o600))
			must(t, os.Truncate(path, 3<<30)) // sparse
		}},
		{"view", func(t *testing.T, path string) {
			must(t, os.WriteFile(path, writeHistory(t), 0o600))
			alter(t, path, `create view extra as select 1`)
		}},
		{"view in place of a table", func(t *testing.T, path string) {
			must(t, os.WriteFile(path, writeHistory(t), 0o600))
			alter(t, path, `alter table history_meta rename to other`, `create view history_meta as select key, value from other`)
		}},
		{"trigger", func(t *testing.T, path string) {
			must(t, os.WriteFile(path, writeHistory(t), 0o600))
			alter(t, path, `create trigger bomb after insert on history_events begin delete from history_events; end`)
		}},
		{"virtual table", func(t *testing.T, path string) {
			must(t, os.WriteFile(path, writeHistory(t), 0o600))
			alter(t, path, `create virtual table extra using fts5(text)`)
		}},
		{"other tables", func(t *testing.T, path string) { alter(t, path, `create table notes (text)`) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "history.sqlite3")
			tt.make(t, path)
			s, err := sqlite.Open(path, &sqlite.Options{ReadOnly: true})
			if err == nil {
				s.Close()
			}
			wantFault(t, "Open", err, sandbox.CodeHistoryCorrupt)
		})
	}
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "glassbox-history-*")); len(left) > 0 {
		t.Logf("private copies that are there, of this test or of others: %v", left)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestReadOnlyTakesTheLog opens what a killed recorder left: most of it is in
// the log. Nothing is written beside the original.
func TestReadOnlyTakesTheLog(t *testing.T) {
	live := filepath.Join(t.TempDir(), "history.sqlite3")
	s := open(t, live, nil)
	op := mustBegin(t, s)
	dir := t.TempDir()
	for _, suffix := range []string{"", "-wal"} {
		data, err := os.ReadFile(live + suffix)
		must(t, err)
		must(t, os.WriteFile(filepath.Join(dir, "history.sqlite3"+suffix), data, 0o400))
	}
	must(t, os.Chmod(dir, 0o500))
	t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })
	private := t.TempDir()
	t.Setenv("TMPDIR", private)

	copied, err := sqlite.Open(filepath.Join(dir, "history.sqlite3"), &sqlite.Options{ReadOnly: true})
	must(t, err)
	if got, err := copied.Get(t.Context(), op.ID); err != nil || got.Status != sandbox.Started {
		t.Errorf("Get gave %+v, %v", got, err)
	}
	if err := copied.Append(t.Context(), op.ID, nil); !errors.Is(err, sandbox.ErrHistory) {
		t.Errorf("Append gave %v", err)
	}
	must(t, copied.Close())
	if names := names(t, dir); !slices.Equal(names, []string{"history.sqlite3", "history.sqlite3-wal"}) {
		t.Errorf("beside the original are now %v", names)
	}
	if names := names(t, private); len(names) > 0 {
		t.Errorf("left of the private copy: %v", names)
	}
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

// TestModes checks that nobody but the owner can read a new history, whatever
// the umask.
func TestModes(t *testing.T) {
	for _, mask := range []int{0, 0o022, 0o777} {
		dir := filepath.Join(t.TempDir(), "deep", "er")
		before := syscall.Umask(mask)
		s, err := sqlite.Open(filepath.Join(dir, "history.sqlite3"), nil)
		if err == nil {
			err = s.Begin(t.Context(), benchOperation())
		}
		syscall.Umask(before)
		if mask == 0o777 && err != nil && os.Getuid() != 0 {
			continue // such a mask keeps its owner out too
		}
		must(t, err)
		defer s.Close()
		for _, name := range append(names(t, dir), ".") {
			info, err := os.Stat(filepath.Join(dir, name))
			must(t, err)
			if info.Mode().Perm()&0o077 != 0 || name != "." && info.Mode().Perm() != 0o600 {
				t.Errorf("with umask %03o %s has mode %03o", mask, name, info.Mode().Perm())
			}
		}
		if len(names(t, dir)) != 3 {
			t.Errorf("the folder holds %v", names(t, dir))
		}
	}
}

// TestMissing opens a history that is not there.
func TestMissing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "no", "history.sqlite3")
	_, err := sqlite.Open(path, &sqlite.Options{ReadOnly: true})
	if !errors.Is(err, os.ErrNotExist) || !errors.Is(err, sandbox.ErrHistory) {
		t.Errorf("Open for reading gave %v", err)
	}
	s := open(t, path, nil)
	if page, err := s.List(t.Context(), &history.Filter{}); err != nil || len(page.Operations) > 0 {
		t.Errorf("List gave %+v, %v", page, err)
	}
	if p, err := s.Prune(t.Context()); err != nil || p.Operations != 0 {
		t.Errorf("Prune gave %+v, %v", p, err)
	}
	if ids, err := s.Recover(t.Context(), "x"); err != nil || len(ids) > 0 {
		t.Errorf("Recover gave %v, %v", ids, err)
	}
	if _, err := os.Stat(filepath.Dir(path)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("reading has made the folder (%v)", err)
	}
	must(t, s.Close())
	if err := s.Begin(t.Context(), benchOperation()); !errors.Is(err, sandbox.ErrHistory) {
		t.Errorf("Begin of a closed store gave %v", err)
	}
	if _, err := s.Get(t.Context(), "x"); !errors.Is(err, sandbox.ErrHistory) {
		t.Errorf("Get of a closed store gave %v", err)
	}
}
