package sandbox

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"
)

// RunProcess runs cmd on a session that can start commands, and collects its
// output as Session.Run promises.
func RunProcess(ctx context.Context, s Starter, cmd *Command) (*Result, error) {
	if cmd.Detached {
		return nil, Invalid("detached", "a detached command is started, not run")
	}
	p, err := s.Start(ctx, cmd)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	return Collect(ctx, p, cmd)
}

// Collect reads the output of p to its end, into the result and the writers
// of cmd. When ctx ends, it stops the command and collects what is left. An
// error never comes alone: what was read until then is in the result.
func Collect(ctx context.Context, p Process, cmd *Command) (*Result, error) {
	c := &collector{cmd: cmd, stdout: newBounded(cmd), stderr: newBounded(cmd)}
	err := c.drain(ctx, p)
	if err != nil && ctx.Err() != nil {
		grace := cmd.Grace
		if grace == 0 {
			grace = DefaultGrace
		}
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace+stopMargin)
		defer cancel()
		if p.Stop(stopping) == nil && c.drain(stopping, p) == nil {
			res, err := p.Wait(stopping)
			if err == nil {
				return c.fill(res), FromContext(ctx, "run command")
			}
		}
		return c.lost(p), FromContext(ctx, "run command")
	}
	if err != nil {
		return c.lost(p), err
	}
	res, err := p.Wait(ctx)
	if err != nil {
		return c.lost(p), err
	}
	return c.fill(res), nil
}

// stopMargin is what a stopped command has, beyond its grace, to be seen to end.
const stopMargin = 5 * time.Second

type collector struct {
	cmd            *Command
	stdout, stderr *bounded
}

func (c *collector) drain(ctx context.Context, p Process) error {
	for {
		chunk, err := p.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		into, also := c.stdout, c.cmd.Stdout
		if chunk.Stream == Stderr {
			into, also = c.stderr, c.cmd.Stderr
		}
		into.add(chunk.Data)
		if also != nil {
			if _, err := also.Write(chunk.Data); err != nil {
				return &Error{Op: "pass output on", Code: CodeInternal, Err: err}
			}
		}
	}
}

func (c *collector) fill(res *Result) *Result {
	res.Stdout, res.Stderr = c.stdout.bytes(), c.stderr.bytes()
	// What the session no longer has is missing at the end.
	missing := c.stdout.total < res.StdoutBytes || c.stderr.total < res.StderrBytes
	res.Truncated = res.Truncated || missing || c.stdout.cut() || c.stderr.cut()
	return res
}

func (c *collector) lost(p Process) *Result {
	return c.fill(&Result{
		OperationID: p.ID(), Status: Lost, ExitCode: -1,
		StdoutBytes: c.stdout.total, StderrBytes: c.stderr.total,
		Reason: "the end of the command was not seen",
	})
}

// bounded keeps the head and the tail of a stream.
type bounded struct {
	head, tail       []byte
	maxHead, maxTail int
	total            int64
}

func newBounded(cmd *Command) *bounded {
	max, tail := cmd.MaxOutput, cmd.MaxTail
	if max == 0 {
		max = DefaultMaxOutput
	}
	if tail == 0 {
		tail = DefaultMaxTail
	}
	tail = min(tail, max)
	return &bounded{maxHead: max - tail, maxTail: tail}
}

func (b *bounded) add(p []byte) {
	b.total += int64(len(p))
	if room := b.maxHead - len(b.head); room > 0 {
		n := min(room, len(p))
		b.head = append(b.head, p[:n]...)
		p = p[n:]
	}
	b.tail = append(b.tail, p...)
	if len(b.tail) > 2*b.maxTail { // move rarely, not for each piece
		b.tail = append(b.tail[:0], b.tail[len(b.tail)-b.maxTail:]...)
	}
}

func (b *bounded) bytes() []byte {
	tail := b.tail[max(0, len(b.tail)-b.maxTail):]
	return append(slices.Clip(b.head), tail...)
}

func (b *bounded) cut() bool { return b.total > int64(b.maxHead+b.maxTail) }
