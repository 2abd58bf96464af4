package localruntime

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/glassboxhq/glassbox/history"
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
func (rt *Runtime) Record(ctx context.Context, id string, op *history.Operation) {
	b, err := rt.find(ctx, id)
	if err != nil || b.record().Spec.History == HistoryNone {
		return // there is no history to write it to
	}
	b.op.Lock()
	defer b.op.Unlock()
	if state, _ := b.state(); state != sandbox.Unknown { // whose record must not be written over
		b.note(ctx, op)
	}
}

// note writes what waits, and one more, into the history. Its caller holds op.
func (b *box) note(ctx context.Context, more ...*history.Operation) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteTimeout)
	defer cancel()
	waiting := slices.Concat(b.record().Notes, more)
	waiting = waiting[max(0, len(waiting)-maxNotes):]
	var err error
	for len(waiting) > 0 && err == nil {
		if err = b.write(ctx, waiting[0]); err == nil {
			waiting = waiting[1:]
		}
	}
	if len(waiting) == 0 && len(b.record().Notes) == 0 {
		return
	}
	if saveErr := b.change(func(r *record) { r.Notes = waiting }); saveErr != nil {
		err = errors.Join(err, saveErr)
	}
	if err != nil && len(waiting) > 0 {
		b.rt.opts.Logger.DebugContext(ctx, "records wait for the recorder", "sandbox", b.id, "records", len(waiting), "error", err)
	}
}

// write writes one record. One that the recorder refuses for good is dropped.
func (b *box) write(ctx context.Context, op *history.Operation) error {
	if state, _ := b.state(); state != sandbox.Running {
		return errPaused(b.id)
	}
	if err := b.control.waitConnected(ctx); err != nil { // it dials again after a resume under another server
		return err
	}
	session := recorded.New("http://sandbox", &recorded.Options{
		Token: b.record().Token, Client: &http.Client{Transport: b.control}, Sandbox: b.id,
	})
	err := session.History().Import(ctx, op)
	if errors.Is(err, sandbox.ErrInvalid) || errors.Is(err, sandbox.ErrUnsupported) || errors.Is(err, sandbox.ErrExists) {
		b.rt.opts.Logger.WarnContext(ctx, "record is refused", "sandbox", b.id, "operation", op.Type, "error", err)
		return nil
	}
	return err
}
