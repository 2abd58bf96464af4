package lifecycle

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/sandbox"
)

// The codes for what cannot be done with a snapshot, or for one.
const (
	codeSourceState   = "SNAPSHOT::INVALID_SOURCE_STATE"
	codeSnapshotState = "SNAPSHOT::INVALID_STATE"
)

// snapshotDescription is a snapshot as the API shows it.
type snapshotDescription struct {
	ID        string         `json:"id"`
	SandboxID string         `json:"sandboxId"`
	Name      string         `json:"name,omitempty"`
	Status    snapshotStatus `json:"status"`
	CreatedAt string         `json:"createdAt"`
	Size      int64          `json:"size,omitempty"` // bytes; not in the original
}

type snapshotStatus struct {
	State   sandbox.SnapshotState `json:"state"`
	Reason  string                `json:"reason,omitempty"`
	Message string                `json:"message,omitempty"`
	Changed string                `json:"lastTransitionAt,omitempty"`
}

func describeSnapshot(s *sandbox.Snapshot) any {
	d := &snapshotDescription{
		ID: s.ID, SandboxID: s.Sandbox, Name: s.Name, CreatedAt: timestamp(s.CreatedAt), Size: s.Size,
		Status: snapshotStatus{State: s.State, Reason: s.Reason, Message: s.Message},
	}
	if !s.ChangedAt.IsZero() {
		d.Status.Changed = timestamp(s.ChangedAt)
	}
	return d
}

// snapshotActs returns what can be done at a path below /snapshots, by method.
func (a *api) snapshotActs(parts []string) map[string]act {
	switch {
	case len(parts) == 0:
		return map[string]act{http.MethodGet: a.listSnapshots}
	case len(parts) == 1 && parts[0] != "":
		return map[string]act{http.MethodGet: a.getSnapshot, http.MethodDelete: a.deleteSnapshot}
	}
	return nil
}

// takeSnapshot begins a snapshot; the body may be absent.
func (a *api) takeSnapshot(w http.ResponseWriter, r *http.Request, at *route) {
	var raw json.RawMessage
	var body struct {
		Name *string `json:"name"`
	}
	text, ok := readAll(w, r)
	if !ok {
		return
	}
	if raw = bytes.TrimSpace(text); len(raw) > 0 && (raw[0] != '{' && string(raw) != "null" || json.Unmarshal(raw, &body) != nil) {
		unprocessable(w, "the body must be a JSON object with a name", "body")
		return
	}
	name := ""
	if body.Name != nil {
		if name = *body.Name; name == "" {
			unprocessable(w, "must not be empty; leave it out", "body", "name")
			return
		}
	}
	began := time.Now()
	s, err := a.rt.TakeSnapshot(r.Context(), at.parts[0], name)
	d := &done{opType: history.SandboxSnapshot, sandbox: at.parts[0], began: began, request: map[string]any{"name": name}}
	if err == nil {
		d.result = map[string]any{"snapshot_id": s.ID, "state": s.State} // how it ends is told by the snapshot
	}
	a.record(r, d, err)
	if err != nil {
		if sandbox.CodeOf(err) == sandbox.CodeUnsupported {
			w.Header().Set(headerCode, string(sandbox.CodeUnsupported))
			writeError(w, http.StatusNotImplemented, "SNAPSHOT::NOT_IMPLEMENTED", err.Error())
			return
		}
		fail(w, err, codeSourceState)
		return
	}
	w.Header().Set("Location", "/v1/snapshots/"+s.ID)
	writeJSON(w, http.StatusAccepted, describeSnapshot(s))
}

func (a *api) getSnapshot(w http.ResponseWriter, r *http.Request, at *route) {
	s, err := a.rt.GetSnapshot(r.Context(), at.parts[0])
	if err != nil {
		fail(w, err, codeSnapshotState)
		return
	}
	writeJSON(w, http.StatusOK, describeSnapshot(s))
}

func (a *api) deleteSnapshot(w http.ResponseWriter, r *http.Request, at *route) {
	err := a.rt.DeleteSnapshot(r.Context(), at.parts[0])
	switch {
	case sandbox.CodeOf(err) == sandbox.CodeSnapshotState:
		w.Header().Set(headerCode, string(sandbox.CodeSnapshotState))
		writeError(w, http.StatusConflict, codeSnapshotState, err.Error())
	case err != nil:
		fail(w, err, codeSnapshotState)
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

// listSnapshots answers with one page of the snapshots that the filters leave.
func (a *api) listSnapshots(w http.ResponseWriter, r *http.Request, _ *route) {
	query := r.URL.Query()
	at, ok := readPage(w, query)
	if !ok {
		return
	}
	all, err := a.rt.ListSnapshots(r.Context(), query.Get("sandboxId"))
	if err != nil {
		fail(w, err, codeSnapshotState)
		return
	}
	all = slices.DeleteFunc(all, func(s *sandbox.Snapshot) bool {
		return !anyState(query["state"], string(s.State)) || query.Has("name") && query.Get("name") != s.Name
	})
	writePage(w, at, all, describeSnapshot)
}
