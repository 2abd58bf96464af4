package image

import (
	"errors"
	"os"
	"path"
	"strings"
)

// What a layer says about the layers below it: an entry with this prefix takes
// one name away, and an opaque one takes all that is in its folder.
const (
	whiteout     = ".wh."
	opaque       = ".wh..opq" // behind the prefix
	whiteoutMeta = ".wh."     // behind the prefix: of aufs itself
)

// whiteout takes away what lower layers have. What this layer has put stays, in
// whichever order the entries come.
func (u *unpacker) whiteout(dir, hidden string) error {
	switch {
	case hidden == opaque:
	case strings.HasPrefix(hidden, whiteoutMeta):
		return nil
	case hidden == "" || hidden == "." || hidden == "..":
		return hostile(path.Join(dir, whiteout+hidden), "takes no name away")
	}
	parent, err := u.enter(dir, false)
	if errors.Is(err, errAbsent) {
		return nil // there is nothing to take away
	}
	if err != nil {
		return err
	}
	if hidden == opaque {
		return u.hideAll(parent, dir)
	}
	return u.hide(parent, path.Join(dir, hidden))
}

func (u *unpacker) hideAll(dir *os.Root, name string) error {
	names, err := namesIn(dir)
	if err != nil {
		return err
	}
	for _, base := range names {
		if err := u.hide(dir, path.Join(name, base)); err != nil {
			return err
		}
	}
	return nil
}

// hide removes a name, but for what this layer has put there.
func (u *unpacker) hide(parent *os.Root, name string) error {
	base := path.Base(name)
	if _, ours := u.put[name]; !ours {
		return parent.RemoveAll(base)
	}
	info, err := parent.Lstat(base)
	if err != nil || !info.IsDir() {
		return err
	}
	dir, err := parent.OpenRoot(base)
	if err != nil {
		return err
	}
	defer dir.Close()
	return u.hideAll(dir, name)
}

func namesIn(dir *os.Root) ([]string, error) {
	f, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}
