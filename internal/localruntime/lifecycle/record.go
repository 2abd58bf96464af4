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
	Record(ctx context.Context, id string, op *history.Operation)
}

// done is something that was done with a sandbox.
type done struct {
	opType          string
	sandbox         string
	began           time.Time
	request, result map[string]any
}

// record lets the sandbox's history tell what was done, and by whom. A client
// of ours records that itself, also where there is no sandbox to keep it.
func (a *api) record(r *http.Request, d *done, err error) {
	if r.Header.Get(wire.HeaderRecorded) != "" || errors.Is(err, sandbox.ErrNotFound) {
		return
	}
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
	a.rt.Record(r.Context(), d.sandbox, op)
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
