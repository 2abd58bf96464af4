package recorded

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/sandbox"
)

// tunnel is a http.RoundTripper that carries the requests to one recorder
// within one WebSocket, as HTTP/2, so that a proxy on the way carries many as
// one. It is opened when it is first needed, and again after it broke; what
// was on its way then is repeated by the session, as on any connection.
//
//	no link ──dial, ping──> link ──broken──> no link
//	   └─ refused ─> plain requests for a while ─> no link
//
// Large bodies, and what finds the tunnel full, go as plain requests.
type tunnel struct {
	base   string // of the recorder, without a trailing slash
	header http.Header
	plain  http.RoundTripper
	links  atomic.Int64 // that were opened

	mu      sync.Mutex
	link    *http.ClientConn // nil: there is none
	opening chan struct{}    // nil: nobody opens one
	until   time.Time        // no other one is tried before
}

const (
	// A link that is dead is found out well before a request gives up.
	pingEvery  = 10 * time.Second
	pingWithin = 10 * time.Second
	// openWithin is what a service has to open a tunnel; plain requests wait no
	// longer for one that swallows it.
	openWithin = 5 * time.Second
	// refusedFor is how long a service that refuses tunnels is not asked again,
	// awayFor one that was not reached.
	refusedFor = time.Minute
	awayFor    = time.Second
)

func newTunnel(base string, header http.Header, plain http.RoundTripper) *tunnel {
	if plain == nil {
		plain = http.DefaultTransport
	}
	return &tunnel{base: base, header: header, plain: plain}
}

// RoundTrip implements http.RoundTripper.
func (t *tunnel) RoundTrip(req *http.Request) (*http.Response, error) {
	path, ours := strings.CutPrefix(req.URL.String(), t.base)
	if !ours {
		return t.plain.RoundTrip(req)
	}
	req, small, err := measured(req)
	if err != nil {
		return nil, err
	}
	if !small {
		return t.plain.RoundTrip(req)
	}
	link := t.open(req.Context())
	if link == nil || link.Reserve() != nil {
		return t.plain.RoundTrip(req)
	}
	inner, err := http.NewRequestWithContext(req.Context(), req.Method, "http://recorder"+path, req.Body)
	if err != nil {
		link.Release()
		return nil, err
	}
	inner.Header, inner.ContentLength = req.Header, req.ContentLength
	if trace := httptrace.ContextClientTrace(req.Context()); trace != nil && trace.GotConn != nil {
		trace.GotConn(httptrace.GotConnInfo{Reused: true})
	}
	resp, err := link.RoundTrip(inner)
	if err != nil {
		if link.Err() != nil {
			t.drop(link)
		}
		return nil, err
	}
	if resp.StatusCode == http.StatusMisdirectedRequest {
		resp.Body.Close()
		return t.plain.RoundTrip(req) // it is a read, which has no body
	}
	return resp, nil
}

// measured reports whether a request is small enough for the tunnel, which the
// returned one tells for sure.
func measured(req *http.Request) (*http.Request, bool, error) {
	path := req.URL.Path
	switch {
	case strings.HasSuffix(path, wire.PathTree):
		return req, false, nil
	case req.Body == nil || req.Body == http.NoBody || strings.Contains(path, wire.Path(wire.PathPort, "")):
		return req, true, nil // a port is both ways at once, which needs HTTP/2
	case req.ContentLength > 0:
		return req, req.ContentLength <= wire.TunnelBytes, nil
	}
	// How much comes is seen when it has come.
	ahead, err := io.ReadAll(io.LimitReader(req.Body, wire.TunnelBytes+1))
	if err != nil {
		return nil, false, err
	}
	mine := req.Clone(req.Context())
	if len(ahead) <= wire.TunnelBytes {
		mine.Body, mine.ContentLength = io.NopCloser(bytes.NewReader(ahead)), int64(len(ahead))
		return mine, true, req.Body.Close()
	}
	mine.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(ahead), req.Body), req.Body}
	return mine, false, nil
}

// open returns the link, and opens one if there is none; nil: none can be had
// now.
func (t *tunnel) open(ctx context.Context) *http.ClientConn {
	for {
		t.mu.Lock()
		if t.link != nil && t.link.Err() != nil {
			t.link = nil
		}
		link, wait := t.link, t.opening
		switch {
		case link != nil || wait == nil && time.Now().Before(t.until):
			t.mu.Unlock()
			return link
		case wait == nil:
			t.opening = make(chan struct{})
			// Others wait for it too, so it is no part of this request.
			go t.dial(context.Background(), t.opening)
		}
		wait = t.opening
		t.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
			return nil
		}
	}
}

// dial opens a link, and ends within openWithin.
func (t *tunnel) dial(ctx context.Context, done chan struct{}) {
	link, err := t.connect(ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.link, t.opening = link, nil
	if err != nil {
		t.link, t.until = nil, time.Now().Add(refusedFor)
		if errors.Is(err, sandbox.ErrUnavailable) {
			t.until = time.Now().Add(awayFor)
		}
	}
	close(done)
}

// connect opens a link and sees that a recorder answers within it: a proxy
// may say yes before it has asked.
func (t *tunnel) connect(ctx context.Context) (*http.ClientConn, error) {
	ctx, cancel := context.WithTimeout(ctx, openWithin)
	defer cancel()
	ws, resp, err := websocket.Dial(ctx, t.base+wire.PathTunnel, &websocket.DialOptions{ //nolint:bodyclose // Dial has read it
		HTTPClient: &http.Client{Transport: t.plain, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
		HTTPHeader: t.header, CompressionMode: websocket.CompressionDisabled,
	})
	if err != nil {
		if resp == nil {
			return nil, &sandbox.Error{Code: sandbox.CodeUnavailable, Err: err}
		}
		return nil, err
	}
	conn := websocket.NetConn(context.Background(), ws, websocket.MessageBinary)
	link, err := newLink(ctx, conn)
	if err == nil {
		err = answers(ctx, link)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	t.links.Add(1)
	return link, nil
}

// newLink speaks HTTP/2 over a connection. What has died is found out by
// pings.
func newLink(ctx context.Context, conn net.Conn) (*http.ClientConn, error) {
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{
		Protocols:   protocols,
		DialContext: func(context.Context, string, string) (net.Conn, error) { return conn, nil },
		HTTP2: &http.HTTP2Config{
			MaxReceiveBufferPerStream: 1 << 20, MaxReceiveBufferPerConnection: 8 << 20, MaxReadFrameSize: 256 << 10,
			SendPingTimeout: pingEvery, PingTimeout: pingWithin,
		},
		DisableCompression: true,
	}
	return transport.NewClientConn(ctx, "http", "recorder:80")
}

func answers(ctx context.Context, link *http.ClientConn) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://recorder"+wire.PathPing, nil)
	if err != nil {
		return err
	}
	resp, err := link.RoundTrip(req)
	if err != nil {
		return err
	}
	resp.Body.Close()
	if resp.Header.Get(wire.HeaderRecorder) == "" {
		return errors.New("no recorder answers within the tunnel")
	}
	return nil
}

func (t *tunnel) drop(link *http.ClientConn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.link == link {
		t.link = nil
	}
}

// CloseIdleConnections lets go of the tunnel: the session is closed.
func (t *tunnel) CloseIdleConnections() {
	t.mu.Lock()
	link := t.link
	t.link = nil
	t.mu.Unlock()
	if link != nil {
		_ = link.Close() // nothing is on its way
	}
	if p, ok := t.plain.(interface{ CloseIdleConnections() }); ok {
		p.CloseIdleConnections()
	}
}
