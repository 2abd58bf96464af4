package execd

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/glassboxhq/glassbox/sandbox"
)

// process reads the stream of one command.
//
//	begin ──init──> output ──terminal event──> ended
//	                   └─ cut ─> ask for the status ─> ended | lost
type process struct {
	s     *Session
	id    string // of the operation, which execd does not know
	name  string // execd's own
	cmd   *sandbox.Command
	ctx   context.Context //nolint:containedctx // of the stream, which outlives the call that began it
	cut   context.CancelFunc
	began time.Time
	alive *time.Timer // cuts a stream that has fallen silent

	body    io.ReadCloser
	events  *events
	counts  sandbox.Offsets
	stopped atomic.Bool // by Stop

	chunks chan sandbox.Chunk
	ended  chan struct{}
	result *sandbox.Result
	err    error
}

// silence is how long a stream may be without any event. Execd pings every
// three seconds, but the service's proxy stands still while it fetches an image.
const silence = 200 * time.Second

// begin sends the request and reads the first event.
func (p *process) begin(ctx context.Context, r *request) error {
	p.began = time.Now()
	stop := context.AfterFunc(ctx, p.cut)
	defer stop()
	p.alive = time.AfterFunc(p.s.opts.RequestTimeout, p.cut)
	resp, err := p.s.send(p.ctx, r) //nolint:bodyclose // read closes it
	if err != nil {
		return p.unbegun(ctx, err)
	}
	p.body, p.events = resp.Body, newEvents(resp.Body)
	first, err := p.events.next()
	if err != nil || first.Type != typeInit {
		p.body.Close()
		return p.unbegun(ctx, err)
	}
	p.name = first.Text
	p.alive.Reset(silence)
	return nil
}

// unbegun tells why a command did not begin, or that this is not known.
func (p *process) unbegun(ctx context.Context, err error) error {
	if e, ok := errors.AsType[*sandbox.Error](err); ok && ctx.Err() == nil && p.ctx.Err() == nil && e.Code != sandbox.CodeUnavailable {
		return p.s.fault("start command", e)
	}
	if ctx.Err() != nil {
		return p.s.fault("start command", sandbox.FromContext(ctx, "start command"))
	}
	if errors.Is(err, io.EOF) {
		err = errCut
	}
	return p.s.fault("start command", &sandbox.Error{
		Code: sandbox.CodeInterrupted, Err: err, Message: "whether the command was started is not known: the answer did not begin",
	})
}

// read passes output on until the end of the command.
func (p *process) read() {
	defer close(p.ended)
	defer close(p.chunks)
	defer p.cut()
	defer p.body.Close() // at the last event: execd holds the stream open for a second more
	for {
		e, err := p.events.next()
		if err != nil {
			p.result, p.err = p.afterCut(err)
			return
		}
		p.alive.Reset(silence)
		switch e.Type {
		case typeStdout, typeStderr:
			if !p.pass(e) {
				p.err = p.lost(nil)
				return
			}
		case typeComplete:
			p.result = p.end(0, "")
			return
		case typeError:
			p.result, p.err = p.failed(e.Error)
			return
		}
	}
}

// pass hands a line to Next. A reader that does not come is no silent execd.
func (p *process) pass(e *event) bool {
	c := sandbox.Chunk{Stream: sandbox.Stdout, Time: time.UnixMilli(e.Timestamp).UTC(), Data: lineOf(e)}
	at := &p.counts.Stdout
	if e.Type == typeStderr {
		c.Stream, at = sandbox.Stderr, &p.counts.Stderr
	}
	c.Offset = *at
	p.alive.Stop()
	select {
	case p.chunks <- c:
		*at += int64(len(c.Data))
		p.alive.Reset(silence)
		return true
	case <-p.ctx.Done():
		return false
	}
}

// errCut stands for io.EOF, which tells Next's callers that all is well.
var errCut = errors.New("the stream was cut before the end of the command")

// afterCut finds out how a command ended whose stream ended before it did.
func (p *process) afterCut(cause error) (*sandbox.Result, error) {
	if e, ok := errors.AsType[*sandbox.Error](cause); ok {
		return nil, p.s.fault("run command", e)
	}
	if errors.Is(cause, io.EOF) || errors.Is(cause, io.ErrUnexpectedEOF) {
		cause = errCut
	}
	if p.ctx.Err() != nil && p.alive.Stop() {
		return nil, p.lost(cause) // Close has let go of it
	}
	p.alive.Stop()
	st, err := p.s.status(context.WithoutCancel(p.ctx), p.name)
	if err != nil || st.Running || st.ExitCode == nil {
		return nil, p.lost(errors.Join(cause, err))
	}
	res := p.end(*st.ExitCode, "signal: "+strings.TrimPrefix(st.Error, "signal: "))
	res.Truncated, res.Reason = true, "the stream ended before the command did: output after that is missing"
	return res, nil
}

func (p *process) lost(err error) error {
	return p.s.fault("run command", &sandbox.Error{
		Code: sandbox.CodeInterrupted, Err: err, Message: "the end of the command was not seen, nor could execd tell it",
	})
}

// ID implements sandbox.Process.
func (p *process) ID() string { return p.id }

// Next implements sandbox.Process.
func (p *process) Next(ctx context.Context) (sandbox.Chunk, error) {
	select {
	case c, ok := <-p.chunks:
		if ok {
			return c, nil
		}
		<-p.ended
		if p.err != nil {
			return sandbox.Chunk{}, p.err
		}
		return sandbox.Chunk{}, io.EOF
	case <-ctx.Done():
		return sandbox.Chunk{}, sandbox.FromContext(ctx, "read output")
	}
}

// Wait implements sandbox.Process. Output that nobody reads is passed over.
func (p *process) Wait(ctx context.Context) (*sandbox.Result, error) {
	for {
		_, err := p.Next(ctx)
		if errors.Is(err, io.EOF) {
			res := *p.result
			return &res, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// Stop implements sandbox.Control. Execd answers 500 for a command that has
// ended, and when it has stopped one.
func (p *process) Stop(ctx context.Context) error {
	select {
	case <-p.ended:
		return nil
	default:
	}
	p.stopped.Store(true)
	err := p.s.ask(ctx, &request{op: "stop command", method: http.MethodDelete, path: "/command", query: url.Values{"id": {p.name}}}, nil)
	if e, ok := errors.AsType[*sandbox.Error](err); ok && (errors.Is(err, sandbox.ErrNotFound) || errors.Is(err, sandbox.ErrState) ||
		strings.Contains(e.Message, "not running") || strings.Contains(e.Message, "no such session")) {
		return nil // its end is on the way
	}
	return err
}

// Signal implements sandbox.Control.
func (p *process) Signal(context.Context, string) error {
	return p.s.fault("send signal", &sandbox.Error{Code: sandbox.CodeUnsupported, Message: "it needs a recorder in the sandbox"})
}

// Stdin implements sandbox.Control: there is none.
func (p *process) Stdin() io.WriteCloser { return closed{} }

type closed struct{}

func (closed) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
func (closed) Close() error              { return nil }

// closeTimeout bounds the wait for execd to stop a command that is let go.
const closeTimeout = 5 * time.Second

// Close implements sandbox.Process.
func (p *process) Close() error {
	select {
	case <-p.ended:
		return nil
	default:
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.ctx), closeTimeout)
	defer cancel()
	err := p.Stop(ctx)
	p.cut()
	return err
}
