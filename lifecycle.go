package glassbox

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/sandbox"
	"github.com/glassboxhq/glassbox/sandbox/recorded"
)

// Pause stops all processes of a sandbox where they are. Its expiry stands.
func Pause(ctx context.Context, url, id string, o *Options) (*Info, error) {
	return with(ctx, url, o, func(s *service) (*Info, error) { return s.pause(ctx, id) })
}

// Resume lets a paused sandbox go on.
func Resume(ctx context.Context, url, id string, o *Options) (*Info, error) {
	return with(ctx, url, o, func(s *service) (*Info, error) { return s.resume(ctx, id) })
}

// Renew sets the moment at which a sandbox ends, earlier or later.
func Renew(ctx context.Context, url, id string, at time.Time, o *Options) (*Info, error) {
	return with(ctx, url, o, func(s *service) (*Info, error) { return s.renew(ctx, id, at) })
}

// SetMetadata sets the named entries of a sandbox's metadata, removes those
// that are nil, and leaves the others.
func SetMetadata(ctx context.Context, url, id string, change map[string]*string, o *Options) (*Info, error) {
	return with(ctx, url, o, func(s *service) (*Info, error) { return s.setMetadata(ctx, id, change) })
}

// TakeSnapshot keeps the files of a sandbox as they are, and returns when they
// are kept. Options.Snapshot begins a sandbox from them.
func TakeSnapshot(ctx context.Context, url, id, name string, o *Options) (*Snapshot, error) {
	return with(ctx, url, o, func(s *service) (*Snapshot, error) { return s.takeSnapshot(ctx, id, name) })
}

// GetSnapshot describes a snapshot.
func GetSnapshot(ctx context.Context, url, snapshot string, o *Options) (*Snapshot, error) {
	return with(ctx, url, o, func(s *service) (*Snapshot, error) { return s.provider.GetSnapshot(ctx, snapshot) })
}

// ListSnapshots describes the snapshots of a sandbox, or all for the empty id,
// the newest first.
func ListSnapshots(ctx context.Context, url, id string, o *Options) ([]*Snapshot, error) {
	return with(ctx, url, o, func(s *service) ([]*Snapshot, error) { return s.provider.ListSnapshots(ctx, id) })
}

// DeleteSnapshot deletes a snapshot. Sandboxes that began from it go on.
func DeleteSnapshot(ctx context.Context, url, snapshot string, o *Options) error {
	_, err := with(ctx, url, o, func(s *service) (*Snapshot, error) { return nil, s.provider.DeleteSnapshot(ctx, snapshot) })
	return err
}

// with asks a service for one thing.
func with[T any](ctx context.Context, url string, o *Options, do func(*service) (T, error)) (T, error) {
	s, err := dial(ctx, url, o)
	if err != nil {
		var none T
		return none, err
	}
	s.hold(ctx)
	answer, err := do(s)
	return answer, errors.Join(err, s.close())
}

func (s *service) pause(ctx context.Context, id string) (*Info, error) {
	return act(ctx, s, &change{history.SandboxPause, id, nil}, func(ctx context.Context) (*Info, map[string]any, error) {
		info, err := s.provider.Pause(ctx, id)
		return info, nil, err
	})
}

func (s *service) resume(ctx context.Context, id string) (*Info, error) {
	return act(ctx, s, &change{history.SandboxResume, id, nil}, func(ctx context.Context) (*Info, map[string]any, error) {
		info, err := s.provider.Resume(ctx, id)
		return info, nil, err
	})
}

func (s *service) renew(ctx context.Context, id string, at time.Time) (*Info, error) {
	return act(ctx, s, &change{history.SandboxRenew, id, map[string]any{"expires_at": at.UTC()}}, func(ctx context.Context) (*Info, map[string]any, error) {
		info, err := s.provider.Renew(ctx, id, at)
		return info, nil, err
	})
}

