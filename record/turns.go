package record

import (
	"context"
	"errors"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/lock"
	"github.com/glassboxhq/glassbox/sandbox"
)

// turns decide who works at once. They hold for all who use a session, and so,
// in a recorder, between processes.
type turns struct {
	limits                           sandbox.Concurrency
	commands, reads, writes, uploads *lock.Limit
	paths                            *lock.Paths
}

func newTurns(limits sandbox.Concurrency) *turns {
	return &turns{
		limits:   limits,
		commands: lock.NewLimit(limits.Commands, limits.QueueTimeout),
		reads:    lock.NewLimit(limits.Reads, limits.QueueTimeout),
		writes:   lock.NewLimit(limits.Writes, limits.QueueTimeout),
		uploads:  lock.NewLimit(limits.Uploads, limits.UploadQueueTimeout),
		paths:    lock.NewPaths(limits.QueueTimeout),
	}
}

// commandTurn waits for the turn of a command. One that is meant to stay needs none.
func (s *Session) commandTurn(ctx context.Context, cmd *sandbox.Command) (done func(), err error) {
	if cmd.Detached || cmd.Terminal != nil {
		return func() {}, nil
	}
	ctx, cancel := s.waiting(ctx)
	defer cancel()
	done, err = s.turns.commands.Enter(ctx)
	if err != nil {
		return nil, s.turns.fault(ctx, "start command", sandbox.CodeCommandQueue, s.turns.limits.QueueTimeout, err)
	}
	if err := s.stillOpen(); err != nil {
		done()
		return nil, err
	}
	return done, nil
}

// turn is the right to act on files.
type turn struct {
	unlock func() // the paths
	done   func() // the place among those who work at once
}

// fileTurn waits for the turn of an act on files. The paths come first: who waits
// for another's file keeps nobody from working on other files.
func (s *Session) fileTurn(ctx context.Context, q *asked) (*turn, error) {
	ctx, cancel := s.waiting(ctx)
	defer cancel()
	limit, timeout := s.turns.writes, s.turns.limits.QueueTimeout
	acquire := s.turns.paths.Read
	switch q.kind {
	case history.FileRead, history.FileList, history.FileStat, history.FileGlob, history.FileGrep, history.FileDownload:
		limit = s.turns.reads
	case history.FileUpload: // each of its files is replaced whole
		limit, timeout = s.turns.uploads, s.turns.limits.UploadQueueTimeout
	case history.FileMakeDir: // what it makes holds nothing yet
	default:
		acquire = s.turns.paths.Write
	}
	names := []string{sandbox.Resolve(s.workdir(), q.path)}
	if q.old != "" {
		names = append(names, sandbox.Resolve(s.workdir(), q.old))
	}
	unlock, err := acquire(ctx, names...)
	if err != nil {
		return nil, s.turns.fault(ctx, q.op, sandbox.CodeLock, s.turns.limits.QueueTimeout, err)
	}
	done, err := limit.Enter(ctx)
	if err != nil {
		unlock()
		return nil, s.turns.fault(ctx, q.op, sandbox.CodeLock, timeout, err)
	}
	if err := s.stillOpen(); err != nil {
		done()
		unlock()
		return nil, err
	}
	return &turn{unlock: unlock, done: done}, nil
}

// stillOpen refuses a turn that came by what Close has stopped.
func (s *Session) stillOpen() error {
	if s.open.Err() != nil {
		return errClosed("wait for a turn")
	}
	return nil
}

// waiting ends with ctx, and when the session closes.
func (s *Session) waiting(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.open, func() { cancel(errClosed("wait for a turn")) })
	return ctx, func() { stop(); cancel(nil) }
}

func (t *turns) fault(ctx context.Context, op string, code sandbox.Code, timeout time.Duration, err error) error {
	if errors.Is(err, lock.ErrTimeout) {
		return &sandbox.Error{Op: op, Code: code, Message: "others were at work, and no turn came within " + timeout.String()}
	}
	if closed, ok := errors.AsType[*sandbox.Error](context.Cause(ctx)); ok {
		return closed
	}
	return sandbox.FromContext(ctx, op)
}

// late reports whether an error tells that no turn came in time. That is an
// operation too, which failed; who left before his turn has done nothing.
func late(err error) bool {
	code := sandbox.CodeOf(err)
	return code == sandbox.CodeCommandQueue || code == sandbox.CodeLock
}
