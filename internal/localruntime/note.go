package localruntime

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/glassboxhq/glassbox/internal/localruntime/lifecycle"
	"github.com/glassboxhq/glassbox/sandbox"
	"github.com/glassboxhq/glassbox/sandbox/recorded"
)

const (
	noteTimeout = 2 * time.Second // it holds up what is asked next of the sandbox
	maxNotes    = 64              // that wait for the recorder; the oldest go
)

// Record writes what was done with a sandbox from outside into its history. A
// recorder that stands still or is away gets it later: the record waits, on
// the disk, until the sandbox is resumed or something else is recorded.
func (rt *Runtime) Record(ctx context.Context, id string, n *lifecycle.Note) {
	b, err := rt.find(ctx, id)
	if err != nil || !b.keepsHistory() {
		return // there is no history to write it to
	}
	b.op.Lock()
	defer b.op.Unlock()
	if state, _ := b.state(); state != sandbox.Unknown { // whose record must not be written over
		b.note(ctx, false, n)
	}
}

func (b *box) keepsHistory() bool { return b.record().Spec.History != HistoryNone }

// note writes what is due of what waits, or all of it, and more, into the
// history. Its caller holds op.
func (b *box) note(ctx context.Context, all bool, more ...*lifecycle.Note) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteTimeout)
	defer cancel()
	before := b.record().Notes
	waiting := slices.Concat(before, more)
	all = all || len(waiting) > maxNotes // nobody can crowd out what is not due
	var err error
	waiting = slices.DeleteFunc(waiting, func(n *lifecycle.Note) bool {
		if n.Op == nil || err != nil || !all && !n.Due(b.rt.opts.Now()) {
			return n.Op == nil // written by an older server
		}
		err = b.write(ctx, n)
		return err == nil
	})
	waiting = waiting[max(0, len(waiting)-maxNotes):]
	if len(waiting) == 0 && len(before) == 0 {
		return
	}
	if saveErr := b.change(func(r *record) { r.Notes = waiting }); saveErr != nil {
		err = errors.Join(err, saveErr)
	}
	if err != nil && len(waiting) > 0 {
		b.rt.opts.Logger.DebugContext(ctx, "records wait for the recorder", "sandbox", b.id, "records", len(waiting), "error", err)
	}
}

// noteDue writes what nobody has recorded in the time that was left for it.
func (b *box) noteDue(ctx context.Context) {
	due := func() bool {
		state, deleting := b.state()
		return state == sandbox.Running && !deleting &&
			slices.ContainsFunc(b.record().Notes, func(n *lifecycle.Note) bool { return n.Op == nil || n.Claimed && n.Due(b.rt.opts.Now()) })
	}
	if !due() {
		return
	}
	b.op.Lock()
	defer b.op.Unlock()
	if due() {
		b.note(ctx, false)
	}
}

// lastWords writes all that waits into the history of a sandbox that is about
// to end, and its end. One that is paused goes on for that moment.
func (b *box) lastWords(ctx context.Context, more ...*lifecycle.Note) {
	if !b.keepsHistory() || len(b.record().Notes)+len(more) == 0 {
		return
	}
	switch state, _ := b.state(); {
	case !b.control.connected(), state != sandbox.Running && state != sandbox.Paused: // they stay in its record
		if err := b.change(func(r *record) { r.Notes = slices.Concat(r.Notes, more) }); err != nil {
			b.rt.opts.Logger.WarnContext(ctx, "last records are lost", "sandbox", b.id, "error", err)
		}
		return
	case state == sandbox.Paused:
		if err := b.engine.resume(ctx, b.record(), b.dir); err != nil {
			b.rt.opts.Logger.WarnContext(ctx, "a paused sandbox takes no last records", "sandbox", b.id, "error", err)
			return
		}
		b.control.setPaused(false)
	}
	b.note(ctx, true, more...)
}

// write writes one record. One that the recorder refuses for good is dropped.
func (b *box) write(ctx context.Context, n *lifecycle.Note) error {
	if state, deleting := b.state(); state != sandbox.Running && !deleting {
		return errPaused(b.id)
	}
	if err := b.control.waitConnected(ctx); err != nil { // it dials again after a resume under another server
		return err
	}
	session := recorded.New("http://sandbox", &recorded.Options{
		Token: b.record().Token, Client: &http.Client{Transport: b.control}, Sandbox: b.id,
	})
	add := session.History().Import
	if n.Claimed {
		add = session.History().ImportUntold
	}
	err := add(ctx, n.Op)
	if errors.Is(err, sandbox.ErrInvalid) || errors.Is(err, sandbox.ErrUnsupported) || errors.Is(err, sandbox.ErrExists) {
		b.rt.opts.Logger.WarnContext(ctx, "record is refused", "sandbox", b.id, "operation", n.Op.Type, "error", err)
		return nil
	}
	return err
}
