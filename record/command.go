package record

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"sync"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/sandbox"
)

// run is a command and its tape.
//
//	claimed ──begin, start──> running ──last byte, end committed──> ended ──> forgotten
//	   └─ refused
type run struct {
	id       string
	request  json.RawMessage
	detached bool
	ready    chan struct{} // launched or refused; what follows is set then
	err      error
	earlier  *history.Operation // the id's first operation, which ended before
	inner    sandbox.Process
	input    *input
	done     func()   // ends its turn
	moments  *moments // nil: no terminal
	act      *act
	trace    *doer
	tape     *tape
	started  time.Time

	mu        sync.Mutex
	abandoned *time.Timer
	reason    string // why we stopped it
}

// Run implements sandbox.Session.
func (s *Session) Run(ctx context.Context, cmd *sandbox.Command) (*sandbox.Result, error) {
	return sandbox.RunProcess(ctx, s, cmd)
}

// Start implements sandbox.Starter. The same id again returns the command
// that runs or has run under it.
func (s *Session) Start(ctx context.Context, cmd *sandbox.Command) (sandbox.Process, error) {
	if err := cmd.Validate(); err != nil {
		return nil, err
	}
	starter, ok := s.inner.(sandbox.Starter)
	if !ok {
		return nil, &sandbox.Error{Op: "start command", Code: sandbox.CodeUnsupported, Message: "the session beneath cannot start commands"}
	}
	mine := *cmd
	if mine.ID == "" {
		mine.ID = id.New()
	}
	r, first, err := s.claim(&mine)
	if err != nil {
		return nil, err
	}
	if first {
		r.err = s.launch(ctx, starter, r, &mine)
		close(r.ready)
		s.pumps.Done()
		if r.err != nil || r.earlier != nil {
			s.forget(r)
		}
	}
	if !first {
		select {
		case <-r.ready:
		case <-ctx.Done():
			return nil, sandbox.FromContext(ctx, "start command")
		}
	}
	switch {
	case r.err != nil:
		return nil, r.err
	case r.earlier != nil:
		return s.replay(r.earlier, sandbox.Offsets{}, false)
	case string(r.request) != string(commandRequest(&mine)):
		return nil, sameRequest(&history.Operation{ID: r.id, Type: commandType(&mine)}, &history.Operation{Type: "a different command"})
	}
	return r.attach(sandbox.Offsets{}), nil
}

// claim finds the run under an id, or makes it: then the caller launches it.
func (s *Session) claim(cmd *sandbox.Command) (_ *run, first bool, _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, false, errClosed("start command")
	}
	if r, ok := s.runs[cmd.ID]; ok {
		return r, false, nil
	}
	s.pumps.Add(1) // until it is launched
	r := &run{id: cmd.ID, detached: cmd.Detached, ready: make(chan struct{})}
	s.runs[cmd.ID] = r
	return r, true, nil
}

type lastingKey struct{}

// Lasting returns the context of a caller who may come back for a command under
// its id: from its turn on, the end of the context is a lost connection, and no
// wish.
func Lasting(ctx context.Context) context.Context {
	return context.WithValue(ctx, lastingKey{}, true)
}

func lasts(ctx context.Context) bool { return ctx.Value(lastingKey{}) != nil }

