package native

import (
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/glassboxhq/glassbox/sandbox"
)

// Output is read in pieces of up to this size, from pipes of this size if the
// kernel allows: a noisy command then wakes us rarely.
const (
	readBytes = 128 << 10
	pipeBytes = 1 << 20
)

var buffers = sync.Pool{New: func() any { b := make([]byte, readBytes); return &b }}

// enlarge makes a pipe as large as the kernel lets us.
func enlarge(f *os.File) {
	if conn, err := f.SyscallConn(); err == nil {
		_ = conn.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, pipeBytes) })
	}
}

// read passes on what comes through a pipe until its end, or, once the leader
// has exited, what is in it then: a grandchild may hold it open for ever, and
// may fill it faster than it is read.
func (p *process) read(r *os.File, stream sandbox.Stream) {
	rest := -1 // in the pipe after the leader's exit
	var pace pacer
	for {
		if p.terminal == nil { // which holds 4 KiB: there is nothing to wait for
			pace.wait(p.exited)
		}
		buffer := buffers.Get().(*[]byte)
		n, err := r.Read(*buffer)
		pace.read(n)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			if p.terminal != nil {
				buffers.Put(buffer)
				p.readShown(r)
				return
			}
			if rest < 0 {
				rest = pending(r)
			}
			if rest == 0 {
				err = unix.EAGAIN
			} else {
				n, err = readNow(r, (*buffer)[:min(rest, readBytes)])
				rest -= n
			}
		}
		if n > 0 {
			p.pass(stream, buffer, n)
		} else {
			buffers.Put(buffer)
		}
		switch {
		case errors.Is(err, unix.EAGAIN):
			// A program that goes on in the background keeps a pipe that
			// takes what it writes; closing it would end the program.
			go discard(r)
			return
		case err != nil:
			r.Close()
			return
		}
	}
}

// pass hands a piece of output to Next, or drops it when nobody will call
// Next again.
func (p *process) pass(stream sandbox.Stream, buffer *[]byte, n int) {
	c := chunk{buffer: buffer, Chunk: sandbox.Chunk{Stream: stream, Time: time.Now(), Data: (*buffer)[:n]}}
	p.mu.Lock()
	count := &p.counts.Stdout
	if stream == sandbox.Stderr {
		count = &p.counts.Stderr
	}
	c.Offset = *count
	*count += int64(n)
	p.mu.Unlock()
	select {
	case p.chunks <- c:
	case <-p.gone:
		buffers.Put(buffer)
	}
}

// pending counts the bytes in a pipe. Where that is not told it is at most
// what the pipe can hold.
func pending(r *os.File) int {
	n := pipeBytes
	if conn, err := r.SyscallConn(); err == nil {
		_ = conn.Control(func(fd uintptr) {
			// None may mean that the pipe's end is there to be read.
			if told, err := unix.IoctlGetInt(int(fd), unix.TIOCINQ); err == nil {
				n = max(told, 1)
			}
		})
	}
	return n
}

// readNow reads what is in the pipe, without waiting: unix.EAGAIN says that
// there is nothing.
func readNow(r *os.File, b []byte) (n int, err error) {
	if err := r.SetReadDeadline(time.Time{}); err != nil {
		return 0, err
	}
	conn, err := r.SyscallConn()
	if err != nil {
		return 0, err
	}
	var readErr error
	if err := conn.Read(func(fd uintptr) bool {
		for {
			n, readErr = unix.Read(int(fd), b)
			if !errors.Is(readErr, unix.EINTR) {
				return true
			}
		}
	}); err != nil {
		return 0, err
	}
	if deadlineErr := r.SetReadDeadline(time.Unix(1, 0)); deadlineErr != nil {
		return max(n, 0), deadlineErr
	}
	if n == 0 && readErr == nil {
		readErr = io.EOF
	}
	return max(n, 0), readErr
}

func discard(r *os.File) {
	_ = r.SetReadDeadline(time.Time{})
	_, _ = io.Copy(io.Discard, r)
	r.Close()
}
