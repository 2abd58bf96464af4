// Package sockets makes and dials unix sockets at paths of any length: the
// kernel takes 107 bytes at most, a state folder may lie deeper.
package sockets

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/glassboxhq/glassbox/internal/id"
)

// Listen makes the socket at path with mode 0600, in place of one that a
// process before us left. It appears under its name only when it listens.
// Closing the listener leaves the file.
func Listen(path string) (*net.UnixListener, error) {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	defer dir.Close()
	temp := ".s-" + id.NewRandom()[:8]
	l, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: through(dir, temp)})
	if err != nil {
		return nil, fmt.Errorf("listen at %s: %w", path, err)
	}
	l.SetUnlinkOnClose(false)
	temp = filepath.Join(filepath.Dir(path), temp)
	err = os.Chmod(temp, 0o600)
	if err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		l.Close()
		os.Remove(temp)
		return nil, fmt.Errorf("listen at %s: %w", path, err)
	}
	return l, nil
}

// maxPath is the longest path of a socket that the kernel takes.
const maxPath = 107

// Dial connects to the socket at path.
func Dial(ctx context.Context, path string) (net.Conn, error) {
	if len(path) <= maxPath {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("dial: %w", err)
	}
	defer dir.Close()
	conn, err := new(net.Dialer).DialContext(ctx, "unix", through(dir, filepath.Base(path)))
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", path, err)
	}
	return conn, nil
}

// Own reports whether path is a socket that belongs to the user of this
// process, and so may be trusted with what is for this user only.
func Own(path string) (bool, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return false, err
	}
	return info.Mode().Type() == os.ModeSocket && ownedByUs(info), nil
}

// Refused reports whether err says that nobody listens at a socket.
func Refused(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, os.ErrNotExist)
}

// through names a file by the open directory that holds it.
func through(dir *os.File, name string) string {
	return "/proc/self/fd/" + strconv.Itoa(int(dir.Fd())) + "/" + name
}
