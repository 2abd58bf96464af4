package native

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/glassboxhq/glassbox/sandbox"
)

// Read implements sandbox.Session.
func (s *Session) Read(ctx context.Context, name string, opts *sandbox.ReadOptions) (io.ReadCloser, error) {
	const op = "read file"
	if opts == nil {
		opts = &sandbox.ReadOptions{}
	}
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	full, err := s.resolve(name)
	if err != nil {
		return nil, err
	}
	f, info, err := openRegular(op, unix.AT_FDCWD, full)
	if err != nil {
		return nil, err
	}
	part, err := rangeOf(ctx, f, info.Size(), opts)
	if err == nil {
		_, err = f.Seek(part.offset, io.SeekStart)
	}
	if err != nil {
		f.Close()
		if errors.Is(err, unix.EINVAL) {
			return nil, sandbox.Invalid("offset", "is more than a file has")
		}
		return nil, fault(op, err)
	}
	r := &file{Reader: f, f: f, info: s.describe(full, info), part: part}
	switch {
	case opts.Lines > 0:
		r.Reader = io.LimitReader(f, part.length)
	case opts.Length > 0: // a file of the kernel has more than it says
		r.Reader = io.LimitReader(f, opts.Length)
	}
	return r, nil
}

// file is an open file, read within the bounds that were asked for.
type file struct {
	io.Reader
	f    *os.File
	info *sandbox.FileInfo
	part extent
}

// Read implements io.Reader.
func (f *file) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = fault("read file", renamed(err, f.info.Path))
	}
	return n, err
}

// Info implements sandbox.Described.
func (f *file) Info() *sandbox.FileInfo { return f.info }

// Range implements sandbox.Ranged.
func (f *file) Range() (offset, length int64) { return f.part.offset, f.part.length }

// Close implements io.Closer.
func (f *file) Close() error { return f.f.Close() }

// openRegular opens a regular file for reading, and nothing else: a FIFO
// would block, a device may act.
func openRegular(op string, dir int, name string) (*os.File, fs.FileInfo, error) {
	return regularAt(op, dir, &shown{name, name}, unix.O_RDONLY)
}

// shown is a name in an open directory, and how errors call it.
type shown struct{ name, path string }

func regularAt(op string, dir int, at *shown, flags int) (*os.File, fs.FileInfo, error) {
	f, err := openAt(dir, at.name, flags|unix.O_NONBLOCK|unix.O_NOCTTY)
	if errors.Is(err, unix.ENXIO) { // a socket
		return nil, nil, notAllowed(op, at.path, "is not a regular file")
	}
	if err != nil {
		if perr, ok := errors.AsType[*fs.PathError](err); ok {
			perr.Path = at.path
		}
		return nil, nil, fault(op, err)
	}
	info, err := f.Stat()
	switch {
	case err != nil:
		err = fault(op, err)
	case info.IsDir():
		err = &sandbox.Error{Op: op, Code: sandbox.CodeIsDirectory, Message: at.path + " is a directory"}
	case !info.Mode().IsRegular():
		err = notAllowed(op, at.path, "is not a regular file")
	default:
		return f, info, nil
	}
	f.Close()
	return nil, nil, err
}

// Write implements sandbox.Session. The content goes to a file beside the old
// one, which it then replaces.
func (s *Session) Write(ctx context.Context, name string, content io.Reader, opts *sandbox.WriteOptions) (*sandbox.FileInfo, error) {
	const op = "write file"
	if opts == nil {
		opts = &sandbox.WriteOptions{}
	}
	if err := checkWrite(name, opts); err != nil {
		return nil, err
	}
	p, err := s.locate(op, name, true)
	if err != nil {
		return nil, err
	}
	defer p.close()
	old, err := p.current(ctx, op)
	if err != nil {
		return nil, err
	}
	if err := old.check(op, p.path, opts.IfHash); err != nil {
		return nil, err
	}
	info, err := s.replace(p, reading(ctx, content), old, opts)
	if err != nil {
		return nil, fault(op, err)
	}
	return info, nil
}

