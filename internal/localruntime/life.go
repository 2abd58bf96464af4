package localruntime

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/glassboxhq/glassbox/internal/localruntime/lifecycle"
	"github.com/glassboxhq/glassbox/sandbox"
)

// newToken returns a secret of 26 letters and digits, 130 bits.
func newToken() string { return rand.Text() }

// Delete ends a sandbox. Its history stays for the retention.
func (rt *Runtime) Delete(ctx context.Context, id string) error {
	return rt.end(ctx, id)
}

// DeleteNoted is Delete with a record of it, which the history keeps.
func (rt *Runtime) DeleteNoted(ctx context.Context, id string, n *lifecycle.Note) error {
	return rt.end(ctx, id, n)
}

func (rt *Runtime) end(ctx context.Context, id string, notes ...*lifecycle.Note) error {
	b, err := rt.find(ctx, id)
	if err != nil {
		return err
	}
	// What is begun is finished, even if the caller goes.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*cleanupTimeout)
	defer cancel()
	if err := b.delete(ctx, "DELETED", "the sandbox was deleted", notes...); err != nil {
		return err
	}
	if !b.serving.Load() {
		return nil
	}
	select {
	case <-b.served:
		return nil
	case <-ctx.Done():
		return sandbox.FromContext(ctx, "delete sandbox")
	}
}

// delete ends the sandbox and keeps its history.
func (b *box) delete(ctx context.Context, reason, message string, notes ...*lifecycle.Note) error {
	b.leave() // nobody waits for a snapshot, or an image
	b.op.Lock()
	defer b.op.Unlock()
	select {
	case <-b.quit:
		return nil // another caller was first
	default:
	}
	if err := b.change(func(r *record) { r.Deleting = true }); err != nil {
		return err
	}
	b.lastWords(ctx, notes...)
	b.control.shut(message)
	if b.control.connected() {
		b.finish(ctx)
	}
	b.control.close(message)
	if err := b.bury(ctx, reason, message); err != nil {
		return &sandbox.Error{
			Op: "delete sandbox", Sandbox: b.id, Code: sandbox.CodeInternal, Err: err, Retryable: true,
			Message: "it could not be removed whole; try again",
		}
	}
	b.forget()
	b.rt.opts.Logger.InfoContext(ctx, "sandbox ended", "sandbox", b.id, "reason", reason)
	return nil
}

// finishTimeout is what a recorder gets to end the commands that run, and to
// write down how they ended.
const finishTimeout = 4 * time.Second

// finish lets a running sandbox end by itself, so that its history tells the
// end of what it ran. One that does not is ended by what follows.
func (b *box) finish(ctx context.Context) {
	rec := b.record()
	if rec.Info.State != sandbox.Running || !rec.Process.Alive() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, finishTimeout)
	defer cancel()
	if err := b.engine.finish(ctx, rec); err != nil {
		b.rt.opts.Logger.WarnContext(ctx, "sandbox did not end by itself", "sandbox", b.id, "error", err)
	}
}

