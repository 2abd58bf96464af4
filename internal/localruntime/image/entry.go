package image

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"time"
)

func folderOf(h *tar.Header) folder {
	meta := folder{mode: modeOf(h), uid: h.Uid, gid: h.Gid, time: h.ModTime}
	if h.Mode&0o2000 != 0 {
		meta.mode |= fs.ModeSetgid // files made in it get its group
	}
	return meta
}

// modeOf leaves setuid and setgid out: gVisor does not heed them, and the file
// lies on this machine's disk.
func modeOf(h *tar.Header) fs.FileMode {
	mode := fs.FileMode(h.Mode) & fs.ModePerm
	if h.Mode&0o1000 != 0 {
		mode |= fs.ModeSticky
	}
	return mode
}

func (u *unpacker) file(name string, h *tar.Header, content io.Reader) error {
	dir, err := u.enter(path.Dir(name), true)
	if err != nil {
		return err
	}
	// Counted before it is written: a file with holes is small in the layer.
	if h.Size < 0 || h.Size > u.limits.Bytes-u.bytes {
		return u.tooLarge()
	}
	base := path.Base(name)
	if err := u.displace(dir, base); err != nil {
		return err
	}
	out, err := dir.OpenFile(base, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(out, content)
	u.bytes += n
	if u.owners && err == nil {
		err = out.Chown(h.Uid, h.Gid)
	}
	if err == nil {
		err = out.Chmod(modeOf(h))
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return fmt.Errorf("write %s: %w", strconv.QuoteToGraphic(name), err)
	}
	return dir.Chtimes(base, time.Time{}, sane(h.ModTime))
}

func (u *unpacker) tooLarge() error {
	return fmt.Errorf("%w: it is larger than %d bytes", ErrHostile, u.limits.Bytes)
}

// sane is a time that every file system can keep.
func sane(t time.Time) time.Time {
	if t.Unix() < 0 || t.Unix() > 1<<33 {
		return time.Unix(0, 0)
	}
	return t
}

func (u *unpacker) symlink(name string, h *tar.Header) error {
	target := h.Linkname
	if target == "" || len(target) > maxTarget || strings.ContainsRune(target, 0) {
		return hostile(h.Name, "is a link to nowhere")
	}
	// An absolute link starts at the sandbox's own root. A relative one that
	// climbs above it is made by no honest tool.
	if to := path.Join(path.Dir(name), target); !path.IsAbs(target) && (to == ".." || strings.HasPrefix(to, "../")) {
		return hostile(h.Name, "is a link that leads out")
	}
	dir, err := u.enter(path.Dir(name), true)
	if err != nil {
		return err
	}
	base := path.Base(name)
	if err := u.displace(dir, base); err != nil {
		return err
	}
	if err := dir.Symlink(target, base); err != nil {
		return err
	}
	if u.owners {
		return dir.Lchown(base, h.Uid, h.Gid)
	}
	return nil
}

// hardLink makes another name of a file that the image has.
func (u *unpacker) hardLink(name string, h *tar.Header) error {
	target, err := localName(h.Linkname)
	if err != nil {
		return err
	}
	from, err := u.enter(path.Dir(target), false)
	if err != nil {
		return linkFault(h, err)
	}
	info, err := from.Lstat(path.Base(target))
	switch {
	case err != nil:
		return linkFault(h, err)
	case target == name || !info.Mode().IsRegular() && info.Mode().Type() != fs.ModeSymlink:
		return hostile(h.Name, "is a hard link to what is no file")
	}
	dir, err := u.enter(path.Dir(name), true)
	if err != nil {
		return err
	}
	if err := u.displace(dir, path.Base(name)); err != nil {
		return err
	}
	// No part of either name is a link: both were entered.
	return u.root.Link(target, name)
}

func linkFault(h *tar.Header, err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errAbsent) {
		return hostile(h.Name, "is a hard link to what is not there")
	}
	return err
}
