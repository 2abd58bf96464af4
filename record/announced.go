package record

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/sandbox"
)

// announcements are operations whose start another program has had recorded
// and which it is about to do through this session. The act that does one
// takes it: it goes on under that id and tells the output and the end, which
// are exact, where those of the other program would be hearsay.
//
//	announced ──taken──> done by an act of ours ──> concluded
//	    └──────────── nobody took it ─────────────> concluded as it is told
type announcements struct {
	mu   sync.Mutex
	list []*announcement // oldest first
}

type announcement struct {
	id, kind, subject string
	at                time.Time
	taken, begun      bool
}

const (
	maxAnnounced  = 1024
	announcedLife = time.Minute // for an act to take it
	longLife      = time.Hour   // for an upload, whose files come between, and for an act from outside
)

// over reports whether no act takes it any more.
func (n *announcement) over() bool {
	life := announcedLife
	if n.kind == history.FileUpload || n.outside() {
		life = longLife
	}
	return n.taken || time.Since(n.at) >= life
}

// outside reports whether it is an act of the lifecycle API.
func (n *announcement) outside() bool { return strings.HasPrefix(n.kind, "sandbox.") }

func (a *announcements) add(n *announcement) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.list = append(a.list, n); len(a.list) > maxAnnounced {
		a.list = a.list[1:]
	}
}

// begin reports whether an act may go on under an id that was announced; once.
func (a *announcements) begin(opID string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, n := range a.list {
		if n.id == opID && n.taken && !n.begun {
			n.begun = true
			return true
		}
	}
	return false
}

// ours reports whether an act does what was announced, or has done it.
func (a *announcements) ours(opID string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.ContainsFunc(a.list, func(n *announcement) bool { return n.id == opID && n.begun })
}

// settle lets go of what was concluded as it was told. What was done from
// outside waits for who did it.
func (a *announcements) settle(opID string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.list = slices.DeleteFunc(a.list, func(n *announcement) bool { return n.id == opID && (n.taken || !n.outside()) })
}

// told takes the oldest announcement of an act from outside, if there is one.
func (a *announcements) told(kind string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, n := range a.list {
		if n.kind == kind && n.outside() && !n.over() {
			n.taken = true
			return true
		}
	}
	return false
}

func (a *announcements) drop(opID string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.list = slices.DeleteFunc(a.list, func(n *announcement) bool { return n.id == opID })
}

// Announce records the start of an operation that another program is about to
// do through this session; subject tells what it is about, by which
// [Session.Announced] finds it. The same again changes nothing.
func (s *Session) Announce(ctx context.Context, op *history.Operation, subject string) error {
	if s.store == nil {
		return errNoHistory("announce operation")
	}
	if !id.Valid(op.ID) {
		return sandbox.Invalid("id", "must be a UUID in lower case")
	}
	if err := op.Actor.Validate(); err != nil {
		return err
	}
	op.Status = sandbox.Started
	kind := op.Type
	maskOperation(s.opts.Mask, op)
	err := s.store.Begin(ctx, op)
	switch {
	case errors.Is(err, sandbox.ErrExists):
		earlier, err := s.store.Get(ctx, op.ID)
		if err == nil && earlier.Type != kind {
			err = sameRequest(op, earlier)
		}
		return err
	case errors.Is(err, history.ErrStopped):
		s.debts.stop(err)
		return nil
	case err != nil:
		return err
	}
	s.announced.add(&announcement{id: op.ID, kind: kind, subject: subject, at: time.Now()})
	return nil
}

func errNoHistory(op string) error {
	return &sandbox.Error{Op: op, Code: sandbox.CodeUnsupported, Message: "nothing is recorded in this sandbox"}
}

// Announced takes the oldest announcement of this kind about this subject, and
// returns its id for the act that is about to begin; empty: there is none.
func (s *Session) Announced(kind, subject string) string {
	a := &s.announced
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, n := range a.list {
		if n.kind == kind && n.subject == subject && !n.over() {
			n.taken = true
			return n.id
		}
	}
	return ""
}

// AnnouncedOutput records output that the other program tells. That of an act
// of ours is recorded already.
func (s *Session) AnnouncedOutput(ctx context.Context, opID string, chunks []sandbox.Chunk) error {
	if s.store == nil {
		return errNoHistory("record output")
	}
	if s.announced.ours(opID) {
		return nil
	}
	censor := newCensor(s.opts.Mask)
	for _, c := range slices.Backward(chunks) {
		censor.stored[index(c.Stream)] = c.Offset // of the first
	}
	batch := censor.take(chunks)
	return s.store.Append(ctx, opID, append(batch, censor.end(censor.taken)...))
}

// Conclude records the end that the other program tells, unless an act of ours
// has done the operation: then that tells the end.
func (s *Session) Conclude(ctx context.Context, opID string, end *history.End) error {
	if s.store == nil {
		return errNoHistory("conclude operation")
	}
	if s.announced.ours(opID) {
		s.announced.drop(opID)
		return nil
	}
	maskEnd(s.opts.Mask, end, 0)
	err := s.store.Finish(ctx, opID, end)
	if err == nil {
		s.announced.settle(opID)
	}
	return err
}

// ImportUntold is Import of what was done with the sandbox from outside, as
// whoever did it says that it tells itself. An operation under the same id, or
// one that was announced, is the same act: then nothing is added. Each of them
// stands for one act.
func (s *Session) ImportUntold(ctx context.Context, op *history.Operation) error {
	if s.store == nil {
		return errNoHistory("import operation")
	}
	earlier, err := s.store.Get(ctx, op.ID)
	switch {
	case err == nil && earlier.Type == op.Type && earlier.StartedAt.Sub(op.StartedAt).Abs() < sameAct:
		return nil
	case err == nil: // the id of another
		own := *op
		own.ID = id.New()
		op = &own
	case s.announced.told(op.Type):
		return nil
	}
	return s.Import(ctx, op)
}

// sameAct is by how much two programs may differ on when an act began.
const sameAct = time.Minute

// ListAnnounced is List for what was announced under an id.
func (s *Session) ListAnnounced(ctx context.Context, opID, name string) ([]*sandbox.FileInfo, error) {
	return s.list(ctx, opID, name)
}
