package native

import (
	"bufio"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/glassboxhq/glassbox/sandbox"
)

// User is a user of this machine, by numbers.
type User struct {
	UID, GID uint32
	Groups   []uint32
}

func (u *User) credential() *syscall.Credential {
	if u == nil {
		return nil
	}
	return &syscall.Credential{Uid: u.UID, Gid: u.GID, Groups: u.Groups}
}

// own gives the user what was just made and is open.
func (u *User) own(fd int) error {
	if u == nil {
		return nil
	}
	return unix.Fchown(fd, int(u.UID), int(u.GID))
}

// ownAt is own for what has a name in an open directory.
func (u *User) ownAt(dir int, name string) error {
	if u == nil {
		return nil
	}
	return unix.Fchownat(dir, name, int(u.UID), int(u.GID), unix.AT_SYMLINK_NOFOLLOW)
}

// mkdirAt makes a directory that belongs to the user.
func (u *User) mkdirAt(dir int, name string, mode uint32) error {
	if err := unix.Mkdirat(dir, name, mode); err != nil {
		return err
	}
	return u.ownAt(dir, name)
}

// mkdirAll makes a directory with those above it, of which only the last one is
// the user's.
func (u *User) mkdirAll(name string, mode fs.FileMode) error {
	if _, err := os.Lstat(name); err == nil || u == nil {
		return os.MkdirAll(name, mode)
	}
	if err := os.MkdirAll(name, mode); err != nil {
		return err
	}
	return u.ownAt(unix.AT_FDCWD, name)
}

// known is a user with groups of their own, as this machine's files tell them.
// One who is not known there has a group of the same number and no others.
func known(user *sandbox.User) *User {
	u := &User{UID: user.UID, GID: user.UID}
	name := ""
	eachEntry(userFile, func(fields []string) bool {
		if len(fields) < 4 || fields[2] != strconv.FormatUint(uint64(user.UID), 10) {
			return true
		}
		if gid, err := strconv.ParseUint(fields[3], 10, 32); err == nil {
			name, u.GID = fields[0], uint32(gid)
		}
		return false
	})
	if name != "" {
		eachEntry(groupFile, func(fields []string) bool {
			if len(fields) > 3 && slices.Contains(strings.Split(fields[3], ","), name) {
				if gid, err := strconv.ParseUint(fields[2], 10, 32); err == nil {
					u.Groups = append(u.Groups, uint32(gid))
				}
			}
			return true
		})
	}
	if user.GID != nil {
		u.GID = *user.GID
	}
	return u
}

// eachEntry reads a file of lines of fields until do has had enough. What cannot
// be read says nothing.
func eachEntry(file string, do func(fields []string) bool) {
	f, _, err := openRegular("read users", unix.AT_FDCWD, file)
	if err != nil {
		return
	}
	defer f.Close()
	lines := bufio.NewScanner(io.LimitReader(f, maxOwnerBytes))
	for lines.Scan() {
		if !do(strings.Split(lines.Text(), ":")) {
			return
		}
	}
}
