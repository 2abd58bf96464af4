package localruntime

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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
		Version: recordVersion, Image: source.Engine, Workdir: source.Spec.Workdir, Disk: limits.disk,
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

func (rt *Runtime) snapshot(id string) *snapshot {
	return &snapshot{id: id, dir: snapshotDir(filepath.Join(rt.opts.StateDir, "snapshots", id))}
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

// changeSnapshot changes a snapshot's record, on disk first. Only who moves the
// snapshot on calls it: the job that takes it, and then whoever deletes it.
func (rt *Runtime) changeSnapshot(s *snapshot, how func(*snapshotRecord)) error {
	rt.mu.Lock()
	next := *s.rec
	rt.mu.Unlock()
	how(&next)
	next.Info.ChangedAt = rt.now()
	if err := s.dir.save(&next); err != nil {
		return err
	}
	rt.mu.Lock()
	defer rt.mu.Unlock()
	s.rec = &next
	return nil
}

// failSnapshot tells that there is no such snapshot, and why.
func (rt *Runtime) failSnapshot(s *snapshot, reason, message string) error {
	return errors.Join(os.RemoveAll(s.dir.image()), rt.changeSnapshot(s, func(r *snapshotRecord) {
		r.Info.State, r.Info.Reason, r.Info.Message = sandbox.SnapshotFailed, reason, message
	}))
}

// dropSnapshot removes a snapshot, its record last: what is cut off in between
// is found again.
func (rt *Runtime) dropSnapshot(s *snapshot) error {
	err := os.RemoveAll(s.dir.image())
	if err == nil {
		err = os.RemoveAll(string(s.dir))
	}
	if err != nil {
		return fmt.Errorf("remove snapshot: %w", err)
	}
	rt.mu.Lock()
	defer rt.mu.Unlock()
	delete(rt.snapshots, s.id)
	return nil
}

func (rt *Runtime) findSnapshot(ctx context.Context, id string) (*snapshot, error) {
	if err := rt.wait(ctx); err != nil {
		return nil, err
	}
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if s, ok := rt.snapshots[id]; ok {
		return s, nil
	}
	return nil, &sandbox.Error{
		Op: "find snapshot", Code: sandbox.CodeSnapshotNotFound, Message: "there is no snapshot " + clip(id) + "; it was deleted, or never was",
	}
}

// GetSnapshot describes a snapshot.
func (rt *Runtime) GetSnapshot(ctx context.Context, id string) (*sandbox.Snapshot, error) {
	s, err := rt.findSnapshot(ctx, id)
	if err != nil {
		return nil, err
	}
	rt.mu.Lock()
	defer rt.mu.Unlock()
	info := s.rec.Info
	return &info, nil
}

// ListSnapshots describes the snapshots of a sandbox, or all for the empty id,
// the newest first.
func (rt *Runtime) ListSnapshots(ctx context.Context, id string) ([]*sandbox.Snapshot, error) {
	if err := rt.wait(ctx); err != nil {
		return nil, err
	}
	rt.mu.Lock()
	list := make([]*sandbox.Snapshot, 0, len(rt.snapshots))
	for _, s := range rt.snapshots {
		if info := s.rec.Info; id == "" || info.Sandbox == id {
			list = append(list, &info)
		}
	}
	rt.mu.Unlock()
	slices.SortFunc(list, func(a, b *sandbox.Snapshot) int { return b.CreatedAt.Compare(a.CreatedAt) })
	return list, nil
}

// DeleteSnapshot removes a snapshot. Sandboxes that began from it go on: gVisor
// has the files open, and the kernel keeps them for as long.
func (rt *Runtime) DeleteSnapshot(ctx context.Context, id string) error {
	s, err := rt.findSnapshot(ctx, id)
	if err != nil {
		return err
	}
	if err := rt.markDeleting(s); err != nil {
		return err
	}
	err = s.dir.save(s.rec) // so that a cut-off deletion is finished
	if err == nil {
		err = rt.dropSnapshot(s)
	}
	if err != nil {
		rt.mu.Lock()
		defer rt.mu.Unlock()
		next := *s.rec
		next.Info.State, next.Info.Reason, next.Info.Message = sandbox.SnapshotFailed, "DELETE_FAILED", "it could not be removed whole: "+err.Error()+"; try again"
		s.rec = &next
		return &sandbox.Error{Op: "delete snapshot", Code: sandbox.CodeInternal, Err: err, Retryable: true, Message: "it could not be removed whole; try again"}
	}
	return nil
}

// markDeleting lets nobody else begin with a snapshot.
func (rt *Runtime) markDeleting(s *snapshot) error {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	state := s.rec.Info.State
	why := ""
	switch {
	case state == sandbox.SnapshotCreating:
		why = "the snapshot is being taken; wait until it is Ready or Failed"
	case state == sandbox.SnapshotDeleting:
		why = "the snapshot is being deleted"
	case s.users > 0:
		why = "a sandbox is just being made from the snapshot; try again in a moment"
	}
	if why != "" {
		return &sandbox.Error{Op: "delete snapshot", Code: sandbox.CodeSnapshotState, Retryable: s.users > 0, Message: why}
	}
	next := *s.rec
	next.Info.State, next.Info.Reason, next.Info.Message = sandbox.SnapshotDeleting, "DELETING", ""
	next.Info.ChangedAt = rt.now()
	s.rec = &next
	return nil
}

// takeUpSnapshots reads what an earlier owner left, and finishes what it was
// about to do.
func (rt *Runtime) takeUpSnapshots(ctx context.Context) {
	folder := filepath.Join(rt.opts.StateDir, "snapshots")
	entries, err := os.ReadDir(folder)
	if err != nil {
		rt.opts.Logger.ErrorContext(ctx, "snapshots of an earlier run are not read", "error", err)
		return
	}
	for _, entry := range entries {
		if !entry.IsDir() || !id.Valid(entry.Name()) {
			continue
		}
		s := rt.snapshot(entry.Name())
		s.rec = s.dir.load()
		rt.mu.Lock()
		rt.snapshots[entry.Name()] = s
		rt.mu.Unlock()
		switch s.rec.Info.State {
		case sandbox.SnapshotCreating:
			err = rt.failSnapshot(s, interrupted, serverEnded)
		case sandbox.SnapshotDeleting:
			err = rt.dropSnapshot(s)
		}
		if err != nil {
			rt.opts.Logger.ErrorContext(ctx, "snapshot of an earlier run is not cleared away", "snapshot", entry.Name(), "error", err)
		}
	}
}
