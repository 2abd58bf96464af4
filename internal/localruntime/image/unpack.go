package image

import (
	"archive/tar"
	"context"
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
)

// unpacker applies the layers of an image, one over the other, below a folder
// that nobody else can reach. Whoever made the image may have written anything
// into them. Each part of a name is opened below the one before it, and never a
// link, so nothing is made, changed or removed outside of the folder.
type unpacker struct {
	root   *os.Root
	owners bool // as in the image; only root can keep them
	limits Limits

	bytes   int64 // of files, in all layers
	entries int
	put     map[string]bool   // what the layer has put, by path; true: by an entry of its own
	dirs    map[string]folder // how folders are to be in the end
	way     []step            // folders that are open, from the root down
}

// folder is what a folder gets in the end: until then it can be written to.
type folder struct {
	mode     fs.FileMode
	uid, gid int
	time     time.Time
}

// step is an open folder on the way to the last entry.
type step struct {
	name string
	dir  *os.Root
}

const (
	maxDepth  = 255 // folders within folders
	maxTarget = 4095
)

// ErrHostile marks what no honest image holds.
var ErrHostile = errors.New("the image is not safe to unpack")

func hostile(name, why string) error {
	if len(name) > 256 {
		name = name[:256] + "…"
	}
	return fmt.Errorf("%w: %s %s", ErrHostile, strconv.QuoteToGraphic(name), why)
}

func newUnpacker(root *os.Root, limits Limits) *unpacker {
	return &unpacker{root: root, owners: os.Geteuid() == 0, limits: limits, dirs: map[string]folder{}}
}

// layer applies one layer.
func (u *unpacker) layer(ctx context.Context, content io.Reader) error {
	defer u.back(0)
	u.put = map[string]bool{}
	archive := tar.NewReader(content)
	for {
		h, err := archive.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read layer: %w", err)
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
		if u.entries++; u.entries > u.limits.Entries {
			return fmt.Errorf("%w: it has more than %d files and folders", ErrHostile, u.limits.Entries)
		}
		if err := u.entry(h, archive); err != nil {
			return err
		}
	}
}

func (u *unpacker) entry(h *tar.Header, content io.Reader) error {
	if h.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	name, err := localName(h.Name)
	if err != nil {
		return err
	}
	if name == "." {
		if h.Typeflag != tar.TypeDir {
			return hostile(h.Name, "names no file")
		}
		return nil // the root is ours
	}
	if hidden, ok := strings.CutPrefix(path.Base(name), whiteout); ok {
		return u.whiteout(path.Dir(name), hidden)
	}
	if err := u.free(h, name); err != nil {
		return err
	}
	if isSpecial(h) && strings.HasPrefix(name, "dev/") {
		return nil // a sandbox has a /dev of its own
	}
	if err := u.make(name, h, content); err != nil {
		return err
	}
	u.put[name] = true
	return nil
}

func isSpecial(h *tar.Header) bool {
	return h.Typeflag == tar.TypeChar || h.Typeflag == tar.TypeBlock || h.Typeflag == tar.TypeFifo
}

func (u *unpacker) make(name string, h *tar.Header, content io.Reader) error {
	switch h.Typeflag {
	case tar.TypeReg, tar.TypeCont, tar.TypeGNUSparse:
		return u.file(name, h, content)
	case tar.TypeDir:
		return u.folder(name, folderOf(h))
	case tar.TypeSymlink:
		return u.symlink(name, h)
	case tar.TypeLink:
		return u.hardLink(name, h)
	}
	return hostile(h.Name, "is a device or a pipe, or of another kind that is not unpacked")
}

// free sees that this layer has put nothing at a name yet. Folders may come
// again, and after what is in them.
func (u *unpacker) free(h *tar.Header, name string) error {
	explicit, ok := u.put[name]
	if !ok {
		return nil
	}
	if h.Typeflag == tar.TypeDir {
		parent, err := u.enter(path.Dir(name), false)
		if err != nil {
			return err
		}
		if info, err := parent.Lstat(path.Base(name)); err == nil && info.IsDir() {
			return nil
		}
	}
	if !explicit {
		return hostile(h.Name, "is a folder and something else in one layer")
	}
	return hostile(h.Name, "comes twice in one layer")
}

// localName checks a name of a layer, and cleans it.
func localName(name string) (string, error) {
	switch {
	case name == "" || strings.ContainsRune(name, 0):
		return "", hostile(name, "is no name")
	case strings.HasPrefix(name, "/"):
		return "", hostile(name, "is an absolute path")
	}
	parts := strings.Split(name, "/")
	switch {
	case slices.Contains(parts, ".."):
		return "", hostile(name, "climbs out with ..")
	case len(parts) > maxDepth:
		return "", hostile(name, "lies too deep")
	}
	return path.Clean(name), nil
}

