package native

import (
	"crypto/rand"
	"errors"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/glassboxhq/glassbox/sandbox"
)

// newPrefix begins the name of a file that is being written. Whoever writes
// it holds its lock: where nobody does, the writer is gone, and a scan removes
// the file.
const newPrefix = sandbox.TempPrefix + "new-"

// tempName is a name that no other has, for what is not written but made at
// once.
func tempName() string { return sandbox.TempPrefix + rand.Text() }

// temp is a file that is to take another's place.
type temp struct {
	*os.File
	name string
	held int // keeps the lock after Close, until the file has its place
}

// createTemp makes a file with a name of its own. path is for messages.
func createTemp(dir int, path string) (*temp, error) {
	for range openTries {
		name := newPrefix + rand.Text()
		fd, err := unix.Openat(dir, name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
		if err != nil {
			return nil, err
		}
		f := os.NewFile(uintptr(fd), path)
		var held int
		if lock(fd) && linked(fd) {
			if held, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0); err == nil {
				return &temp{f, name, held}, nil
			}
			_ = unix.Unlinkat(dir, name, 0)
		}
		f.Close()
		if err != nil {
			return nil, err
		}
		// A scan came between the two, and removes it.
	}
	return nil, unix.EAGAIN
}

// release gives the lock back.
func (t *temp) release() { unix.Close(t.held) }

// lock reports whether nobody else has the file's lock. A file system without
// locks has none to find a stale file by either.
func lock(fd int) bool {
	return !errors.Is(unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB), unix.EWOULDBLOCK)
}

func linked(fd int) bool {
	var stat unix.Stat_t
	return unix.Fstat(fd, &stat) == nil && stat.Nlink > 0
}

// sweep removes a file that was never finished, if it is one and its writer is
// gone, and reports whether it did.
func sweep(dir int, name string) bool {
	if !strings.HasPrefix(name, newPrefix) {
		return false
	}
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	var stat unix.Stat_t
	if unix.Fstat(fd, &stat) != nil || stat.Mode&unix.S_IFMT != unix.S_IFREG || unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) != nil {
		return false
	}
	return unix.Unlinkat(dir, name, 0) == nil
}
