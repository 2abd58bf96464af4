// Package execd is a sandbox.Session over the wire of OpenSandbox's execd, for
// a sandbox that no recorder is in:
//
//	session := execd.New(endpoint, &execd.Options{Header: header})
//	result, err := session.Run(ctx, &sandbox.Command{Line: "uname -m"})
//
// That wire carries output as lines of text: which byte ended a line, whether
// the last one had an end, and bytes that are no UTF-8 are lost on the way. It
// is enough to put a recorder into the sandbox; work is done through that.
package execd

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/sandbox"
)

// Options set up a Session.
type Options struct {
	// Header is sent with every request, as the service's endpoint asks; it
	// holds execd's token, where there is one.
	Header http.Header
	// Client sends the requests; nil: one of our own. Its Timeout must be 0:
	// it would cut streams.
	Client *http.Client
	// RequestTimeout bounds one ordinary request, not a command or the content
	// of a file; 0: 30 s.
	RequestTimeout time.Duration
	// Workdir is where commands run and relative paths begin; empty: where
	// execd was started.
	Workdir string
	// Sandbox is the id that errors name.
	Sandbox string
}

// Session talks to one execd.
type Session struct {
	base   string
	opts   Options
	client *http.Client
}

var _ interface {
	sandbox.Session
	sandbox.Starter
} = (*Session)(nil)

// New returns a session with the execd at a base URL.
func New(base string, opts *Options) *Session {
	s := &Session{base: strings.TrimSuffix(base, "/")}
	if opts != nil {
		s.opts = *opts
	}
	if s.opts.RequestTimeout == 0 {
		s.opts.RequestTimeout = 30 * time.Second
	}
	s.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: 10 * time.Second}}
	if s.opts.Client != nil {
		mine := *s.opts.Client
		s.client = &mine
	}
	// A redirect would carry the token to who knows whom.
	s.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return s
}

// Capabilities implements sandbox.Session.
func (s *Session) Capabilities() sandbox.Capabilities { return sandbox.Capabilities{} }

// Close implements sandbox.Session.
func (s *Session) Close(context.Context) error {
	s.client.CloseIdleConnections()
	return nil
}

// Ping asks whether an execd answers.
func (s *Session) Ping(ctx context.Context) error {
	return s.ask(ctx, &request{op: "ping", method: http.MethodGet, path: wire.PathPing}, nil)
}

// request is one request to execd.
type request struct {
	op     string // for errors
	method string
	path   string
	query  url.Values
	header http.Header
	body   io.Reader
}

// send makes a request. An answer other than 2xx is an error.
func (s *Session) send(ctx context.Context, r *request) (*http.Response, error) {
	target := s.base + r.path
	if len(r.query) > 0 {
		target += "?" + r.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.method, target, r.body)
	if err != nil {
		return nil, s.fault(r.op, sandbox.Invalid("url", "is not one that a request can be sent to"))
	}
	maps.Copy(req.Header, s.opts.Header)
	maps.Copy(req.Header, r.header)
	// Else a proxy on the way asks for a packed answer, whose length it tells.
	req.Header.Set("Accept-Encoding", "identity")
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, s.unreachable(ctx, r.op, err)
	}
	if resp.StatusCode/100 != 2 {
		defer resp.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(resp.Body, maxFault)) // what came tells enough
		return nil, s.fault(r.op, refusal(resp, text))
	}
	return resp, nil
}

// ask makes one ordinary request; a nil to asks for no answer.
func (s *Session) ask(ctx context.Context, r *request, to any) error {
	ctx, cancel := context.WithTimeout(ctx, s.opts.RequestTimeout)
	defer cancel()
	resp, err := s.send(ctx, r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return s.unreachable(ctx, r.op, err)
	}
	if to == nil {
		return nil
	}
	if err := json.Unmarshal(text, to); err != nil {
		return s.fault(r.op, &sandbox.Error{Code: sandbox.CodeProvider, Message: "the answer is not one of an execd"})
	}
	return nil
}

// What is taken into memory of an answer.
const (
	maxFault  = 64 << 10
	maxAnswer = 32 << 20
)

func (s *Session) fault(op string, e *sandbox.Error) error {
	if e.Op == "" {
		e.Op = op
	}
	e.Sandbox = s.opts.Sandbox
	return e
}

// unreachable turns a fault of the connection into an error; its text must not
// hold the URL, which may hold what is not to be told.
func (s *Session) unreachable(ctx context.Context, op string, err error) error {
	if ctx.Err() != nil {
		return s.fault(op, sandbox.FromContext(ctx, op))
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	return s.fault(op, &sandbox.Error{Code: sandbox.CodeUnavailable, Retryable: true, Message: "the sandbox's execd does not answer", Err: err})
}
