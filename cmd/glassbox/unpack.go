package main

import (
	"archive/tar"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/glassboxhq/glassbox/sandbox"
)

// unpacking writes the tar of a sandbox below a folder of this machine. The
// sandbox may have written anything into it: no name and no link leads out of
// the folder, nothing is written through a link, and only plain files, folders
// and links are made.
type unpacking struct {
	*copying
	root    *os.Root
	dir     *os.Root // of the last entry, so that a deep tree is not walked anew for each
	dirName string
	entries int
	made    []madeDir
}

// madeDir is a folder whose mode comes at the end.
type madeDir struct {
	name string
	mode fs.FileMode
}

var errHostile = errors.New("the archive of the sandbox is not safe to unpack")

func hostile(name, why string) error {
	return fmt.Errorf("%w: %s %s", errHostile, strconv.QuoteToGraphic(name), why)
}

func (u *unpacking) run(archive io.Reader) error {
	u.dir, u.dirName = u.root, "."
	defer u.leave()
	r := tar.NewReader(archive)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			_, err := io.Copy(io.Discard, io.LimitReader(archive, 1<<20)) // what a cut stream says at its end
			return errors.Join(err, u.modes())
		}
		if err != nil {
			return err
		}
		if h.Typeflag == tar.TypeXGlobalHeader {
			u.skipped(h.PAXRecords)
			continue
		}
		if u.entries++; u.entries > u.maxFiles {
			return fmt.Errorf("the folder has more than %d entries; raise --max-files to copy it", u.maxFiles)
		}
		if err := u.entry(h, r); err != nil {
			return err
		}
	}
}

// skipped tells what the sandbox has left out.
func (u *unpacking) skipped(records map[string]string) {
	n, err := strconv.Atoi(records[sandbox.TarSkipped])
	if err != nil || n <= 0 {
		return
	}
	names := 0
	for name := range strings.SplitSeq(records[sandbox.TarSkippedNames], "\n") {
		if name != "" && names < n {
			u.leaveOut(name, "is a socket, a FIFO or a device, or may not be read")
			names++
		}
	}
	u.done.LeftOut += n - names
}

func (u *unpacking) entry(h *tar.Header, r io.Reader) error {
	name, err := localName(h.Name)
	if err != nil {
		return err
	}
	if name == "." {
		if h.Typeflag != tar.TypeDir {
			return hostile(h.Name, "names no file")
		}
		return nil
	}
	if err := u.enter(path.Dir(name)); err != nil {
		return err
	}
	switch h.Typeflag {
	case tar.TypeReg:
		return u.file(h, path.Base(name), r)
	case tar.TypeDir:
		return u.folder(h, name)
	case tar.TypeSymlink:
		return u.link(h, name)
	case tar.TypeLink:
		return u.hardLink(h, name)
	}
	return hostile(h.Name, "is a device or of another kind that is not unpacked")
}

// localName checks a name of an archive, and cleans it.
func localName(name string) (string, error) {
	switch {
	case name == "" || strings.ContainsRune(name, 0):
		return "", hostile(name, "is no name")
	case strings.HasPrefix(name, "/"):
		return "", hostile(name, "is an absolute path")
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == ".." {
			return "", hostile(name, "climbs out with ..")
		}
	}
	return path.Clean(name), nil
}

// enter opens the folder of an entry, and makes what is missing of it.
func (u *unpacking) enter(name string) error {
	if name == u.dirName {
		return nil
	}
	way, deeper := strings.CutPrefix(name, u.dirName+"/")
	if !deeper {
		u.leave()
	}
	if name == "." {
		return nil
	}
	for part := range strings.SplitSeq(way, "/") {
		next, err := u.down(part)
		if err != nil {
			return err
		}
		below := path.Join(u.dirName, part)
		u.leave()
		u.dir, u.dirName = next, below
	}
	return nil
}

// leave goes back to the folder that is unpacked into.
func (u *unpacking) leave() {
	if u.dir != u.root {
		u.dir.Close()
	}
	u.dir, u.dirName = u.root, "."
}

