package sandboxtest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/glassboxhq/glassbox/sandbox"
)

// Keeper is what [Lifecycle] needs of a service: sandboxes, and all that can be
// done with them from outside.
type Keeper interface {
	Create(ctx context.Context, spec *sandbox.Spec) (*sandbox.Info, error)
	Get(ctx context.Context, id string) (*sandbox.Info, error)
	Delete(ctx context.Context, id string) error
	sandbox.Pauser
	sandbox.Renewer
	sandbox.Labeler
	sandbox.Snapshotter
}

// noID is of no sandbox and no snapshot.
const noID = "00000000-0000-4000-8000-000000000000"

// Lifecycle checks what can be done with sandboxes from outside. The image is
// one that the service has.
func Lifecycle(t *testing.T, k Keeper, image string) {
	t.Helper()
	create := func(t *testing.T, spec *sandbox.Spec) *sandbox.Info {
		t.Helper()
		info, err := k.Create(t.Context(), spec)
		if err != nil {
			t.Fatalf("create: %v", err)
		}
		t.Cleanup(func() {
			if err := k.Delete(context.Background(), info.ID); err != nil && !errors.Is(err, sandbox.ErrNotFound) {
				t.Errorf("delete: %v", err)
			}
		})
		return info
	}
	box := create(t, &sandbox.Spec{Image: image, Timeout: time.Hour, Metadata: map[string]string{"team": "a", "old": "x"}})
	t.Run("Pause", func(t *testing.T) { testPause(t, k, box.ID) })
	t.Run("Renew", func(t *testing.T) { testRenew(t, k, box.ID) })
	t.Run("Metadata", func(t *testing.T) { testMetadata(t, k, box.ID) })
	t.Run("Snapshot", func(t *testing.T) {
		s := testSnapshot(t, k, box.ID)
		from := create(t, &sandbox.Spec{Snapshot: s.ID, Timeout: time.Hour})
		if from.ID == box.ID || from.Snapshot != s.ID || from.State != sandbox.Running {
			t.Errorf("created %+v from %s", from, s.ID)
		}
		testNoSnapshot(t, k, s.ID)
	})
}

func wantState(t *testing.T, k Keeper, id string, want sandbox.State) {
	t.Helper()
	if info, err := k.Get(t.Context(), id); err != nil || info.State != want {
		t.Errorf("got %+v, %v, want it %s", info, err, want)
	}
}

func testPause(t *testing.T, k Keeper, id string) {
	if _, err := k.Resume(t.Context(), id); !errors.Is(err, sandbox.ErrState) {
		t.Errorf("resume of one that runs: %v", err)
	}
	if info, err := k.Pause(t.Context(), id); err != nil || info.ID != id || info.State != sandbox.Paused {
		t.Errorf("pause: %+v, %v", info, err)
	}
	wantState(t, k, id, sandbox.Paused)
	if _, err := k.Pause(t.Context(), id); err == nil { // an error of the service, on some
		t.Error("paused twice")
	}
	paused, err := k.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := k.Resume(t.Context(), id); err == nil && !info.ChangedAt.IsZero() && !info.ChangedAt.After(paused.ChangedAt) {
		t.Errorf("it changed at %v, and was paused at %v", info.ChangedAt, paused.ChangedAt)
	} else if err != nil || info.ID != id || info.State != sandbox.Running {
		t.Errorf("resume: %+v, %v", info, err)
	}
	wantState(t, k, id, sandbox.Running)
	if _, err := k.Pause(t.Context(), noID); !errors.Is(err, sandbox.ErrNotFound) {
		t.Errorf("pause of none: %v", err)
	}
	if _, err := k.Resume(t.Context(), noID); !errors.Is(err, sandbox.ErrNotFound) {
		t.Errorf("resume of none: %v", err)
	}
}

