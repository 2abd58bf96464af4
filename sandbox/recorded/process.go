package recorded

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/id"
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
	began  time.Time
	alive  *time.Timer // cuts a connection that has fallen silent
	sent   bool        // a request was on its way: the command may have started

	body    io.ReadCloser
	buffer  *bufio.Reader
	frames  *wire.Reader
	at      sandbox.Offsets // the stream's, as passed on to the reader
	blocked time.Duration   // that output has waited for the reader
	cutAt   time.Time       // of the first cut since a frame came
	tries   int             // since then
	started time.Time

	chunks chan sandbox.Chunk
	ended  chan struct{}
	result *sandbox.Result
	err    error
	close  sync.Once
}

const (
	// silence is how long a stream may be without any frame: pings come more often.
	silence = 3 * wire.PingEvery
	// endMargin is what a command has, beyond its timeout and grace, to be told
	// ended.
	endMargin = 5 * time.Second
	// releaseTimeout is what answers have, after the exit frame, to end.
	releaseTimeout = time.Second
	// closeTimeout bounds the wait for a recorder to stop a command that is
	// let go.
	closeTimeout = 5 * time.Second
)

func newProcess(s *Session, opID string, cmd *sandbox.Command, actor history.Actor) *process {
	ctx, cancel := context.WithCancel(history.WithActor(context.Background(), actor))
	return &process{
		control: control{s: s, id: opID, self: id.New(), ctx: ctx}, cmd: cmd, ctx: ctx, cancel: cancel, began: time.Now(),
		chunks: make(chan sandbox.Chunk, 4), ended: make(chan struct{}),
	}
}

// patience is how long to wait for the recorder: at most this long, and not
// beyond the command's timeout. The recorder holds the timeout; this is for
// one that does not.
func (p *process) patience(most time.Duration) time.Duration {
	if p.cmd.Timeout == 0 {
		return most
	}
	all := p.cmd.Timeout + max(p.cmd.Grace, sandbox.DefaultGrace) + endMargin
	return min(most, all+p.blocked-time.Since(p.began))
}

// connect sends the request that begins or resumes the stream, and reads its
// first frame.
func (p *process) connect(ctx context.Context, r *request) (*wire.Start, error) {
	if r.query == nil {
		r.query = url.Values{}
	}
	r.query.Set("client", p.self)
	streaming, cut := context.WithCancel(p.ctx)
	// Until the first frame, the ordinary limit of a request holds.
	limit := p.patience(p.s.opts.RequestTimeout)
	var silent atomic.Bool
	p.alive = time.AfterFunc(limit, func() { silent.Store(true); cut() })
	stop := context.AfterFunc(ctx, cut)
	defer stop()
	start, err := p.begin(streaming, cut, r)
	if err == nil {
		p.alive.Reset(p.patience(silence))
		return start, nil
	}
	p.alive.Stop()
	cut()
	switch {
	case silent.Load() && ctx.Err() == nil && p.ctx.Err() == nil:
		e := &sandbox.Error{
			Op: r.op, Code: sandbox.CodeTimeout, Sandbox: p.s.opts.Sandbox,
			Message: "no answer from the recorder within " + limit.Round(time.Millisecond).String(),
		}
		if why := p.s.why(ctx); why != nil {
			e.Message += ": " + why.Message
		}
		return nil, e
	case ctx.Err() != nil:
		return nil, p.s.unreachable(ctx, r.op, err)
	}
	return nil, err
}

// giveUp lets go of a command whose call has ended before it was answered. One
// that waits for its turn leaves the queue when its request is cut; one that
// has started is stopped, unless it was to be left running.
func (p *process) giveUp(answers <-chan error) {
	if p.cmd.Detached {
		if <-answers == nil {
			_ = p.Close() // lets go
		}
		return
	}
	p.cancel()
	if <-answers == nil {
		_ = p.Close() // it has just begun
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.ctx), min(p.s.opts.RequestTimeout, closeTimeout))
	defer cancel()
	_ = p.Stop(ctx) // one that was never started is not found
}

func (p *process) begin(streaming context.Context, cut context.CancelFunc, r *request) (*wire.Start, error) {
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { p.sent = true }}
	resp, err := p.s.send(httptrace.WithClientTrace(streaming, trace), r) //nolint:bodyclose // p.body is closed at the end of the stream
	if err != nil {
		return nil, err
	}
	p.body = &cutting{resp.Body, cut}
	p.buffer = bufio.NewReaderSize(resp.Body, 64<<10)
	p.frames = wire.NewReader(p.buffer)
	first, err := p.frames.Next()
	for err == nil && first.Type == wire.FramePing { // the command waits for its turn
		p.began = time.Now()
		p.alive.Reset(p.s.opts.RequestTimeout)
		first, err = p.frames.Next()
	}
	if err == nil && first.Type == wire.FrameError {
		p.body.Close()
		return nil, p.s.fault(r.op, wire.DecodeFault(http.StatusOK, first.Payload))
	}
	start := &wire.Start{}
	if err == nil && first.Type == wire.FrameStart {
		err = json.Unmarshal(first.Payload, start)
	}
	if err != nil || first.Type != wire.FrameStart {
		p.body.Close()
		return nil, p.s.unreachable(p.ctx, r.op, errors.Join(errors.New("the stream did not begin as it should"), err))
	}
	return start, nil
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
	p.s.follow(p)
	p.s.streams.Go(func() {
		p.result, p.err = p.read()
		close(p.chunks)
		close(p.ended)
		p.release()
		if p.err == nil {
			// The answer to its last input may still be on its way.
			time.AfterFunc(releaseTimeout, p.cancel)
		} else {
			p.cancel()
		}
		p.s.unfollow(p)
	})
	if p.cmd.Stdin != nil {
		in := p.Stdin().(*input)
		go in.feed(p.cmd.Stdin) // a reader that blocks cannot be waited for
	}
}

