package sqlite_test

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/history/sqlite"
	"github.com/glassboxhq/glassbox/sandbox"
)

// wantFault checks that err is the fault code of the kind ErrHistory.
func wantFault(t *testing.T, what string, err error, code sandbox.Code) {
	t.Helper()
	if sandbox.CodeOf(err) != code || !errors.Is(err, sandbox.ErrHistory) {
		t.Fatalf("%s: error is %v (%s), want %s", what, err, sandbox.CodeOf(err), code)
	}
	t.Logf("%s: %v", what, err)
}

func mustBegin(t *testing.T, s *sqlite.Store) *history.Operation {
	t.Helper()
	op := benchOperation()
	if err := s.Begin(t.Context(), op); err != nil {
		t.Fatalf("Begin: %v", err)
	}
	return op
}

func mustFinish(t *testing.T, s *sqlite.Store, id string) {
	t.Helper()
	if err := s.Finish(t.Context(), id, &history.End{Status: sandbox.Succeeded, OutputComplete: true}); err != nil {
		t.Fatalf("Finish: %v", err)
	}
}

func count(t *testing.T, s *sqlite.Store) int {
	t.Helper()
	page, err := s.List(t.Context(), &history.Filter{Limit: 1000})
	if err != nil {
		t.Fatalf("List: %v", err)
	}
	return len(page.Operations)
}

// mount puts a small disk of its own into the test's folder.
func mount(t *testing.T, size string) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root to mount a small disk")
	}
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("needs to mount a small disk: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return dir
}