var errAbsent = errors.New("is not there")

// enter opens a folder of the image, and may make it. The folder stays open
// until another is entered: entries that follow each other often share it.
func (u *unpacker) enter(name string, create bool) (*os.Root, error) {
	var parts []string
	if name != "." {
		parts = strings.Split(name, "/")
	}
	common := 0
	for common < len(parts) && common < len(u.way) && u.way[common].name == parts[common] {
		common++
	}
	u.back(common)
	dir := u.top()
	for i := common; i < len(parts); i++ {
		full := strings.Join(parts[:i+1], "/")
		if err := u.passable(dir, full, create); err != nil {
			return nil, err
		}
		next, err := dir.OpenRoot(parts[i])
		if err != nil {
			return nil, err
		}
		u.way = append(u.way, step{parts[i], next})
		dir = next
	}
	if create && u.put != nil {
		u.claim(name)
	}
	return dir, nil
}

// passable sees that a name within dir is a folder, and may make it one.
func (u *unpacker) passable(dir *os.Root, full string, create bool) error {
	info, err := dir.Lstat(path.Base(full))
	switch {
	case errors.Is(err, fs.ErrNotExist) && create:
		if err := dir.Mkdir(path.Base(full), 0o700); err != nil {
			return err
		}
		u.dirs[full] = folder{mode: 0o755}
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s %w", strconv.QuoteToGraphic(full), errAbsent)
	case err != nil:
		return err
	case info.Mode().Type() == fs.ModeSymlink:
		return hostile(full, "is a link, and something is to be put behind it")
	case !info.IsDir():
		return hostile(full, "is no folder, and something is to be put into it")
	}
	return nil
}

// claim notes that what lies in a folder was put by this layer.
func (u *unpacker) claim(name string) {
	for ; name != "."; name = path.Dir(name) {
		if _, ok := u.put[name]; ok {
			return // and so are those above
		}
		u.put[name] = false
	}
}

func (u *unpacker) top() *os.Root {
	if len(u.way) == 0 {
		return u.root
	}
	return u.way[len(u.way)-1].dir
}

// back closes what is open beyond the first n steps.
func (u *unpacker) back(n int) {
	for _, s := range u.way[n:] {
		s.dir.Close()
	}
	u.way = u.way[:n]
}

// displace removes what lower layers have put at a name, for what takes its place.
func (u *unpacker) displace(dir *os.Root, base string) error {
	info, err := dir.Lstat(base)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.IsDir():
		return dir.RemoveAll(base)
	}
	return dir.Remove(base)
}

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

func (u *unpacker) folder(name string, meta folder) error {
	dir, err := u.enter(path.Dir(name), true)
	if err != nil {
		return err
	}
	base := path.Base(name)
	info, err := dir.Lstat(base)
	if err == nil && info.IsDir() {
		u.dirs[name] = meta
		return nil
	}
	if err := u.displace(dir, base); err != nil {
		return err
	}
	u.dirs[name] = meta
	return dir.Mkdir(base, 0o700)
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

// finish gives the folders what their entries said, the deepest first: an
// ordinary user may not look into some of them after that.
func (u *unpacker) finish() error {
	defer u.back(0)
	u.put = nil
	names := make([]string, 0, len(u.dirs))
	for name := range u.dirs {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range slices.Backward(names) {
		dir, err := u.enter(path.Dir(name), false)
		if errors.Is(err, ErrHostile) || errors.Is(err, errAbsent) {
			continue // it was a folder in a lower layer
		}
		if err == nil {
			err = u.finishOne(dir, path.Base(name), u.dirs[name])
		}
		if err != nil {
			return fmt.Errorf("finish %s: %w", strconv.QuoteToGraphic(name), err)
		}
	}
	return nil
}

func (u *unpacker) finishOne(dir *os.Root, base string, meta folder) error {
	info, err := dir.Lstat(base)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
		return nil
	}
	if err != nil {
		return err
	}
	if u.owners {
		if err := dir.Lchown(base, meta.uid, meta.gid); err != nil {
			return err
		}
	} else {
		meta.mode |= 0o700 // else this user could not remove what is in it
	}
	if err := dir.Chmod(base, meta.mode); err != nil {
		return err
	}
	if meta.time.IsZero() {
		return nil
	}
	return dir.Chtimes(base, time.Time{}, sane(meta.time))
}
