package native

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/glassboxhq/glassbox/sandbox"
)

// A tree is walked by open directories, each opened in the one above it and
// never through a link: so it ends, and stays where it began, whatever an agent
// does to the tree meanwhile.

const (
	maxDepth  = 512 // as many directories are open at a time
	walkBatch = 4096
)

// walker goes through a tree, in the order of names.
type walker struct {
	ctx       context.Context //nolint:containedctx // of the one act that walks
	root      string          // as it is shown
	protected []string        // below the root, by paths below it
	skipped   int             // directories that could not be read
	strict    bool            // such a directory is an error
	visit     func(*node) error
	enter     func(*node) bool // nil: every directory
}

// node is one thing in a tree.
type node struct {
	dir  *os.File // that holds it
	name string
	rel  string // path below the root
	mode fs.FileMode
	root string
}

func (n *node) fd() int      { return int(n.dir.Fd()) }
func (n *node) path() string { return path.Join(n.root, n.rel) }

// errStop ends a walk early.
var errStop = errors.New("enough was found")

// newWalker prepares a walk. What the recorder keeps is left out.
func (s *Session) newWalker(ctx context.Context, root string) *walker {
	w := &walker{ctx: ctx, root: root}
	real := realPath(root)
	for _, dir := range s.opts.Protected {
		if dir = realPath(dir); below(real, dir) {
			w.protected = append(w.protected, strings.TrimPrefix(strings.TrimPrefix(dir, strings.TrimSuffix(real, "/")), "/"))
		}
	}
	return w
}

// openTree opens the directory where a walk begins, through links if it is
// named by them.
func (s *Session) openTree(op, full string) (*os.File, error) {
	dir, err := openAt(unix.AT_FDCWD, full, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK)
	if err != nil {
		return nil, fault(op, err)
	}
	defer dir.Close()
	if err := s.mayWalk(op, full); err != nil {
		return nil, err
	}
	again, err := openDirAt(int(dir.Fd()), ".")
	if err != nil {
		return nil, pathFault(op, full, err)
	}
	if kernels(again) {
		again.Close()
		return nil, notAllowed(op, full, "belongs to the kernel")
	}
	return again, nil
}

// mayWalk refuses what the recorder keeps.
func (s *Session) mayWalk(op, full string) error {
	real := realPath(full)
	for _, dir := range s.opts.Protected {
		if below(realPath(dir), real) {
			return notAllowed(op, full, "is kept by the recorder; see the history instead")
		}
	}
	return nil
}

// openDirAt opens a directory for reading, never through a link. Its name is
// one by which the directory can be asked for what is in it.
func openDirAt(dir int, name string) (*os.File, error) {
	f, err := openAt(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_NONBLOCK)
	if err != nil {
		return nil, errors.Unwrap(err)
	}
	defer f.Close()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "/proc/self/fd/"+strconv.Itoa(fd)), nil
}

// kernels reports whether a directory is one of /proc or /sys.
func kernels(dir *os.File) bool {
	var stat unix.Statfs_t
	err := unix.Fstatfs(int(dir.Fd()), &stat)
	return err == nil && (stat.Type == unix.PROC_SUPER_MAGIC || stat.Type == unix.SYSFS_MAGIC)
}

func (w *walker) walk(dir *os.File, rel string, depth int) error {
	entries, err := w.entries(dir)
	if err != nil {
		if w.ctx.Err() != nil || w.strict {
			return renamed(err, path.Join(w.root, rel))
		}
		w.skipped++
	}
	for _, entry := range entries {
		if w.ctx.Err() != nil {
			return sandbox.FromContext(w.ctx, "walk")
		}
		n := &node{dir: dir, name: entry.Name(), rel: path.Join(rel, entry.Name()), mode: entry.Type(), root: w.root}
		if slices.Contains(w.protected, n.rel) {
			continue
		}
		if err := w.visit(n); err != nil {
			return err
		}
		if n.mode.IsDir() && (w.enter == nil || w.enter(n)) {
			if err := w.descend(n, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *walker) descend(n *node, depth int) error {
	if depth > maxDepth {
		return w.pass(&fs.PathError{Op: "open", Path: n.path(), Err: unix.ENAMETOOLONG})
	}
	dir, err := openDirAt(n.fd(), n.name)
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
		return nil // removed or replaced while we looked
	case err != nil:
		return w.pass(&fs.PathError{Op: "open", Path: n.path(), Err: err})
	}
	defer dir.Close()
	if kernels(dir) {
		return nil
	}
	return w.walk(dir, n.rel, depth)
}

// pass goes on without a directory, where that may be.
func (w *walker) pass(err error) error {
	if w.strict {
		return err
	}
	w.skipped++
	return nil
}

// entries reads a directory whole, sorted. What was read before a fault is
// returned with it.
func (w *walker) entries(dir *os.File) (list []fs.DirEntry, err error) {
	for err == nil {
		if w.ctx.Err() != nil {
			return nil, sandbox.FromContext(w.ctx, "walk")
		}
		var part []fs.DirEntry
		part, err = dir.ReadDir(walkBatch)
		list = append(list, part...)
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return list, err
}
