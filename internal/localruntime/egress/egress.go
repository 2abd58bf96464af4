// Package egress is the way out of a sandbox: an HTTP proxy on the host's side
// that resolves a name once, dials only what the public network holds, and
// tells of each connection.
package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Options say what a proxy lets through.
type Options struct {
	Sandbox string // id
	// Allowed lists the private networks that may be reached.
	Allowed []netip.Prefix
	// OnConnect is told of every connection that is asked for; nil: nobody.
	OnConnect func(Event)
	Logger    *slog.Logger // nil: silent
	// Resolver and Own stand in for the machine's, in tests.
	Resolver func(ctx context.Context, host string) ([]netip.Addr, error)
	Own      func() ([]netip.Addr, error)
	// Dial connects to an address that was found allowed; nil: TCP.
	Dial func(ctx context.Context, addr netip.AddrPort) (net.Conn, error)
}

// Event tells of a connection that a sandbox asked for.
type Event struct {
	Sandbox string
	Host    string // as the sandbox named it
	Port    uint16
	Address netip.Addr // that was dialled
	Allowed bool
	Reason  string // why not
}

// The limits of one sandbox's proxy.
const (
	maxConnections = 256
	resolveTimeout = 10 * time.Second
	dialTimeout    = 20 * time.Second
	idleTimeout    = 10 * time.Minute // of a tunnel in which nothing moves
	maxHeaderBytes = 64 << 10
)

// Proxy is the proxy of one sandbox.
type Proxy struct {
	opts  Options
	plain *http.Transport // for requests that are not tunnels
}

// New returns a proxy that does not serve yet.
func New(opts *Options) *Proxy {
	p := &Proxy{opts: *opts}
	if p.opts.Logger == nil {
		p.opts.Logger = slog.New(slog.DiscardHandler)
	}
	if p.opts.Resolver == nil {
		p.opts.Resolver = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	if p.opts.Own == nil {
		p.opts.Own = ownAddresses
	}
	if p.opts.Dial == nil {
		p.opts.Dial = func(ctx context.Context, addr netip.AddrPort) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", addr.String())
		}
	}
	p.plain = &http.Transport{
		DialContext:           p.dialHost,
		DisableCompression:    true, // the bytes are the client's affair
		ResponseHeaderTimeout: idleTimeout,
		IdleConnTimeout:       30 * time.Second,
		MaxIdleConns:          8,
	}
	return p
}

// Serve answers on l until ctx ends, and then waits for what it started.
func (p *Proxy) Serve(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	server := &http.Server{
		Handler:           p,
		ReadHeaderTimeout: 30 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(p.opts.Logger.Handler(), slog.LevelDebug),
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	var open sync.WaitGroup
	err := server.Serve(&bounded{Listener: l, free: make(chan struct{}, maxConnections), open: &open})
	cancel()
	open.Wait()
	p.plain.CloseIdleConnections()
	if errors.Is(err, http.ErrServerClosed) || errors.Is(err, net.ErrClosed) {
		return nil
	}
	return fmt.Errorf("serve proxy: %w", err)
}

// ServeHTTP answers one request of the sandbox: CONNECT, or one with a whole
// URL in its first line.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodConnect:
		p.tunnel(w, r)
	case r.URL.IsAbs() && r.URL.Scheme == "http" && r.URL.Host != "":
		p.forward(w, r)
	case r.URL.IsAbs():
		http.Error(w, "glassbox: the proxy carries http, and everything else by CONNECT", http.StatusBadRequest)
	default:
		http.Error(w, "glassbox: this is an HTTP proxy; there is nothing else here", http.StatusBadRequest)
	}
}

// forward passes a plain request on.
func (p *Proxy) forward(w http.ResponseWriter, r *http.Request) {
	out := r.Clone(r.Context())
	out.RequestURI = ""
	removeHopHeaders(out.Header)
	answer, err := p.plain.RoundTrip(out)
	if err != nil {
		writeRefusal(w, err)
		return
	}
	defer answer.Body.Close()
	removeHopHeaders(answer.Header)
	maps.Copy(w.Header(), answer.Header)
	w.WriteHeader(answer.StatusCode)
	if err := copyFlushing(w, answer.Body); err != nil {
		panic(http.ErrAbortHandler) // the only way to say that the body is cut
	}
}