func checkWrite(name string, opts *sandbox.WriteOptions) error {
	if strings.HasSuffix(name, "/") {
		return sandbox.Invalid("path", "names a directory: it ends in /")
	}
	if opts.Mode&^fs.ModePerm != 0 {
		return sandbox.Invalid("mode", "must be permission bits, as in 0644")
	}
	return nil
}

// version is what stands at a place before a write.
type version struct {
	exists bool
	hash   string
	size   int64
	stat   unix.Stat_t
	prefix prefix // of its content
}

// current looks at what is there now, without following a link.
func (p *place) current(ctx context.Context, op string) (*version, error) {
	v := &version{}
	err := unix.Fstatat(p.fd(), p.name, &v.stat, unix.AT_SYMLINK_NOFOLLOW)
	switch {
	case errors.Is(err, unix.ENOENT):
		return v, nil
	case err != nil:
		return nil, fault(op, &fs.PathError{Op: "stat", Path: p.path, Err: err})
	}
	switch v.stat.Mode & unix.S_IFMT {
	case unix.S_IFREG:
	case unix.S_IFDIR:
		return nil, &sandbox.Error{Op: op, Code: sandbox.CodeIsDirectory, Message: p.path + " is a directory"}
	case unix.S_IFLNK:
		return nil, notAllowed(op, p.path, "is a symbolic link; name what it points to")
	default:
		return nil, notAllowed(op, p.path, "is not a regular file")
	}
	f, info, err := p.open(op, unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(sum, &v.prefix), reading(ctx, f)); err != nil {
		return nil, fault(op, err)
	}
	v.exists, v.size, v.hash = true, info.Size(), hex.EncodeToString(sum.Sum(nil))
	return v, nil
}

func (v *version) check(op, name, want string) error {
	switch {
	case want == "", v.exists && want == v.hash, !v.exists && want == sandbox.Absent:
		return nil
	case want == sandbox.Absent:
		return &sandbox.Error{Op: op, Code: sandbox.CodeFileExists, Message: name + " exists"}
	case !v.exists:
		return &sandbox.Error{Op: op, Code: sandbox.CodeModified, Message: name + " is gone since it was read; read it again"}
	}
	return v.changed(op, name)
}

func (v *version) changed(op, name string) error {
	return &sandbox.Error{Op: op, Code: sandbox.CodeModified, Message: name + " has changed since it was read; read it again"}
}

// replace writes a new file and puts it in the old one's place.
func (s *Session) replace(p *place, content io.Reader, old *version, opts *sandbox.WriteOptions) (*sandbox.FileInfo, error) {
	f, err := createTemp(p.fd(), p.path)
	if err != nil {
		return nil, &fs.PathError{Op: "create", Path: p.path, Err: err}
	}
	defer f.release()
	sum := sha256.New()
	var now prefix
	var info fs.FileInfo
	if err = s.opts.User.own(int(f.Fd())); err == nil {
		info, err = fill(f.File, content, old, opts.Mode, io.MultiWriter(sum, &now))
	}
	if err := errors.Join(err, f.Close()); err != nil {
		_ = unix.Unlinkat(p.fd(), f.name, 0) // the error at hand is the one to tell
		return nil, err
	}
	if err := s.rename(p, f.name, old, opts.IfHash); err != nil {
		_ = unix.Unlinkat(p.fd(), f.name, 0)
		return nil, err
	}
	result := s.describe(p.path, info)
	result.SHA256 = hex.EncodeToString(sum.Sum(nil))
	result.Previous, result.OldSize = old.hash, old.size
	s.tell(result, old, &now)
	return result, nil
}

