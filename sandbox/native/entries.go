package native

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/glassboxhq/glassbox/sandbox"
)

// regular unpacks a file beside the one that it then replaces. A link that
// stands there is replaced too, not followed.
func (u *unpacker) regular(h *tar.Header, last string, r io.Reader) error {
	if h.Size > u.opts.MaxBytes-u.done.Bytes {
		return &sandbox.Error{Code: sandbox.CodeTooLarge, Field: "tar", Message: fmt.Sprintf("unpacks to more than %d bytes, the limit of this upload", u.opts.MaxBytes)}
	}
	dir := int(u.dir.Fd())
	f, err := createTemp(dir, path.Join(u.path, h.Name))
	if err != nil {
		return err
	}
	defer f.release()
	if err = u.s.opts.User.own(int(f.Fd())); err == nil {
		err = u.fill(f.File, h, last, r)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		_ = unix.Unlinkat(dir, f.name, 0) // the error at hand is the one to tell
		return cutArchive(err)
	}
	if err := u.put(f.name, last); err != nil {
		return err
	}
	u.done.Files++
	u.done.Bytes += h.Size
	return nil
}

// cutArchive tells an archive that ends too early from a fault of the disk.
func cutArchive(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return bad("", "ends in the middle of a file: it was cut")
	}
	return err
}

func (u *unpacker) fill(f *os.File, h *tar.Header, last string, r io.Reader) error {
	if _, err := io.CopyBuffer(struct{ io.Writer }{f}, struct{ io.Reader }{r}, u.buf); err != nil {
		return err
	}
	var old unix.Stat_t
	err := unix.Fstatat(int(u.dir.Fd()), last, &old, unix.AT_SYMLINK_NOFOLLOW)
	if err == nil && old.Mode&unix.S_IFMT == unix.S_IFREG {
		if err := f.Chown(int(old.Uid), int(old.Gid)); err != nil && !errors.Is(err, fs.ErrPermission) {
			return err
		}
	}
	if err := f.Chmod(fs.FileMode(h.Mode & 0o777)); err != nil {
		return err
	}
	if h.ModTime.IsZero() || h.ModTime.Unix() == 0 {
		return nil
	}
	at := unix.NsecToTimeval(h.ModTime.UnixNano())
	return unix.Futimes(int(f.Fd()), []unix.Timeval{at, at})
}

// put gives what was made its name.
func (u *unpacker) put(temp, last string) error {
	dir := int(u.dir.Fd())
	err := unix.Renameat(dir, temp, dir, last)
	// Where both are links to one file nothing is renamed, and nothing wrong.
	if uerr := unix.Unlinkat(dir, temp, 0); err == nil && uerr != nil && !errors.Is(uerr, unix.ENOENT) {
		return uerr
	}
	return err
}

func (u *unpacker) directory(h *tar.Header, last, name string) error {
	err := u.s.opts.User.mkdirAt(int(u.dir.Fd()), last, 0o755)
	if errors.Is(err, unix.EEXIST) {
		var stat unix.Stat_t
		if err := unix.Fstatat(int(u.dir.Fd()), last, &stat, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return err
		}
		if stat.Mode&unix.S_IFMT != unix.S_IFDIR {
			return &sandbox.Error{Code: sandbox.CodeFileExists, Message: path.Join(u.path, name) + " exists and is not a directory"}
		}
		return nil
	}
	if err != nil {
		return err
	}
	u.done.Directories++
	if mode := fs.FileMode(h.Mode & 0o777); mode != 0o755 {
		u.made = append(u.made, madeDir{name, mode})
	}
	return nil
}

// symlink makes a link. Where it points to is its own matter: nothing is
// unpacked through it.
func (u *unpacker) symlink(h *tar.Header, last string) error {
	if h.Linkname == "" {
		return bad(h.Name, "is a link to nowhere")
	}
	temp := tempName()
	if err := unix.Symlinkat(h.Linkname, int(u.dir.Fd()), temp); err != nil {
		return err
	}
	if err := u.put(temp, last); err != nil {
		return err
	}
	u.done.Links++
	return nil
}

// hardLink makes another name of a file below the same directory.
func (u *unpacker) hardLink(h *tar.Header, name string) error {
	target, err := entryName(h.Linkname)
	if err != nil {
		return err
	}
	if err := u.find(path.Dir(target)); err != nil {
		return err
	}
	if err := u.mayWrite(path.Base(target), target); err != nil {
		return err
	}
	var stat unix.Stat_t
	err = unix.Fstatat(int(u.dir.Fd()), path.Base(target), &stat, unix.AT_SYMLINK_NOFOLLOW)
	if err != nil || stat.Mode&unix.S_IFMT != unix.S_IFREG {
		return bad(h.Name, "is a hard link to what is no file of this directory")
	}
	from, err := openAt(int(u.dir.Fd()), ".", unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer from.Close()
	if err := u.find(path.Dir(name)); err != nil {
		return err
	}
	temp := tempName()
	if err := unix.Linkat(int(from.Fd()), path.Base(target), int(u.dir.Fd()), temp, 0); err != nil {
		return err
	}
	if err := u.put(temp, path.Base(name)); err != nil {
		return err
	}
	u.done.Links++
	return nil
}

// modes gives the new directories their modes, the deepest first.
func (u *unpacker) modes() error {
	for _, made := range slices.Backward(u.made) {
		if err := u.find(path.Dir(made.name)); err != nil {
			continue // it was moved away meanwhile
		}
		dir, err := openDirAt(int(u.dir.Fd()), path.Base(made.name))
		if err != nil {
			continue
		}
		err = unix.Fchmod(int(dir.Fd()), uint32(made.mode))
		dir.Close()
		if err != nil {
			return &fs.PathError{Op: "chmod", Path: path.Join(u.path, made.name), Err: err}
		}
	}
	return nil
}
