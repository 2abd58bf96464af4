package image

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"time"
)

// folder is what a folder gets in the end: until then it can be written to.
type folder struct {
	mode     fs.FileMode
	uid, gid int
	time     time.Time
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
