// Package record keeps every operation of a session in a history.
//
// A [Session] wraps an inner session that does the work and a store that
// keeps the record:
//
//	session := record.New(inner, store, nil)
//	result, err := session.Run(ctx, &sandbox.Command{Line: "make"})
//
// The start of an operation is committed before the act, its end before the
// answer, and output before anyone is shown it, so the record is never behind
// what was done or seen. A command belongs to the session, not to the call
// that started it: who loses the call finds the command again by its id.
package record

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/record/redact"
	"github.com/glassboxhq/glassbox/sandbox"
)

// Options set up a Session. The zero value of a field is its default.
type Options struct {
	// BestEffort runs what cannot be recorded, and counts it; else it is
	// refused.
	BestEffort bool
	// Config returns the configuration that holds, and is asked for each
	// command; nil: the defaults.
	Config func() history.Config
	// Mask masks secrets in what is recorded; nil: every detector.
	Mask *redact.Masker
	// Concurrency bounds what works at once; nil: the defaults.
	Concurrency *sandbox.Concurrency
	// MaxOutput is what is kept of the output of one command, in the place of
	// what the configuration says.
	MaxOutput int64
	// Spool is a directory for output beyond MaxOutput that a client has not
	// read; empty: the temporary directory. SpoolBytes bounds it for each
	// stream of a command; 0: 64 MiB.
	Spool      string
	SpoolBytes int64
	// SlowClient is how long a client that does not read may hold a command
	// up once the spool is full; 0: 30 s. Then it is detached.
	SlowClient time.Duration
	// Abandoned is how long a command goes on that was not started Detached
	// and has lost its last client; 0: five minutes.
	Abandoned time.Duration
	// NoFileChanges does not look for what commands do to files.
	NoFileChanges bool
	// Logger is for the operator; nil: silent.
	Logger *slog.Logger
}

func (o *Options) withDefaults() *Options {
	opts := Options{}
	if o != nil {
		opts = *o
	}
	if opts.Mask == nil {
		mask, err := redact.New(nil)
		if err != nil {
			panic(err) // the defaults are right
		}
		opts.Mask = mask
	}
	if opts.Config == nil {
		opts.Config = func() history.Config { return history.Config{} }
	}
	if opts.SpoolBytes == 0 {
		opts.SpoolBytes = 64 << 20
	}
	if opts.SlowClient == 0 {
		opts.SlowClient = 30 * time.Second
	}
	if opts.Abandoned == 0 {
		opts.Abandoned = 5 * time.Minute
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	return &opts
}

// Session is a session whose every operation is recorded.
type Session struct {
	inner sandbox.Session
	store history.Store // nil: nothing is recorded
	opts  *Options

	mu      sync.Mutex
	runs    map[string]*run // commands that run or ended a short while ago
	ended   []*run          // those that ended, oldest first
	acts    map[string]bool // on files, under way, that were given an id
	closed  bool
	pumps   sync.WaitGroup // all that Close waits for
	closing sync.Once

	announced announcements

	turns   *turns
	open    context.Context //nolint:containedctx // ends when Close begins, for those who wait
	shut    context.CancelFunc
	debts   debts
	effects *effects // nil: what commands do to files is not looked for
}

var _ interface {
	sandbox.Session
	sandbox.Starter
	sandbox.Attacher
	sandbox.Files
} = (*Session)(nil)

// New returns a session that works in inner and records in store. A nil store
// records nothing: everything else stays as it is.
func New(inner sandbox.Session, store history.Store, opts *Options) *Session {
	s := &Session{
		inner: inner, store: store, opts: opts.withDefaults(),
		runs: map[string]*run{}, acts: map[string]bool{},
	}
	s.turns = newTurns(s.opts.Concurrency.Filled())
	s.open, s.shut = context.WithCancel(context.Background())
	s.debts.due, s.debts.last = make(chan struct{}, 1), make(chan struct{})
	if store != nil {
		s.debts.payer.Go(s.settleDebts)
	}
	s.effects = s.newEffects()
	return s
}

// Capabilities implements sandbox.Session.
func (s *Session) Capabilities() sandbox.Capabilities {
	c := s.inner.Capabilities()
	c.Recorded = s.store != nil
	_, c.Attach = s.inner.(sandbox.Starter)
	_, all := s.inner.(sandbox.Files)
	c.Files = c.Files && all
	return c
}

// Running counts the commands that run.
func (s *Session) Running() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.runs) - len(s.ended)
}

// enter begins what Close has to wait for, until leave is called.
func (s *Session) enter(op string) (leave func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed(op)
	}
	s.pumps.Add(1)
	return s.pumps.Done, nil
}

func errClosed(op string) error {
	return &sandbox.Error{Op: op, Code: sandbox.CodeSandboxState, Message: "the session is closed"}
}

// Close stops every command, waits until its end and that of every act on a
// file is recorded, and closes the inner session. The store is left to who
// opened it.
func (s *Session) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	runs := make([]*run, 0, len(s.runs))
	for _, r := range s.runs {
		runs = append(runs, r)
	}
	s.mu.Unlock()
	s.shut()
	for _, r := range runs {
		r.stop(ctx)
	}
	done := make(chan struct{})
	go func() {
		s.pumps.Wait()
		s.effects.stop()
		s.closing.Do(func() { close(s.debts.last) })
		s.debts.payer.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		return sandbox.FromContext(ctx, "wait for what is under way")
	}
	for _, r := range runs {
		s.forget(r)
	}
	return s.inner.Close(ctx)
}

