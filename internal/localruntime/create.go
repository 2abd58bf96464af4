package localruntime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/internal/localruntime/proc"
	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/sandbox"
)

const (
	readyTimeout   = 30 * time.Second // from the start of the process to the recorder's first answer
	cleanupTimeout = 30 * time.Second
)

// Create makes a sandbox and returns when its recorder answers, or when its
// image takes longer to come than Options.CreatePatience.
func (rt *Runtime) Create(ctx context.Context, spec *sandbox.Spec) (*sandbox.Info, error) {
	return rt.create(ctx, spec, rt.opts.CreatePatience)
}

func (rt *Runtime) create(ctx context.Context, spec *sandbox.Spec, patience time.Duration) (*sandbox.Info, error) {
	if err := rt.wait(ctx); err != nil {
		return nil, err
	}
	base, err := rt.useSnapshot(ctx, spec)
	if err != nil {
		return nil, err
	}
	defer rt.releaseSnapshot(base)
	anywhere := spec == nil || spec.Workdir == "" && base == nil
	spec, err = normal(base.fill(spec))
	if err != nil {
		return nil, err
	}
	from, err := rt.choose(ctx, spec.Image)
	if err != nil {
		return nil, err
	}
	limits, notHeld, err := readLimits(spec.Limits)
	if err != nil {
		return nil, err
	}
	if err := base.fit(limits); err != nil {
		return nil, err
	}
	if from.engine == ImageHere {
		if err := rt.takeHere(); err != nil {
			return nil, err
		}
	}
	b, err := rt.prepare(spec, from, slices.Concat(from.warnings, notHeld, rt.bound(spec), notRun(spec)))
	if err != nil {
		return nil, err
	}
	l := &launch{dir: b.dir, limits: limits, env: spec.Env, image: from.image, anywhere: anywhere, snapshot: base.image()}
	if from.pull != "" {
		b.op.Unlock() // who deletes it meanwhile need not wait
		l.patience, l.auth = patience, spec.ImageAuth
		return b.pullFirst(ctx, l, from.pull)
	}
	defer b.op.Unlock()
	if err = b.start(ctx, l); err != nil {
		return nil, errors.Join(err, b.discard(ctx))
	}
	return b.info(), nil
}

// bound gives a sandbox the life that this runtime gives each, if it does, and
// tells when that is less than was asked for.
func (rt *Runtime) bound(spec *sandbox.Spec) []string {
	most, asked := rt.opts.DefaultTimeout, spec.Timeout
	if most == 0 || asked > 0 && asked <= most {
		return nil
	}
	spec.Timeout = most
	if asked == 0 {
		return nil
	}
	return []string{fmt.Sprintf("the sandbox lives for %v and not for %v: this server gives no more; it can be renewed", most, asked)}
}

// takeHere takes the only place for a sandbox without isolation.
func (rt *Runtime) takeHere() error {
	if !rt.opts.Here {
		return &sandbox.Error{
			Op: "create sandbox", Field: "image", Code: sandbox.CodeIsolation,
			Message: "the image here runs commands on this very machine without isolation; this server was not started to allow that (--here)",
		}
	}
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if rt.hereOne {
		return &sandbox.Error{
			Op: "create sandbox", Code: sandbox.CodeSandboxState,
			Message: "there is a sandbox without isolation already; this machine can be only one, delete that first",
		}
	}
	rt.hereOne = true
	return nil
}

// prepare makes the folder of a new sandbox, so that a server that dies from
// here on finds what it has to clear away. The box comes with op held.
func (rt *Runtime) prepare(spec *sandbox.Spec, from *choice, warnings []string) (*box, error) {
	recorder, err := rt.recorder()
	if err != nil {
		rt.giveHere(from.engine)
		return nil, err
	}
	now := rt.now()
	rec := &record{
		Version: recordVersion, Spec: *spec, Engine: from.engine, Recorder: recorder, ChangedAt: now,
		Token: newToken(), ExecdToken: newToken(),
		Info: sandbox.Info{
			ID: id.NewRandom(), InstanceID: cmp.Or(spec.Metadata[wire.MetaInstance], id.NewRandom()), Name: spec.Name, State: sandbox.Pending,
			Reason: "STARTING", Image: spec.Image, Snapshot: spec.Snapshot, Metadata: spec.Metadata, CreatedAt: now, Warnings: warnings,
		},
	}
	rec.Spec.Env, rec.Spec.ImageAuth = nil, nil
	rec.happened(now, "CREATED", "")
	if spec.Timeout > 0 {
		rec.Info.ExpiresAt = now.Add(spec.Timeout)
	}
	b := rt.newBox(rec, dir(filepath.Join(rt.opts.StateDir, "sandboxes", rec.Info.ID)))
	err = b.makeFiles()
	if err != nil {
		rt.giveHere(from.engine)
		return nil, errors.Join(fmt.Errorf("prepare sandbox: %w", err), os.RemoveAll(string(b.dir)))
	}
	b.op.Lock()
	rt.mu.Lock()
	rt.boxes[rec.Info.ID] = b
	rt.mu.Unlock()
	return b, nil
}

