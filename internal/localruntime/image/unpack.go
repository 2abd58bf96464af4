package image

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
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
