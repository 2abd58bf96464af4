package sqlite_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/history/sqlite"
	"github.com/glassboxhq/glassbox/sandbox"
)

// wantGap checks that the first operation of a history tells of a loss.
func wantGap(t *testing.T, s *sqlite.Store, reason string, operations int) {
	t.Helper()
	page, err := s.List(t.Context(), &history.Filter{})
	if err != nil || len(page.Operations) == 0 {
		t.Fatalf("List gave %+v, %v", page, err)
	}
	gap := page.Operations[0]
	var result struct {
		Reason     string `json:"reason"`
		Operations int    `json:"operations"`
	}
	must(t, json.Unmarshal(gap.Result, &result))
	if gap.Type != history.HistoryGap || gap.Status != sandbox.Succeeded || gap.Foreign ||
		!strings.Contains(result.Reason, reason) || result.Operations != operations {
		t.Errorf("the first operation is %s, %s, %s; want a gap of %d operations, because %s",
			gap.Type, gap.Status, gap.Result, operations, reason)
	}
}

// findable opens the file as the next process does, and looks for operations.
func findable(t *testing.T, path string, ids ...string) {
	t.Helper()
	s, err := sqlite.Open(path, nil)
	must(t, err)
	defer s.Close()
	for _, id := range ids {
		if _, err := s.Get(t.Context(), id); err != nil {
			t.Errorf("acknowledged and not found: %v", err)
		}
	}
	must(t, s.Check(t.Context()))
}

// TestTakenAway takes the file of a recording store away in every way. What is
// acknowledged afterwards is found under its name.
func TestTakenAway(t *testing.T) {
	for _, tt := range []struct {
		name string
		take func(t *testing.T, path string)
	}{
		{"all files", func(t *testing.T, path string) {
			for _, name := range names(t, filepath.Dir(path)) {
				must(t, os.Remove(filepath.Join(filepath.Dir(path), name)))
			}
		}},
		{"the file alone", func(t *testing.T, path string) { must(t, os.Remove(path)) }},
		{"the folder", func(t *testing.T, path string) { must(t, os.RemoveAll(filepath.Dir(path))) }},
		{"renamed", func(t *testing.T, path string) { must(t, os.Rename(path, path+".old")) }},
		{"the folder renamed", func(t *testing.T, path string) {
			must(t, os.Rename(filepath.Dir(path), filepath.Dir(path)+".old"))
		}},
		{"an empty file", func(t *testing.T, path string) {
			must(t, os.Remove(path))
			must(t, os.WriteFile(path, nil, 0o600))
		}},
		{"another history", func(t *testing.T, path string) {
			must(t, os.WriteFile(path+".new", writeHistory(t), 0o600))
			must(t, os.Rename(path+".new", path))
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "history", "history.sqlite3")
			s := open(t, path, nil)
			running, ended := mustBegin(t, s), mustBegin(t, s)
			mustFinish(t, s, ended.ID)
			count(t, s) // readers have it open too
			tt.take(t, path)

			var ids []string
			for range 5 {
				op := mustBegin(t, s)
				must(t, s.Append(t.Context(), op.ID, benchChunk(0)))
				mustFinish(t, s, op.ID)
				ids = append(ids, op.ID)
			}
			findable(t, path, ids...)
			if tt.name != "another history" {
				wantGap(t, s, "removed or replaced", 2)
			}
			for what, err := range map[string]error{
				"Append": s.Append(t.Context(), running.ID, benchChunk(0)),
				"Finish": s.Finish(t.Context(), running.ID, &history.End{Status: sandbox.Succeeded}),
			} {
				if !errors.Is(err, sandbox.ErrNotFound) || sandbox.CodeOf(err) != sandbox.CodeOperationNotFound {
					t.Errorf("%s of what ran in the lost file gave %v", what, err)
				}
			}
			if _, err := s.Get(t.Context(), ended.ID); !errors.Is(err, sandbox.ErrNotFound) {
				t.Errorf("Get of what is lost gave %v", err)
			}
			for name, mode := range map[string]os.FileMode{filepath.Dir(path): 0o700, path: 0o600} {
				if info, err := os.Lstat(name); err != nil || info.Mode().Perm() != mode {
					t.Errorf("%s has mode %v, %v", name, info.Mode(), err)
				}
			}
			if left := descriptors(t, "(deleted)"); len(left) > 0 {
				t.Errorf("still open: %v", left)
			}
		})
	}
}