func (b *box) makeFiles() error {
	for _, name := range []string{"", "run", "history"} {
		if err := os.Mkdir(b.dir.file(name), 0o700); err != nil {
			return err
		}
	}
	if err := b.dir.save(b.rec); err != nil {
		return err
	}
	if err := b.dir.writeExpiry(b.rec.Info.ExpiresAt); err != nil {
		return err
	}
	return b.listen()
}

// start starts the sandbox and waits for its recorder.
func (b *box) start(ctx context.Context, l *launch) error {
	if err := b.use(l); err != nil {
		b.closeSockets()
		return err
	}
	ref, warnings, err := b.engine.start(ctx, l)
	if err != nil {
		b.closeSockets()
		return err
	}
	b.mu.Lock()
	next := *b.rec
	next.Process = ref
	next.Info.Warnings = append(next.Info.Warnings, warnings...)
	b.rec = &next
	b.mu.Unlock()
	select {
	case b.rt.started <- b: // from now on it is served
		b.serving.Store(true)
	case <-b.rt.done:
		b.closeSockets()
		return errStopped()
	}
	if err := b.ready(ctx, ref); err != nil {
		return err
	}
	err = b.change(func(r *record) {
		r.Info.State, r.Info.Reason, r.Info.Message = sandbox.Running, "RUNNING", "the recorder answers"
	})
	if err == nil {
		b.rt.opts.Logger.InfoContext(ctx, "sandbox created", "sandbox", b.id, "image", l.record.Info.Image)
	}
	return err
}

// use notes what the sandbox begins from. Whoever removes an image looks first
// who uses it; what was removed before that is missing here.
func (b *box) use(l *launch) error {
	if l.image != nil {
		err := b.change(func(r *record) {
			r.ImageID = l.image.ID
			if l.anywhere && path.IsAbs(l.image.Workdir) {
				r.Spec.Workdir = path.Clean(l.image.Workdir)
			}
		})
		if err != nil {
			return err
		}
		if _, err := os.Lstat(l.image.Root()); err != nil {
			return &sandbox.Error{Op: "create sandbox", Code: sandbox.CodeImageNotFound, Field: "image", Message: "the image was just removed", Err: err}
		}
	}
	l.record = b.record()
	return nil
}

// ready waits for the recorder's first connection.
func (b *box) ready(ctx context.Context, ref proc.Ref) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, errors.New("the recorder did not answer in time"))
	defer cancel()
	if h, err := ref.Open(); err == nil {
		gone, stop := context.WithCancelCause(ctx)
		defer stop(nil)
		done := make(chan struct{})
		go func() {
			defer close(done)
			defer h.Close()
			if h.Wait(gone) == nil {
				stop(errors.New("its first process ended"))
			}
		}()
		defer func() { stop(nil); <-done }()
		ctx = gone
	}
	if err := b.control.waitConnected(ctx); err != nil {
		return &sandbox.Error{
			Op: "start sandbox", Sandbox: b.id, Code: sandbox.CodeIsolation, Err: context.Cause(ctx),
			Message: "its recorder does not answer" + b.dir.console(),
		}
	}
	return nil
}

// discard removes a sandbox that did not come to life. Its caller holds op.
func (b *box) discard(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	b.control.close("the sandbox could not be started")
	err := b.engine.remove(ctx, b.record(), b.dir)
	if err == nil {
		err = os.RemoveAll(string(b.dir))
	}
	if err != nil {
		return fmt.Errorf("clear away the sandbox that did not start: %w", err)
	}
	b.forget()
	return nil
}

// forget drops the sandbox from the living, and ends what serves it.
func (b *box) forget() {
	rec := b.record()
	b.rt.mu.Lock()
	delete(b.rt.boxes, rec.Info.ID)
	b.rt.mu.Unlock()
	b.rt.giveHere(rec.Engine)
	close(b.quit)
}

func (rt *Runtime) giveHere(image string) {
	if image == ImageHere {
		rt.mu.Lock()
		rt.hereOne = false
		rt.mu.Unlock()
	}
}
