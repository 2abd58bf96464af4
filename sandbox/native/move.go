package native

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/glassboxhq/glassbox/sandbox"
)

// Move implements sandbox.Tree.
func (s *Session) Move(ctx context.Context, from, to string, opts *sandbox.MoveOptions) (*sandbox.FileInfo, error) {
	const op = "move"
	if opts == nil {
		opts = &sandbox.MoveOptions{}
	}
	src, err := s.locate(op, from, false)
	if err != nil {
		return nil, err
	}
	defer src.close()
	switch {
	case src.holds(s.opts.Workdir):
		return nil, notAllowed(op, src.path, "holds the working directory")
	case slices.ContainsFunc(s.opts.Protected, src.holds):
		return nil, notAllowed(op, src.path, "holds what the recorder keeps")
	}
	if err := unix.Fstatat(src.fd(), src.name, &unix.Stat_t{}, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return nil, pathFault(op, src.path, err)
	}
	if full, err := s.resolve(to); err == nil && full != src.path && below(src.path, full) {
		return nil, sandbox.Invalid("to", full+" lies in "+src.path+", which cannot be moved into itself")
	}
	dst, err := s.locate(op, to, true)
	if err != nil {
		return nil, err
	}
	defer dst.close()
	if err := s.moveTo(ctx, src, dst, opts.Replace); err != nil {
		return nil, err
	}
	info, err := s.statAt(dst.fd(), dst.name, "/")
	if err != nil {
		return nil, fault(op, renamed(err, dst.path))
	}
	info.Path = dst.path
	return info, nil
}

func (s *Session) moveTo(ctx context.Context, src, dst *place, replace bool) error {
	const op = "move"
	var flags uint = unix.RENAME_NOREPLACE
	if replace {
		if dst.isDir() {
			return &sandbox.Error{Op: op, Code: sandbox.CodeIsDirectory, Message: dst.path + " is a directory; only a file is replaced"}
		}
		flags = 0
	}
	err := unix.Renameat2(src.fd(), src.name, dst.fd(), dst.name, flags)
	switch {
	case errors.Is(err, unix.EXDEV):
		return s.carry(ctx, src, dst, flags)
	case errors.Is(err, unix.EINVAL):
		return sandbox.Invalid("to", dst.path+" lies in "+src.path+", which cannot be moved into itself")
	case errors.Is(err, unix.EEXIST):
		return &sandbox.Error{Op: op, Code: sandbox.CodeFileExists, Message: dst.path + " exists"}
	case err != nil:
		return pathFault(op, dst.path, err)
	}
	return nil
}

// carry moves to another file system: a copy is made beside the place, takes
// it, and then the source goes.
func (s *Session) carry(ctx context.Context, src, dst *place, flags uint) error {
	const op = "move"
	temp := tempName()
	c := &copier{ctx: ctx}
	err := c.copy(&spot{src.fd(), src.name, src.path}, &spot{dst.fd(), temp, dst.path}, 0)
	if err == nil {
		err = unix.Renameat2(dst.fd(), temp, dst.fd(), dst.name, flags)
		if errors.Is(err, unix.EEXIST) {
			err = &sandbox.Error{Op: op, Code: sandbox.CodeFileExists, Message: dst.path + " exists"}
		} else if err != nil {
			err = pathFault(op, dst.path, err)
		}
	}
	if err != nil {
		copied := &place{dir: dst.dir, name: temp, path: dst.path}
		return fault(op, errors.Join(err, copied.removeTree(context.WithoutCancel(ctx), op)))
	}
	return src.removeTree(context.WithoutCancel(ctx), op) // the copy is in place
}

// spot is a name in an open directory.
type spot struct {
	dir  int
	name string
	path string
}

// copier copies a tree with its modes, owners and times.
type copier struct {
	ctx context.Context //nolint:containedctx // of the one act that copies
}

func (c *copier) copy(from, to *spot, depth int) error {
	if c.ctx.Err() != nil {
		return sandbox.FromContext(c.ctx, "move")
	}
	if depth > maxDepth {
		return &fs.PathError{Op: "copy", Path: from.path, Err: unix.ENAMETOOLONG}
	}
	var stat unix.Stat_t
	if err := unix.Fstatat(from.dir, from.name, &stat, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return &fs.PathError{Op: "stat", Path: from.path, Err: err}
	}
	var err error
	switch stat.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		return c.file(from, to)
	case unix.S_IFDIR:
		return c.directory(from, to, depth)
	case unix.S_IFLNK:
		target := make([]byte, unix.PathMax)
		var n int
		if n, err = unix.Readlinkat(from.dir, from.name, target); err == nil {
			err = unix.Symlinkat(string(target[:n]), to.dir, to.name)
		}
	case unix.S_IFIFO:
		err = unix.Mkfifoat(to.dir, to.name, stat.Mode&0o777)
	default:
		return notAllowed("move", from.path, "is a socket or a device, which stays on its file system")
	}
	if err != nil {
		return &fs.PathError{Op: "copy", Path: from.path, Err: err}
	}
	if err := unix.Fchownat(to.dir, to.name, int(stat.Uid), int(stat.Gid), unix.AT_SYMLINK_NOFOLLOW); err != nil && !errors.Is(err, unix.EPERM) {
		return &fs.PathError{Op: "chown", Path: to.path, Err: err}
	}
	return nil
}

func (c *copier) file(from, to *spot) error {
	in, info, err := regularAt("move", from.dir, &shown{from.name, from.path}, unix.O_RDONLY|unix.O_NOFOLLOW)
	if err != nil {
		return err
	}
	defer in.Close()
	fd, err := unix.Openat(to.dir, to.name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return &fs.PathError{Op: "create", Path: to.path, Err: err}
	}
	out := os.NewFile(uintptr(fd), to.path)
	_, err = io.Copy(out, reading(c.ctx, in))
	if err == nil {
		err = alike(out, info)
	}
	return errors.Join(err, out.Close())
}

func (c *copier) directory(from, to *spot, depth int) error {
	in, err := openDirAt(from.dir, from.name)
	if err != nil {
		return &fs.PathError{Op: "open", Path: from.path, Err: err}
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return renamed(err, from.path)
	}
	if err := unix.Mkdirat(to.dir, to.name, 0o700); err != nil {
		return &fs.PathError{Op: "mkdir", Path: to.path, Err: err}
	}
	out, err := openDirAt(to.dir, to.name)
	if err != nil {
		return &fs.PathError{Op: "open", Path: to.path, Err: err}
	}
	defer out.Close()
	entries, err := in.ReadDir(-1)
	if err != nil {
		return renamed(err, from.path)
	}
	for _, entry := range entries {
		name := entry.Name()
		err := c.copy(&spot{int(in.Fd()), name, from.path + "/" + name}, &spot{int(out.Fd()), name, to.path + "/" + name}, depth+1)
		if err != nil {
			return err
		}
	}
	return renamed(alike(out, info), to.path)
}

// alike gives an open file the owner, mode and times of another.
func alike(f *os.File, as fs.FileInfo) error {
	if stat, ok := as.Sys().(*syscall.Stat_t); ok {
		if err := f.Chown(int(stat.Uid), int(stat.Gid)); err != nil && !errors.Is(err, fs.ErrPermission) {
			return err
		}
	}
	if err := f.Chmod(as.Mode()); err != nil {
		return err
	}
	return os.Chtimes("/proc/self/fd/"+strconv.Itoa(int(f.Fd())), as.ModTime(), as.ModTime())
}
