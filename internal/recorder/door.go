package recorder

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/glassboxhq/glassbox/sandbox"
)

// ownDoor is a connection to this very recorder, as to a port that it listens
// at. It is how a request that wants to change its protocol comes in: HTTP/2,
// over which the host speaks to us, cannot carry one. The door's token is asked
// for as everywhere.
func (s *Server) ownDoor(ctx context.Context, serving *sync.WaitGroup) (net.Conn, error) {
	ours, theirs, err := connPair()
	if err != nil {
		return nil, &sandbox.Error{Op: "open a door", Code: sandbox.CodeInternal, Err: err}
	}
	serving.Go(func() { serveConn(ctx, theirs, s, maxStreams) })
	return ours, nil
}

// connPair makes two connections that are each other's other end.
func connPair() (a, b net.Conn, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	var conns [2]net.Conn
	var errs [2]error
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "door")
		conns[i], errs[i] = net.FileConn(f)
		f.Close() // the connection has its own
	}
	if err := errors.Join(errs[:]...); err != nil {
		for _, c := range conns {
			if c != nil {
				c.Close()
			}
		}
		return nil, nil, err
	}
	return conns[0], conns[1], nil
}
