package native_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/glassboxhq/glassbox/sandbox"
	"github.com/glassboxhq/glassbox/sandbox/native"
)

// newTree makes a session, and files in its working directory.
func newTree(t *testing.T, names ...string) (*native.Session, string) {
	t.Helper()
	dir := t.TempDir()
	s, err := native.New(&native.Options{Workdir: dir, Protected: []string{filepath.Join(dir, "kept")}})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(name), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return s, dir
}

func pathsOf(scan *sandbox.Scan) []string {
	var list []string
	for _, e := range scan.Entries {
		list = append(list, e.Path)
	}
	return list
}

func TestScan(t *testing.T) {
	s, dir := newTree(t, "a/x", "a.b", "a/y/z", "bad\xff", "two\nlines", "kept/history")
	if err := os.Symlink("/", filepath.Join(dir, "everything")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Scan(t.Context(), "", sandbox.ScanLimit{}); !errors.Is(err, sandbox.ErrInvalid) {
		t.Errorf("an empty path: got %v", err)
	}
	scan, err := s.Scan(t.Context(), dir, sandbox.ScanLimit{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"a", "a/x", "a/y", "a/y/z", "a.b", "bad\xff", "everything", "two\nlines"}
	if diff := cmp.Diff(want, pathsOf(scan)); diff != "" || scan.Until != "" || scan.Unread != nil {
		t.Errorf("until %q, unread %q (-want +got):\n%s", scan.Until, scan.Unread, diff)
	}
	if !slices.IsSortedFunc(scan.Entries, func(a, b sandbox.ScanEntry) int { return sandbox.ComparePaths(a.Path, b.Path) }) {
		t.Error("a walk has another order than ComparePaths")
	}
	info, err := os.Lstat(filepath.Join(dir, "a/x"))
	if err != nil {
		t.Fatal(err)
	}
	if e := scan.Entries[1]; e.Size != 3 || e.Mode != info.Mode() || e.Modified != info.ModTime().UnixNano() || e.Inode == 0 {
		t.Errorf("got %+v, want what %+v tells", e, info)
	}
}

func TestScanLimits(t *testing.T) {
	var names []string
	for i := range 300 {
		names = append(names, fmt.Sprintf("d%d/f%03d", i/100, i))
	}
	s, dir := newTree(t, names...)
	scan, err := s.Scan(t.Context(), dir, sandbox.ScanLimit{Entries: 150})
	if err != nil || len(scan.Entries) != 150 || scan.Until != "d1/f148" || scan.Late {
		t.Errorf("got %d entries until %q, %v, want 150", len(scan.Entries), scan.Until, err)
	}
	scan, err = s.Scan(t.Context(), dir, sandbox.ScanLimit{Time: time.Nanosecond})
	if err != nil || scan.Until == "" || !scan.Late || len(scan.Entries) > 64 {
		t.Errorf("got %d entries until %q, late %v, %v, want few", len(scan.Entries), scan.Until, scan.Late, err)
	}
	scan, err = s.Scan(t.Context(), dir, sandbox.ScanLimit{Entries: 50})
	if err != nil || len(scan.Entries) != 3 || !slices.Equal(scan.Unread, []string{"d0", "d1", "d2"}) {
		t.Errorf("directories over the limit: got %q, unread %q, %v", pathsOf(scan), scan.Unread, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Scan(ctx, dir, sandbox.ScanLimit{}); !errors.Is(err, sandbox.ErrCancelled) {
		t.Errorf("cancelled: got %v", err)
	}
	if _, err := s.Scan(t.Context(), filepath.Join(dir, "nothing"), sandbox.ScanLimit{}); !errors.Is(err, sandbox.ErrNotFound) {
		t.Errorf("nothing there: got %v", err)
	}
}

// BenchmarkScan looks at 10 000 files in 100 directories.
func BenchmarkScan(b *testing.B) {
	dir := b.TempDir()
	for i := range 10_000 {
		file := filepath.Join(dir, fmt.Sprintf("d%02d/f%04d", i%100, i))
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, nil, 0o600)); err != nil {
			b.Fatal(err)
		}
	}
	s, err := native.New(&native.Options{Workdir: dir})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		scan, err := s.Scan(b.Context(), dir, sandbox.ScanLimit{})
		if err != nil || len(scan.Entries) != 10_100 {
			b.Fatal(len(scan.Entries), err)
		}
	}
}
