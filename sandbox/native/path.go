package native

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/glassboxhq/glassbox/sandbox"
)

// The tree belongs to the agent, and we may be root in it. So a path is opened
// once, what is checked is the open directory and never the name again, and
// the last part of a path that is written to is not followed.

// place is an open directory and a name in it.
type place struct {
	dir  *os.File // opened with O_PATH
	name string
	path string // for messages
	real string // where the kernel says that it is
}

func (p *place) close() { p.dir.Close() }

// fd is the directory's descriptor. The file is kept open by the place.
func (p *place) fd() int { return int(p.dir.Fd()) }

// locate opens the directory in which a file is to be written or removed. It
// makes missing directories if asked.
func (s *Session) locate(op, name string, make bool) (*place, error) {
	full, err := s.resolve(name)
	if err != nil {
		return nil, err
	}
	if full == "/" {
		return nil, notAllowed(op, full, "is the root of the file system")
	}
	var missing *making
	if make {
		missing = &making{}
	}
	dir, err := s.openDir(op, path.Dir(full), missing)
	if err != nil {
		return nil, err
	}
	p := &place{dir: dir, name: path.Base(full), path: full}
	if err := s.guard(op, p); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (s *Session) resolve(name string) (string, error) {
	switch {
	case name == "":
		return "", sandbox.Invalid("path", "must not be empty")
	case strings.ContainsRune(name, 0):
		return "", sandbox.Invalid("path", "must not contain NUL bytes")
	}
	return sandbox.Resolve(s.opts.Workdir, name), nil
}

// making says how missing directories are made.
type making struct{ mode fs.FileMode } // 0: 0755, less the process's mask

// openDir opens a directory with O_PATH. Missing ones are made one by one,
// each in the open directory above it, after that one was found not guarded.
func (s *Session) openDir(op, name string, make *making) (*os.File, error) {
	dir, err := openAt(unix.AT_FDCWD, name, unix.O_PATH|unix.O_DIRECTORY)
	if make == nil || !errors.Is(err, fs.ErrNotExist) {
		if err != nil {
			return nil, fault(op, err)
		}
		return dir, nil
	}
	above, err := s.openDir(op, path.Dir(name), make)
	if err != nil {
		return nil, err
	}
	p := &place{dir: above, name: path.Base(name), path: name}
	defer p.close()
	if err := s.guard(op, p); err != nil {
		return nil, err
	}
	if err := s.makeDirAt(p.fd(), p.name, make.mode); err != nil && !errors.Is(err, unix.EEXIST) {
		return nil, pathFault(op, name, err)
	}
	dir, err = openAt(p.fd(), p.name, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return nil, fault(op, renamed(err, name))
	}
	return dir, nil
}

// makeDirAt makes a directory with exactly the mode that was asked for.
func (s *Session) makeDirAt(dir int, name string, mode fs.FileMode) error {
	if mode == 0 {
		return s.opts.User.mkdirAt(dir, name, 0o755)
	}
	if err := s.opts.User.mkdirAt(dir, name, uint32(mode.Perm())|0o700); err != nil {
		return err
	}
	f, err := openDirAt(dir, name)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Fchmod(int(f.Fd()), uint32(mode.Perm()))
}

// guard refuses what lies below a protected directory, /proc or /sys, and the
// protected directories themselves. It asks the kernel where the open
// directory is, so links on the way do not matter.
func (s *Session) guard(op string, p *place) error {
	real, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(p.fd()))
	if err != nil {
		return fault(op, err)
	}
	var stat unix.Statfs_t
	if err := unix.Fstatfs(p.fd(), &stat); err != nil {
		return fault(op, &fs.PathError{Op: "statfs", Path: p.path, Err: err})
	}
	if stat.Type == unix.PROC_SUPER_MAGIC || stat.Type == unix.SYSFS_MAGIC {
		return notAllowed(op, p.path, "belongs to the kernel")
	}
	p.real = path.Join(real, p.name)
	for _, root := range s.opts.Protected {
		if below(realPath(root), p.real) {
			return notAllowed(op, p.path, "is kept by the recorder, which alone writes there")
		}
	}
	return nil
}

// realPath is where a directory of ours is, whatever links lead to it. It is
// asked each time, as it may have been made a moment ago.
func realPath(name string) string {
	if real, err := filepath.EvalSymlinks(name); err == nil {
		return real
	}
	return name
}

func below(root, name string) bool {
	return name == root || strings.HasPrefix(name, strings.TrimSuffix(root, "/")+"/")
}

// openTries bounds how often an open that was interrupted is tried: who holds a
// lease on a file can let it fail for as long as he likes.
const openTries = 100

// openAt opens without following magic links, such as those in /proc/self/fd.
func openAt(dir int, name string, flags int) (*os.File, error) {
	how := &unix.OpenHow{Flags: uint64(flags | unix.O_CLOEXEC), Resolve: unix.RESOLVE_NO_MAGICLINKS}
	var fd int
	var err error
	for range openTries {
		fd, err = unix.Openat2(dir, name, how)
		if errors.Is(err, unix.ENOSYS) { // a kernel before 5.6, and gVisor
			fd, err = unix.Openat(dir, name, flags|unix.O_CLOEXEC, 0)
		}
		if !errors.Is(err, unix.EINTR) && !errors.Is(err, unix.EAGAIN) {
			break
		}
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}

// codes is the one table from the system's errors to codes.
var codes = []struct {
	err  error
	code sandbox.Code
}{
	{unix.ENOENT, sandbox.CodeFileNotFound},
	{unix.EEXIST, sandbox.CodeFileExists},
	{unix.EISDIR, sandbox.CodeIsDirectory},
	{unix.ENOTDIR, sandbox.CodeNotDirectory},
	{unix.ENOTEMPTY, sandbox.CodeNotEmpty},
	{unix.EACCES, sandbox.CodePermission},
	{unix.EPERM, sandbox.CodePermission},
	{unix.EROFS, sandbox.CodePermission},
	{unix.ELOOP, sandbox.CodePathNotAllowed},
	{unix.ENAMETOOLONG, sandbox.CodeInvalid},
	{unix.E2BIG, sandbox.CodeInvalid},
	{unix.ENOSPC, sandbox.CodeNoSpace},
	{unix.EDQUOT, sandbox.CodeNoSpace},
	{unix.EFBIG, sandbox.CodeTooLarge},
	{unix.EMFILE, sandbox.CodeUnavailable},
	{unix.ENFILE, sandbox.CodeUnavailable},
	{unix.EAGAIN, sandbox.CodeUnavailable},
	{unix.ENOMEM, sandbox.CodeUnavailable},
}

// fault gives an error of the system its code. It is nil if err is.
func fault(op string, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*sandbox.Error](err); ok {
		return err
	}
	e := &sandbox.Error{Op: op, Code: sandbox.CodeInternal, Err: err}
	for _, known := range codes {
		if errors.Is(err, known.err) {
			e.Code = known.code
			break
		}
	}
	e.Retryable = e.Code == sandbox.CodeUnavailable
	if perr, ok := errors.AsType[*fs.PathError](err); ok {
		e.Err = nil
		e.Message = perr.Path + ": " + reason(perr.Err)
	}
	return e
}

// pathFault is fault for an error of a call that named no path.
func pathFault(op, name string, err error) error {
	return fault(op, &fs.PathError{Op: op, Path: name, Err: err})
}

func reason(err error) string {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno.Error()
	}
	return err.Error()
}

func notAllowed(op, name, why string) error {
	return &sandbox.Error{Op: op, Code: sandbox.CodePathNotAllowed, Message: name + " " + why}
}
