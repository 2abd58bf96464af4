package record

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/glassboxhq/glassbox/sandbox"
)

// input is a command's standard input. It counts what it has taken, so that a
// client whose request was cut can go on from there.
type input struct {
	mu sync.Mutex
	w  io.WriteCloser
	n  int64
}

// Write implements io.Writer.
func (in *input) Write(p []byte) (int, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.write(p)
}

func (in *input) write(p []byte) (int, error) {
	n, err := in.w.Write(p)
	in.n += int64(n)
	return n, err
}

// Close implements io.Closer.
func (in *input) Close() error { return in.w.Close() }

// Feed writes what from holds, which begins at an offset of the input, leaving
// out what was taken before. It returns how much has been taken in all.
func (in *input) Feed(offset int64, from io.Reader) (int64, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if offset < 0 || offset > in.n {
		return in.n, sandbox.Invalid("offset", fmt.Sprintf("is %d, but the command has taken %d bytes of input; go on from there", offset, in.n))
	}
	if _, err := io.CopyN(io.Discard, from, in.n-offset); err != nil {
		if errors.Is(err, io.EOF) {
			return in.n, nil
		}
		return in.n, err
	}
	_, err := io.Copy(writerFunc(in.write), from)
	return in.n, err
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// Control implements sandbox.Attacher.
func (s *Session) Control(ctx context.Context, opID string) (sandbox.Control, error) {
	switch r, op, err := s.find(ctx, opID); {
	case err != nil:
		return nil, err
	case r != nil:
		return &client{run: r}, nil
	default:
		return s.replay(op, sandbox.Offsets{}, true)
	}
}
