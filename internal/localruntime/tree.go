package localruntime

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/glassboxhq/glassbox/internal/id"
)

// A sandbox lays out its history folder as it likes: with links, with names
// and depths of any kind. What is here opens folders only, one below the
// other, follows no link, and holds few of them open.

// maxDepth is more than any history needs.
const maxDepth = 64

// treeSize sums what the files below a folder take, and stops above limit. A
// tree that is deeper than maxDepth counts as over the limit.
func treeSize(name string, limit int64) int64 {
	root, err := os.OpenRoot(name)
	if err != nil {
		return 0
	}
	defer root.Close()
	return sizeBelow(root, limit, maxDepth)
}

func sizeBelow(root *os.Root, limit int64, depth int) int64 {
	if depth == 0 {
		return limit + 1
	}
	dir, err := root.Open(".")
	if err != nil {
		return 0
	}
	entries, err := dir.ReadDir(-1)
	dir.Close()
	if err != nil {
		return 0
	}
	var sum int64
	for _, entry := range entries {
		sum += 4096 // a file costs, even an empty one
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			sum += info.Size()
		}
		if entry.IsDir() && sum <= limit {
			if below, err := root.OpenRoot(entry.Name()); err == nil { // it may be gone
				sum += sizeBelow(below, limit-sum, depth-1)
				below.Close()
			}
		}
		if sum > limit {
			return sum
		}
	}
	return sum
}

// removeTree removes a folder with all below it.
func removeTree(name string) error {
	err := clearTree(name, func(os.DirEntry) bool { return false })
	if err != nil {
		return err
	}
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove tree: %w", err)
	}
	return nil
}

// clearTree removes what lies in a folder, but for the entries that are to be
// kept. It moves what lies deep to the top, so that the depth costs no open
// files. A folder that is not there is clear.
func clearTree(name string, keep func(os.DirEntry) bool) error {
	top, err := os.OpenFile(name, unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("clear tree: %w", err)
	}
	defer top.Close()
	for again := true; again; {
		if _, err := top.Seek(0, io.SeekStart); err != nil {
			return fmt.Errorf("clear tree: %w", err)
		}
		if again, err = clearOnce(top, keep); err != nil {
			return fmt.Errorf("clear tree: %w", err)
		}
	}
	return nil
}

// clearOnce goes through a folder once, and reports whether it removed
// something: entries may have come in while others went.
func clearOnce(top *os.File, keep func(os.DirEntry) bool) (removed bool, err error) {
	for {
		entries, err := top.ReadDir(256)
		if errors.Is(err, io.EOF) {
			return removed, nil
		}
		if err != nil {
			return removed, err
		}
		for _, entry := range entries {
			if keep(entry) {
				continue
			}
			if err := removeEntry(top, entry); err != nil {
				return removed, err
			}
			removed = true
		}
	}
}

// The names that the files of a history have, and what SQLite puts behind
// them; what else a sandbox left in their folder is no history.
var (
	historyFiles    = []string{"history.sqlite3", "glassbox.sqlite3"}
	historySuffixes = []string{"", "wal", "shm", "journal"}
)

// clearHistory removes from the folder of a history what is no file of it.
func clearHistory(name string) error {
	return clearTree(name, func(entry os.DirEntry) bool {
		base, suffix, _ := strings.Cut(entry.Name(), "-")
		return entry.Type().IsRegular() && slices.Contains(historyFiles, base) && slices.Contains(historySuffixes, suffix)
	})
}

// removeEntry removes an entry of top. Folders within it come to stand in top.
func removeEntry(top *os.File, entry os.DirEntry) error {
	at := int(top.Fd())
	if !entry.IsDir() {
		return unix.Unlinkat(at, entry.Name(), 0)
	}
	fd, err := unix.Openat(at, entry.Name(), unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	dir := os.NewFile(uintptr(fd), entry.Name())
	defer dir.Close()
	entries, err := dir.ReadDir(-1)
	if err != nil {
		return err
	}
	for _, inner := range entries {
		if inner.IsDir() {
			err = unix.Renameat(fd, inner.Name(), at, "moved-"+id.NewRandom())
		} else {
			err = unix.Unlinkat(fd, inner.Name(), 0)
		}
		if err != nil {
			return err
		}
	}
	return unix.Unlinkat(at, entry.Name(), unix.AT_REMOVEDIR)
}
