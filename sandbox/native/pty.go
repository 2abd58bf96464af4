package native

import (
	"errors"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/glassboxhq/glassbox/sandbox"
)

// openTerminal makes a terminal: ours is the end that a person has, theirs the
// one that programs have. Ours can be read with a deadline.
func openTerminal(size sandbox.TerminalSize) (ours, theirs *os.File, err error) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, &fs.PathError{Op: "open", Path: "/dev/ptmx", Err: err}
	}
	ours = os.NewFile(uintptr(fd), "/dev/ptmx")
	err = setSize(fd, size)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		theirs, err = otherEnd(fd)
	}
	if err != nil {
		ours.Close()
		return nil, nil, &fs.PathError{Op: "make terminal", Path: "/dev/ptmx", Err: err}
	}
	return ours, theirs, nil
}

// otherEnd asks the kernel for the end that programs have. gVisor gives it by
// name only, which in the agent's tree may stand for anything.
func otherEnd(fd int) (*os.File, error) {
	const flags = unix.O_RDWR | unix.O_NOCTTY | unix.O_CLOEXEC
	r, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TIOCGPTPEER, flags)
	peer := int(r)
	if errno != 0 {
		n, err := unix.IoctlGetUint32(fd, unix.TIOCGPTN)
		if err != nil {
			return nil, err
		}
		name := "/dev/pts/" + strconv.FormatUint(uint64(n), 10)
		if peer, err = unix.Open(name, flags|unix.O_NOFOLLOW, 0); err != nil {
			return nil, err
		}
	}
	f := os.NewFile(uintptr(peer), "terminal")
	if _, err := unix.IoctlGetTermios(peer, unix.TCGETS); err != nil {
		f.Close()
		return nil, errors.New("its other end is no terminal")
	}
	return f, nil
}

func setSize(fd int, size sandbox.TerminalSize) error {
	return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Col: size.Columns, Row: size.Rows})
}
