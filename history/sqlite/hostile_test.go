package sqlite_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

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

// TestWrongTypes opens histories with one row of values that no writer of the
// format writes. The row is shown as it can be, and hides no other.
func TestWrongTypes(t *testing.T) {
	for _, change := range []string{
		`update history_events set status = 7`,
		`update history_events set status = x'00ff'`,
		`update history_events set status = 'exploded'`,
		`update history_events set operation_type = 12, source = 1.5, actor_type = x'41'`,
		`update history_events set occurred_at = 'yesterday', completed_at = 5`,
		`update history_events set occurred_at = x'00', completed_at = 'soon'`,
		`update history_events set occurred_at = '', completed_at = ''`,
		`update history_events set duration_ms = 'long'`,
		`update history_events set duration_ms = 9e300`,
		`update history_events set request_json = '{"cut', result_json = x'ff00'`,
		`update history_events set request_json = 5, result_json = '[' || hex(zeroblob(1000))`,
		`update history_events set actor_id = 5, thread_id = x'01', run_id = 2.5, correlation_id = 1`,
		`update command_executions set command = x'ff', cwd = 5, environment_json = 5, timeout_ms = 'x', exit_code = 'x'`,
		`update command_executions set output_complete = 'yes', history_storage_state = 9`,
		`update command_output_chunks set original_size = 'big'`,
		`update command_output_chunks set original_size = 9223372036854775807`,
		`update command_output_chunks set data = 5, chunk_index = 'x'`,
		`update command_output_chunks set encoding = 'gzip'`,
		`update command_output_chunks set created_at = 5`,
		`update file_operations set path = 5, old_path = x'ff', before_size = 'x', after_size = 'y', change_type = 1`,
		`update file_operations set diff_data = 'no gzip', diff_encoding = 'gzip'`,
		`update file_operations set diff_data = 5`,
		`update glassbox_changes set changes = 5`,
		`update glassbox_changes set changes = x'ff00'`,
		`update glassbox_changes set changes = '{"deleted": 5, "created_count": "x"}'`,
		`update glassbox_changes set changes = '{"deleted":[null,{"path":"' || hex(zeroblob(3000000)) || '"}]}'`,
		`update history_meta set value = x'ff' where key = 'created_at'`,
		`update history_changes set changed_at = 5`,
		`update history_changes set change_id = x'00ff'`,
		// A file may declare what it likes, too.
		nullable("history_events", "status"), nullable("history_events", "occurred_at"), nullable("history_events", "event_id"),
		nullable("history_events", "operation_type"), nullable("history_events", "source"), nullable("history_events", "actor_type"),
		nullable("command_executions", "command"), nullable("command_executions", "cwd"),
		nullable("command_output_chunks", "original_size"), nullable("command_output_chunks", "data"),
		nullable("command_output_chunks", "encoding"), nullable("command_output_chunks", "chunk_index"),
		nullable("file_operations", "path"), nullable("file_operations", "change_type"),
		nullable("history_changes", "change_id"), nullable("history_changes", "changed_at"), nullable("history_changes", "event_id"),
		nullable("history_meta", "value"), nullable("glassbox_changes", "changes"),
	} {
		t.Run(change, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "history.sqlite3")
			s, err := sqlite.Open(path, nil)
			must(t, err)
			var ids []string
			for range 3 {
				op := mustBegin(t, s)
				must(t, s.Append(t.Context(), op.ID, benchChunk(0)))
				mustFinish(t, s, op.ID)
				must(t, s.SetChanges(t.Context(), op.ID, &history.Changes{Deleted: []history.FileChange{{Path: "/d"}}}))
				file := benchOperation()
				file.Type, file.Command = history.FileWrite, nil
				file.File = &history.File{Path: "/f", Diff: "+x\n"}
				must(t, s.Begin(t.Context(), file))
				mustFinish(t, s, file.ID)
				ids = append(ids, op.ID, file.ID)
			}
			must(t, s.Close())
			spoil(t, path, change, ids[2:4])

			s, err = sqlite.Open(path, &sqlite.Options{ReadOnly: true})
			must(t, err)
			defer s.Close()
			for _, filter := range []*history.Filter{nil, {Newest: true}, {Limit: 1000}} {
				page, err := s.List(t.Context(), filter)
				if err != nil || len(page.Operations) != len(ids) || page.More {
					t.Fatalf("List gave %+v, %v, want %d operations", page, err, len(ids))
				}
				for _, op := range page.Operations {
					if _, err := json.Marshal(op); err != nil {
						t.Errorf("operation %d: %v", op.Seq, err)
					}
				}
			}
			if page, err := s.List(t.Context(), &history.Filter{Path: "/d"}); err != nil || len(page.Operations) < 2 {
				t.Errorf("List of a path gave %+v, %v", page, err)
			}
			page, err := s.List(t.Context(), &history.Filter{Text: "as a build prints"})
			if err != nil || len(page.Operations) < 2 {
				t.Errorf("List of a text gave %+v, %v", page, err)
			}
			if page, err := s.List(t.Context(), &history.Filter{Text: "nowhere"}); err != nil || len(page.Operations) > 0 {
				t.Errorf("List of a text that is nowhere gave %+v, %v", page, err)
			}
			for i, id := range ids {
				spoiled := i == 2 || i == 3
				op, err := s.Get(t.Context(), id)
				nameless := spoiled && change == nullable("history_events", "event_id")
				if err != nil && (!nameless || !errors.Is(err, sandbox.ErrNotFound)) {
					t.Errorf("Get: %v", err)
				}
				if err == nil && !spoiled && (op.Status != sandbox.Succeeded || op.StartedAt.IsZero()) {
					t.Errorf("a sound operation is %+v", op)
				}
				data, err := s.Output(t.Context(), id, sandbox.Stdout, 0, 1<<20)
				if !spoiled && (err != nil || i%2 == 0 && string(data) != benchText) {
					t.Errorf("output of a sound operation: %q, %v", data, err)
				}
			}
			if _, err := s.Identity(t.Context()); err != nil {
				t.Errorf("Identity: %v", err)
			}
			for after, n := int64(0), 0; ; n++ {
				feed, err := s.Changes(t.Context(), &history.ChangeQuery{After: after, Limit: 2})
				if err != nil || n > 100 {
					t.Fatalf("Changes after %d: %v", after, err)
				}
				if len(feed.Changes) == 0 {
					break
				}
				after = feed.Next
			}
		})
	}
}

