package localruntime

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/sandbox"
)

// Conn returns the way to a sandbox's recorder: it sends each request over the
// newest connection that the recorder dialled, and waits a while for one when
// the recorder is just starting again. The scheme of a URL must be http; its
// host does not matter.
func (rt *Runtime) Conn(id string) http.RoundTripper { return &conn{rt, id} }

type conn struct {
	rt *Runtime
	id string
}

// RoundTrip sends a request to the recorder.
func (c *conn) RoundTrip(req *http.Request) (*http.Response, error) {
	b, err := c.rt.find(req.Context(), c.id)
	if err != nil {
		if req.Body != nil {
			req.Body.Close()
		}
		return nil, err
	}
	return b.control.RoundTrip(req)
}

// DialPort connects to a TCP port on the loopback inside a sandbox.
func (rt *Runtime) DialPort(ctx context.Context, id string, port int) (net.Conn, error) {
	if port < 1 || port > 65535 {
		return nil, sandbox.Invalid("port", "must be between 1 and 65535")
	}
	b, err := rt.find(ctx, id)
	if err != nil {
		return nil, err
	}
	// The stream outlives the dial, so it has a context of its own.
	streaming, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	body, send := io.Pipe()
	url := "http://recorder" + wire.Path(wire.PathPort, strconv.Itoa(port))
	req, err := http.NewRequestWithContext(streaming, http.MethodPost, url, body)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("dial port: %w", err)
	}
	req.Header.Set(wire.HeaderToken, b.record().Token)
	res, err := b.control.RoundTrip(req)
	if err == nil && res.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(res.Body, 64<<10)) // a cut text is told as it is
		res.Body.Close()
		err = wire.DecodeFault(res.StatusCode, text)
	}
	if !stop() && err == nil {
		res.Body.Close()
		err = sandbox.FromContext(ctx, "dial port")
	}
	if err != nil {
		cancel()
		return nil, err
	}
	return &stream{recv: res.Body, send: send, abort: cancel, port: port}, nil
}

// stream is a full duplex request as a connection.
type stream struct {
	recv  io.ReadCloser
	send  *io.PipeWriter
	abort context.CancelFunc
	port  int

	mu      sync.Mutex
	timer   *time.Timer
	expired bool
}

func (s *stream) Read(p []byte) (int, error) {
	n, err := s.recv.Read(p)
	return n, s.late(err)
}

func (s *stream) Write(p []byte) (int, error) {
	n, err := s.send.Write(p)
	return n, s.late(err)
}

// CloseWrite ends what is sent, and leaves the other direction open.
func (s *stream) CloseWrite() error { return s.send.Close() }

// Close ends both directions.
func (s *stream) Close() error {
	s.setTimer(time.Time{})
	s.send.Close()
	s.abort()
	return s.recv.Close()
}

// late turns what a missed deadline broke into the error for that.
func (s *stream) late(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil && s.expired {
		return os.ErrDeadlineExceeded
	}
	return err
}

// SetDeadline ends the connection at t for good: a stream cannot be taken up
// again in the middle of a read.
func (s *stream) SetDeadline(t time.Time) error {
	s.setTimer(t)
	return nil
}

// SetReadDeadline is SetDeadline.
func (s *stream) SetReadDeadline(t time.Time) error { return s.SetDeadline(t) }

// SetWriteDeadline is SetDeadline.
func (s *stream) SetWriteDeadline(t time.Time) error { return s.SetDeadline(t) }

func (s *stream) setTimer(t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
	if t.IsZero() {
		return
	}
	s.timer = time.AfterFunc(time.Until(t), func() {
		s.mu.Lock()
		s.expired = true
		s.mu.Unlock()
		s.send.CloseWithError(os.ErrDeadlineExceeded)
		s.abort()
	})
}

func (s *stream) LocalAddr() net.Addr  { return portAddr(0) }
func (s *stream) RemoteAddr() net.Addr { return portAddr(s.port) }

// portAddr is a port inside a sandbox.
type portAddr int

func (portAddr) Network() string  { return "sandbox" }
func (p portAddr) String() string { return "127.0.0.1:" + strconv.Itoa(int(p)) }
