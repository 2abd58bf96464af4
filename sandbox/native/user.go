package native

import (
	"bufio"
	"io"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/glassboxhq/glassbox/sandbox"
)

// credential is what a process of another user is: the groups are the user's
// own, as this machine's files tell them. One who is not known there has a group
// of the same number and no others.
func credential(user *sandbox.User) *syscall.Credential {
	c := &syscall.Credential{Uid: user.UID, Gid: user.UID}
	name := ""
	eachEntry(userFile, func(fields []string) bool {
		if len(fields) < 4 || fields[2] != strconv.FormatUint(uint64(user.UID), 10) {
			return true
		}
		if gid, err := strconv.ParseUint(fields[3], 10, 32); err == nil {
			name, c.Gid = fields[0], uint32(gid)
		}
		return false
	})
	if name != "" {
		eachEntry(groupFile, func(fields []string) bool {
			if len(fields) > 3 && slices.Contains(strings.Split(fields[3], ","), name) {
				if gid, err := strconv.ParseUint(fields[2], 10, 32); err == nil {
					c.Groups = append(c.Groups, uint32(gid))
				}
			}
			return true
		})
	}
	if user.GID != nil {
		c.Gid = *user.GID
	}
	return c
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
