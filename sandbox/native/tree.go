package native

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/glassboxhq/glassbox/sandbox"
)

// Stat implements sandbox.Tree.
func (s *Session) Stat(_ context.Context, name string) (*sandbox.FileInfo, error) {
	const op = "stat file"
	full, err := s.resolve(name)
	if err != nil {
		return nil, err
	}
	dir, err := openAt(unix.AT_FDCWD, path.Dir(full), unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return nil, fault(op, err)
	}
	defer dir.Close()
	last := path.Base(full)
	if full == "/" {
		last = "."
	}
	info, err := s.statAt(int(dir.Fd()), last, path.Dir(full))
	if perr, ok := errors.AsType[*fs.PathError](err); ok {
		perr.Path = full
	}
	if err != nil {
		return nil, fault(op, err)
	}
	return info, nil
}

// MakeDir implements sandbox.Tree.
func (s *Session) MakeDir(_ context.Context, name string, opts *sandbox.MakeDirOptions) (*sandbox.FileInfo, error) {
	const op = "make directory"
	if opts == nil {
		opts = &sandbox.MakeDirOptions{}
	}
	if opts.Mode&^fs.ModePerm != 0 {
		return nil, sandbox.Invalid("mode", "must be permission bits, as in 0755")
	}
	full, err := s.resolve(name)
	if err != nil {
		return nil, err
	}
	dir, err := s.openDir(op, full, &making{mode: opts.Mode})
	if errors.Is(err, sandbox.ErrNotDirectory) && isFile(full) {
		return nil, &sandbox.Error{Op: op, Code: sandbox.CodeFileExists, Message: full + " exists and is not a directory"}
	}
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	info, err := dir.Stat()
	if err != nil {
		return nil, fault(op, err)
	}
	return s.describe(full, info), nil
}

// isFile reports whether it is the last part of a path that is no directory.
func isFile(full string) bool {
	_, err := os.Lstat(full)
	return err == nil
}

// SetMode implements sandbox.Tree.
func (s *Session) SetMode(ctx context.Context, name string, opts *sandbox.ModeOptions) (*sandbox.FileInfo, error) {
	const op = "set mode"
	c, err := s.modeChange(opts)
	if err != nil {
		return nil, err
	}
	p, err := s.locate(op, name, false)
	if err != nil {
		return nil, err
	}
	defer p.close()
	if opts.Recursive && slices.ContainsFunc(s.opts.Protected, p.holds) {
		return nil, notAllowed(op, p.path, "holds what the recorder keeps")
	}
	f, err := openAt(p.fd(), p.name, unix.O_PATH|unix.O_NOFOLLOW)
	if err != nil {
		return nil, pathFault(op, p.path, err)
	}
	defer f.Close()
	if err := c.apply(f, p.path); err != nil {
		return nil, fault(op, err)
	}
	if opts.Recursive && p.isDir() {
		if err := s.modeBelow(ctx, p, c); err != nil {
			return nil, fault(op, err)
		}
	}
	info, err := f.Stat()
	if err != nil {
		return nil, fault(op, err)
	}
	return s.describe(p.path, info), nil
}

// modeBelow changes all that a directory holds but links.
func (s *Session) modeBelow(ctx context.Context, p *place, c *modeChange) error {
	dir, err := openDirAt(p.fd(), p.name)
	if err != nil {
		return &fs.PathError{Op: "open", Path: p.path, Err: err}
	}
	defer dir.Close()
	w := s.newWalker(ctx, p.path)
	w.strict = true
	w.visit = func(n *node) error {
		if n.mode&fs.ModeSymlink != 0 {
			return nil
		}
		f, err := openAt(n.fd(), n.name, unix.O_PATH|unix.O_NOFOLLOW)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // removed while we looked
		}
		if err != nil {
			return &fs.PathError{Op: "open", Path: n.path(), Err: errors.Unwrap(err)}
		}
		defer f.Close()
		err = c.apply(f, n.path())
		if errors.Is(err, errLink) {
			return nil // it has become one
		}
		return err
	}
	return w.walk(dir, "", 0)
}

// modeChange is what of a file is changed; -1 and nil leave it as it is.
type modeChange struct {
	mode       *fs.FileMode
	user, team int
}

func (s *Session) modeChange(opts *sandbox.ModeOptions) (*modeChange, error) {
	if opts == nil || opts.Mode == nil && opts.Owner == "" && opts.Group == "" {
		return nil, sandbox.Invalid("mode", "nothing to change: give a mode, an owner or a group")
	}
	if opts.Mode != nil && *opts.Mode&^(fs.ModePerm|fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky) != 0 {
		return nil, sandbox.Invalid("mode", "must be permission bits with setuid, setgid and sticky, as in 0755")
	}
	c := &modeChange{mode: opts.Mode}
	var err error
	if c.user, err = s.owners.number("owner", opts.Owner); err != nil {
		return nil, err
	}
	c.team, err = s.owners.number("group", opts.Group)
	return c, err
}

var errLink = errors.New("is a symbolic link; name what it points to")

// apply changes an open file. The owner comes first: it takes setuid away.
func (c *modeChange) apply(f *os.File, name string) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		return &sandbox.Error{Op: "set mode", Code: sandbox.CodePathNotAllowed, Message: name, Err: errLink}
	}
	self := "/proc/self/fd/" + strconv.Itoa(int(f.Fd()))
	if c.user >= 0 || c.team >= 0 {
		if err := os.Chown(self, c.user, c.team); err != nil {
			return renamed(err, name)
		}
	}
	if c.mode != nil {
		return renamed(os.Chmod(self, *c.mode), name)
	}
	return nil
}

// renamed gives an error about an open file the file's own name.
func renamed(err error, name string) error {
	if perr, ok := errors.AsType[*fs.PathError](err); ok {
		return &fs.PathError{Op: perr.Op, Path: name, Err: perr.Err}
	}
	return err
}

func hidden(name string) bool { return strings.HasPrefix(name, ".") }