// nullable names a change that lets a column hold anything, and sets it to
// NULL.
func nullable(table, column string) string { return "null " + table + "." + column }

// spoil changes the rows of some operations, or some rows of what has none.
func spoil(t *testing.T, path, change string, ids []string) {
	t.Helper()
	if place, ok := strings.CutPrefix(change, "null "); ok {
		table, column, _ := strings.Cut(place, ".")
		alter(t, path, `create table loose as select * from `+table, `drop table `+table, `alter table loose rename to `+table)
		change = `update ` + table + ` set ` + column + ` = null`
	}
	condition := ` where event_id in ('` + strings.Join(ids, `', '`) + `')`
	if strings.Contains(change, "history_meta") {
		condition = ` where key = 'created_at'`
		change, _, _ = strings.Cut(change, " where ")
	}
	if strings.Contains(change, "change_id = x") {
		condition = ` where seq = 4`
	}
	alter(t, path, `pragma foreign_keys = 0`, change+condition)
}

// TestUnnumbered opens a history whose rows have no numbers to page by.
func TestUnnumbered(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.sqlite3")
	must(t, os.WriteFile(path, writeHistory(t), 0o600))
	alter(t, path, `create table loose as select * from history_events`, `drop table history_events`,
		`alter table loose rename to history_events`, `update history_events set seq = 'x' where seq > 20`)
	s := open(t, path, &sqlite.Options{ReadOnly: true})
	n := 0
	for after := int64(0); ; {
		page, err := s.List(t.Context(), &history.Filter{After: after, Limit: 7})
		must(t, err)
		if n += len(page.Operations); n > 20 {
			t.Fatal("the pages have no end")
		}
		if len(page.Operations) == 0 {
			break
		}
		after = page.Operations[len(page.Operations)-1].Seq
	}
	if n != 20 {
		t.Errorf("%d operations were listed, want 20", n)
	}
	if page, err := s.List(t.Context(), &history.Filter{Text: "true"}); err != nil || len(page.Operations) != 20 {
		t.Errorf("List of a text gave %v", err)
	}
}

