package gvisor

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/glassboxhq/glassbox/internal/localruntime/userland"
)

func mountNamespace() (string, error) { return os.Readlink("/proc/self/ns/mnt") }

// bindReadOnly binds a folder where a sandbox sees it.
func bindReadOnly(bind userland.Bind) error {
	err := unix.Mount(bind.Source, bind.Target, "", unix.MS_BIND, "")
	if errors.Is(err, unix.EINVAL) {
		// In a user namespace nothing that is mounted below may be uncovered.
		err = unix.Mount(bind.Source, bind.Target, "", unix.MS_BIND|unix.MS_REC, "")
	}
	if err != nil {
		return fmt.Errorf("launch: bind %s: %w", bind.Source, err)
	}
	if err := readOnly(bind.Target); err != nil {
		return fmt.Errorf("launch: make %s read-only: %w", bind.Target, err)
	}
	return nil
}

// readOnly makes a mount, and what is mounted below it, read-only. A user
// namespace may add to the flags that a mount has, and take none away.
func readOnly(target string) error {
	err := unix.MountSetattr(unix.AT_FDCWD, target, unix.AT_RECURSIVE, &unix.MountAttr{
		Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV,
	})
	if errors.Is(err, unix.ENOSYS) {
		return remountReadOnly(target)
	}
	return err
}

// remountReadOnly is for Linux before 5.12, where the flags that a mount has
// must be told again, and what is mounted below is left as it is.
func remountReadOnly(target string) error {
	var stat unix.Statfs_t
	if err := unix.Statfs(target, &stat); err != nil {
		return err
	}
	flags := uintptr(unix.MS_BIND | unix.MS_REMOUNT | unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NODEV)
	for _, kept := range []struct{ has, set int64 }{
		{unix.ST_NOEXEC, unix.MS_NOEXEC},
		{unix.ST_NOATIME, unix.MS_NOATIME},
		{unix.ST_NODIRATIME, unix.MS_NODIRATIME},
		{unix.ST_RELATIME, unix.MS_RELATIME},
	} {
		if stat.Flags&kept.has != 0 {
			flags |= uintptr(kept.set)
		}
	}
	return unix.Mount("", target, "", flags, "")
}