func copyFlushing(w http.ResponseWriter, from io.Reader) error {
	control := http.NewResponseController(w)
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if _, err := w.Write(buf[:n]); err != nil {
				return err
			}
			if err := control.Flush(); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// hopHeaders are for one connection, not for the far end (RFC 9110, 7.6.1).
var hopHeaders = []string{
	"Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization",
	"Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

func removeHopHeaders(h http.Header) {
	for _, list := range h.Values("Connection") {
		for name := range strings.SplitSeq(list, ",") {
			h.Del(strings.TrimSpace(name))
		}
	}
	for _, name := range hopHeaders {
		h.Del(name)
	}
}

// refusal is an error that the sandbox is told, with its status.
type refusal struct {
	status int
	text   string
}

func (r *refusal) Error() string { return r.text }

func writeRefusal(w http.ResponseWriter, err error) {
	status, text := http.StatusBadGateway, err.Error()
	if r, ok := errors.AsType[*refusal](err); ok {
		status, text = r.status, r.text
	} else if errors.Is(err, context.DeadlineExceeded) {
		status = http.StatusGatewayTimeout
	}
	http.Error(w, "glassbox: "+text, status)
}

// dialHost is dial for an address in the form host:port.
func (p *Proxy) dialHost(ctx context.Context, _, target string) (net.Conn, error) {
	host, portText, err := net.SplitHostPort(target)
	if err != nil {
		return nil, &refusal{http.StatusBadRequest, "the target must be host:port"}
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil || port == 0 || host == "" || len(host) > 255 {
		return nil, &refusal{http.StatusBadRequest, "the target must be host:port, with a port between 1 and 65535"}
	}
	return p.dial(ctx, host, uint16(port))
}

// dial resolves host, once, and connects to the first of its addresses that a
// sandbox may reach and that answers.
func (p *Proxy) dial(ctx context.Context, host string, port uint16) (net.Conn, error) {
	event := Event{Sandbox: p.opts.Sandbox, Host: host, Port: port}
	conn, err := p.dialEvent(ctx, &event)
	if err != nil {
		event.Reason = err.Error()
	}
	if p.opts.OnConnect != nil {
		p.opts.OnConnect(event)
	}
	p.opts.Logger.DebugContext(ctx, "sandbox connects", "sandbox", event.Sandbox, "host", host, "port", port,
		"allowed", event.Allowed, "reason", event.Reason)
	return conn, err
}

func (p *Proxy) dialEvent(ctx context.Context, event *Event) (net.Conn, error) {
	addrs, err := p.resolve(ctx, event.Host)
	if err != nil {
		return nil, err
	}
	own, err := p.opts.Own()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	var refused string
	var failed error
	for _, addr := range addrs {
		if reason := Check(addr, p.opts.Allowed, own); reason != "" {
			refused = fmt.Sprintf("%s is refused: %s (%s)", event.Host, reason, addr)
			continue
		}
		event.Allowed, event.Address = true, addr.Unmap()
		conn, err := p.opts.Dial(ctx, netip.AddrPortFrom(addr.Unmap(), event.Port))
		if err == nil {
			return conn, nil
		}
		failed = err
	}
	if event.Allowed {
		return nil, fmt.Errorf("%s does not answer: %w", event.Host, failed)
	}
	return nil, &refusal{http.StatusForbidden, refused}
}

func (p *Proxy) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	if addr, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{addr}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	addrs, err := p.opts.Resolver(ctx, host)
	if err != nil || len(addrs) == 0 {
		return nil, &refusal{http.StatusBadGateway, "the name " + strconv.Quote(host) + " was not found"}
	}
	return addrs, nil
}