// childShow reads a history as one that comes from a sandbox, tells so, and
// waits.
func childShow(path string) error {
	s, err := sqlite.Open(path, &sqlite.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	defer s.Close()
	os.Stdout.WriteString("open\n")
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// TestCopyLeavesNothing kills a process that reads a private copy.
func TestCopyLeavesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.sqlite3")
	must(t, os.WriteFile(path, writeHistory(t), 0o600))
	temp := t.TempDir()
	child := startChild(t, "show", path, "TMPDIR="+temp)
	if left := names(t, temp); len(left) > 0 {
		t.Errorf("while the copy is read there is %v", left)
	}
	must(t, child.cmd.Process.Kill())
	_ = child.cmd.Wait()
	if left := names(t, temp); len(left) > 0 {
		t.Errorf("after the kill there is %v", left)
	}
}

// TestCopyHasNoName reads on in a private copy after its name is gone, by
// more readers than there are connections, also after some have given up.
func TestCopyHasNoName(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	path := filepath.Join(t.TempDir(), "history.sqlite3")
	must(t, os.WriteFile(path, writeHistory(t), 0o600))
	s := open(t, path, &sqlite.Options{ReadOnly: true})
	if left := names(t, temp); len(left) > 0 {
		t.Errorf("there is %v", left)
	}
	var group sync.WaitGroup
	for n := range 32 {
		group.Go(func() {
			ctx := t.Context()
			if n%2 == 0 { // the driver gives up a connection that was interrupted
				short, cancel := context.WithTimeout(ctx, time.Duration(n)*100*time.Microsecond)
				defer cancel()
				_, _ = s.List(short, &history.Filter{Text: "nowhere"})
			}
			page, err := s.List(ctx, &history.Filter{Limit: 1000})
			if err != nil || len(page.Operations) != 200 {
				t.Errorf("List gave %+v, %v", page, err)
			}
			if err := s.Check(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
}

// TestSweep removes what a killed process has left of its copy, and nothing
// that is in use, new, or not a folder.
func TestSweep(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	path := filepath.Join(t.TempDir(), "history.sqlite3")
	must(t, os.WriteFile(path, writeHistory(t), 0o600))
	outside := filepath.Join(t.TempDir(), "outside")
	must(t, os.MkdirAll(filepath.Join(outside, "kept"), 0o700))
	old := time.Now().Add(-time.Hour)
	for _, name := range []string{"dead", "used", "new"} {
		dir := filepath.Join(temp, "glassbox-history-"+name)
		must(t, os.Mkdir(dir, 0o700))
		must(t, os.WriteFile(filepath.Join(dir, "history.sqlite3"), []byte("x"), 0o600))
		must(t, os.Symlink(outside, filepath.Join(dir, "link")))
		if name != "new" {
			must(t, os.Chtimes(dir, old, old))
		}
	}
	must(t, os.Symlink(outside, filepath.Join(temp, "glassbox-history-link")))
	used, err := os.Open(filepath.Join(temp, "glassbox-history-used"))
	must(t, err)
	defer used.Close()
	must(t, syscall.Flock(int(used.Fd()), syscall.LOCK_EX))
	open(t, path, &sqlite.Options{ReadOnly: true})
	want := []string{"glassbox-history-link", "glassbox-history-new", "glassbox-history-used"}
	if left := names(t, temp); !slices.Equal(left, want) {
		t.Errorf("left are %v, want %v", left, want)
	}
	if left := names(t, outside); len(left) != 1 {
		t.Errorf("outside is now %v", left)
	}
}