// TestDiskFull fills a real small disk while operations are recorded, and
// frees it again.
func TestDiskFull(t *testing.T) {
	dir := mount(t, "4m")
	s, err := sqlite.Open(filepath.Join(dir, "history.sqlite3"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	first := mustBegin(t, s)
	filler := filepath.Join(dir, "filler")
	if err := os.WriteFile(filler, make([]byte, 3<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	kept, big := int64(0), bytes.Repeat([]byte("x"), 64<<10)
	for err == nil {
		err = s.Append(t.Context(), first.ID, []sandbox.Chunk{{Stream: sandbox.Stdout, Offset: kept, Time: time.Now(), Data: big}})
		if err == nil {
			kept += int64(len(big))
		}
	}
	wantFault(t, "Append", err, sandbox.CodeHistoryExhausted)
	for err = nil; err == nil; {
		err = s.Begin(t.Context(), benchOperation())
	}
	wantFault(t, "Begin", err, sandbox.CodeHistoryExhausted)
	if got, err := s.Get(t.Context(), first.ID); err != nil || got.Command.StdoutBytes != kept {
		t.Errorf("on a full disk Get gave %+v, %v, want %d kept bytes", got, err, kept)
	}

	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	err = s.Append(t.Context(), first.ID, []sandbox.Chunk{{Stream: sandbox.Stdout, Offset: kept, Time: time.Now(), Data: big}})
	if err != nil {
		t.Fatalf("after space was freed: %v", err)
	}
	mustFinish(t, s, first.ID)
	mustBegin(t, s)
	if err := s.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestDiskFullFromStart opens a store where not even the file can be made.
func TestDiskFullFromStart(t *testing.T) {
	dir := mount(t, "1m")
	filler := filepath.Join(dir, "filler")
	err := os.WriteFile(filler, make([]byte, 2<<20), 0o600)
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("filling the disk: %v", err)
	}
	s, err := sqlite.Open(filepath.Join(dir, "history.sqlite3"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	wantFault(t, "Begin", s.Begin(t.Context(), benchOperation()), sandbox.CodeHistoryExhausted)
	if n := count(t, s); n != 0 {
		t.Errorf("List gave %d operations, want 0", n)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	mustBegin(t, s)
}

// TestLocked records while another process holds the lock.
func TestLocked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.sqlite3")
	s := open(t, path, &sqlite.Options{BusyTimeout: 100 * time.Millisecond})
	mustBegin(t, s)
	child := startChild(t, "lock", path)
	err := s.Begin(t.Context(), benchOperation())
	wantFault(t, "Begin", err, sandbox.CodeHistoryLocked)
	if e, _ := errors.AsType[*sandbox.Error](err); !e.Retryable {
		t.Error("the error is not retryable")
	}
	if n := count(t, s); n != 1 {
		t.Errorf("while locked List gave %d operations, want 1", n)
	}
	other, err := sqlite.Open(path, &sqlite.Options{BusyTimeout: 100 * time.Millisecond})
	if err != nil {
		t.Fatalf("a second store: %v", err)
	}
	defer other.Close()
	wantFault(t, "Begin of a second store", other.Begin(t.Context(), benchOperation()), sandbox.CodeHistoryLocked)
	child.end(t)
	mustBegin(t, s)
	mustBegin(t, other)
}

// TestReadOnly records on a disk that has become read-only.
func TestReadOnly(t *testing.T) {
	dir := mount(t, "4m")
	path := filepath.Join(dir, "history.sqlite3")
	s, err := sqlite.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	mustBegin(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	remount := func(flags uintptr) {
		t.Helper()
		if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT|flags, ""); err != nil {
			t.Fatal(err)
		}
	}
	remount(syscall.MS_RDONLY)
	s, err = sqlite.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	wantFault(t, "Begin", s.Begin(t.Context(), benchOperation()), sandbox.CodeHistoryReadOnly)
	copied := open(t, path, &sqlite.Options{ReadOnly: true})
	if n := count(t, copied); n != 1 {
		t.Errorf("a read-only store gave %d operations, want 1", n)
	}
	wantFault(t, "Begin of a read-only store", copied.Begin(t.Context(), benchOperation()), sandbox.CodeHistoryReadOnly)
	fresh, err := sqlite.Open(filepath.Join(dir, "sub", "history.sqlite3"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer fresh.Close()
	wantFault(t, "Begin without a file", fresh.Begin(t.Context(), benchOperation()), sandbox.CodeHistoryReadOnly)
	remount(0)
	mustBegin(t, s)
	if n := count(t, s); n != 2 {
		t.Errorf("List gave %d operations, want 2", n)
	}
}

// writeHistory makes a history of some size and returns its bytes.
func writeHistory(t *testing.T) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "history.sqlite3")
	s, err := sqlite.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 200 {
		mustFinish(t, s, mustBegin(t, s).ID)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestCorrupt opens damaged files. None is ever written to.
func TestCorrupt(t *testing.T) {
	whole := writeHistory(t)
	garbage := bytes.Repeat([]byte{0xa5}, 4096)
	for _, tt := range []struct {
		name string
		data []byte
		late bool // seen only when the damaged part is read
	}{
		{"truncated", whole[:len(whole)/2], false},
		{"cut in a page", whole[:len(whole)-100], false},
		{"not a database", []byte(strings.Repeat("this is no database\n", 500)), false},
		{"short text", []byte("x"), false},
		{"first page", append(bytes.Clone(garbage), whole[4096:]...), false},
		{"garbage in the middle", overwrite(whole, len(whole)/4096/2*4096, len(whole)/4), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "history.sqlite3")
			if err := os.WriteFile(path, tt.data, 0o600); err != nil {
				t.Fatal(err)
			}
			s, err := sqlite.Open(path, nil)
			if tt.late {
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				wantFault(t, "Check", s.Check(t.Context()), sandbox.CodeHistoryCorrupt)
				_, err = s.List(t.Context(), &history.Filter{Limit: 1000})
			}
			wantFault(t, "Open or List", err, sandbox.CodeHistoryCorrupt)
			if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, tt.data) {
				t.Errorf("the file was changed (%v)", err)
			}
		})
	}
}

func overwrite(data []byte, at, n int) []byte {
	data = bytes.Clone(data)
	for i := at; i < at+n; i++ {
		data[i] = 0xa5
	}
	return data
}

// TestCorruptWhileOpen damages the file below a store that records: records
// are refused, and the next good file in its place is taken.
func TestCorruptWhileOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.sqlite3")
	whole := writeHistory(t)
	damaged := overwrite(whole, 4096, len(whole)-4096)
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, path, nil)
	if err := os.WriteFile(path, damaged, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		wantFault(t, "Begin", s.Begin(t.Context(), benchOperation()), sandbox.CodeHistoryCorrupt)
	}
	if got, _ := os.ReadFile(path); !bytes.Equal(got[4096:], damaged[4096:]) {
		t.Error("the damaged file was changed")
	}
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		if err := os.Rename(name, name+".damaged"); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
	mustBegin(t, s)
}

// TestNewerVersion opens a file of a format that does not exist yet.
func TestNewerVersion(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.sqlite3")
	if err := os.WriteFile(path, writeHistory(t), 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, path, nil)
	alter(t, path, `pragma user_version = 2`)
	before, _ := os.ReadFile(path)
	_, err := sqlite.Open(path, nil)
	wantFault(t, "Open", err, sandbox.CodeHistoryVersion)
	wantFault(t, "Begin", s.Begin(t.Context(), benchOperation()), sandbox.CodeHistoryVersion)
	_, err = sqlite.Open(path, &sqlite.Options{ReadOnly: true})
	wantFault(t, "Open for reading", err, sandbox.CodeHistoryVersion)
	if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
		t.Error("the file was changed")
	}
}

// alter runs statements on a file without the store.
func alter(t *testing.T, path string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, statement := range statements {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// TestIdentity refuses the history of another sandbox and adopts its own.
func TestIdentity(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.sqlite3")
	mine := sqlite.Options{SandboxID: "sandbox-1", SandboxName: "项目", Metadata: map[string]string{"k": "v"}, SDKVersion: "1.2.3"}
	s, err := sqlite.Open(path, &mine)
	if err != nil {
		t.Fatal(err)
	}
	mustBegin(t, s)
	s.Close()
	for _, tt := range []struct {
		name string
		opts sqlite.Options
		ok   bool
	}{
		{"nothing said", sqlite.Options{}, true},
		{"the same", mine, true},
		{"other sandbox", sqlite.Options{SandboxID: "sandbox-2"}, false},
		{"other provider", sqlite.Options{ProviderKey: "e2b", SandboxID: "sandbox-1"}, false},
		{"other instance", sqlite.Options{SandboxID: "sandbox-1", InstanceID: "new"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := sqlite.Open(path, &tt.opts)
			if !tt.ok {
				wantFault(t, "Open", err, sandbox.CodeHistoryConflict)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			id, err := s.Identity(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got := fmt.Sprint(id.ProviderKey, id.SandboxID, id.SandboxName, id.Metadata["k"], id.SDKVersion)
			if want := "opensandbox-defaultsandbox-1项目v1.2.3"; got != want || !strings.HasPrefix(id.InstanceID, "legacy-") {
				t.Errorf("Identity gave %s and %s, want %s", got, id.InstanceID, want)
			}
		})
	}
}

// TestClockSetBack ends operations before they began: the order stays, and no
// duration is negative.
func TestClockSetBack(t *testing.T) {
	now := time.Now()
	s := open(t, filepath.Join(t.TempDir(), "history.sqlite3"), &sqlite.Options{Now: func() time.Time { return now }})
	first := mustBegin(t, s)
	now = now.Add(-time.Hour)
	second := benchOperation()
	second.StartedAt = now
	if err := s.Begin(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	mustFinish(t, s, first.ID)
	for _, at := range []time.Time{{}, now.Add(-time.Hour)} {
		op := benchOperation()
		op.StartedAt = now.Add(time.Minute)
		if err := s.Begin(t.Context(), op); err != nil {
			t.Fatal(err)
		}
		if err := s.Finish(t.Context(), op.ID, &history.End{Status: sandbox.Succeeded, At: at}); err != nil {
			t.Fatal(err)
		}
	}
	page, err := s.List(t.Context(), &history.Filter{})
	if err != nil || len(page.Operations) != 4 || page.Operations[0].ID != first.ID || page.Operations[1].ID != second.ID {
		t.Fatalf("List gave %+v, %v", page, err)
	}
	for _, op := range page.Operations {
		if op.Status == sandbox.Succeeded && (op.CompletedAt.Before(op.StartedAt) || op.Duration < 0 || op.DurationMS < 0) {
			t.Errorf("operation %d goes from %s to %s, %s", op.Seq, op.StartedAt, op.CompletedAt, op.Duration)
		}
	}
}
