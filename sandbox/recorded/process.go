package recorded

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/sandbox"
)

// process reads a command's stream, and takes it up again when it is cut.
//
//	connect ──> streaming ──exit frame──> ended
//	               └─ cut ─> resume from the offsets reached ─> streaming | lost
type process struct {
	control
	cmd    *sandbox.Command
	ctx    context.Context //nolint:containedctx // of the stream, which outlives the call that began it
	cancel context.CancelFunc
	alive  *time.Timer // cuts a connection that has fallen silent

	body    io.ReadCloser
	frames  *wire.Reader
	at      sandbox.Offsets // the stream's, as passed on to the reader
	started time.Time

	chunks chan sandbox.Chunk
	ended  chan struct{}
	result *sandbox.Result
	err    error
	close  sync.Once
}

// silence is how long a stream may be without any frame: pings come more often.
const silence = 3 * wire.PingEvery

func newProcess(s *Session, opID string, cmd *sandbox.Command, actor history.Actor) *process {
	ctx, cancel := context.WithCancel(history.WithActor(context.Background(), actor))
	return &process{
		control: control{s: s, id: opID, actor: actor}, cmd: cmd, ctx: ctx, cancel: cancel,
		chunks: make(chan sandbox.Chunk, 4), ended: make(chan struct{}),
	}
}

// connect sends the request that begins or resumes the stream, and reads its
// first frame.
func (p *process) connect(ctx context.Context, r *request) error {
	streaming, cut := context.WithCancel(p.ctx)
	// Until the first frame, the ordinary limit of a request holds.
	p.alive = time.AfterFunc(p.s.opts.RequestTimeout, cut)
	stop := context.AfterFunc(ctx, cut)
	defer stop()
	resp, err := p.s.send(streaming, r) //nolint:bodyclose // p.body is closed at the end of the stream
	if err != nil {
		silent := streaming.Err() != nil && ctx.Err() == nil && p.ctx.Err() == nil
		cut()
		if silent {
			return &sandbox.Error{
				Op: r.op, Code: sandbox.CodeTimeout, Sandbox: p.s.opts.Sandbox,
				Message: "no answer from the recorder within " + p.s.opts.RequestTimeout.String(),
			}
		}
		return err
	}
	p.body = &cutting{resp.Body, cut}
	p.frames = wire.NewReader(bufio.NewReaderSize(resp.Body, 64<<10))
	first, err := p.frames.Next()
	var start wire.Start
	if err == nil && first.Type == wire.FrameStart {
		err = json.Unmarshal(first.Payload, &start)
	}
	if err != nil || first.Type != wire.FrameStart {
		p.body.Close()
		return p.s.unreachable(ctx, r.op, errors.Join(errors.New("the stream did not begin as it should"), err))
	}
	p.started = start.StartedAt
	p.alive.Reset(silence)
	return nil
}

// cutting ends the request together with its answer.
type cutting struct {
	io.ReadCloser
	cut context.CancelFunc
}

func (c *cutting) Close() error {
	defer c.cut()
	return c.ReadCloser.Close()
}

// run begins to read the stream, and to send the input.
func (p *process) run() {
	p.s.behind.Go(func() {
		defer close(p.ended)
		defer close(p.chunks)
		p.result, p.err = p.read()
		p.alive.Stop()
	})
	if p.cmd.Stdin != nil {
		in := p.Stdin().(*input)
		go in.feed(p.cmd.Stdin) // a reader that blocks cannot be waited for
	}
}

// read passes output on until the end of the command, over as many
// connections as it takes.
func (p *process) read() (*sandbox.Result, error) {
	var deadline <-chan time.Time
	if p.cmd.Timeout > 0 {
		// The recorder holds the timeout; this is for one that does not.
		limit := time.NewTimer(p.cmd.Timeout + max(p.cmd.Grace, sandbox.DefaultGrace) + endMargin)
		defer limit.Stop()
		deadline = limit.C
	}
	over := make(chan struct{})
	defer close(over)
	go func() {
		select {
		case <-deadline:
			p.cancel()
		case <-over:
		}
	}()
	for {
		res, err := p.readFrames()
		if res != nil {
			p.release()
			return res, nil
		}
		p.body.Close()
		if !cutOff(err) || p.ctx.Err() != nil {
			return nil, p.lost(err)
		}
		if err := p.resume(); err != nil {
			return nil, err
		}
	}
}

