package localruntime

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/glassboxhq/glassbox/internal/id"
)

// A sandbox lays out its history folder as it likes: with links, with names
// and depths of any kind. What is here opens folders only, one below the
// other, follows no link, and holds few of them open.

// maxDepth is more than any history needs.
const maxDepth = 64

// openDir opens a folder in another, and follows no link. A sandbox may have
// taken its rights away, which stops everybody but root: its owner takes them
// back, on what is open, whatever the name leads to by now.
func openDir(at int, name string) (*os.File, error) {
	const flags = unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	found, err := unix.Openat(at, name, unix.O_PATH|flags, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	defer unix.Close(found)
	if err := widen(found, 0o700); err != nil {
		return nil, &fs.PathError{Op: "chmod", Path: name, Err: err}
	}
	fd, err := unix.Openat(found, ".", flags, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}

// widen gives the owner of what is open at least these rights.
func widen(fd int, mode uint32) error {
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return err
	}
	if stat.Mode&mode == mode {
		return nil
	}
	// A descriptor of O_PATH has no other way to its modes.
	return unix.Chmod("/proc/self/fd/"+strconv.Itoa(fd), stat.Mode&0o777|mode)
}

// treeSize sums what the files below a folder take, and stops above limit. A
// tree that is deeper than maxDepth counts as over the limit.
func treeSize(name string, limit int64) int64 {
	return sizeBelow(unix.AT_FDCWD, name, limit, maxDepth)
}

func sizeBelow(at int, name string, limit int64, depth int) int64 {
	if depth == 0 {
		return limit + 1
	}
	dir, err := openDir(at, name)
	if err != nil {
		return 0 // it may be gone
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return 0
	}
	fd := int(dir.Fd())
	var sum int64
	for _, entry := range names {
		sum += 4096 // a file costs, even an empty one
		var stat unix.Stat_t
		if err := unix.Fstatat(fd, entry, &stat, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			continue
		}
		switch stat.Mode & unix.S_IFMT {
		case unix.S_IFREG:
			sum += stat.Size
		case unix.S_IFDIR:
			if sum <= limit {
				sum += sizeBelow(fd, entry, limit-sum, depth-1)
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
	top, err := openDir(unix.AT_FDCWD, name)
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

// clearHistory removes from the folder of a history what is no file of it. What
// stays can be read by its owner.
func clearHistory(name string) error {
	return clearTree(name, func(entry os.DirEntry) bool {
		base, suffix, _ := strings.Cut(entry.Name(), "-")
		if !entry.Type().IsRegular() || !slices.Contains(historyFiles, base) || !slices.Contains(historySuffixes, suffix) {
			return false
		}
		fd, err := unix.Open(filepath.Join(name, entry.Name()), unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err == nil {
			_ = widen(fd, 0o600) // who reads it is told
			unix.Close(fd)
		}
		return true
	})
}

// moveUp moves a folder into the one at the top, for which it has to be its
// owner's to write to.
func moveUp(from int, name string, top int) error {
	dir, err := openDir(from, name)
	if err != nil {
		return err
	}
	defer dir.Close()
	return unix.Renameat(from, name, top, "moved-"+id.NewRandom())
}

// removeEntry removes an entry of top. Folders within it come to stand in top.
func removeEntry(top *os.File, entry os.DirEntry) error {
	at := int(top.Fd())
	if !entry.IsDir() {
		return unix.Unlinkat(at, entry.Name(), 0)
	}
	dir, err := openDir(at, entry.Name())
	if err != nil {
		return err
	}
	defer dir.Close()
	fd := int(dir.Fd())
	entries, err := dir.ReadDir(-1)
	if err != nil {
		return err
	}
	for _, inner := range entries {
		if inner.IsDir() {
			err = moveUp(fd, inner.Name(), at)
		} else {
			err = unix.Unlinkat(fd, inner.Name(), 0)
		}
		if err != nil {
			return err
		}
	}
	return unix.Unlinkat(at, entry.Name(), unix.AT_REMOVEDIR)
}
