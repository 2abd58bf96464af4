package server

import (
	"context"
	"crypto/rand"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"github.com/glassboxhq/glassbox/internal/console/connection"
	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/sandbox"
)

// What programs in a sandbox serve is written by agents. It is shown under a
// name of its own, which browsers take for another site than the page: it has
// neither the page's cookie nor its storage, nor those of another sandbox. The
// name cannot be guessed, and lasts as long as the sign-in by which it was made.

// PortAt is where a port of a sandbox is to be seen.
type PortAt struct {
	URL       string    `json:"url" doc:"of a site of its own; whoever knows it may use it until it expires, or who made it is signed out"`
	ExpiresAt time.Time `json:"expires_at"`
}

type portQuery struct {
	SandboxPath
	Port int `path:"port" minimum:"1" maximum:"65535"`
}

func (s *Server) routePorts() {
	route(s, huma.Operation{
		OperationID: "open-port", Method: http.MethodGet, Path: boxPath + "/ports/{port}", Summary: "Tell where is to be seen what a program in a sandbox serves", Tags: []string{"ports"},
		Description: "The address leads to this very machine, by a name below localhost.", Middlewares: huma.Middlewares{withRequest},
	}, s.openPort)
}

type requestKey struct{}

// withRequest lets a handler keep who asked.
func withRequest(ctx huma.Context, next func(huma.Context)) {
	r, _ := humachi.Unwrap(ctx)
	next(huma.WithValue(ctx, requestKey{}, r))
}

const (
	portLife  = 12 * time.Hour
	maxPorts  = 1000
	portBegin = "port-"
	portEnd   = ".localhost"
)

// portLabel tells the name under which a port is shown from others.
func portLabel(host string) (string, bool) {
	name, ok := strings.CutSuffix(hostName(host), portEnd)
	return name, ok && strings.HasPrefix(name, portBegin)
}

// ports are those that are shown.
type ports struct {
	mu   sync.Mutex
	open map[string]*openPort // by label
}

// openPort is a port that somebody has opened.
type openPort struct {
	of       string // who opened what: it is one again
	label    string
	expires  time.Time
	asked    *http.Request // by which it was opened: who may no longer, sees no more
	at       *connection.Port
	mu       sync.Mutex
	admitted time.Time
}

func (s *Server) openPort(ctx context.Context, v *visit, in *portQuery) (*struct{ Body PortAt }, error) {
	r, _ := ctx.Value(requestKey{}).(*http.Request)
	if !here(r.Host) || v.secure {
		return nil, &sandbox.Error{Op: "open port", Code: codePorts, Message: "what sandboxes serve is shown by names below localhost only, and without TLS"}
	}
	if in.Port == wire.ExecdPort || in.Port == wire.DefaultPort {
		return nil, &sandbox.Error{Op: "open port", Code: sandbox.CodePathNotAllowed, Message: "this is the recorder's own port"}
	}
	service, err := s.opts.Fleet.Service(ctx, in.Connection)
	if err != nil {
		return nil, err
	}
	porter, ok := service.(connection.Porter)
	if !ok {
		return nil, &sandbox.Error{Op: "open port", Code: sandbox.CodeUnsupported, Sandbox: in.Sandbox, Message: "no port of this service's sandboxes can be reached"}
	}
	info, err := service.Get(ctx, in.Sandbox)
	if err == nil && info.State != sandbox.Running {
		err = &sandbox.Error{Op: "open port", Code: sandbox.CodeSandboxState, Sandbox: in.Sandbox, Message: "the sandbox is " + string(info.State)}
	}
	if err != nil {
		return nil, err
	}
	at, err := porter.Port(ctx, in.Sandbox, in.Port)
	if err != nil {
		return nil, err
	}
	p, err := s.ports.add(&openPort{
		of: v.visitor.Entry + " " + v.target, expires: s.opts.Now().Add(portLife).UTC(), asked: r.Clone(context.Background()), at: at,
	}, s.opts.Now())
	if err != nil {
		return nil, err
	}
	host := p.label + portEnd
	if _, port, err := net.SplitHostPort(r.Host); err == nil {
		host = net.JoinHostPort(host, port)
	}
	return &struct{ Body PortAt }{PortAt{"http://" + host + "/", p.expires}}, nil
}

// here reports whether a browser is on this machine, as the name tells under
// which it came.
func here(host string) bool {
	name := hostName(host)
	addr, err := netip.ParseAddr(name)
	return name == "localhost" || err == nil && addr.Unmap().IsLoopback()
}

// add opens a port, or returns the one that is open already.
func (l *ports) add(p *openPort, now time.Time) (*openPort, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for label, old := range l.open {
		switch {
		case now.After(old.expires):
			delete(l.open, label)
		case old.of == p.of:
			old.expires = p.expires
			return old, nil
		}
	}
	if len(l.open) >= maxPorts {
		return nil, &sandbox.Error{Op: "open port", Code: codeBusy, Message: "too many ports are open", Retryable: true}
	}
	if l.open == nil {
		l.open = map[string]*openPort{}
	}
	p.label = portBegin + strings.ToLower(rand.Text())
	l.open[p.label] = p
	return p, nil
}

// find returns the port of a label.
func (l *ports) find(label string, now time.Time) *openPort {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := l.open[label]; p != nil && !now.After(p.expires) {
		return p
	}
	return nil
}

// admit asks, every now and then, whether who opened a port may see it still.
func (s *Server) admitPort(ctx context.Context, p *openPort) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.admitted) < admitEvery {
		return nil
	}
	err := s.admit(p.asked.WithContext(ctx), &visit{}, accesses["open-port"])
	if err == nil {
		p.admitted = time.Now()
	}
	return err
}
