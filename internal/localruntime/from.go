package localruntime

import (
	"context"
	"fmt"

	"github.com/glassboxhq/glassbox/sandbox"
)

// useSnapshot finds the snapshot from which a sandbox is to begin, and keeps it
// from being deleted until release; nil: from none.
func (rt *Runtime) useSnapshot(ctx context.Context, spec *sandbox.Spec) (*snapshot, error) {
	if spec == nil || spec.Snapshot == "" {
		return nil, nil
	}
	if spec.Image != "" {
		return nil, sandbox.Invalid("snapshot", "brings its own image; give one of the two")
	}
	s, err := rt.findSnapshot(ctx, spec.Snapshot)
	if err != nil {
		return nil, err
	}
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if info := s.rec.Info; info.State != sandbox.SnapshotReady {
		return nil, &sandbox.Error{
			Op: "create sandbox", Code: sandbox.CodeSnapshotState, Message: "the snapshot is " + string(info.State) + ", not Ready",
		}
	}
	s.users++
	return s, nil
}

func (rt *Runtime) releaseSnapshot(s *snapshot) {
	if s != nil {
		rt.mu.Lock()
		defer rt.mu.Unlock()
		s.users--
	}
}

// fill returns the spec of a sandbox that begins from the snapshot.
func (s *snapshot) fill(spec *sandbox.Spec) *sandbox.Spec {
	if s == nil {
		return spec
	}
	next := *spec
	next.Image = s.rec.Image
	if next.Workdir == "" {
		next.Workdir = s.rec.Workdir
	}
	return &next
}

// fit gives the sandbox a layer in which the files have room.
func (s *snapshot) fit(l *limits) error {
	switch {
	case s == nil:
		return nil
	case l.disk == 0:
		l.disk = max(s.rec.Disk, defaultDisk)
	case l.disk < s.rec.Info.Size:
		return sandbox.Invalid("limits.disk", fmt.Sprintf("must be at least %d, which is what the snapshot holds", s.rec.Info.Size))
	}
	return nil
}

// image is what the engine begins from; empty: from nothing.
func (s *snapshot) image() string {
	if s == nil {
		return ""
	}
	return s.dir.image()
}
