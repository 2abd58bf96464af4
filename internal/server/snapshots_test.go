package server_test

import (
	"context"
	"net/http"
	"slices"
	"testing"

	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/internal/server"
	"github.com/glassboxhq/glassbox/sandbox"
)

var _ sandbox.Snapshotter = (*runtime)(nil)

// TakeSnapshot implements sandbox.Snapshotter, in memory.
func (r *runtime) TakeSnapshot(ctx context.Context, boxID, name string) (*sandbox.Snapshot, error) {
	if _, err := r.Get(ctx, boxID); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &sandbox.Snapshot{ID: id.New(), Sandbox: boxID, Name: name, State: sandbox.SnapshotReady}
	r.snapshots = append([]*sandbox.Snapshot{s}, r.snapshots...)
	return s, nil
}

func (r *runtime) GetSnapshot(_ context.Context, snapshotID string) (*sandbox.Snapshot, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.snapshots {
		if s.ID == snapshotID {
			return s, nil
		}
	}
	return nil, &sandbox.Error{Code: sandbox.CodeSnapshotNotFound}
}

func (r *runtime) ListSnapshots(_ context.Context, boxID string) (list []*sandbox.Snapshot, _ error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.snapshots {
		if s.Sandbox == boxID {
			list = append(list, s)
		}
	}
	return list, nil
}

func (r *runtime) DeleteSnapshot(ctx context.Context, snapshotID string) error {
	if _, err := r.GetSnapshot(ctx, snapshotID); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.snapshots = slices.DeleteFunc(r.snapshots, func(s *sandbox.Snapshot) bool { return s.ID == snapshotID })
	return nil
}

func TestSnapshots(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	r := s.room()
	other, err := s.rt.Create(t.Context(), &sandbox.Spec{Name: "other"})
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := s.rt.TakeSnapshot(t.Context(), other.ID, "theirs")
	if err != nil {
		t.Fatal(err)
	}
	all := r.base + "/snapshots"
	var made, got sandbox.Snapshot
	a := r.ask("POST", all, `{"name":"готово"}`)
	a.read(t, &made)
	if a.status != http.StatusCreated || made.Name != "готово" || made.Sandbox != r.box {
		t.Errorf("%d %+v", a.status, made)
	}
	r.ask("GET", all+"/"+made.ID, "").read(t, &got)
	var page server.Page[sandbox.Snapshot]
	r.ask("GET", all, "").read(t, &page)
	if got.ID != made.ID || len(page.Items) != 1 || page.Items[0].ID != made.ID {
		t.Errorf("%+v %+v", got, page)
	}
	r.ask("DELETE", all+"/"+foreign.ID, "").want(t, "another sandbox's", 404, sandbox.CodeSnapshotNotFound)
	var box server.Sandbox
	r.ask("POST", "/api/v1/connections/local/sandboxes", `{"snapshot":"`+made.ID+`"}`).read(t, &box)
	r.ask("POST", "/api/v1/connections/local/sandboxes", `{"snapshot":"x","image":"y"}`).want(t, "both", 400, sandbox.CodeInvalid)
	r.ask("POST", "/api/v1/connections/local/sandboxes", `{}`).want(t, "neither", 400, sandbox.CodeInvalid)
	r.ask("DELETE", all+"/"+made.ID, "").want(t, "delete", 204, "")
	r.ask("DELETE", all+"/"+made.ID, "").want(t, "again", 404, sandbox.CodeSnapshotNotFound)
	r.ask("POST", "/api/v1/connections/local/sandboxes/none/snapshots", `{}`).want(t, "no sandbox", 404, sandbox.CodeSandboxNotFound)
}