// bury removes a sandbox that is being deleted, and keeps its history.
func (b *box) bury(ctx context.Context, reason, message string) error {
	if err := b.clear(ctx); err != nil {
		return err
	}
	if err := os.Remove(b.dir.lastConsole()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return b.change(func(r *record) { r.entomb(reason, message, b.rt.opts.Now().UTC()) })
}

// clear ends what runs of a sandbox and removes all but its record and the
// files of its history.
func (b *box) clear(ctx context.Context) error {
	if err := b.engine.remove(ctx, b.record(), b.dir); err != nil {
		return err
	}
	if err := os.RemoveAll(b.dir.run()); err != nil {
		return err
	}
	if err := clearHistory(b.dir.history()); err != nil { // it goes with the history, at the latest
		b.rt.opts.Logger.WarnContext(ctx, "what is no history is left beside it", "sandbox", b.id, "error", err)
	}
	return nil
}

// entomb makes the record one of a sandbox that is gone. A fault stays told.
func (r *record) entomb(reason, message string, now time.Time) {
	if r.Info.State != sandbox.Failed {
		r.Info.State, r.Info.Reason, r.Info.Message = sandbox.Terminated, reason, message
	}
	r.Deleting, r.DeletedAt = false, now
	r.Token, r.ExecdToken, r.Recorder = "", "", ""
	r.Process.PID, r.Process.Start = 0, 0
}

// ended is called when the sandbox's process has ended by itself.
func (b *box) ended(ctx context.Context) {
	at := b.record().Info.ExpiresAt
	if !at.IsZero() && b.rt.opts.Now().Add(time.Second).After(at) {
		b.expired(ctx) // its init was a little earlier than we
		return
	}
	b.op.Lock()
	defer b.op.Unlock()
	if ctx.Err() != nil || !b.lives() {
		return // Create and Delete know themselves
	}
	b.fail(ctx, b.engine.fault(b.record()))
}

// fail ends the sandbox for a fault: what it used is given back, and its
// record stays until it is deleted or expires. Its caller holds op.
func (b *box) fail(ctx context.Context, why string) {
	b.control.close("the sandbox has ended: " + why)
	log := b.rt.opts.Logger.With("sandbox", b.id)
	log.WarnContext(ctx, "sandbox failed", "reason", why)
	cleaning, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	err := b.dir.keepConsole()
	err = errors.Join(err, b.change(func(r *record) {
		r.Info.State, r.Info.Reason, r.Info.Message = sandbox.Failed, "ENDED", why
	}))
	if err = errors.Join(err, b.clear(cleaning)); err != nil {
		log.ErrorContext(ctx, "failed sandbox could not be cleared away", "error", err)
	}
}

// expired ends a sandbox whose time is over.
func (b *box) expired(ctx context.Context) {
	cleaning, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	if err := b.delete(cleaning, "EXPIRED", "the sandbox reached its expiry"); err != nil {
		b.rt.opts.Logger.ErrorContext(ctx, "expired sandbox could not be ended", "sandbox", b.id, "error", err)
	}
}

// Pause stops all processes of a sandbox where they are. Its expiry stands.
func (rt *Runtime) Pause(ctx context.Context, id string) (*sandbox.Info, error) {
	return rt.move(ctx, id, sandbox.Running, sandbox.Paused)
}

// Resume lets a paused sandbox go on.
func (rt *Runtime) Resume(ctx context.Context, id string) (*sandbox.Info, error) {
	return rt.move(ctx, id, sandbox.Paused, sandbox.Running)
}

func (rt *Runtime) move(ctx context.Context, id string, from, to sandbox.State) (*sandbox.Info, error) {
	b, err := rt.find(ctx, id)
	if err != nil {
		return nil, err
	}
	b.op.Lock()
	defer b.op.Unlock()
	state, deleting := b.state()
	act, op := b.engine.pause, "pause sandbox"
	if to == sandbox.Running {
		act, op = b.engine.resume, "resume sandbox"
	}
	if deleting || state != from {
		return nil, &sandbox.Error{Op: op, Sandbox: id, Code: sandbox.CodeSandboxState, Message: "the sandbox is " + stateText(state, deleting) + ", not " + stateText(from, false)}
	}
	// Requests are turned away before it stands still, and let in when it runs.
	b.control.setPaused(true)
	err = act(context.WithoutCancel(ctx), b.record(), b.dir)
	if err != nil {
		b.control.setPaused(from == sandbox.Paused)
		if _, ok := errors.AsType[*sandbox.Error](err); ok {
			return nil, err
		}
		return nil, &sandbox.Error{Op: op, Sandbox: id, Code: sandbox.CodeInternal, Err: err}
	}
	b.control.setPaused(to == sandbox.Paused)
	err = b.change(func(r *record) {
		r.Info.State, r.Info.Reason, r.Info.Message = to, "RUNNING", ""
		if to == sandbox.Paused {
			r.Info.Reason, r.Info.Message = "PAUSED", "it stands still; resume it to go on"
		}
	})
	if err == nil && to == sandbox.Running && len(b.record().Notes) > 0 {
		b.note(ctx, false)
	}
	return b.info(), err
}

func stateText(state sandbox.State, deleting bool) string {
	switch {
	case deleting:
		return "being deleted"
	case state == sandbox.Running:
		return "running"
	case state == sandbox.Paused:
		return "paused"
	case state == sandbox.Pending:
		return "being started"
	}
	return "ended"
}

// Renew sets the moment at which a sandbox ends, earlier or later. The zero
// time takes the expiry away.
func (rt *Runtime) Renew(ctx context.Context, id string, at time.Time) (*sandbox.Info, error) {
	b, err := rt.find(ctx, id)
	if err != nil {
		return nil, err
	}
	if !at.IsZero() && !at.After(rt.opts.Now()) {
		return nil, sandbox.Invalid("expires_at", "must be in the future")
	}
	if at.UTC().Year() > 9999 { // its record could not be written
		return nil, sandbox.Invalid("expires_at", "must be before the year 10000")
	}
	if most := rt.opts.DefaultTimeout; most > 0 {
		if last := rt.now().Add(most); at.IsZero() || at.After(last) {
			at = last
		}
	}
	b.op.Lock()
	defer b.op.Unlock()
	if state, deleting := b.state(); !b.lives() {
		return nil, &sandbox.Error{Op: "renew sandbox", Sandbox: id, Code: sandbox.CodeSandboxState, Message: "the sandbox is " + stateText(state, deleting)}
	}
	if err := b.dir.writeExpiry(at); err != nil {
		return nil, &sandbox.Error{Op: "renew sandbox", Sandbox: id, Code: sandbox.CodeInternal, Err: err}
	}
	err = b.change(func(r *record) {
		r.Info.ExpiresAt = at.UTC()
		r.happened(rt.now(), "RENEWED", "it expires at "+at.UTC().Format(time.RFC3339))
	})
	if err != nil {
		return nil, err
	}
	select {
	case b.renewed <- struct{}{}:
	default: // one notice is enough
	}
	return b.info(), nil
}
