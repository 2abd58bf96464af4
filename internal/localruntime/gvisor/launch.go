package gvisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/glassboxhq/glassbox/internal/localruntime/userland"
)

// launch tells Launch what to do.
type launch struct {
	Root     string            `json:"root"`            // empty folder, for the root filesystem
	Image    string            `json:"image,omitempty"` // folder that is the root filesystem; empty: Userland is laid out
	Userland *userland.Options `json:"userland"`
	Cgroups  []string          `json:"cgroups"` // folders of the groups to join
	Args     []string          `json:"args"`
	// Outside is the mount namespace of who starts this, which a launch in a
	// user namespace may not ask for.
	Outside string `json:"outside"`
}

// Launch lays out what a sandbox sees and becomes runsc. It must run in a
// mount namespace of its own, and returns only when it could not.
func Launch(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("launch: %w", err)
	}
	var l launch
	if err := json.Unmarshal(text, &l); err != nil {
		return fmt.Errorf("launch: read %s: %w", file, err)
	}
	if len(l.Args) == 0 {
		return errors.New("launch: nothing to start")
	}
	if err := privateNamespace(l.Outside); err != nil {
		return err
	}
	for _, dir := range l.Cgroups {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0); err != nil {
			return fmt.Errorf("launch: join control group: %w", err)
		}
	}
	if err := layOut(&l); err != nil {
		return err
	}
	return fmt.Errorf("launch: start %s: %w", l.Args[0], syscall.Exec(l.Args[0], l.Args, os.Environ()))
}

// privateNamespace refuses to mount where the host would see it.
func privateNamespace(outside string) error {
	own, err := mountNamespace()
	if err != nil {
		return fmt.Errorf("launch: %w", err)
	}
	if own == outside || outside == "" {
		return errors.New("launch: not in a mount namespace of its own")
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("launch: make mounts private: %w", err)
	}
	return nil
}

// layOut makes the root filesystem in memory: its thousand small files are
// written in milliseconds there, and go with the namespace.
func layOut(l *launch) error {
	const flags = unix.MS_NOSUID | unix.MS_NODEV
	if err := unix.Mount("glassbox", l.Root, "tmpfs", flags, "mode=755,size=64m"); err != nil {
		return fmt.Errorf("launch: mount root filesystem: %w", err)
	}
	if l.Image != "" {
		target := filepath.Join(l.Root, "rootfs")
		if err := os.Mkdir(target, 0o755); err != nil {
			return fmt.Errorf("launch: %w", err)
		}
		return bindReadOnly(userland.Bind{Source: l.Image, Target: target})
	}
	binds, err := userland.Build(l.Root, l.Userland)
	if err != nil {
		return fmt.Errorf("launch: %w", err)
	}
	for _, bind := range binds {
		if err := bindReadOnly(bind); err != nil {
			return err
		}
	}
	return nil
}

func writeJSON(file string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}