// down opens a folder in the open one, which may be no link.
func (u *unpacking) down(part string) (*os.Root, error) {
	info, err := u.dir.Lstat(part)
	name := plain(path.Join(u.dirName, part))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = u.dir.Mkdir(part, 0o755)
	case err == nil && info.Mode()&fs.ModeSymlink != 0:
		err = fmt.Errorf("%s is a link, through which nothing is unpacked", name)
	case err == nil && !info.IsDir():
		err = fmt.Errorf("%s is a file here and a folder in the sandbox", name)
	}
	if err != nil {
		return nil, err
	}
	return u.dir.OpenRoot(part)
}

func (u *unpacking) file(h *tar.Header, last string, r io.Reader) error {
	if h.Size > u.maxBytes-u.done.Bytes {
		return fmt.Errorf("the folder holds more than %d bytes; raise --max-bytes to copy it", u.maxBytes)
	}
	temp := tempName()
	f, err := u.dir.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	err = errors.Join(err, f.Chmod(ownMode(fs.FileMode(h.Mode&0o777))), f.Close())
	if err == nil {
		err = u.dir.Chtimes(temp, time.Time{}, h.ModTime)
	}
	if err := u.put(err, temp, last); err != nil {
		return err
	}
	u.done.Files++
	u.done.Bytes += h.Size
	return nil
}

func tempName() string { return sandbox.TempPrefix + rand.Text() }

// put gives what was made its name, if it was.
func (u *unpacking) put(err error, temp, last string) error {
	if err == nil {
		err = u.dir.Rename(temp, last)
	}
	// Of two names of one file neither is renamed.
	if rerr := u.dir.Remove(temp); err == nil && rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
		return rerr
	}
	return err
}

func (u *unpacking) folder(h *tar.Header, name string) error {
	err := u.dir.Mkdir(path.Base(name), 0o755)
	if errors.Is(err, fs.ErrExist) {
		return u.enter(name) // it must be a folder, and no link
	}
	if err != nil {
		return err
	}
	u.done.Directories++
	u.made = append(u.made, madeDir{name, ownMode(fs.FileMode(h.Mode & 0o777))})
	return nil
}

// link makes a link that stays within the folder. Its way may climb only at
// its beginning: after a link, .. would lead elsewhere than it says.
func (u *unpacking) link(h *tar.Header, name string) error {
	if !staysWithin(path.Dir(name), h.Linkname) {
		u.leaveOut(name, "is a link to "+plain(short(h.Linkname, 200))+", which is not in the copy")
		return nil
	}
	temp := tempName()
	if err := u.put(u.dir.Symlink(h.Linkname, temp), temp, path.Base(name)); err != nil {
		return err
	}
	u.done.Links++
	return nil
}

func staysWithin(dir, target string) bool {
	if target == "" || strings.HasPrefix(target, "/") || strings.ContainsAny(target, "\x00\\") {
		return false
	}
	depth := 0
	if dir != "." {
		depth = strings.Count(dir, "/") + 1
	}
	climbing := true
	for part := range strings.SplitSeq(target, "/") {
		switch {
		case part == "" || part == ".":
		case part != "..":
			climbing = false
		case !climbing || depth == 0:
			return false
		default:
			depth--
		}
	}
	return true
}

func (u *unpacking) hardLink(h *tar.Header, name string) error {
	target, err := localName(h.Linkname)
	if err != nil {
		return err
	}
	if err := u.enter(path.Dir(target)); err != nil {
		return err
	}
	info, err := u.dir.Lstat(path.Base(target))
	if err != nil || !info.Mode().IsRegular() {
		return hostile(h.Name, "is a hard link to what is no file of the archive")
	}
	if err := u.enter(path.Dir(name)); err != nil {
		return err
	}
	temp := tempName()
	if err := u.put(u.root.Link(target, path.Join(path.Dir(name), temp)), temp, path.Base(name)); err != nil {
		return err
	}
	u.done.Links++
	return nil
}

// modes gives the new folders their modes, the deepest first.
func (u *unpacking) modes() error {
	var faults error
	for _, made := range slices.Backward(u.made) {
		faults = errors.Join(faults, u.root.Chmod(made.name, made.mode))
	}
	return faults
}