func testRenew(t *testing.T, k Keeper, id string) {
	for _, life := range []time.Duration{3 * time.Hour, 2 * time.Hour} { // later, and earlier again
		at := time.Now().Add(life).UTC().Truncate(time.Second)
		if info, err := k.Renew(t.Context(), id, at); err != nil || !info.ExpiresAt.Equal(at) {
			t.Errorf("renewed to %v: %+v, %v", at, info, err)
		}
	}
	if _, err := k.Renew(t.Context(), id, time.Now().Add(-time.Minute)); !errors.Is(err, sandbox.ErrInvalid) {
		t.Errorf("renewed into the past: %v", err)
	}
	if _, err := k.Renew(t.Context(), noID, time.Now().Add(time.Hour)); !errors.Is(err, sandbox.ErrNotFound) {
		t.Errorf("renew of none: %v", err)
	}
}

func testMetadata(t *testing.T, k Keeper, id string) {
	before, err := k.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	want := before.Metadata
	want["team"], want["new"] = "b", ""
	delete(want, "old")
	value, empty, bad := "b", "", "no label"
	info, err := k.SetMetadata(t.Context(), id, map[string]*string{"team": &value, "new": &empty, "old": nil, "never": nil})
	if err != nil || cmp.Diff(info.Metadata, want) != "" {
		t.Errorf("%v, metadata: %s", err, cmp.Diff(info.Metadata, want))
	}
	for name, change := range map[string]map[string]*string{"value": {"team": &bad}, "key": {"te am": &value}, "reserved": {"opensandbox.io/x": &value}} {
		if _, err := k.SetMetadata(t.Context(), id, change); !errors.Is(err, sandbox.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if info, err := k.Get(t.Context(), id); err != nil || cmp.Diff(info.Metadata, want) != "" {
		t.Errorf("%v, kept: %s", err, cmp.Diff(info.Metadata, want))
	}
	if _, err := k.SetMetadata(t.Context(), noID, map[string]*string{"a": &value}); !errors.Is(err, sandbox.ErrNotFound) {
		t.Errorf("metadata of none: %v", err)
	}
}

// testSnapshot takes one, and returns it when it is ready.
func testSnapshot(t *testing.T, k Keeper, id string) *sandbox.Snapshot {
	taken, err := k.TakeSnapshot(t.Context(), id, "研究")
	if err != nil {
		t.Fatalf("take snapshot: %v", err)
	}
	if taken.Sandbox != id || taken.Name != "研究" || taken.CreatedAt.IsZero() {
		t.Errorf("taken: %+v", taken)
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	s := taken
	for deadline := time.Now().Add(time.Minute); s.State == sandbox.SnapshotCreating && time.Now().Before(deadline); <-tick.C {
		if s, err = k.GetSnapshot(t.Context(), taken.ID); err != nil {
			t.Fatalf("get snapshot: %v", err)
		}
	}
	if s.State != sandbox.SnapshotReady || s.ID != taken.ID {
		t.Fatalf("it is %+v", s)
	}
	list, err := k.ListSnapshots(t.Context(), id)
	if err != nil || cmp.Diff(list, []*sandbox.Snapshot{s}) != "" {
		t.Errorf("%v, list: %s", err, cmp.Diff(list, []*sandbox.Snapshot{s}))
	}
	if list, err := k.ListSnapshots(t.Context(), noID); err != nil || len(list) > 0 {
		t.Errorf("list of none: %v, %v", list, err)
	}
	if _, err := k.TakeSnapshot(t.Context(), noID, ""); !errors.Is(err, sandbox.ErrNotFound) {
		t.Errorf("snapshot of none: %v", err)
	}
	return s
}

// testNoSnapshot deletes one, and asks for what is not there.
func testNoSnapshot(t *testing.T, k Keeper, snapshot string) {
	if err := k.DeleteSnapshot(t.Context(), snapshot); err != nil {
		t.Errorf("delete snapshot: %v", err)
	}
	for _, id := range []string{snapshot, noID} {
		_, get := k.GetSnapshot(t.Context(), id)
		_, create := k.Create(t.Context(), &sandbox.Spec{Snapshot: id})
		for what, err := range map[string]error{"get": get, "create from": create, "delete": k.DeleteSnapshot(t.Context(), id)} {
			if sandbox.CodeOf(err) != sandbox.CodeSnapshotNotFound {
				t.Errorf("%s what is not there: %v", what, err)
			}
		}
	}
}
