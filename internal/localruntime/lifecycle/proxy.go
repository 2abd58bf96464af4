package lifecycle

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/sandbox"
)

// target is the place that a proxied request is for.
type target struct {
	prefix, id, port string
	rest             string // path behind the port, still escaped
}

// path returns the path of the request for the sandbox.
func (t *target) path() string { return "/" + t.rest }

// base is the path under which the port is reached from outside.
func (t *target) base() string { return t.prefix + "/sandboxes/" + t.id + "/proxy/" + t.port }

// stripped are the headers that are for us, or for the user's own session
// with us, and no business of a sandbox.
var stripped = []string{"Authorization", "Cookie", headerKey, "Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"}

// newPorts returns the transport to ports inside sandboxes. The host of a URL
// is the sandbox's id.
func (a *api) newPorts() *http.Transport {
	return &http.Transport{
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			id, text, err := net.SplitHostPort(address)
			if err != nil {
				return nil, err
			}
			port, err := strconv.Atoi(text)
			if err != nil {
				return nil, err
			}
			return a.rt.DialPort(ctx, id, port)
		},
		DisableCompression:  true,
		MaxIdleConnsPerHost: 4,
		IdleConnTimeout:     10 * time.Second,
	}
}

// proxy passes a request on to a port of a sandbox.
func (a *api) proxy(w http.ResponseWriter, r *http.Request, t *target) {
	port, err := strconv.Atoi(t.port)
	if err != nil || port < 1 || port > 65535 {
		unprocessable(w, "must be a number between 1 and 65535", "path", "port")
		return
	}
	access, err := a.rt.Access(r.Context(), t.id)
	if err != nil {
		fail(w, err, codeNotRunning)
		return
	}
	toRecorder := port == wire.ExecdPort || port == wire.DefaultPort
	if !a.mayReach(r, access, toRecorder) {
		w.Header().Set(headerCode, string(sandbox.CodeUnauthorized))
		writeError(w, http.StatusUnauthorized, "GLASSBOX::UNAUTHORIZED",
			"this port of the sandbox wants the headers that come with its endpoint ("+wire.HeaderToken+" or "+wire.HeaderExecdToken+")")
		return
	}
	serve := func(w http.ResponseWriter) {
		if err := bothWays(w, r, toRecorder); err != nil {
			fail(w, err, codeNotRunning)
			return
		}
		a.reverse(t, toRecorder, r.Header.Get("Upgrade") != "").ServeHTTP(w, r)
	}
	// A kept connection would carry the request to where nothing moves.
	info, err := a.rt.Get(r.Context(), t.id)
	switch {
	case err != nil || info.State != sandbox.Paused:
		serve(w)
	case port == wire.ExecdPort && keepsRecord(r, t.path()):
		a.awake(w, r, t.id, serve)
	default:
		err = &sandbox.Error{Op: "reach sandbox", Code: sandbox.CodeSandboxState, Message: "the sandbox is paused; resume it first"}
		fail(w, err, codeNotRunning)
	}
}

// shortBody is what net/http reads of a body before an answer, as it does
// unless it is told otherwise.
const shortBody = 256 << 10

// bothWays lets an answer go out while a body still comes in: a long upload may
// be refused early, and what listens in a sandbox may speak both ways at once.
// After that a connection of HTTP/1 cannot be used again: net/http would read
// the end of this body and the next request at the same time, and panic.
func bothWays(w http.ResponseWriter, r *http.Request, toRecorder bool) error {
	if r.ContentLength == 0 || toRecorder && 0 < r.ContentLength && r.ContentLength <= shortBody {
		return nil
	}
	if r.ProtoMajor == 1 {
		w.Header().Set("Connection", "close")
	}
	err := http.NewResponseController(w).EnableFullDuplex()
	if errors.Is(err, http.ErrNotSupported) { // HTTP/2 needs no asking
		return nil
	}
	return err
}

// mayReach reports whether a request may reach a port: the recorder's by the
// sandbox's own tokens only, others also by the key.
func (a *api) mayReach(r *http.Request, access Access, toRecorder bool) bool {
	return same(r.Header.Get(wire.HeaderToken), access.Token) ||
		same(r.Header.Get(wire.HeaderExecdToken), access.ExecdToken) ||
		!toRecorder && (a.opts.Trusted || a.bearsKey(r))
}

// reverse passes a request on. One that wants to change its protocol, as a
// WebSocket does, needs a connection of its own also to the recorder: HTTP/2
// cannot carry it.
func (a *api) reverse(t *target, toRecorder, upgrades bool) *httputil.ReverseProxy {
	host := net.JoinHostPort(t.id, t.port)
	var transport http.RoundTripper = a.ports
	if toRecorder && !upgrades {
		host, transport = "recorder", a.rt.Conn(t.id)
	}
	return &httputil.ReverseProxy{
		Transport:     transport,
		BufferPool:    &a.pieces,
		FlushInterval: -1, // what a program prints is wanted now
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL = &url.URL{Scheme: "http", Host: host, RawQuery: p.In.URL.RawQuery}
			p.Out.URL.RawPath = t.path()
			if plain, err := url.PathUnescape(t.path()); err == nil {
				p.Out.URL.Path = plain
			}
			p.Out.Host = "127.0.0.1:" + t.port
			for _, name := range stripped {
				p.Out.Header.Del(name)
			}
			if !toRecorder {
				p.Out.Header.Del(wire.HeaderToken)
				p.Out.Header.Del(wire.HeaderExecdToken)
			}
			p.SetXForwarded()
		},
		ModifyResponse: func(res *http.Response) error {
			// A place on the server inside is below our path outside.
			if to := res.Header.Get("Location"); strings.HasPrefix(to, "/") && !strings.HasPrefix(to, "//") {
				res.Header.Set("Location", t.base()+to)
			}
			res.Header.Del(headerRequestID) // ours stands already
			return nil
		},
		ErrorHandler: a.proxyFailed,
		// A sandbox that ends in the middle of an answer is no fault of ours.
		ErrorLog: slog.NewLogLogger(a.opts.Logger.Handler(), slog.LevelDebug),
	}
}

// proxyFailed answers when the sandbox could not be asked.
func (a *api) proxyFailed(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil {
		panic(http.ErrAbortHandler) // nobody reads an answer
	}
	if e, ok := errors.AsType[*sandbox.Error](err); ok && e.Code != sandbox.CodeUnavailable {
		fail(w, e, codeNotRunning)
		return
	}
	w.Header().Set(headerCode, string(sandbox.CodeUnavailable))
	writeError(w, http.StatusBadGateway, "BACKEND_CONNECTION_FAILED", err.Error())
}

// pieceBytes is what is passed on at a time.
const pieceBytes = 256 << 10

// bufferPool implements httputil.BufferPool.
type bufferPool struct{ pool sync.Pool }

// Get returns a buffer.
func (b *bufferPool) Get() []byte {
	if p, ok := b.pool.Get().(*[]byte); ok {
		return *p
	}
	return make([]byte, pieceBytes)
}

// Put gives a buffer back.
func (b *bufferPool) Put(p []byte) { b.pool.Put(&p) }