// act is one operation under way.
type act struct {
	s        *Session
	id       string
	recorded bool
	file     *history.File
	masked   int       // in what the operation says as it begins
	trace    *doer     // of an act that changes files
	written  time.Time // of a file that was written, the time that it has then
}

// begin records the start of an operation. The returned operation, if any, is
// an earlier one under this id: then nothing was begun.
func (s *Session) begin(ctx context.Context, op *history.Operation) (*act, *history.Operation, error) {
	if op.ID == "" {
		op.ID = id.New()
	}
	if !id.Valid(op.ID) {
		return nil, nil, sandbox.Invalid("id", "must be a UUID in lower case")
	}
	op.Actor = history.ActorFrom(ctx)
	if err := op.Actor.Validate(); err != nil {
		return nil, nil, err
	}
	if op.Source = op.Actor.Source; op.Source == "" {
		op.Source = history.SourceSDK
	}
	op.Status, op.StartedAt = sandbox.Started, time.Now()
	a := &act{s: s, id: op.ID, file: op.File}
	if s.store == nil {
		return a, nil, nil
	}
	if s.announced.begin(op.ID) {
		a.recorded = true
		return a, nil, nil
	}
	a.masked = maskOperation(s.opts.Mask, op)
	err := a.write(ctx, op)
	switch {
	case a.recorded: // and ended, if err tells that the caller has left
		return a, nil, err
	case errors.Is(err, sandbox.ErrExists):
		earlier, err := s.store.Get(ctx, op.ID)
		if err != nil {
			return nil, nil, err
		}
		return nil, earlier, sameRequest(op, earlier)
	case errors.Is(err, history.ErrStopped):
		s.debts.stop(err)
		return a, nil, nil
	case errors.Is(err, history.ErrFull):
		return nil, nil, err // the policy is to refuse
	case s.opts.BestEffort && errors.Is(err, sandbox.ErrHistory):
		s.opts.Logger.WarnContext(ctx, "operation runs unrecorded", "operation", op.ID, "type", op.Type, "error", err)
		s.debts.miss(err)
		return a, nil, nil
	}
	return nil, nil, err
}

// write writes the beginning down. Who leaves meanwhile must not leave behind a
// record that nobody ends.
func (a *act) write(ctx context.Context, op *history.Operation) error {
	if ctx.Err() != nil {
		return sandbox.FromContext(ctx, "begin "+op.Type)
	}
	recording, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTimeout)
	defer cancel()
	if err := a.s.store.Begin(recording, op); err != nil {
		return err
	}
	a.recorded = true
	a.s.debts.resume()
	if ctx.Err() != nil {
		return a.fail(ctx, sandbox.FromContext(ctx, "begin "+op.Type))
	}
	return nil
}

// Import records an operation that has ended elsewhere.
func (s *Session) Import(ctx context.Context, op *history.Operation) error {
	if s.store == nil {
		return &sandbox.Error{Op: "import operation", Code: sandbox.CodeUnsupported, Message: "nothing is recorded"}
	}
	masked := *op
	if masked.Command != nil {
		command := *masked.Command
		masked.Command = &command
	}
	masked.Result = countMasked(masked.Result, maskOperation(s.opts.Mask, &masked))
	err := s.store.Import(ctx, &masked)
	if errors.Is(err, history.ErrStopped) {
		s.debts.stop(err)
		return nil
	}
	return err
}

// finish records the end of an operation. What cannot be recorded now is kept
// and tried again; the act itself has been done either way.
func (a *act) finish(ctx context.Context, end *history.End) sandbox.Recording {
	a.s.effects.endAct(a.trace, a.file, a.written)
	if !a.recorded {
		return sandbox.NotRecorded
	}
	end.At = time.Now()
	maskEnd(a.s.opts.Mask, end, a.masked)
	// The record outlives who asked for the act.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTimeout)
	defer cancel()
	if err := a.s.store.Finish(ctx, a.id, end); err != nil {
		a.s.opts.Logger.WarnContext(ctx, "end of operation is not recorded yet", "operation", a.id, "error", err)
		a.s.debts.owe(a.id, end)
		return sandbox.RecordedPart
	}
	return end.Recording
}

// finishTimeout bounds the wait for a record; a locked file takes five seconds
// to say so.
const finishTimeout = 15 * time.Second

// fail records that an act did not succeed, and returns its error.
func (a *act) fail(ctx context.Context, err error) error {
	a.finish(ctx, &history.End{
		Status: statusOf(err), Result: errorResult(err), File: a.file,
		OutputComplete: true, Recording: sandbox.RecordedWhole,
	})
	return err
}

func statusOf(err error) sandbox.Status {
	switch {
	case errors.Is(err, sandbox.ErrCancelled), errors.Is(err, context.Canceled):
		return sandbox.Cancelled
	case errors.Is(err, sandbox.ErrTimeout), errors.Is(err, context.DeadlineExceeded):
		return sandbox.TimedOut
	}
	return sandbox.Unsuccessful
}

func errorResult(err error) json.RawMessage {
	return history.Encode(map[string]any{"error": map[string]any{
		"code": sandbox.CodeOf(err), "message": err.Error(),
	}})
}

// sameRequest refuses an id that names another operation.
func sameRequest(op, earlier *history.Operation) error {
	if op.Type == earlier.Type && string(op.Request) == string(earlier.Request) {
		return nil
	}
	return &sandbox.Error{
		Op: "begin " + op.Type, Code: sandbox.CodeOperationConflict,
		Message: "the id " + op.ID + " names another operation (" + earlier.Type + "); use a new id",
	}
}
