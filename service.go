package glassbox

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/glassboxhq/glassbox/internal/owner"
	"github.com/glassboxhq/glassbox/internal/sockets"
	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/record/redact"
	"github.com/glassboxhq/glassbox/sandbox"
	"github.com/glassboxhq/glassbox/sandbox/execd"
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
	s := &service{opts: opts, keeper: newKeeper(opts)}
	if opts.StateDir, err = StateDir(opts.StateDir); err != nil {
		return nil, err
	}
	s.outbox = &outbox{dir: filepath.Join(opts.StateDir, "outbox")}
	if s.outbox.mask, err = redact.New(opts.History.Filled().Redaction); err != nil {
		return nil, err
	}
	p := &opensandbox.Options{
		Key: opts.APIKey, Direct: opts.Direct, RequestTimeout: opts.RequestTimeout, Opener: s.open, Transport: opts.Transport,
	}
	if opts.Transport != nil && url != Local { // nothing goes another way
		s.provider, err = opensandbox.New(url, p)
		return s, err
	}
	p.Key = key(opts.APIKey)
	if url, err = s.findLocal(ctx, url, p); err != nil {
		return nil, err
	}
	s.provider, err = opensandbox.New(url, p)
	return s, err
}

// findLocal looks whether a service on this machine is our own local runtime,
// and leads to it by its socket.
func (s *service) findLocal(ctx context.Context, url string, p *opensandbox.Options) (string, error) {
	port, loopback := opensandbox.Loopback(url)
	if url == Local || loopback {
		state, err := owner.Ask(ctx, s.opts.StateDir)
		switch {
		case url == Local && err != nil:
			return "", err
		case url == Local:
			url, s.local = "http://localhost", true
		default:
			s.local = err == nil && portOf(state.Listen) == port
		}
	}
	switch {
	case s.local:
		p.Transport, p.Key = owner.Transport(s.opts.StateDir), ""
	case loopback && p.Key == "" && sockets.OurListener(port):
		p.Key = generatedKey(s.opts.StateDir)
	}
	return url, nil
}

// open opens the data plane at an execd endpoint: of a recorder that stands in
// execd's place, or else of one beside it, which is put there.
func (s *service) open(ctx context.Context, e *opensandbox.Endpoint) (sandbox.Session, error) {
	if token := e.Header.Get(wire.HeaderToken); token != "" {
		return s.openRecorder(ctx, e, token)
	}
	stranger := s.stranger(e)
	if err := stranger.Ping(ctx); err != nil {
		return nil, err
	}
	i := &installer{service: s, execd: stranger, at: e}
	open := i.session
	if s.opts.NoInstall {
		open = i.there
	}
	session, err := open(ctx)
	if err != nil {
		return nil, err
	}
	return session, nil
}

// stranger is the execd of a sandbox, as it is. Who makes a sandbox may give
// it a token.
func (s *service) stranger(e *opensandbox.Endpoint) *execd.Session {
	if token := s.opts.Env[envExecdToken]; token != "" && e.Header.Get(wire.HeaderExecdToken) == "" {
		e.Header.Set(wire.HeaderExecdToken, token)
	}
	return execd.New(e.URL, &execd.Options{
		Header: e.Header, Client: s.provider.Client(), Sandbox: e.Sandbox, RequestTimeout: s.opts.RequestTimeout,
	})
}

// envExecdToken is the variable of a sandbox in which its execd finds its
// token.
const envExecdToken = "EXECD_ACCESS_TOKEN"

// openRecorder opens the data plane at a recorder of which the service tells.
func (s *service) openRecorder(ctx context.Context, e *opensandbox.Endpoint, token string) (sandbox.Session, error) {
	session := recorded.New(e.URL, &recorded.Options{
		Token: token, Header: e.Header, Client: s.provider.Client(), Sandbox: e.Sandbox,
		RequestTimeout: s.opts.RequestTimeout, Source: s.opts.Source, Use: s.use(), Why: s.why(e.Sandbox),
	})
	protocol, err := session.Ping(ctx)
	switch {
	case err != nil:
		return nil, err
	case protocol == 0:
		return nil, &sandbox.Error{
			Op: "open sandbox", Code: sandbox.CodeProvider, Sandbox: e.Sandbox,
			Message: "the service tells of a recorder, and none answers",
		}
	case protocol > wire.Protocol:
		return nil, &sandbox.Error{
			Op: "open sandbox", Code: sandbox.CodeUnsupported, Sandbox: e.Sandbox,
			Message: "the recorder speaks protocol " + strconv.Itoa(protocol) + ", this program " + strconv.Itoa(wire.Protocol) + "; update this program",
		}
	}
	return session, nil
}

// resting is the error of what needs a sandbox that runs.
func resting(info *Info) *sandbox.Error {
	return &sandbox.Error{
		Op: "connect", Code: sandbox.CodeSandboxState, Sandbox: info.ID,
		Message: "the sandbox is " + strings.ToLower(string(info.State)) + ": " + info.Message,
	}
}

// why tells why a sandbox does not answer; nil: the service says that it runs,
// or does not answer itself.
func (s *service) why(id string) func(context.Context) *sandbox.Error {
	return func(ctx context.Context) *sandbox.Error {
		info, err := s.provider.Get(ctx, id)
		switch {
		case errors.Is(err, sandbox.ErrNotFound):
			return &sandbox.Error{Code: sandbox.CodeSandboxNotFound, Message: "the sandbox is gone: it was deleted, or its time was over"}
		case err != nil || info.State == sandbox.Running:
			return nil
		}
		e := resting(info)
		e.Op = ""
		return e
	}
}

// use is what tells the keeper of requests; nil: nobody needs to know.
func (s *service) use() func() func() {
	if s.keeper == nil {
		return nil
	}
	return s.keeper.use
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

func portOf(address string) string {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return ""
	}
	return port
}
