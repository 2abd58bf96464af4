package localruntime

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/sandbox"
)

func (rt *Runtime) snapshot(id string) *snapshot {
	return &snapshot{id: id, dir: snapshotDir(filepath.Join(rt.opts.StateDir, "snapshots", id))}
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
