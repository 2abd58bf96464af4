package record

import (
	"context"
	"io"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/sandbox"
)

// client is one client's view of a command: it reads from where this client
// is, at its own speed.
type client struct {
	run *run
	who string // its name on a terminal

	// of the tape, under its mutex
	at       pair
	seq      int // of the next piece in the window
	inWindow bool
	moved    time.Time // when it last read
	slow     bool
	left     bool
}

// Attach implements sandbox.Attacher. Bytes that are no longer kept are an
// error of the kind ErrOutputGone, which names them.
func (s *Session) Attach(ctx context.Context, opID string, from sandbox.Offsets) (sandbox.Process, error) {
	switch r, op, err := s.find(ctx, opID); {
	case err != nil:
		return nil, err
	case r != nil:
		return r.attach(from), nil
	default:
		return s.replay(op, from, true)
	}
}

// find returns the command that runs under an id or ended a short while ago,
// or else its record.
func (s *Session) find(ctx context.Context, opID string) (*run, *history.Operation, error) {
	const op = "find command"
	s.mu.Lock()
	r, ok := s.runs[opID]
	s.mu.Unlock()
	if ok {
		select {
		case <-r.ready:
		case <-ctx.Done():
			return nil, nil, sandbox.FromContext(ctx, op)
		}
		if r.err == nil && r.earlier == nil {
			return r, nil, nil
		}
	}
	if s.store == nil {
		return nil, nil, &sandbox.Error{Op: op, Code: sandbox.CodeOperationNotFound, Message: "no command runs under the id " + opID}
	}
	earlier, err := s.store.Get(ctx, opID)
	return nil, earlier, err
}

func (r *run) attach(from sandbox.Offsets) *client {
	p := &client{run: r, who: id.New(), at: pair{from.Stdout, from.Stderr}}
	r.tape.mu.Lock()
	for i := range p.at {
		if p.at[i] < 0 {
			p.at[i] = max(r.tape.seen[i]+p.at[i], 0)
		}
	}
	r.tape.clients[p] = struct{}{}
	r.tape.mu.Unlock()
	r.mu.Lock()
	if r.abandoned != nil {
		r.abandoned.Stop()
		r.abandoned = nil
	}
	r.mu.Unlock()
	return p
}

// ID implements sandbox.Process.
func (p *client) ID() string { return p.run.id }

// StartedAt tells when the command started.
func (p *client) StartedAt() time.Time { return p.run.started }

// Next implements sandbox.Process.
func (p *client) Next(ctx context.Context) (sandbox.Chunk, error) {
	return p.run.tape.next(ctx, p)
}

// Stdin implements sandbox.Process.
func (p *client) Stdin() io.WriteCloser { return p.run.input.of(p.who) }

// Signal implements sandbox.Process.
func (p *client) Signal(ctx context.Context, name string) error {
	return p.run.inner.Signal(ctx, name)
}

// Stop implements sandbox.Process.
func (p *client) Stop(ctx context.Context) error { return p.run.inner.Stop(ctx) }

// Wait implements sandbox.Process.
func (p *client) Wait(ctx context.Context) (*sandbox.Result, error) {
	t := p.run.tape
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.result == nil {
		moved := t.moved
		t.mu.Unlock()
		select {
		case <-moved:
			t.mu.Lock()
		case <-ctx.Done():
			t.mu.Lock()
			return nil, sandbox.FromContext(ctx, "wait for command")
		}
	}
	res := *t.result
	return &res, nil
}

// Close implements sandbox.Process.
func (p *client) Close() error {
	if p.leave() && !p.run.detached {
		return p.run.inner.Stop(context.Background())
	}
	return nil
}

// Leave is Close for a client that was lost rather than one that let go: it
// may come back, so the command goes on for a while.
func (p *client) Leave(after time.Duration) {
	r := p.run
	if !p.leave() || r.detached {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.abandoned != nil {
		r.abandoned.Stop()
	}
	r.abandoned = time.AfterFunc(after, func() {
		r.because("stopped because its client was gone for " + after.String())
		_ = r.inner.Stop(context.Background())
	})
}

// leave takes the client off the tape, and reports whether the command runs
// and nobody else reads it.
func (p *client) leave() bool {
	t := p.run.tape
	t.mu.Lock()
	defer t.mu.Unlock()
	first := !p.left
	p.left = true
	if keys := p.run.input.keys; keys != nil {
		keys.release(p.who)
	}
	delete(t.clients, p)
	t.wake() // the command may have waited for this client
	return first && len(t.clients) == 0 && t.result == nil
}

// replay is a command that has ended, read from the history.
type replay struct {
	store  history.Store
	res    *sandbox.Result
	kept   pair
	at     pair
	strict bool // what is not kept is an error, rather than the end
}

func (s *Session) replay(op *history.Operation, from sandbox.Offsets, strict bool) (sandbox.Process, error) {
	res, err := resultOf(op)
	if err != nil {
		return nil, err
	}
	kept, at := keptOf(op), pair{from.Stdout, from.Stderr}
	for i := range at {
		if at[i] < 0 {
			at[i] = max(kept[i]+at[i], 0)
		}
	}
	return &replay{store: s.store, res: res, kept: kept, at: at, strict: strict}, nil
}

func keptOf(op *history.Operation) pair {
	if op.Command == nil {
		return pair{}
	}
	return pair{op.Command.StdoutBytes, op.Command.StderrBytes}
}

func (p *replay) ID() string { return p.res.OperationID }

func (p *replay) StartedAt() time.Time { return p.res.StartedAt }

func (p *replay) Next(ctx context.Context) (sandbox.Chunk, error) {
	for i, stream := range streams {
		if p.at[i] < p.kept[i] {
			data, err := p.store.Output(ctx, p.ID(), stream, p.at[i], olderBytes)
			if err != nil {
				return sandbox.Chunk{}, err
			}
			if len(data) > 0 {
				c := sandbox.Chunk{Stream: stream, Offset: p.at[i], Time: p.res.StartedAt, Data: data}
				p.at[i] += int64(len(data))
				return c, nil
			}
		}
		if total := (pair{p.res.StdoutBytes, p.res.StderrBytes})[i]; p.strict && p.at[i] < total {
			return sandbox.Chunk{}, gone(stream, p.at[i], total)
		}
	}
	return sandbox.Chunk{}, io.EOF
}

func (p *replay) Wait(context.Context) (*sandbox.Result, error) {
	res := *p.res
	return &res, nil
}

var errEnded = &sandbox.Error{Code: sandbox.CodeSandboxState, Message: "the command has ended"}

func (p *replay) Stdin() io.WriteCloser                { return endedInput{} }
func (p *replay) Signal(context.Context, string) error { return errEnded }
func (p *replay) Stop(context.Context) error           { return nil }
func (p *replay) Close() error                         { return nil }

type endedInput struct{}

func (endedInput) Write([]byte) (int, error) { return 0, errEnded }
func (endedInput) Close() error              { return nil }
