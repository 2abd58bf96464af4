// Package recorded is a sandbox.Session that a recorder serves, over plain
// HTTP, within a tunnel, or over a socket.
//
//	session := recorded.New("http://127.0.0.1:44780", &recorded.Options{Token: token})
//	result, err := session.Run(ctx, &sandbox.Command{Line: "make test"})
//
// Every act carries the id of its operation, so a request whose answer was
// lost is repeated without being done twice, and a command's stream that was
// cut is taken up again where it stood.
package recorded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/sandbox"
)

// Options set up a Session.
type Options struct {
	// Token opens the recorder's wire.
	Token string
	// Header is sent with every request, as the service's endpoint asks.
	Header http.Header
	// Client sends the requests; nil: one of our own. Its Timeout must be 0:
	// it would cut streams.
	Client *http.Client
	// Tunnel carries requests within one WebSocket, where the way to the
	// recorder lets that through: each costs a proxy on it far less.
	Tunnel bool
	// RequestTimeout bounds one ordinary request, not a stream, a transfer or
	// a command; 0: 30 s.
	RequestTimeout time.Duration
	// ResumeFor is how long a stream that was cut is tried to be taken up
	// again; 0: 30 s.
	ResumeFor time.Duration
	// Source is the door that the history names; empty: sdk.
	Source string
	// Use is told of every request but the question what the recorder is, and
	// what it returns of the end of the answer; nil: nobody is.
	Use func() (done func())
	// Why asks the service what has become of a sandbox that does not answer;
	// its nil answer is that the sandbox runs, or that nobody knows. Nil: nobody
	// is asked.
	Why func(ctx context.Context) *sandbox.Error
	// Sandbox is the id that errors name.
	Sandbox string
}

// Session talks to one recorder.
type Session struct {
	base   string
	opts   Options
	client *http.Client
	behind sync.WaitGroup // what goes on after its call has returned

	streams  sync.WaitGroup // of commands
	mu       sync.Mutex
	followed map[*process]struct{} // whose streams are read
}

var _ interface {
	sandbox.Session
	sandbox.Starter
	sandbox.Attacher
	sandbox.Files
} = (*Session)(nil)

// New returns a session with the recorder at a base URL.
func New(base string, opts *Options) *Session {
	s := &Session{base: strings.TrimSuffix(base, "/"), followed: map[*process]struct{}{}}
	if opts != nil {
		s.opts = *opts
	}
	if s.opts.RequestTimeout == 0 {
		s.opts.RequestTimeout = 30 * time.Second
	}
	if s.opts.ResumeFor == 0 {
		s.opts.ResumeFor = 30 * time.Second
	}
	s.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: 10 * time.Second}}
	if s.opts.Client != nil {
		mine := *s.opts.Client
		s.client = &mine
	}
	if s.opts.Tunnel {
		header := http.Header{}
		maps.Copy(header, s.opts.Header)
		header.Set(wire.HeaderToken, s.opts.Token)
		s.client.Transport = newTunnel(s.base, header, s.client.Transport)
	}
	// A redirect would carry the token to who knows whom.
	s.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return s
}

// Capabilities implements sandbox.Session.
func (s *Session) Capabilities() sandbox.Capabilities {
	return sandbox.Capabilities{ExactBytes: true, Recorded: true, Stdin: true, Signals: true, Background: true, Attach: true, Terminals: true, Files: true}
}

// Close waits for what goes on behind, which is the stop of a command whose
// call was cancelled before it was answered, and then lets go of the streams
// that are still read. Their commands go on.
func (s *Session) Close(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		s.behind.Wait()
		s.mu.Lock()
		for p := range s.followed {
			p.cancel()
		}
		s.mu.Unlock()
		s.streams.Wait()
		close(done)
	}()
	select {
	case <-done:
		s.client.CloseIdleConnections()
		return nil
	case <-ctx.Done():
		return sandbox.FromContext(ctx, "close session")
	}
}

