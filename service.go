package glassbox

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/glassboxhq/glassbox/internal/sockets"
	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/record/redact"
	"github.com/glassboxhq/glassbox/sandbox"
	"github.com/glassboxhq/glassbox/sandbox/opensandbox"
	"github.com/glassboxhq/glassbox/sandbox/recorded"
)

// Local is the URL of the local runtime that runs in the state directory,
// whatever its port: it is reached by its socket there.
const Local = "local"

// dial prepares the way to a service. A service on this machine may be our own
// local runtime: it is reached by its socket, which no one else can open.
func dial(ctx context.Context, url string, o *Options) (*service, error) {
	opts, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &service{opts: opts}
	if opts.StateDir, err = StateDir(opts.StateDir); err != nil {
		return nil, err
	}
	s.outbox = &outbox{dir: filepath.Join(opts.StateDir, "outbox")}
	if s.outbox.mask, err = redact.New(opts.History.Filled().Redaction); err != nil {
		return nil, err
	}
	p := &opensandbox.Options{
		Key: key(opts.APIKey), Direct: opts.Direct, RequestTimeout: opts.RequestTimeout, Opener: s.open,
	}
	port, loopback := opensandbox.Loopback(url)
	switch state, err := askState(ctx, opts.StateDir); {
	case url == Local && err != nil:
		return nil, err
	case url == Local:
		url, s.local = "http://localhost", true
	case loopback && err == nil && portOf(state.Listen) == port:
		s.local = true
	}
	switch {
	case s.local:
		p.Transport, p.Key = stateTransport(opts.StateDir), ""
	case loopback && p.Key == "" && sockets.OurListener(port):
		p.Key = generatedKey(opts.StateDir)
	}
	s.provider, err = opensandbox.New(url, p)
	return s, err
}

// open opens the data plane at an execd endpoint: so far only where the execd
// is a recorder of ours.
func (s *service) open(ctx context.Context, e *opensandbox.Endpoint) (sandbox.Session, error) {
	token := e.Header.Get(wire.HeaderToken)
	session := recorded.New(e.URL, &recorded.Options{
		Token: token, Header: e.Header, Client: s.provider.Client(), Sandbox: e.Sandbox,
		RequestTimeout: s.opts.RequestTimeout, Source: s.opts.Source,
	})
	protocol, err := session.Ping(ctx)
	switch {
	case err != nil:
		return nil, err
	case protocol == 0 || token == "":
		return nil, &sandbox.Error{
			Op: "open sandbox", Code: sandbox.CodeUnsupported, Sandbox: e.Sandbox,
			Message: "the service put no recorder into the sandbox, and installing one is not supported yet; use glassbox serve",
		}
	case protocol > wire.Protocol:
		return nil, &sandbox.Error{
			Op: "open sandbox", Code: sandbox.CodeUnsupported, Sandbox: e.Sandbox,
			Message: "the recorder speaks protocol " + strconv.Itoa(protocol) + ", this program " + strconv.Itoa(wire.Protocol) + "; update this program",
		}
	}
	return session, nil
}

// generatedKey is the key that glassbox serve has made for this user.
func generatedKey(stateDir string) opensandbox.Secret {
	text, err := os.ReadFile(filepath.Join(stateDir, "api_key"))
	if err != nil {
		return "" // there is none; the service tells if it needs one
	}
	return opensandbox.Secret(strings.TrimSpace(string(text)))
}

func key(given opensandbox.Secret) opensandbox.Secret {
	for _, name := range []string{"GLASSBOX_API_KEY", "OPEN_SANDBOX_API_KEY"} {
		if given == "" {
			given = opensandbox.Secret(os.Getenv(name))
		}
	}
	return given
}

// StateDir returns where the local runtime keeps its state: dir if it is not
// empty, else GLASSBOX_STATE_DIR, else glassbox below XDG_STATE_HOME or
// ~/.local/state.
func StateDir(dir string) (string, error) {
	if dir == "" {
		dir = os.Getenv("GLASSBOX_STATE_DIR")
	}
	if dir == "" {
		base := os.Getenv("XDG_STATE_HOME")
		if !filepath.IsAbs(base) { // as the XDG specification says
			home, err := os.UserHomeDir()
			if err != nil {
				return "", sandbox.Invalid("state_dir", "cannot be found as HOME is not set; give --state-dir or GLASSBOX_STATE_DIR")
			}
			base = filepath.Join(home, ".local", "state")
		}
		dir = filepath.Join(base, "glassbox")
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", sandbox.Invalid("state_dir", err.Error())
	}
	return abs, nil
}

// stateSocket is where whoever owns the state directory answers.
func stateSocket(dir string) string { return filepath.Join(dir, "state.sock") }

type state struct {
	Listen string `json:"listen"`
}

// askState asks the owner of the state directory where it listens.
func askState(ctx context.Context, dir string) (*state, error) {
	const op = "reach the local runtime"
	ours, err := sockets.Own(stateSocket(dir))
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, &sandbox.Error{Op: op, Code: sandbox.CodeUnavailable, Message: "none runs in " + dir + "; start one with glassbox serve"}
	case err != nil:
		return nil, &sandbox.Error{Op: op, Code: sandbox.CodeUnavailable, Err: err}
	case !ours:
		return nil, &sandbox.Error{Op: op, Code: sandbox.CodeUnauthorized, Message: stateSocket(dir) + " is not a socket of this user"}
	}
	ctx, cancel := context.WithTimeout(ctx, stateTimeout)
	defer cancel()
	transport := stateTransport(dir)
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/glassbox/state", nil)
	if err != nil {
		return nil, &sandbox.Error{Op: op, Code: sandbox.CodeInternal, Err: err}
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return nil, &sandbox.Error{Op: op, Code: sandbox.CodeUnavailable, Message: "nobody answers at " + stateSocket(dir) + "; start glassbox serve", Err: err}
	}
	defer resp.Body.Close()
	var s state
	if err := json.NewDecoder(resp.Body).Decode(&s); err != nil {
		return nil, &sandbox.Error{Op: op, Code: sandbox.CodeUnavailable, Err: err}
	}
	return &s, nil
}

// lease tells the owner of the state directory that this program works with it,
// until it is closed; the owner waits for it as long as it can. Its end is the
// owner's.
type lease struct {
	io.ReadCloser
	transport *http.Transport
}

// takeLease takes a lease. One that cannot be had is not needed: requests tell
// what is wrong.
func takeLease(ctx context.Context, dir string) *lease {
	transport := stateTransport(dir)
	transport.ResponseHeaderTimeout = stateTimeout
	// It lasts longer than the call that opens it.
	req, err := http.NewRequestWithContext(context.WithoutCancel(ctx), http.MethodGet, "http://localhost/glassbox/lease", nil)
	if err != nil {
		return nil
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return nil
	}
	if resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		return nil
	}
	return &lease{resp.Body, transport}
}

// Close gives the lease back.
func (l *lease) Close() error {
	if l == nil {
		return nil
	}
	err := l.ReadCloser.Close()
	l.transport.CloseIdleConnections()
	return err
}

const stateTimeout = 5 * time.Second

// stateTransport sends every request to the owner of the state directory.
func stateTransport(dir string) *http.Transport {
	return &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return sockets.Dial(ctx, stateSocket(dir))
		},
		MaxIdleConnsPerHost: 64, IdleConnTimeout: 10 * time.Second,
		WriteBufferSize: 64 << 10, ReadBufferSize: 64 << 10,
	}
}

func portOf(address string) string {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return ""
	}
	return port
}
