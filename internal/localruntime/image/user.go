package image

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// User is the one as whom an image wants its programs to be started.
type User struct {
	Name   string   `json:"name,omitempty"` // if the image has one
	UID    uint32   `json:"uid"`
	GID    uint32   `json:"gid"`
	Groups []uint32 `json:"groups,omitempty"` // further ones
	Home   string   `json:"home,omitempty"`
	Shell  string   `json:"shell,omitempty"`
}

// findUser reads a user as an image names one: a name or a number, and after a
// colon a group. Nothing means root.
func findUser(root *os.Root, text string) (*User, error) {
	word, group, _ := strings.Cut(text, ":")
	user, err := knownUser(root, cmp.Or(word, "0"))
	if err != nil {
		return nil, err
	}
	if group != "" {
		user.GID, err = findGroup(root, group)
		return user, err
	}
	return user, eachLine(root, "etc/group", 4, func(f []string) {
		gid, err := number(f[2])
		member := user.Name != "" && slices.Contains(strings.Split(f[3], ","), user.Name)
		if err == nil && member && gid != user.GID && len(user.Groups) < maxGroups {
			user.Groups = append(user.Groups, gid)
		}
	})
}

// knownUser finds a user by name or number; a number need not be known.
func knownUser(root *os.Root, word string) (*User, error) {
	wanted, err := number(word)
	numeric, found := err == nil, false
	user := &User{UID: wanted}
	err = eachLine(root, "etc/passwd", 7, func(f []string) {
		uid, uidErr := number(f[2])
		gid, gidErr := number(f[3])
		if meant := f[0] == word || numeric && uid == wanted; meant && !found && uidErr == nil && gidErr == nil {
			found, *user = true, User{Name: f[0], UID: uid, GID: gid, Home: f[5], Shell: f[6]}
		}
	})
	if err == nil && !found && !numeric {
		err = fmt.Errorf("its programs run as the user %s, whom it does not have", strconv.Quote(word))
	}
	return user, err
}

// number reads the number of a user or a group.
func number(text string) (uint32, error) {
	n, err := strconv.ParseUint(text, 10, 31)
	return uint32(n), err
}

const maxGroups = 64

func findGroup(root *os.Root, word string) (uint32, error) {
	gid, err := number(word)
	found := err == nil
	err = eachLine(root, "etc/group", 4, func(f []string) {
		if n, err := number(f[2]); err == nil && !found && f[0] == word {
			gid, found = n, true
		}
	})
	if err == nil && !found {
		err = fmt.Errorf("its programs run as the group %s, which it does not have", strconv.Quote(word))
	}
	return gid, err
}

// maxDatabase bounds what is read of a file of users.
const maxDatabase = 1 << 20

// eachLine reads a file of users or groups, if the image has one.
func eachLine(root *os.Root, name string, fields int, do func([]string)) error {
	f, err := root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil //nolint:nilerr // absent, or a link that leads to where it cannot be read
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil //nolint:nilerr // as above
	}
	lines := bufio.NewScanner(io.LimitReader(f, maxDatabase))
	for lines.Scan() {
		if f := strings.Split(lines.Text(), ":"); len(f) >= fields {
			do(f)
		}
	}
	return lines.Err()
}
