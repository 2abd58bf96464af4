package recorder

import (
	"bufio"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/glassboxhq/glassbox/internal/sockets"
	"github.com/glassboxhq/glassbox/internal/wire"
)

// Dial serves handler over connections that it dials itself: the host
// listens, so the host need not trust a path that the sandbox can write. It
// dials again whenever the connection ends, and returns when ctx does.
func Dial(ctx context.Context, socket string, handler http.Handler, logger *slog.Logger) error {
	wait := firstWait
	for ctx.Err() == nil {
		conn, err := sockets.Dial(ctx, socket)
		if err == nil {
			began := time.Now()
			serveConn(ctx, conn, handler, maxStreams)
			if time.Since(began) > wire.DialBackoff {
				wait = firstWait
			}
		} else {
			logger.DebugContext(ctx, "the host does not answer", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
		wait = min(2*wait, wire.DialBackoff)
	}
	return context.Cause(ctx)
}

const firstWait = 5 * time.Millisecond

// Serve serves handler as plain HTTP on a listener until ctx ends.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	srv := newServer(handler, maxStreams)
	srv.IdleTimeout = idleTimeout
	stop := context.AfterFunc(ctx, func() { srv.Close() })
	defer stop()
	if err := srv.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// idleTimeout undoes what proxies leave open.
const idleTimeout = 10 * time.Second

// maxHeaderBytes is more than what a proxy before us lets through.
const maxHeaderBytes = 128 << 10

// maxStreams is what one HTTP/2 connection carries at once.
const maxStreams = 1024

// HTTP/2 on one connection carries everything, so its windows are wide.
func newServer(handler http.Handler, streams int) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	protocols.SetHTTP1(true)
	return &http.Server{
		Handler: handler, Protocols: protocols, ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: maxHeaderBytes,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: streams, MaxReceiveBufferPerStream: 1 << 20, MaxReceiveBufferPerConnection: 8 << 20,
			SendPingTimeout: 15 * time.Second, PingTimeout: 15 * time.Second,
		},
	}
}

// serveConn serves one connection, with so many requests at once, until it
// ends.
func serveConn(ctx context.Context, conn net.Conn, handler http.Handler, streams int) {
	l := &single{conn: make(chan net.Conn, 1), gone: make(chan struct{}), addr: conn.LocalAddr()}
	l.end = sync.OnceFunc(func() { close(l.gone) })
	l.conn <- &tellingConn{Conn: conn, ahead: bufio.NewReaderSize(conn, readAhead), closed: l.end}
	srv := newServer(handler, streams)
	stop := context.AfterFunc(ctx, func() { srv.Close() })
	defer stop()
	_ = srv.Serve(l) // ends with the connection
	srv.Close()
	conn.Close()
}

// single is a listener with one connection, which closes when that does.
type single struct {
	conn chan net.Conn
	gone chan struct{}
	end  func() // closes gone
	addr net.Addr
}

var errDone = errors.New("the connection has ended")

func (l *single) Accept() (net.Conn, error) {
	select {
	case c := <-l.conn:
		return c, nil
	case <-l.gone:
		return nil, errDone
	}
}

func (l *single) Close() error {
	l.end()
	return nil
}

func (l *single) Addr() net.Addr { return l.addr }

// readAhead is for HTTP/2, which asks for each header and each payload by
// itself: most of what comes in are window updates of a few bytes, and a call
// of the kernel is dear in a sandbox.
const readAhead = 64 << 10

type tellingConn struct {
	net.Conn
	ahead  *bufio.Reader
	closed func()
}

func (c *tellingConn) Read(p []byte) (int, error) { return c.ahead.Read(p) }

func (c *tellingConn) Close() error {
	c.closed()
	return c.Conn.Close()
}
