package localruntime

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"golang.org/x/sys/unix"

	"github.com/glassboxhq/glassbox/sandbox"
)

// What lies in the state folder is run by this user: the recorder, and what
// records say. So nobody else may put anything there, nor put another folder
// in its place.

// openFolder makes the state folder and the folders within it, and returns its
// path without links: gVisor opens no file through one.
func openFolder(name string) (string, error) {
	name, err := filepath.Abs(name)
	if err != nil {
		return "", &sandbox.Error{Op: "open state folder", Code: sandbox.CodeInvalid, Field: "state_dir", Err: err}
	}
	if err := checkWay(name); err != nil {
		return "", err
	}
	err = os.MkdirAll(name, 0o700)
	if err == nil {
		name, err = filepath.EvalSymlinks(name)
	}
	if err != nil {
		return "", noFolder(err)
	}
	if strings.ContainsAny(name, ",:") || strings.ContainsFunc(name, unicode.IsControl) {
		return "", sandbox.Invalid("state_dir", fmt.Sprintf("must have no comma, colon or line end in its path, which gVisor could not read; it is %q", name))
	}
	if err := checkWay(name); err != nil {
		return "", err
	}
	if err := checkFolder(name); err != nil {
		return "", err
	}
	for _, inner := range []string{"sandboxes", "recorders", "snapshots"} {
		inner = filepath.Join(name, inner)
		if err := os.Mkdir(inner, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return "", noFolder(err)
		}
		if err := checkFolder(inner); err != nil {
			return "", err
		}
		if err := os.Chmod(inner, 0o700); err != nil {
			return "", noFolder(err)
		}
	}
	return name, nil
}

func noFolder(err error) error {
	return &sandbox.Error{
		Op: "open state folder", Code: sandbox.CodePermission, Field: "state_dir", Err: err,
		Message: "give a folder that can be written with --state-dir",
	}
}

// checkFolder refuses a folder into which another user has put something, or
// could have.
func checkFolder(name string) error {
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return noFolder(&fs.PathError{Op: "open", Path: name, Err: err})
	}
	defer unix.Close(fd)
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return noFolder(&fs.PathError{Op: "stat", Path: name, Err: err})
	}
	switch {
	case int(stat.Uid) != os.Geteuid():
		return notOurs(fmt.Sprintf("%s belongs to the user %d, and this is the user %d", name, stat.Uid, os.Geteuid()))
	case stat.Mode&0o022 != 0:
		return notOurs(fmt.Sprintf("%s can be written by other users (mode %04o); if all that is in it is yours, chmod go-w %s", name, stat.Mode&0o7777, name))
	}
	return nil
}

// checkWay refuses a path of which another user may replace a part.
func checkWay(name string) error {
	var top unix.Stat_t
	if err := unix.Lstat("/", &top); err != nil {
		return noFolder(err)
	}
	for at := name; ; at = filepath.Dir(at) {
		var stat unix.Stat_t
		err := unix.Lstat(at, &stat)
		if err != nil && !errors.Is(err, unix.ENOENT) {
			return noFolder(&fs.PathError{Op: "stat", Path: at, Err: err})
		}
		if err == nil && (at != name || stat.Mode&unix.S_IFMT == unix.S_IFLNK) {
			if err := checkStep(at, &stat, top.Uid); err != nil {
				return err
			}
		}
		if at == filepath.Dir(at) {
			return nil
		}
	}
}

// checkStep looks at one part of a path. Root may replace anything anyway; in
// a user namespace without root, whoever has the top may.
func checkStep(name string, stat *unix.Stat_t, top uint32) error {
	if owner := stat.Uid; owner != 0 && owner != top && int(owner) != os.Geteuid() {
		return notOurs(fmt.Sprintf("it lies below %s, which belongs to the user %d", name, owner))
	}
	const sticky = unix.S_ISVTX // in such a folder, nobody moves what is another's
	if stat.Mode&unix.S_IFMT == unix.S_IFLNK || stat.Mode&sticky != 0 {
		return nil
	}
	// The group of this process is most often this user's alone, and then its
	// umask lets it write.
	byGroup := stat.Mode&0o020 != 0 && stat.Gid != 0 && int(stat.Gid) != os.Getegid()
	if stat.Mode&0o002 != 0 || byGroup {
		return notOurs(fmt.Sprintf("it lies below %s, which other users can write (mode %04o)", name, stat.Mode&0o7777))
	}
	return nil
}

func notOurs(why string) error {
	return &sandbox.Error{
		Op: "open state folder", Code: sandbox.CodePermission, Field: "state_dir",
		Message: why + "; who can write there could have this user run anything, so give a folder of your own with --state-dir",
	}
}