func (s *Session) follow(p *process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.followed[p] = struct{}{}
}

func (s *Session) unfollow(p *process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.followed, p)
}

// Info asks the recorder what it is.
func (s *Session) Info(ctx context.Context) (*wire.Info, error) {
	var info wire.Info
	err := s.get(ctx, "ask the recorder", wire.PathInfo, nil, &info)
	return &info, err
}

// request is one request to the recorder.
type request struct {
	op     string // for errors
	method string
	path   string
	query  url.Values
	id     string // of the operation
	body   io.Reader
	size   int64 // of body, -1: not known
}

// send makes one try. An answer other than 2xx is an error.
func (s *Session) send(ctx context.Context, r *request) (*http.Response, error) {
	resp, err := s.exchange(ctx, r)
	if err != nil || resp.StatusCode/100 == 2 {
		return resp, err
	}
	_, err = s.refusal(ctx, r, resp)
	return nil, err
}

// refusal reads an answer that is an error, and its body. One that is not of
// the recorder tells that it was not reached.
func (s *Session) refusal(ctx context.Context, r *request, resp *http.Response) ([]byte, error) {
	defer resp.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // what came tells enough
	e := wire.DecodeAnswer(resp, body)
	if e.Code == sandbox.CodeProvider && resp.Header.Get(wire.HeaderRecorder) == "" {
		if why := s.why(ctx); why != nil {
			why.RequestID = e.RequestID
			e = why
		}
	}
	return body, s.fault(r.op, e)
}

// whyWithin bounds the question what has become of a sandbox.
const whyWithin = 2 * time.Second

// why is what the service says of a sandbox that does not answer; nil: nothing.
func (s *Session) why(ctx context.Context) *sandbox.Error {
	if s.opts.Why == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), whyWithin)
	defer cancel()
	return s.opts.Why(ctx)
}

// ended is the error of a call whose context has ended, with the reason why the
// sandbox did not answer until then.
func (s *Session) ended(ctx context.Context, op string) *sandbox.Error {
	e := sandbox.FromContext(ctx, op)
	e.Sandbox = s.opts.Sandbox
	if e.Code == sandbox.CodeTimeout {
		if why := s.why(ctx); why != nil {
			e.Message = why.Message
		}
	}
	return e
}

// exchange sends a request and waits for the head of its answer.
func (s *Session) exchange(ctx context.Context, r *request) (*http.Response, error) {
	target := s.base + r.path
	if len(r.query) > 0 {
		target += "?" + r.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.method, target, r.body)
	if err != nil {
		return nil, s.fault(r.op, sandbox.Invalid("url", "is not one that a request can be sent to"))
	}
	if r.size > 0 {
		req.ContentLength = r.size
	}
	maps.Copy(req.Header, s.opts.Header)
	req.Header.Set(wire.HeaderToken, s.opts.Token)
	if r.id != "" {
		req.Header.Set(wire.HeaderID, r.id)
	}
	actor := history.ActorFrom(ctx)
	if actor.Source == "" {
		actor.Source = s.opts.Source
	}
	wire.SetActor(req.Header, actor)
	done := func() {}
	if s.opts.Use != nil && r.path != wire.PathInfo {
		done = sync.OnceFunc(s.opts.Use())
	}
	resp, err := s.client.Do(req)
	if err != nil {
		done()
		return nil, s.unreachable(ctx, r.op, err)
	}
	resp.Body = &cutting{resp.Body, done}
	return resp, nil
}

