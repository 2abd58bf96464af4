package image

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
)

// step is an open folder on the way to the last entry.
type step struct {
	name string
	dir  *os.Root
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