// endMargin is what a command has, beyond its timeout and grace, to be told
// ended.
const endMargin = 5 * time.Second

// errCut is a stream without a proper end.
var errCut = errors.New("the stream was cut before the end of the command")

func cutOff(err error) bool {
	e, ok := errors.AsType[*sandbox.Error](err)
	return errors.Is(err, errCut) || ok && e.Retryable
}

// readFrames reads one connection to its end: a result, the command's error,
// or errCut.
func (p *process) readFrames() (*sandbox.Result, error) {
	for {
		f, err := p.frames.Next()
		if err != nil {
			return nil, errors.Join(errCut, err)
		}
		p.alive.Reset(silence)
		switch f.Type {
		case wire.FrameStdout, wire.FrameStderr:
			c, err := f.Chunk()
			if err != nil {
				return nil, err
			}
			if !p.pass(c) {
				return nil, errCut
			}
		case wire.FrameExit:
			return wire.DecodeResult(f.Payload)
		case wire.FrameError:
			return nil, p.s.fault("run command", wire.DecodeFault(http.StatusOK, f.Payload))
		case wire.FramePing:
		default: // of a newer protocol, and not needed
		}
	}
}

// pass hands a chunk to Next. What was there before is left out.
func (p *process) pass(c sandbox.Chunk) bool {
	at := &p.at.Stdout
	if c.Stream == sandbox.Stderr {
		at = &p.at.Stderr
	}
	if skip := *at - c.Offset; skip > 0 {
		if skip >= int64(len(c.Data)) {
			return true
		}
		c.Offset, c.Data = *at, c.Data[skip:]
	}
	c.Data = append([]byte(nil), c.Data...)
	// A reader that does not call Next is no silent recorder.
	p.alive.Stop()
	select {
	case p.chunks <- c:
		*at = c.Offset + int64(len(c.Data))
		p.alive.Reset(silence)
		return true
	case <-p.ctx.Done():
		return false
	}
}

func (p *process) resume() error {
	until := time.Now().Add(p.s.opts.ResumeFor)
	for try := 0; ; try++ {
		if pause(p.ctx, try) != nil {
			return p.lost(errCut)
		}
		err := p.connect(p.ctx, attachRequest(p.id, p.at))
		if err == nil {
			return nil
		}
		if !retryable(err) {
			return err
		}
		if time.Now().After(until) {
			return p.lost(err)
		}
	}
}

func (p *process) lost(err error) error {
	if e, ok := errors.AsType[*sandbox.Error](err); ok && !errors.Is(err, errCut) {
		return e
	}
	return &sandbox.Error{
		Op: "run command", Code: sandbox.CodeInterrupted, Sandbox: p.s.opts.Sandbox,
		Message: "the end of operation " + p.id + " was not seen; ask for it again by this id", Err: err,
	}
}

// release lets the connection be used again if the answer ends as it should,
// without making the caller wait for that.
func (p *process) release() {
	p.s.behind.Go(func() {
		p.alive.Reset(releaseTimeout)
		_, _ = io.CopyN(io.Discard, p.body, 1)
		p.alive.Stop()
		p.body.Close()
	})
}

const releaseTimeout = time.Second

// ID implements sandbox.Process.
func (p *process) ID() string { return p.id }

// StartedAt tells when the command started, by the recorder's clock.
func (p *process) StartedAt() time.Time { return p.started }

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

// Close implements sandbox.Process.
func (p *process) Close() error {
	var err error
	p.close.Do(func() {
		select {
		case <-p.ended:
		default:
			if !p.cmd.Detached {
				ctx, cancel := context.WithTimeout(context.WithoutCancel(p.ctx), p.s.opts.RequestTimeout)
				defer cancel()
				if err = p.Stop(ctx); errors.Is(err, sandbox.ErrNotFound) {
					err = nil
				}
			}
		}
		p.cancel()
	})
	return err
}