// launch records the start and starts the command. The command's life does
// not depend on ctx from here on.
func (s *Session) launch(ctx context.Context, starter sandbox.Starter, r *run, cmd *sandbox.Command) error {
	r.request = commandRequest(cmd)
	op := &history.Operation{ID: cmd.ID, Type: commandType(cmd), Request: r.request, Command: &history.Command{
		Line: cmd.Display(), Dir: cmd.Dir, Env: maskEnv(cmd.Env), TimeoutMS: cmd.Timeout.Milliseconds(),
		OutputComplete: true, Recording: sandbox.RecordedWhole,
	}}
	if op.Command.Dir == "" {
		op.Command.Dir = s.workdir()
	}
	done, waited := s.commandTurn(ctx, cmd)
	if waited != nil {
		if !late(waited) {
			return waited
		}
		done = func() {}
	}
	if waited != nil || lasts(ctx) {
		ctx = context.WithoutCancel(ctx)
	}
	var err error
	if r.act, r.earlier, err = s.begin(ctx, op); err != nil || r.earlier != nil {
		done()
		return err
	}
	if waited != nil {
		return r.act.fail(ctx, waited)
	}
	r.started = time.Now()
	r.trace = s.effects.begin(r.id, r.act.recorded)
	if r.inner, err = starter.Start(context.WithoutCancel(ctx), cmd); err != nil {
		done()
		s.effects.drop(r.trace)
		return r.act.fail(ctx, err)
	}
	r.done = done
	r.input = newInput(r.inner.Stdin())
	if cmd.Terminal != nil {
		r.onTerminal()
	}
	r.tape = newTape(s.opts, r.act.recorded)
	if s.store != nil {
		r.tape.output = func(ctx context.Context, stream sandbox.Stream, offset, length int64) ([]byte, error) {
			return s.store.Output(ctx, r.id, stream, offset, length)
		}
	}
	s.pumps.Go(func() { r.pull() })
	s.pumps.Go(func() { s.keep(r) })
	return nil
}

// workdir asks the inner session where its commands run by default.
func (s *Session) workdir() string {
	if w, ok := s.inner.(interface{ Workdir() string }); ok {
		return w.Workdir()
	}
	return ""
}

// pull reads the process to its end, and adds to the tape.
func (r *run) pull() {
	ctx := context.Background()
	for {
		c, err := r.inner.Next(ctx)
		if err != nil {
			if !errors.Is(err, io.EOF) {
				r.because("its output could not be read: " + err.Error())
			}
			break
		}
		if r.moments != nil {
			r.moments.shown(c.Time, len(c.Data))
		}
		r.tape.add(c, r.act.recorded)
	}
	r.tape.mu.Lock()
	r.tape.drained = true
	r.tape.wake()
	r.tape.mu.Unlock()
}

// keep carries the tape into the history, and the end after it.
func (s *Session) keep(r *run) {
	ctx := context.Background()
	var batch []sandbox.Chunk
	var pieces []*piece
	censor := newCensor(s.opts.Mask)
	for last := false; ; {
		batch, pieces, last = r.tape.take()
		if batch = censor.take(batch); last {
			break
		}
		r.tape.committed(pieces, censor.held(), s.append(ctx, r.id, batch))
		s.writeMoments(ctx, r, false)
	}
	s.writeMoments(ctx, r, true)
	batch = append(batch, censor.end(r.tape.printed())...)
	res, err := r.inner.Wait(ctx)
	r.done()
	if err != nil {
		res = &sandbox.Result{OperationID: r.id, Status: sandbox.Lost, ExitCode: -1, StartedAt: r.started, Reason: err.Error()}
	}
	r.settle(res)
	if r.act.recorded {
		r.act.masked += censor.masked
		res.Recording = r.act.finish(ctx, r.end(res, batch))
	}
	var storeErr error
	if res.Recording == sandbox.RecordedPart {
		storeErr = errPartial
	}
	r.tape.committed(pieces, [2][]byte{}, storeErr)
	r.tape.mu.Lock()
	r.tape.result = res
	r.tape.wake()
	r.tape.mu.Unlock()
	s.effects.end(r.trace)
	_ = r.inner.Close() // it has ended
	s.retire(r)
}

var errPartial = errors.New("partly recorded")

func (s *Session) append(ctx context.Context, opID string, batch []sandbox.Chunk) error {
	if len(batch) == 0 { // all of it is held back
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, finishTimeout)
	defer cancel()
	err := s.store.Append(ctx, opID, batch)
	if err != nil {
		s.opts.Logger.WarnContext(ctx, "output is not recorded", "operation", opID, "error", err)
	}
	return err
}