func (s *service) setMetadata(ctx context.Context, id string, set map[string]*string) (*Info, error) {
	return act(ctx, s, &change{history.SandboxMetadata, id, map[string]any{"metadata": set}}, func(ctx context.Context) (*Info, map[string]any, error) {
		info, err := s.provider.SetMetadata(ctx, id, set)
		if err != nil {
			return nil, nil, err
		}
		return info, map[string]any{"keys": slices.Sorted(maps.Keys(info.Metadata))}, nil
	})
}

func (s *service) takeSnapshot(ctx context.Context, id, name string) (*Snapshot, error) {
	return act(ctx, s, &change{history.SandboxSnapshot, id, map[string]any{"name": name}}, func(ctx context.Context) (*Snapshot, map[string]any, error) {
		snapshot, err := s.provider.TakeSnapshot(ctx, id, name)
		if err == nil {
			snapshot, err = s.settle(ctx, snapshot)
		}
		if err != nil {
			return nil, nil, err
		}
		return snapshot, map[string]any{"snapshot_id": snapshot.ID, "bytes": snapshot.Size}, nil
	})
}

const (
	settleMin = 20 * time.Millisecond
	settleMax = time.Second
)

// settle waits until a snapshot is ready.
func (s *service) settle(ctx context.Context, snapshot *Snapshot) (*Snapshot, error) {
	for wait := settleMin; snapshot.State == sandbox.SnapshotCreating; wait = min(2*wait, settleMax) {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			e := sandbox.FromContext(ctx, "wait for snapshot")
			e.Message = "snapshot " + snapshot.ID + " is still being taken"
			return nil, e
		}
		next, err := s.provider.GetSnapshot(ctx, snapshot.ID)
		if err != nil {
			return nil, err
		}
		snapshot = next
	}
	if snapshot.State != sandbox.SnapshotReady {
		return nil, &sandbox.Error{
			Op: "take snapshot", Sandbox: snapshot.Sandbox, Code: sandbox.CodeSnapshotState,
			Message: "snapshot " + snapshot.ID + " is " + string(snapshot.State) + ": " + snapshot.Message,
		}
	}
	return snapshot, nil
}

// change is an act on a sandbox from outside, as it is recorded.
type change struct {
	opType, id string
	request    map[string]any // besides the id
}

// act does something with a sandbox from outside and records it. The record
// goes into the sandbox's history when its recorder answers: of one that is
// paused, when it has been resumed.
func act[T any](ctx context.Context, s *service, c *change, do func(context.Context) (T, map[string]any, error)) (T, error) {
	request := map[string]any{"sandbox_id": c.id}
	maps.Copy(request, c.request)
	entry, err := s.outbox.begin(ctx, s.opts.Source, c.opType, c.id, history.EncodeRequest(request))
	if err != nil {
		var none T
		return none, err
	}
	answer, result, err := do(wire.WithRecorded(ctx, entry.Operation.ID))
	recordErr := entry.ended(result, err)
	// One that cannot be paused is paused already, or has ended.
	answers := c.opType != history.SandboxPause && (err == nil || errors.Is(err, sandbox.ErrState) || errors.Is(err, sandbox.ErrInvalid))
	if recordErr == nil && answers {
		s.deliver(ctx, c.id)
	}
	return answer, errors.Join(err, recordErr)
}

// deliver brings what was recorded of a sandbox into its history, if it can be
// reached just now. Else the records stay for the next who connects.
func (s *service) deliver(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.opts.RequestTimeout)
	defer cancel()
	session, err := s.provider.Open(ctx, id)
	if err == nil {
		box := &Sandbox{service: s, info: &Info{ID: id}, session: session.(*recorded.Session)}
		err = errors.Join(s.outbox.deliver(ctx, box), session.Close(ctx))
	}
	if err != nil {
		s.opts.Logger.DebugContext(ctx, "records wait for the sandbox", "sandbox", id, "error", err)
	}
}
