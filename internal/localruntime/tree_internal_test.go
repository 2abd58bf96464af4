package localruntime

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// deep makes folders within folders, deeper than a path can be long, with a
// file in the last.
func deep(t *testing.T, top string, depth int) {
	t.Helper()
	fd, err := unix.Open(top, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	for range depth {
		if err := unix.Mkdirat(fd, "below", 0o700); err != nil {
			t.Fatal(err)
		}
		next, err := unix.Openat(fd, "below", unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		unix.Close(fd)
		if err != nil {
			t.Fatal(err)
		}
		fd = next
	}
	defer unix.Close(fd)
	file, err := unix.Openat(fd, "file", unix.O_CREAT|unix.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	unix.Close(file)
}

func TestRemoveTree(t *testing.T) {
	outside := t.TempDir()
	canary := filepath.Join(outside, "canary")
	if err := os.WriteFile(canary, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	top := filepath.Join(t.TempDir(), "top")
	if err := os.MkdirAll(filepath.Join(top, "wide", "inner"), 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range 1000 {
		for _, dir := range []string{"wide", "wide/inner"} {
			if err := os.WriteFile(filepath.Join(top, dir, fmt.Sprint(i)), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, name := range []string{"link", "wide/link"} {
		if err := os.Symlink(outside, filepath.Join(top, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mkfifo(filepath.Join(top, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	deep(t, top, 5000)
	if err := removeTree(top); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(top); err == nil {
		t.Error("it is still there")
	}
	if _, err := os.Lstat(canary); err != nil {
		t.Errorf("a link was followed: %v", err)
	}
	if err := removeTree(top); err != nil {
		t.Errorf("remove again: %v", err)
	}
	if err := os.Symlink(outside, top); err != nil {
		t.Fatal(err)
	}
	if err := removeTree(top); err == nil {
		t.Error("a link in place of the folder was followed")
	}
}

func TestTreeSize(t *testing.T) {
	top := t.TempDir()
	if err := os.WriteFile(filepath.Join(top, "file"), []byte(strings.Repeat("x", 10000)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/", filepath.Join(top, "root")); err != nil {
		t.Fatal(err)
	}
	const limit = 1 << 20
	if got := treeSize(top, limit); got != 10000+2*4096 {
		t.Errorf("%d bytes", got)
	}
	deep(t, top, 50)
	if got := treeSize(top, limit); got > limit {
		t.Errorf("%d bytes", got)
	}
	deeper := t.TempDir()
	deep(t, deeper, 3000)
	if got := treeSize(deeper, limit); got <= limit {
		t.Errorf("%d bytes in a tree without a bottom", got)
	}
	if err := removeTree(filepath.Join(deeper, "below")); err != nil {
		t.Error(err)
	}
	if got := treeSize(filepath.Join(top, "none"), limit); got != 0 {
		t.Errorf("%d bytes of nothing", got)
	}
}