// descriptors returns which open files of this process have a word in their
// name.
func descriptors(t *testing.T, word string) (found []string) {
	t.Helper()
	for _, fd := range names(t, "/proc/self/fd") {
		if name, err := os.Readlink("/proc/self/fd/" + fd); err == nil && strings.Contains(name, word) &&
			strings.Contains(name, "history.sqlite3") {
			found = append(found, name)
		}
	}
	return found
}

// TestMovedAwayWhole renames the file of a recording store: where it is now,
// all that was acknowledged before is in it.
func TestMovedAwayWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.sqlite3")
	s := open(t, path, nil)
	first := mustBegin(t, s)
	must(t, os.Rename(path, path+".old"))
	second := mustBegin(t, s)
	findable(t, path+".old", first.ID)
	findable(t, path, second.ID)
}

// TestSomethingElse puts what is no file in the place of the history: records
// are refused with a word on what to do, until it is moved away.
func TestSomethingElse(t *testing.T) {
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	must(t, os.WriteFile(elsewhere, writeHistory(t), 0o600))
	before, _ := os.ReadFile(elsewhere)
	for _, tt := range []struct {
		name, want string
		make       func(path string) error
	}{
		{"link", "is a symbolic link", func(path string) error { return os.Symlink(elsewhere, path) }},
		{"link to nothing", "is a symbolic link", func(path string) error { return os.Symlink(elsewhere+"/x", path) }},
		{"pipe", "is a named pipe", func(path string) error { return syscall.Mkfifo(path, 0o600) }},
		{"folder", "is a folder", func(path string) error { return os.Mkdir(path, 0o700) }},
		{"in place of the folder", "is a file, not the folder", func(path string) error {
			dir := filepath.Dir(path)
			if err := os.RemoveAll(dir); err != nil {
				return err
			}
			return os.WriteFile(dir, []byte("x"), 0o600)
		}},
		{"in place of the log", "-wal is a folder", func(path string) error {
			if err := os.Remove(path + "-wal"); err != nil {
				return err
			}
			return os.Mkdir(path+"-wal", 0o700)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "history", "history.sqlite3")
			s := open(t, path, nil)
			mustBegin(t, s)
			count(t, s)
			must(t, os.Remove(path))
			must(t, tt.make(path))
			for range 2 {
				err := s.Begin(t.Context(), benchOperation())
				wantFault(t, "Begin", err, sandbox.CodeHistoryCorrupt)
				if !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "move it away") {
					t.Errorf("Begin gave %q, want that it %s and what to do", err, tt.want)
				}
			}
			place := path
			switch tt.name {
			case "in place of the folder":
				place = filepath.Dir(path)
			case "in place of the log":
				place = path + "-wal"
			}
			if place != path+"-wal" {
				_, err := s.List(t.Context(), &history.Filter{})
				wantFault(t, "List", err, sandbox.CodeHistoryCorrupt)
				_, err = sqlite.Open(path, nil)
				wantFault(t, "Open", err, sandbox.CodeHistoryCorrupt)
			}
			must(t, os.Rename(place, filepath.Join(t.TempDir(), "moved")))
			op := mustBegin(t, s)
			findable(t, path, op.ID)
			wantGap(t, s, "removed or replaced", 1)
		})
	}
	if after, _ := os.ReadFile(elsewhere); string(after) != string(before) {
		t.Error("what the link stands for was changed")
	}
}

// TestAnotherSandboxMovedIn replaces the file by the history of another
// sandbox, which is refused and left as it is.
func TestAnotherSandboxMovedIn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.sqlite3")
	s := open(t, path, &sqlite.Options{SandboxID: "mine"})
	mustBegin(t, s)
	theirs := writeHistory(t) // of the sandbox "local"
	must(t, os.WriteFile(path+".new", theirs, 0o600))
	must(t, os.Rename(path+".new", path))
	wantFault(t, "Begin", s.Begin(t.Context(), benchOperation()), sandbox.CodeHistoryConflict)
	_, err := s.List(t.Context(), &history.Filter{})
	wantFault(t, "List", err, sandbox.CodeHistoryConflict)
	must(t, os.Remove(path))
	mustBegin(t, s)
	wantGap(t, s, "removed or replaced", 1)
}

