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
// has exited, until nothing is in it: a grandchild may hold it open for ever.
func (p *process) read(r *os.File, stream sandbox.Stream) {
	for {
		buffer := buffers.Get().(*[]byte)
		n, err := r.Read(*buffer)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			n, err = readNow(r, *buffer)
		}
		if n > 0 {
			p.pass(stream, buffer, n)
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