// rename puts a new file in the place of the version that was seen. Our own
// writers come one after the other here, so of those who saw the same version
// one wins; for a program that writes beside us a moment remains.
func (s *Session) rename(p *place, temp string, old *version, ifHash string) error {
	s.renaming.Lock()
	defer s.renaming.Unlock()
	var flags uint
	switch {
	case ifHash == sandbox.Absent:
		flags = unix.RENAME_NOREPLACE
	case ifHash != "" && !old.stands(p):
		return old.changed("write file", p.path)
	}
	if err := unix.Renameat2(p.fd(), temp, p.fd(), p.name, flags); err != nil {
		return &fs.PathError{Op: "rename", Path: p.path, Err: err}
	}
	return nil
}

// stands reports whether what was seen is still there.
func (v *version) stands(p *place) bool {
	var now unix.Stat_t
	err := unix.Fstatat(p.fd(), p.name, &now, unix.AT_SYMLINK_NOFOLLOW)
	return err == nil && now.Dev == v.stat.Dev && now.Ino == v.stat.Ino && now.Size == v.stat.Size &&
		now.Mtim == v.stat.Mtim && now.Ctim == v.stat.Ctim
}

// fill writes the content and gives the file the old one's owner and mode.
func fill(f *os.File, content io.Reader, old *version, mode fs.FileMode, also io.Writer) (fs.FileInfo, error) {
	if _, err := io.Copy(io.MultiWriter(f, also), content); err != nil {
		return nil, err
	}
	switch {
	case old.exists:
		mode = fs.FileMode(old.stat.Mode & 0o777)
		if err := f.Chown(int(old.stat.Uid), int(old.stat.Gid)); err != nil && !errors.Is(err, fs.ErrPermission) {
			return nil, err
		}
	case mode == 0:
		mode = 0o644
	}
	if err := f.Chmod(mode); err != nil {
		return nil, err
	}
	return f.Stat()
}

// List implements sandbox.Session.
func (s *Session) List(_ context.Context, name string) ([]*sandbox.FileInfo, error) {
	const op = "list directory"
	full, err := s.resolve(name)
	if err != nil {
		return nil, err
	}
	dir, err := openAt(unix.AT_FDCWD, full, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, fault(op, err)
	}
	defer dir.Close()
	entries, err := dir.ReadDir(-1)
	if err != nil {
		return nil, fault(op, err)
	}
	list := make([]*sandbox.FileInfo, 0, len(entries))
	for _, entry := range entries {
		info, err := s.statAt(int(dir.Fd()), entry.Name(), full)
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed while we looked
		}
		if err != nil {
			return nil, fault(op, err)
		}
		list = append(list, info)
	}
	slices.SortFunc(list, func(a, b *sandbox.FileInfo) int { return strings.Compare(a.Path, b.Path) })
	return list, nil
}

// Remove implements sandbox.Session.
func (s *Session) Remove(ctx context.Context, name string, opts *sandbox.RemoveOptions) error {
	const op = "remove"
	p, err := s.locate(op, name, false)
	if err != nil {
		return err
	}
	defer p.close()
	if p.holds(s.opts.Workdir) {
		return notAllowed(op, p.path, "holds the working directory")
	}
	if slices.ContainsFunc(s.opts.Protected, p.holds) {
		return notAllowed(op, p.path, "holds what the recorder keeps")
	}
	err = unix.Unlinkat(p.fd(), p.name, 0)
	if errors.Is(err, unix.EISDIR) || errors.Is(err, unix.EPERM) && p.isDir() {
		if opts != nil && opts.Recursive {
			return p.removeTree(ctx, op)
		}
		err = unix.Unlinkat(p.fd(), p.name, unix.AT_REMOVEDIR)
	}
	if err != nil {
		return fault(op, &fs.PathError{Op: op, Path: p.path, Err: err})
	}
	return nil
}

// holds reports whether a directory of ours goes, or cannot be found any more,
// when the place does.
func (p *place) holds(dir string) bool {
	return below(p.path, dir) || below(p.real, realPath(dir))
}

func (p *place) isDir() bool {
	var stat unix.Stat_t
	err := unix.Fstatat(p.fd(), p.name, &stat, unix.AT_SYMLINK_NOFOLLOW)
	return err == nil && stat.Mode&unix.S_IFMT == unix.S_IFDIR
}
