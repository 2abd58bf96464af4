package native

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/glassboxhq/glassbox/sandbox"
)

// The limits of a scan that names none.
const (
	scanEntries = 50_000
	scanTime    = 5 * time.Second
	// maxUnread bounds the list of directories that could not be read.
	maxUnread = 100
)

var _ sandbox.Scanner = (*Session)(nil)

// Scan implements sandbox.Scanner. What a writer of ours that was killed has
// left half written, it removes.
func (s *Session) Scan(ctx context.Context, name string, limit sandbox.ScanLimit) (*sandbox.Scan, error) {
	const op = "scan files"
	full, err := s.resolve(name)
	if err != nil {
		return nil, err
	}
	root, err := s.openTree(op, full)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if limit.Entries == 0 {
		limit.Entries = scanEntries
	}
	if limit.Time == 0 {
		limit.Time = scanTime
	}
	w := &scanner{
		walker: s.newWalker(ctx, full), most: limit.Entries, end: time.Now().Add(limit.Time),
		found: &sandbox.Scan{Root: full},
	}
	if err := w.scan(root, "", 0); err != nil && !errors.Is(err, errStop) {
		return nil, err
	}
	return w.found, nil
}

// scanner walks a tree as a walker does. It asks for each thing once, and
// makes little garbage.
type scanner struct {
	*walker

	most  int
	end   time.Time
	found *sandbox.Scan
}

func (w *scanner) scan(dir *os.File, rel string, depth int) error {
	names, err := w.names(dir)
	if w.ctx.Err() != nil {
		return sandbox.FromContext(w.ctx, "scan files")
	}
	if err != nil {
		return w.unread(rel)
	}
	prefix := rel
	if rel != "" {
		prefix += "/"
	}
	fd := int(dir.Fd())
	for i, name := range names {
		at := prefix + name
		if slices.Contains(w.protected, at) {
			continue
		}
		if sweep(fd, name) {
			continue
		}
		if err := w.mayGoOn(i, at); err != nil {
			return err
		}
		var stat unix.Stat_t
		err := unix.Fstatat(fd, name, &stat, unix.AT_SYMLINK_NOFOLLOW)
		switch {
		case errors.Is(err, unix.ENOENT):
			continue // removed while we looked
		case err != nil:
			if err := w.unread(at); err != nil {
				return err
			}
			continue
		}
		w.found.Entries = append(w.found.Entries, entryOf(at, &stat))
		if stat.Mode&unix.S_IFMT == unix.S_IFDIR {
			if err := w.enterDir(fd, name, at, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *scanner) enterDir(above int, name, at string, depth int) error {
	if depth > maxDepth {
		return w.unread(at)
	}
	dir, err := openDirAt(above, name)
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
		return nil // removed or replaced while we looked
	case err != nil:
		return w.unread(at)
	}
	defer dir.Close()
	if kernels(dir) {
		return nil
	}
	return w.scan(dir, at, depth)
}

// mayGoOn stops at the limits. The time is asked for now and then.
func (w *scanner) mayGoOn(i int, at string) error {
	full := len(w.found.Entries) >= w.most
	if !full && i%64 != 0 {
		return nil
	}
	if w.ctx.Err() != nil {
		return sandbox.FromContext(w.ctx, "scan files")
	}
	if late := time.Now().After(w.end); full || late {
		w.found.Until, w.found.Late = at, !full
		return errStop
	}
	return nil
}

// unread goes on without a directory. Where there are too many such, the scan
// ends.
func (w *scanner) unread(at string) error {
	if len(w.found.Unread) == maxUnread {
		w.found.Until = at
		return errStop
	}
	w.found.Unread = append(w.found.Unread, at)
	return nil
}

var errCrowded = errors.New("the directory holds more than a scan looks at")

// names reads a directory, sorted. One that holds more than a whole scan looks
// at is refused, so that its names do not fill the memory.
func (w *scanner) names(dir *os.File) (list []string, err error) {
	for err == nil {
		if len(list) > w.most || w.ctx.Err() != nil {
			return nil, errCrowded
		}
		var part []string
		part, err = dir.Readdirnames(walkBatch)
		list = append(list, part...)
	}
	if !errors.Is(err, io.EOF) {
		return nil, err
	}
	slices.Sort(list)
	return list, nil
}

func entryOf(at string, stat *unix.Stat_t) sandbox.ScanEntry {
	return sandbox.ScanEntry{
		Path: at, Mode: modeOf(stat.Mode), Size: stat.Size, Inode: stat.Ino, UID: stat.Uid, GID: stat.Gid,
		Modified: stat.Mtim.Nano(), Changed: stat.Ctim.Nano(),
	}
}