// TestLogTakenAway removes the log, its index or both: nothing that was
// acknowledged is missing, whatever comes next.
func TestLogTakenAway(t *testing.T) {
	for _, suffixes := range [][]string{{"-wal"}, {"-shm"}, {"-wal", "-shm"}} {
		for _, next := range []string{"record", "wait"} {
			t.Run(strings.Join(suffixes, " and ")+", "+next, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "history.sqlite3")
				s := open(t, path, nil)
				ids := []string{mustBegin(t, s).ID, mustBegin(t, s).ID}
				for _, suffix := range suffixes {
					must(t, os.Remove(path+suffix))
				}
				deadline := time.Now().Add(10 * time.Second)
				for len(descriptors(t, "(deleted)")) > 0 {
					if time.Now().After(deadline) {
						t.Fatal("it was never noticed")
					}
					if next == "record" {
						ids = append(ids, mustBegin(t, s).ID)
					}
				}
				if next == "record" {
					ids = append(ids, mustBegin(t, s).ID)
				}
				// As after a kill: from the files alone, while the store is open.
				copied := filepath.Join(t.TempDir(), "history.sqlite3")
				for _, suffix := range []string{"", "-wal"} {
					data, err := os.ReadFile(path + suffix)
					if err == nil {
						must(t, os.WriteFile(copied+suffix, data, 0o600))
					}
				}
				findable(t, copied, ids...)
				mustFinish(t, s, ids[0])
				if n := count(t, s); n != len(ids) {
					t.Errorf("List gave %d operations, want %d", n, len(ids))
				}
			})
		}
	}
}

// TestCutShort empties the file in place, before and after its pages have
// moved there from the log.
func TestCutShort(t *testing.T) {
	for _, pages := range []int{1, 1000} {
		path := filepath.Join(t.TempDir(), "history.sqlite3")
		opts := &sqlite.Options{}
		opts.SetCheckpointPages(pages)
		idle := make(chan struct{}, 2)
		opts.SetPhase(func(phase string) {
			if phase == "idle" {
				select {
				case idle <- struct{}{}:
				default:
				}
			}
		})
		s := open(t, path, opts)
		ids := []string{mustBegin(t, s).ID, mustBegin(t, s).ID}
		<-idle
		<-idle
		must(t, os.Truncate(path, 0))
		for range 3 {
			op := benchOperation()
			if err := s.Begin(t.Context(), op); err == nil {
				ids = append(ids, op.ID)
			} else {
				wantFault(t, "Begin", err, sandbox.CodeHistoryCorrupt)
				ids = nil
			}
		}
		if ids != nil {
			findable(t, path, ids[len(ids)-3:]...)
		}
	}
}

// TestTakenAwayWhileBusy removes the files again and again while many record
// and read. Each record that was acknowledged after the last removal is found.
func TestTakenAwayWhileBusy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history", "history.sqlite3")
	s := open(t, path, nil)
	mustBegin(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for ctx.Err() == nil {
				op := benchOperation()
				if err := s.Begin(ctx, op); err != nil && !errors.Is(err, sandbox.ErrCancelled) && !isRetryable(err) {
					t.Errorf("Begin: %v", err)
				}
				if err := s.Append(ctx, op.ID, benchChunk(0)); err != nil && !errors.Is(err, sandbox.ErrCancelled) &&
					!errors.Is(err, sandbox.ErrNotFound) && !isRetryable(err) {
					t.Errorf("Append: %v", err)
				}
			}
		})
		group.Go(func() {
			for ctx.Err() == nil {
				_, err := s.List(ctx, &history.Filter{Limit: 5})
				// A read at the very moment of a removal may fail.
				if err != nil && !errors.Is(err, sandbox.ErrCancelled) && !errors.Is(err, sandbox.ErrHistory) {
					t.Errorf("List: %v", err)
				}
			}
		})
	}
	for n := range 40 {
		if n%2 == 0 {
			_ = os.RemoveAll(filepath.Dir(path)) // the next file may stand in it already
		} else {
			_ = os.Remove(path)
		}
		again := benchOperation()
		if err := s.Begin(t.Context(), again); err != nil {
			t.Errorf("Begin after a removal: %v", err)
			continue
		}
		if _, err := s.Get(t.Context(), again.ID); err != nil {
			t.Errorf("acknowledged after a removal and not found: %v", err)
		}
	}
	cancel()
	group.Wait()
	last := mustBegin(t, s)
	findable(t, path, last.ID)
}

func isRetryable(err error) bool {
	e, ok := errors.AsType[*sandbox.Error](err)
	return ok && e.Retryable
}
