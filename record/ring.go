package record

import (
	"os"

	"github.com/glassboxhq/glassbox/sandbox"
)

// ring keeps the newest bytes of a stream in a file, which has no name from
// the start: it goes when the process does.
type ring struct {
	file       *os.File
	size       int64
	start, end int64 // offsets of the stream that are kept
}

func newRing(dir string, size, at int64) (*ring, error) {
	f, err := os.CreateTemp(dir, "spool-*")
	if err != nil {
		return nil, &sandbox.Error{Op: "spool output", Code: sandbox.CodeInternal, Err: err}
	}
	if err := os.Remove(f.Name()); err != nil {
		f.Close()
		return nil, &sandbox.Error{Op: "spool output", Code: sandbox.CodeInternal, Err: err}
	}
	return &ring{file: f, size: size, start: at, end: at}, nil
}

// write appends the stream's next bytes. What cannot be written is gone, and
// all before it.
func (r *ring) write(p []byte) {
	next := r.end + int64(len(p))
	for r.end < next {
		at := r.end % r.size
		n := min(int64(len(p)), r.size-at)
		if _, err := r.file.WriteAt(p[:n], at); err != nil {
			r.start, r.end = next, next
			return
		}
		p, r.end = p[n:], r.end+n
	}
	r.start = max(r.start, r.end-r.size)
}

// read returns up to n bytes from an offset that is kept.
func (r *ring) read(offset, n int64) ([]byte, error) {
	at := offset % r.size
	p := make([]byte, min(n, r.end-offset, r.size-at))
	if _, err := r.file.ReadAt(p, at); err != nil {
		return nil, &sandbox.Error{Op: "read spooled output", Code: sandbox.CodeInternal, Err: err}
	}
	return p, nil
}

func (r *ring) close() { r.file.Close() }
