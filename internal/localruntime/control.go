package localruntime

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/sandbox"
)

// control is the way to a sandbox's recorder: HTTP/2 over connections that the
// recorder dialled. The newest that answered carries new requests; older ones
// finish theirs.
type control struct {
	id     string
	logger *slog.Logger

	mu      sync.Mutex
	conns   []*http.ClientConn // oldest first
	changed chan struct{}      // closed when conns or closed change
	lostAt  time.Time          // when the last connection went
	paused  bool
	closed  string // why there will be no more
}

const (
	maxControls  = 8                // of one sandbox; a flood closes the oldest
	maxUnproven  = 16               // connections whose ping is not answered yet
	pingTimeout  = 5 * time.Second  // for the first answer of a connection
	connPatience = 10 * time.Second // how long a request waits for a recorder that is away
)

func newControl(id string, logger *slog.Logger) *control {
	return &control{id: id, logger: logger, changed: make(chan struct{}), lostAt: time.Now()}
}

// serve takes connections until ctx ends, then closes them all.
func (c *control) serve(ctx context.Context, l net.Listener) {
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	var greetings sync.WaitGroup
	room := make(chan struct{}, maxUnproven)
	for {
		conn, err := l.Accept()
		if err != nil {
			break // closed; a unix listener has no other lasting error
		}
		room <- struct{}{}
		greetings.Go(func() {
			defer func() { <-room }()
			c.greet(ctx, conn)
		})
	}
	greetings.Wait()
	c.drop()
}

// greet takes a connection in when a recorder answers on it.
func (c *control) greet(ctx context.Context, conn net.Conn) {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	cc, err := clientConn(ctx, conn)
	if err == nil {
		err = ping(ctx, cc)
		if err != nil {
			cc.Close()
		}
	}
	if err != nil {
		conn.Close()
		c.logger.DebugContext(ctx, "connection without a recorder", "sandbox", c.id, "error", err)
		return
	}
	c.add(cc)
}

// clientConn speaks HTTP/2 over a connection that is there already.
func clientConn(ctx context.Context, conn net.Conn) (*http.ClientConn, error) {
	transport := &http.Transport{
		DialContext:            func(context.Context, string, string) (net.Conn, error) { return conn, nil },
		DisableCompression:     true,
		MaxResponseHeaderBytes: 64 << 10,
		Protocols:              new(http.Protocols),
		HTTP2: &http.HTTP2Config{
			StrictMaxConcurrentRequests: true,
			MaxReceiveBufferPerStream:   1 << 20,
			MaxReadFrameSize:            256 << 10, // else 16 KiB: as many calls of the kernel in the sandbox
		},
	}
	transport.Protocols.SetUnencryptedHTTP2(true)
	return transport.NewClientConn(ctx, "http", "recorder:80")
}

func ping(ctx context.Context, via http.RoundTripper) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://recorder"+wire.PathPing, http.NoBody)
	if err != nil {
		return err
	}
	res, err := via.RoundTrip(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, io.LimitReader(res.Body, 4096)); err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("ping: %s", res.Status)
	}
	return nil
}

func (c *control) add(cc *http.ClientConn) {
	cc.SetStateHook(func(cc *http.ClientConn) {
		if cc.Err() != nil {
			c.remove(cc)
		}
	})
	var surplus *http.ClientConn
	c.mu.Lock()
	if cc.Err() != nil || c.closed != "" {
		surplus = cc
	} else {
		c.conns = append(c.conns, cc)
		if len(c.conns) > maxControls {
			surplus, c.conns = c.conns[0], c.conns[1:]
		}
		c.notify()
	}
	c.mu.Unlock()
	if surplus != nil {
		surplus.Close() // with the lock free: it may call the hook
	}
}

func (c *control) remove(cc *http.ClientConn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.conns {
		if c.conns[i] == cc {
			c.conns = append(c.conns[:i:i], c.conns[i+1:]...)
			c.lostAt = time.Now()
			c.notify()
			return
		}
	}
}

// notify wakes all who wait for a change. The lock is held.
func (c *control) notify() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// shut turns requests away from now on; why is what they are told. Those that
// are under way go on.
func (c *control) shut(why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed == "" {
		c.closed = why
	}
	c.notify()
}

// close ends the control for good; why is what later requests are told.
func (c *control) close(why string) {
	c.shut(why)
	c.drop()
}

func (c *control) drop() {
	c.mu.Lock()
	conns := c.conns
	c.conns = nil
	c.notify()
	c.mu.Unlock()
	for _, cc := range conns {
		cc.Close()
	}
}

func (c *control) setPaused(paused bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.paused = paused
	c.notify()
}

// connected reports whether a recorder is connected now.
func (c *control) connected() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.conns) > 0
}

// answers reports whether a recorder is connected, or was a moment ago.
func (c *control) answers() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.conns) > 0 || time.Since(c.lostAt) < connPatience
}

// conn returns the newest connection, with a place for one request, and waits
// for one when the recorder is just starting again.
func (c *control) conn(ctx context.Context) (*http.ClientConn, error) {
	ctx, cancel := context.WithTimeout(ctx, connPatience)
	defer cancel()
	for {
		c.mu.Lock()
		changed, conns, paused, closed := c.changed, c.conns, c.paused, c.closed
		c.mu.Unlock()
		switch {
		case closed != "":
			return nil, &sandbox.Error{Op: "reach sandbox", Sandbox: c.id, Code: sandbox.CodeSandboxState, Message: closed}
		case paused:
			return nil, errPaused(c.id)
		case len(conns) > 0:
			newest := conns[len(conns)-1]
			if newest.Reserve() == nil {
				return newest, nil
			}
			c.remove(newest) // it has ended, and its hook has not told us yet
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, c.away(ctx)
		}
	}
}

func (c *control) away(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return sandbox.FromContext(ctx, "reach sandbox")
	}
	return &sandbox.Error{
		Op: "reach sandbox", Sandbox: c.id, Code: sandbox.CodeUnavailable, Retryable: true,
		Message: "its recorder does not answer",
	}
}

func errPaused(id string) error {
	return &sandbox.Error{
		Op: "reach sandbox", Sandbox: id, Code: sandbox.CodeSandboxState, Message: "the sandbox is paused; resume it first",
	}
}

// waitConnected waits until a recorder is connected.
func (c *control) waitConnected(ctx context.Context) error {
	for {
		c.mu.Lock()
		changed, n := c.changed, len(c.conns)
		c.mu.Unlock()
		if n > 0 {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