// settle completes the result by what only the run knows.
func (r *run) settle(res *sandbox.Result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reason != "" {
		res.Reason = r.reason
	}
	t := r.tape
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case !r.act.recorded:
		res.Recording = sandbox.NotRecorded
	case t.broken:
		res.Recording = sandbox.RecordedPart
	case t.left == [2]bool{true, true} && t.cut:
		res.Recording = sandbox.RecordedMetadata
	case t.cut:
		res.Recording = sandbox.RecordedTruncated
	default:
		res.Recording = sandbox.RecordedWhole
	}
}

// end is what the history keeps of the result.
func (r *run) end(res *sandbox.Result, last []sandbox.Chunk) *history.End {
	r.tape.mu.Lock()
	kept, broken := r.tape.kept, r.tape.broken
	r.tape.mu.Unlock()
	for _, c := range last {
		kept[index(c.Stream)] += int64(len(c.Data))
	}
	return &history.End{
		Status: res.Status, Result: commandResult(res, kept), Chunks: last, ExitCode: &res.ExitCode,
		OutputComplete: !broken && res.Status != sandbox.Lost, Recording: res.Recording,
	}
}

func (r *run) because(reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reason == "" {
		r.reason = reason
	}
}

func (r *run) stop(ctx context.Context) {
	select {
	case <-r.ready:
		if r.inner != nil {
			_ = r.inner.Stop(ctx) // one that has ended is stopped
		}
	case <-ctx.Done():
	}
}

// Ended commands whose output is not whole in the history stay for clients
// that come back, at most this many.
const maxEnded = 64

// retire lets go of a command that has ended: at once where the history has
// all of it, later where a client may come back for the rest.
func (s *Session) retire(r *run) {
	t := r.tape
	t.mu.Lock()
	whole := r.act.recorded && !t.broken && t.kept == t.seen
	t.mu.Unlock()
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	if whole {
		delete(s.runs, r.id)
		s.mu.Unlock()
		return
	}
	s.ended = append(s.ended, r)
	var oldest *run
	if len(s.ended) > maxEnded {
		oldest = s.ended[0]
	}
	s.mu.Unlock()
	if oldest != nil {
		s.forget(oldest)
	}
	time.AfterFunc(s.opts.Abandoned, func() { s.forget(r) })
}

func (s *Session) forget(r *run) {
	s.mu.Lock()
	if s.runs[r.id] == r {
		delete(s.runs, r.id)
	}
	for i, e := range s.ended {
		if e == r {
			s.ended = append(s.ended[:i], s.ended[i+1:]...)
			break
		}
	}
	s.mu.Unlock()
	if r.tape != nil {
		r.tape.close()
	}
}

// commandType is the type of the operation that a command is.
func commandType(cmd *sandbox.Command) string {
	if cmd.Terminal != nil {
		return history.TerminalSession
	}
	return history.CommandExecute
}

func commandRequest(cmd *sandbox.Command) json.RawMessage {
	fields := map[string]any{"command": cmd.Display(), "cwd": cmd.Dir}
	if cmd.Timeout > 0 {
		fields["timeout_seconds"] = cmd.Timeout.Seconds()
	}
	if len(cmd.Args) > 0 {
		fields["args"] = cmd.Args
	}
	if len(cmd.Env) > 0 {
		fields["env"] = maskEnv(cmd.Env)
	}
	if cmd.Terminal != nil {
		fields["terminal"] = cmd.Terminal
	}
	if cmd.User != nil {
		fields["user"] = cmd.User
	}
	if cmd.Detached {
		fields["background"] = true
	}
	if cmd.Stdin != nil || cmd.StdinPipe {
		fields["stdin"] = true
	}
	return history.EncodeRequest(fields)
}

// maskEnv keeps the names of an environment; its values may be secrets.
func maskEnv(env map[string]string) map[string]string {
	if len(env) == 0 {
		return nil
	}
	masked := maps.Clone(env)
	for key := range masked {
		masked[key] = "***"
	}
	return masked
}
