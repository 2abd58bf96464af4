package localruntime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/sandbox"
)

const (
	maxSnapshots    = 100
	snapshotTimeout = 10 * time.Minute

	interrupted = "INTERRUPTED"
	serverEnded = "the server ended while the snapshot was taken"
)

// TakeSnapshot begins to keep the files of a sandbox, which stands still for
// as long as that takes. The snapshot outlives the sandbox.
func (rt *Runtime) TakeSnapshot(ctx context.Context, id, name string) (*sandbox.Snapshot, error) {
	b, err := rt.find(ctx, id)
	if err != nil {
		return nil, err
	}
	if err := validName(name); err != nil {
		return nil, err
	}
	if b.record().Engine == ImageHere {
		return nil, errNothingToKeep(id)
	}
	b.op.Lock() // until the files are kept
	s, err := rt.beginSnapshot(b, name)
	if err != nil {
		b.op.Unlock()
		return nil, err
	}
	info := s.rec.Info
	select {
	case rt.jobs <- func(ctx context.Context) { rt.takeSnapshot(ctx, b, s) }:
		return &info, nil
	case <-rt.done:
		b.op.Unlock()
		return nil, errors.Join(errStopped(), rt.dropSnapshot(s))
	}
}

// beginSnapshot makes the folder of a new snapshot. Its caller holds op.
func (rt *Runtime) beginSnapshot(b *box, name string) (*snapshot, error) {
	if state, deleting := b.state(); !b.lives() {
		return nil, &sandbox.Error{
			Op: "take snapshot", Sandbox: b.id, Code: sandbox.CodeSandboxState,
			Message: "the sandbox is " + stateText(state, deleting) + "; its files can be kept while it runs or is paused",
		}
	}
	source := b.record()
	limits, _, err := readLimits(source.Spec.Limits)
	if err != nil {
		return nil, err
	}
	now := rt.now()
	rec := &snapshotRecord{
		Version: recordVersion, Image: cmp.Or(source.ImageID, source.Engine), Workdir: source.Spec.Workdir, Disk: limits.disk,
		Info: sandbox.Snapshot{
			ID: id.NewRandom(), Sandbox: b.id, Name: name, State: sandbox.SnapshotCreating, Reason: "ACCEPTED", CreatedAt: now, ChangedAt: now,
		},
	}
	s := rt.snapshot(rec.Info.ID)
	s.rec = rec
	if err := rt.addSnapshot(s); err != nil {
		return nil, err
	}
	if err = os.Mkdir(string(s.dir), 0o700); err == nil {
		err = s.dir.save(rec)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("take snapshot: %w", err), rt.dropSnapshot(s))
	}
	return s, nil
}

// addSnapshot counts a new snapshot, if there is room for one more.
func (rt *Runtime) addSnapshot(s *snapshot) error {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if size := rt.snapshotBytes(); len(rt.snapshots) >= maxSnapshots || size >= rt.opts.SnapshotCap {
		return &sandbox.Error{
			Op: "take snapshot", Code: sandbox.CodeNoSpace,
			Message: fmt.Sprintf("%d snapshots with %d MiB are kept, and at most %d with %d MiB may be; delete some",
				len(rt.snapshots), size>>20, maxSnapshots, rt.opts.SnapshotCap>>20),
		}
	}
	rt.snapshots[s.id] = s
	return nil
}

// snapshotBytes counts what all snapshots take on the disk. mu is held.
func (rt *Runtime) snapshotBytes() (size int64) {
	for _, s := range rt.snapshots {
		size += s.rec.Info.Size
	}
	return size
}

// takeSnapshot keeps the files, and lets go of the sandbox as soon as they are
// written. It ends when ctx does, and when the sandbox is to be deleted.
func (rt *Runtime) takeSnapshot(ctx context.Context, b *box, s *snapshot) {
	size, err := rt.writeSnapshot(ctx, b, s)
	log := rt.opts.Logger.With("sandbox", b.id, "snapshot", s.id)
	if err == nil {
		err = rt.changeSnapshot(s, func(r *snapshotRecord) {
			r.Info.State, r.Info.Reason, r.Info.Size = sandbox.SnapshotReady, "READY", size
		})
	}
	if err == nil {
		log.InfoContext(ctx, "snapshot taken", "bytes", size)
		return
	}
	log.WarnContext(ctx, "snapshot failed", "error", err)
	reason, why := "FAILED", err.Error()
	if ctx.Err() != nil {
		reason, why = interrupted, serverEnded
	}
	if err := rt.failSnapshot(s, reason, why); err != nil {
		log.ErrorContext(ctx, "snapshot that failed could not be cleared away", "error", err)
	}
}

func (rt *Runtime) writeSnapshot(ctx context.Context, b *box, s *snapshot) (int64, error) {
	err := b.keepFiles(ctx, s)
	if err != nil {
		return 0, err
	}
	size, err := s.dir.sync()
	if err != nil {
		return 0, err
	}
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if total := rt.snapshotBytes() + size; total > rt.opts.SnapshotCap {
		return 0, fmt.Errorf("with it the snapshots would have %d MiB, and may have %d; delete some", total>>20, rt.opts.SnapshotCap>>20)
	}
	return size, nil
}

// keepFiles lets the engine write the files of the sandbox, and gives op back.
func (b *box) keepFiles(ctx context.Context, s *snapshot) error {
	defer b.op.Unlock()
	ctx, cancel := context.WithTimeoutCause(ctx, snapshotTimeout, errors.New("it took too long"))
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var watching sync.WaitGroup
	defer watching.Wait()
	done := make(chan struct{})
	defer close(done)
	watching.Go(func() {
		select {
		case <-b.ending:
			stop(errors.New("the sandbox was deleted meanwhile"))
		case <-done:
		}
	})
	err := b.engine.snapshot(ctx, b.record(), b.dir, s.dir.image())
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return err
	}
	return b.change(func(r *record) { r.happened(b.rt.now(), "SNAPSHOT_TAKEN", s.id) })
}
