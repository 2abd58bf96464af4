package cgroup

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// member is who makes groups of version 2: it may only move processes between
// groups below one that it may write to.
type member struct {
	uid int
	own string                 // the group that it is in, from the top
	try func(dir string) error // tries to start a process in a group
}

func caller() *member {
	return &member{uid: os.Geteuid(), own: ownGroup("/proc/self/cgroup"), try: try}
}

// delegated is the group that systemd gives a user for its own use, from the
// top. For root that is the top.
func delegated(uid int) string {
	if uid == 0 {
		return ""
	}
	n := strconv.Itoa(uid)
	return filepath.Join("user.slice", "user-"+n+".slice", "user@"+n+".service")
}

// place returns the group below which this user may make others.
func (m *member) place() (string, error) {
	place := delegated(m.uid)
	if place != "" && !strings.HasPrefix(m.own+"/", "/"+place+"/") {
		return "", errors.New("this process runs outside of what systemd gives this user")
	}
	return place, nil
}

// ownGroup reads the group of version 2 from a file as /proc/self/cgroup.
func ownGroup(file string) string {
	text, _ := os.ReadFile(file) // without it, it is in none
	for line := range strings.Lines(string(text)) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			return path
		}
	}
	return ""
}

// try finds out whether a process may go into a group: the kernel asks for
// rights on the groups above, too.
func try(dir string) error {
	fd, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer fd.Close()
	cmd := exec.Command("/bin/true") //nolint:noctx // it ends at once
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(fd.Fd())}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("join %s: %w", dir, err)
	}
	return nil
}