// read passes output on until the end of the command, over as many
// connections as it takes.
func (p *process) read() (*sandbox.Result, error) {
	for {
		res, err := p.readFrames()
		if res != nil {
			return res, nil
		}
		p.alive.Stop()
		p.body.Close()
		if !cutOff(err) || p.ctx.Err() != nil {
			return nil, p.lost(err)
		}
		if err := p.resume(); err != nil {
			return nil, p.lost(err)
		}
	}
}

// errCut is a stream without a proper end.
var errCut = errors.New("the stream was cut before the end of the command")

func cutOff(err error) bool { return errors.Is(err, errCut) || retryable(err) }

// readFrames reads one connection to its end: a result, the command's error,
// or errCut.
func (p *process) readFrames() (*sandbox.Result, error) {
	for {
		f, err := p.frames.Next()
		if _, ok := errors.AsType[*sandbox.Error](err); ok {
			return nil, err // no frame, rather than half of one
		}
		if err != nil {
			return nil, errors.Join(errCut, err)
		}
		p.cutAt, p.tries = time.Time{}, 0
		p.alive.Reset(p.patience(silence))
		switch f.Type {
		case wire.FrameStdout, wire.FrameStderr:
			c, err := f.Chunk()
			if err == nil {
				err = p.pass(c)
			}
			if err != nil {
				return nil, err
			}
		case wire.FrameExit:
			return endOf(f.Payload)
		case wire.FrameError:
			return nil, p.s.fault("run command", wire.DecodeFault(http.StatusOK, f.Payload))
		case wire.FramePing:
		default: // of a newer protocol, and not needed
		}
	}
}

// endOf reads an exit frame. One that does not tell how the command ended must
// not become an exit code of 0.
func endOf(payload []byte) (*sandbox.Result, error) {
	res, err := wire.DecodeResult(payload)
	if err == nil && (res.Status == "" || res.Status == sandbox.Started) {
		res, err = nil, &sandbox.Error{Op: "read exit frame", Code: sandbox.CodeInterrupted, Message: "it does not tell how the command ended"}
	}
	return res, err
}

// pass hands a chunk to Next. What was there before is left out.
func (p *process) pass(c sandbox.Chunk) error {
	at := &p.at.Stdout
	if c.Stream == sandbox.Stderr {
		at = &p.at.Stderr
	}
	if *at < 0 { // counted from the end, which is known now
		*at = c.Offset
	}
	switch skip := *at - c.Offset; {
	case skip < 0:
		return &sandbox.Error{
			Op: "read output", Code: sandbox.CodeInterrupted,
			Message: fmt.Sprintf("bytes %d to %d of %s are missing in the stream", *at, c.Offset, c.Stream),
		}
	case skip >= int64(len(c.Data)):
		return nil
	default:
		c.Offset, c.Data = *at, append([]byte(nil), c.Data[skip:]...)
	}
	// A reader that does not call Next is no silent recorder.
	p.alive.Stop()
	since := time.Now()
	select {
	case p.chunks <- c:
		*at = c.Offset + int64(len(c.Data))
		p.blocked += time.Since(since)
		p.alive.Reset(p.patience(silence))
		return nil
	case <-p.ctx.Done():
		return errCut
	}
}

// resume takes the stream up where it stands. It gives up when no connection
// has brought anything for a while.
func (p *process) resume() error {
	if p.cutAt.IsZero() {
		p.cutAt = time.Now()
	}
	last := errCut
	for {
		if time.Since(p.cutAt) > p.s.opts.ResumeFor || p.patience(silence) <= 0 || pause(p.ctx, p.tries) != nil {
			return last
		}
		p.tries++
		_, err := p.connect(p.ctx, attachRequest(p.id, p.at))
		if err == nil {
			return nil
		}
		if !unanswered(err) {
			return err
		}
		last = err
	}
}

// unanswered reports whether an error tells that the recorder was not reached,
// rather than what it said: what its history refuses was not done.
func unanswered(err error) bool {
	return retryable(err) && !errors.Is(err, sandbox.ErrHistory) || sandbox.CodeOf(err) == sandbox.CodeTimeout
}

// lost is the error of a command whose end was not seen: what the recorder
// said of it, or that nothing is known. The same call again would be another
// command, so it is not retryable.
func (p *process) lost(err error) error {
	if e, ok := errors.AsType[*sandbox.Error](err); ok && !errors.Is(err, errCut) && !unanswered(err) {
		return e
	}
	if errors.Is(err, io.EOF) {
		err = errors.New(err.Error()) // Next would seem to tell the end of the output
	}
	return &sandbox.Error{
		Op: "run command", Code: sandbox.CodeInterrupted, Sandbox: p.s.opts.Sandbox,
		Message: "the end of operation " + p.id + " was not seen; ask for it again by this id", Err: err,
	}
}

// release lets the connection be used again if the answer ends as it should.
func (p *process) release() {
	if p.err != nil {
		return
	}
	p.alive.Reset(releaseTimeout)
	_, _ = io.CopyN(io.Discard, p.buffer, 1) // its end, or what must not be there
	p.alive.Stop()
	p.body.Close()
}

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
			return
		default:
		}
		if !p.cmd.Detached {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(p.ctx), min(p.s.opts.RequestTimeout, closeTimeout))
			defer cancel()
			if err = p.Stop(ctx); errors.Is(err, sandbox.ErrNotFound) {
				err = nil
			}
		}
		p.cancel()
	})
	return err
}
