package lifecycle

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/sandbox"
)

// Recorder keeps what was done with a sandbox from outside in its history.
type Recorder interface {
	Record(ctx context.Context, id string, note *Note)
	// DeleteNoted deletes a sandbox. When nothing keeps it from that any more
	// the note goes into the history, as the last that can.
	DeleteNoted(ctx context.Context, id string, note *Note) error
}

// Note is a record of what was done with a sandbox from outside.
type Note struct {
	Op *history.Operation `json:"operation"`
	// Claimed says that the client claims to record it itself. It is believed
	// when a minute later the history shows it, or the end of the sandbox.
	Claimed bool `json:"claimed,omitempty"`
}

// Due reports whether the time is over in which a client may record it itself.
func (n *Note) Due(now time.Time) bool {
	return !n.Claimed || now.Sub(n.Op.CompletedAt) >= claimLife
}

const claimLife = time.Minute

// done is something that was done with a sandbox.
type done struct {
	opType          string
	sandbox         string
	began           time.Time
	request, result map[string]any
}

// record lets the sandbox's history tell what was done, and by whom.
func (a *api) record(r *http.Request, d *done, err error) {
	if !errors.Is(err, sandbox.ErrNotFound) {
		n := newNote(r, d, err)
		a.claim(r, d.sandbox, n)
		a.rt.Record(r.Context(), d.sandbox, n)
	}
}

// claim notes that the client says to record the act itself.
func (a *api) claim(r *http.Request, sandbox string, n *Note) {
	if opID := r.Header.Get(wire.HeaderRecorded); id.Valid(opID) && a.claims.first(opID, time.Now()) {
		n.Op.ID, n.Claimed = opID, true
	}
	n.Claimed = n.Claimed || a.isPythonPackage(r, sandbox)
}

func newNote(r *http.Request, d *done, err error) *Note {
	now := time.Now()
	if d.request == nil {
		d.request = map[string]any{}
	}
	if d.result == nil {
		d.result = map[string]any{}
	}
	op := &history.Operation{
		ID: id.New(), Type: d.opType, Status: sandbox.Succeeded, Actor: actorOf(r), StartedAt: d.began, CompletedAt: now,
		Duration: now.Sub(d.began), DurationMS: now.Sub(d.began).Milliseconds(),
		Request: history.EncodeRequest(d.request), Result: history.Encode(d.result),
	}
	if err != nil {
		op.Status = sandbox.Unsuccessful
		op.Result = history.Encode(map[string]any{"error": map[string]any{"code": string(sandbox.CodeOf(err)), "message": err.Error()}})
	}
	if op.Source = op.Actor.Source; op.Source == "" {
		op.Source = history.SourceLifecycle
	}
	return &Note{Op: op}
}

// pythonSDK begins the User-Agent of the SDK that the Python package
// agent-sandbox-backends is built on.
const pythonSDK = "OpenSandbox-Python-SDK/"

// isPythonPackage reports whether a client may be that package, which records
// what it does. It is known by the id that it gives to its sandboxes.
func (a *api) isPythonPackage(r *http.Request, id string) bool {
	if !strings.HasPrefix(r.UserAgent(), pythonSDK) {
		return false
	}
	info, err := a.rt.Get(r.Context(), id)
	return err == nil && info.Metadata[wire.MetaInstance] != ""
}

// actorOf tells who acts: the headers, or else the program that asks.
func actorOf(r *http.Request) history.Actor {
	actor, err := wire.ReadActor(r.Header)
	if err != nil {
		actor = history.Actor{} // it is nobody's name
	}
	if actor.Type == "" {
		actor.Type = history.Agent
	}
	if actor.ID == "" {
		client, _, _ := strings.Cut(r.UserAgent(), " ")
		named := history.Actor{ID: client}
		if named.Validate() == nil {
			actor.ID = client
		}
	}
	return actor
}
