package recorded

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"

	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/sandbox"
)

// control steers a command by the id of its operation.
type control struct {
	s    *Session
	id   string
	ctx  context.Context //nolint:containedctx // of the input, which is written to without one
	once sync.Once
	in   *input
	self string // names this client on a terminal
}

// Signal implements sandbox.Control.
func (c *control) Signal(ctx context.Context, name string) error {
	return c.s.once(ctx, &request{
		op: "send signal", method: http.MethodPost, path: wire.Path(wire.PathSignal, c.id), query: url.Values{"name": {name}},
	}, nil)
}

// Stop implements sandbox.Control. One that has ended is stopped.
func (c *control) Stop(ctx context.Context) error {
	return c.s.again(ctx, func(ctx context.Context) error {
		return c.s.once(ctx, &request{op: "stop command", method: http.MethodDelete, path: wire.Path(wire.PathCommand, c.id)}, nil)
	})
}

// Stdin implements sandbox.Control.
func (c *control) Stdin() io.WriteCloser {
	c.once.Do(func() { c.in = &input{c: c} })
	return c.in
}

// Resize implements sandbox.Terminal.
func (c *control) Resize(ctx context.Context, size sandbox.TerminalSize) error {
	if err := size.Validate(); err != nil {
		return err
	}
	return c.steer(ctx, "resize terminal", url.Values{
		"columns": {strconv.Itoa(int(size.Columns))}, "rows": {strconv.Itoa(int(size.Rows))},
	})
}

// Take implements sandbox.Terminal.
func (c *control) Take(ctx context.Context) error {
	return c.steer(ctx, "take keyboard", url.Values{"take": {"1"}})
}

func (c *control) steer(ctx context.Context, op string, query url.Values) error {
	query.Set("client", c.self)
	return c.s.again(ctx, func(ctx context.Context) error {
		return c.s.once(ctx, &request{op: op, method: http.MethodPost, path: wire.Path(wire.PathTerminal, c.id), query: query}, nil)
	})
}

// input sends each write as a request of its own, from the offset that the
// recorder has confirmed, so that a repeated one is not taken twice.
type input struct {
	c *control

	mu     sync.Mutex
	offset int64
	closed bool
}

// Write implements io.Writer.
func (in *input) Write(p []byte) (int, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed {
		return 0, io.ErrClosedPipe
	}
	before := in.offset
	err := in.send(p, false)
	return int(max(in.offset-before, 0)), err
}

// Close implements io.Closer: the command reads the end of its input.
func (in *input) Close() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed {
		return nil
	}
	in.closed = true
	return in.send(nil, true)
}

func (in *input) send(p []byte, last bool) error {
	start := in.offset
	// A command's stream is resumed for as long, and the command waits for all of
	// its input.
	return in.c.s.insist(in.c.ctx, func(ctx context.Context) error {
		query := offsetQuery(map[string]int64{"offset": start})
		query.Set("client", in.c.self)
		if last {
			query.Set("close", "1")
		}
		var answer wire.StdinAnswer
		// No timeout: a command may take its time to read.
		resp, err := in.c.s.send(ctx, &request{
			op: "write input", method: http.MethodPost, path: wire.Path(wire.PathStdin, in.c.id),
			query: query, body: bytes.NewReader(p), size: int64(len(p)),
		})
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if err := decodeInto(resp.Body, &answer); err != nil {
			return in.c.s.unreachable(ctx, "write input", err)
		}
		in.offset = answer.Offset
		return nil
	})
}

// Feed gives a command input that begins at an offset of all that it is given,
// leaving out what it has taken before, and ends the input after the last. It
// returns how much was taken in all: so who has lost an answer goes on from
// there. It takes as long as the command takes to read.
func (s *Session) Feed(ctx context.Context, opID string, offset int64, content io.Reader, last bool) (int64, error) {
	query := offsetQuery(map[string]int64{"offset": offset})
	if last {
		query.Set("close", "1")
	}
	var answer wire.StdinAnswer
	r := &request{op: "write input", method: http.MethodPost, path: wire.Path(wire.PathStdin, opID), query: query, size: -1}
	err := s.carry(ctx, r, content, &carried{given: true, into: &answer})
	return answer.Offset, err
}

const inputBytes = 256 << 10

// feed sends a reader's bytes as they come. A command that stops reading is
// no error.
func (in *input) feed(from io.Reader) {
	buf := make([]byte, inputBytes)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if _, err := in.Write(buf[:n]); err != nil {
				return
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			break // what could not be read ends the input
		}
	}
	_ = in.Close() // the command may have ended
}
