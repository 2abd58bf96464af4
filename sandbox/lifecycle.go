package sandbox

import (
	"context"
	"time"
)

// Pauser is a [Provider] that can let sandboxes stand still.
type Pauser interface {
	// Pause stops all processes of a sandbox where they are. Its expiry stands.
	Pause(ctx context.Context, id string) (*Info, error)
	// Resume lets a paused sandbox go on.
	Resume(ctx context.Context, id string) (*Info, error)
}

// Renewer is a [Provider] that can change when sandboxes end.
type Renewer interface {
	// Renew sets the moment at which a sandbox ends, earlier or later.
	Renew(ctx context.Context, id string, at time.Time) (*Info, error)
}

// Labeler is a [Provider] that can change the metadata of sandboxes.
type Labeler interface {
	// SetMetadata sets the named entries of a sandbox's metadata, removes those
	// that are nil, and leaves the others.
	SetMetadata(ctx context.Context, id string, change map[string]*string) (*Info, error)
}

// Snapshotter is a [Provider] that can keep the files of sandboxes. A sandbox
// is made from a snapshot by [Spec.Snapshot].
type Snapshotter interface {
	// TakeSnapshot begins to keep the files of a sandbox. The answer may be
	// Creating: ask GetSnapshot until it is Ready or Failed.
	TakeSnapshot(ctx context.Context, id, name string) (*Snapshot, error)
	GetSnapshot(ctx context.Context, snapshot string) (*Snapshot, error)
	// ListSnapshots lists the snapshots of a sandbox, or all for the empty id,
	// the newest first.
	ListSnapshots(ctx context.Context, id string) ([]*Snapshot, error)
	// DeleteSnapshot leaves the sandboxes that were made from it as they are.
	DeleteSnapshot(ctx context.Context, snapshot string) error
}

// SnapshotState tells where a snapshot is in its life. The values are those of
// the OpenSandbox lifecycle API.
type SnapshotState string

// The states of a snapshot.
const (
	SnapshotCreating SnapshotState = "Creating"
	SnapshotReady    SnapshotState = "Ready"
	SnapshotFailed   SnapshotState = "Failed" // Snapshot.Message tells why
	SnapshotDeleting SnapshotState = "Deleting"
)

// Snapshot describes the kept files of a sandbox. Processes and the history
// are not in it.
type Snapshot struct {
	ID        string        `json:"id"`
	Sandbox   string        `json:"sandbox_id"` // of which it was taken; it may be gone
	Name      string        `json:"name,omitempty"`
	State     SnapshotState `json:"state"`
	Reason    string        `json:"reason,omitempty"`
	Message   string        `json:"message,omitempty"`
	Size      int64         `json:"size,omitempty"` // bytes, where the service tells
	CreatedAt time.Time     `json:"created_at"`
	ChangedAt time.Time     `json:"changed_at,omitzero"` // when the state changed last
}