// unreachable turns a fault of the connection into an error that may be tried
// again; its text must not hold the URL, which may hold what is not to be told.
func (s *Session) unreachable(ctx context.Context, op string, err error) error {
	if ctx.Err() != nil {
		return s.ended(ctx, op)
	}
	if e, ok := errors.AsType[*sandbox.Error](err); ok {
		mine := *e // what was wrong with the answer
		return s.fault(op, &mine)
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	return &sandbox.Error{
		Op: op, Code: sandbox.CodeUnavailable, Sandbox: s.opts.Sandbox, Retryable: true,
		Message: "the recorder does not answer", Err: err,
	}
}

func (s *Session) fault(op string, e *sandbox.Error) error {
	if e.Op == "" {
		e.Op = op
	}
	e.Sandbox = s.opts.Sandbox
	return e
}

// Tries of what may be repeated.
const (
	maxTries = 3
	minPause = 100 * time.Millisecond
	maxPause = 2 * time.Second
)

// pause waits before another try, longer each time and never quite the same.
func pause(ctx context.Context, try int) error {
	d := min(minPause<<min(try, 8), maxPause)
	d += time.Duration((rand.Float64()*0.4 - 0.2) * float64(d)) // jitter 0.2
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func retryable(err error) bool {
	e, ok := errors.AsType[*sandbox.Error](err)
	return ok && e.Retryable
}

// get makes a safe request for a JSON answer.
func (s *Session) get(ctx context.Context, op, path string, query url.Values, to any) error {
	return s.again(ctx, func(ctx context.Context) error {
		return s.once(ctx, &request{op: op, method: http.MethodGet, path: path, query: query}, to)
	})
}

// again repeats what may be repeated. A tunnel that was opened anew shows that
// the recorder is there: others' bytes cut the last try, and it does not count.
func (s *Session) again(ctx context.Context, try func(context.Context) error) error {
	until := time.Now().Add(s.opts.ResumeFor)
	links := s.links()
	for n := 0; ; n++ {
		err := try(ctx)
		if now := s.links(); now != links && time.Now().Before(until) {
			links, n = now, 0
		}
		if err == nil || !retryable(err) || n+1 >= maxTries || pause(ctx, n) != nil {
			return err
		}
	}
}

// links is how many tunnels were opened.
func (s *Session) links() int64 {
	if t, ok := s.client.Transport.(*tunnel); ok {
		return t.links.Load()
	}
	return 0
}

// insist repeats what may be repeated for as long as a stream is resumed.
func (s *Session) insist(ctx context.Context, try func(context.Context) error) error {
	until := time.Now().Add(s.opts.ResumeFor)
	for n := 0; ; n++ {
		err := try(ctx)
		if err == nil || !retryable(err) || time.Now().After(until) || pause(ctx, n) != nil {
			return err
		}
	}
}

// once makes one ordinary request; a nil to asks for no answer.
func (s *Session) once(ctx context.Context, r *request, to any) error {
	return s.onceWithin(ctx, s.opts.RequestTimeout, r, to)
}

func (s *Session) onceWithin(ctx context.Context, limit time.Duration, r *request, to any) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	resp, err := s.send(ctx, r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if to == nil {
		return nil
	}
	if err := decodeInto(resp.Body, to); err != nil {
		return s.unreachable(ctx, r.op, err)
	}
	return nil
}

func offsetQuery(values map[string]int64) url.Values {
	q := url.Values{}
	for name, value := range values {
		if value != 0 {
			q.Set(name, strconv.FormatInt(value, 10))
		}
	}
	return q
}

func operationID(given string) (string, error) {
	if given == "" {
		return id.New(), nil
	}
	if !id.Valid(given) {
		return "", sandbox.Invalid("id", fmt.Sprintf("is %q, but must be a UUID in lower case", given))
	}
	return given, nil
}

// Ping asks what answers; a recorder tells its protocol, anything else is 0.
func (s *Session) Ping(ctx context.Context) (protocol int, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.RequestTimeout)
	defer cancel()
	resp, err := s.send(ctx, &request{op: "ping", method: http.MethodGet, path: wire.PathPing})
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body) // it is empty
	protocol, _ = strconv.Atoi(resp.Header.Get(wire.HeaderRecorder))
	return protocol, nil
}
