package server

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/console/act"
	"github.com/glassboxhq/glassbox/internal/console/connection"
	"github.com/glassboxhq/glassbox/sandbox"
)

// Operations is a part of a sandbox's timeline: of its history, and of what was
// done with it through this server.
type Operations struct {
	Page[*history.Operation]
	Problem *Problem `json:"problem,omitempty" doc:"why the history cannot be read now; what was done through this server is listed all the same"`
}

// moment is a place in a timeline: in the history, and among the acts.
type moment struct {
	Seq int64  `json:"s,omitempty"`
	Act string `json:"a,omitempty"`
}

// timelineOf names the timeline of a sandbox among the acts.
func timelineOf(connectionID, sandboxID string) string { return connectionID + "/" + sandboxID }

// timeline is a list of operations that is being put together.
type timeline struct {
	s      *Server
	in     *SandboxPath
	filter *history.Filter
	after  moment
	h      connection.History // nil: it cannot be read
	ops    []*history.Operation
	acts   []*act.Act
	more   bool // beyond ops or acts
}

func (s *Server) listOperations(ctx context.Context, v *visit, in *operationQuery) (_ *struct{ Body Operations }, err error) {
	filter, after, err := in.filter()
	if err != nil {
		return nil, err
	}
	t := &timeline{s: s, in: &in.SandboxPath, filter: filter, after: after}
	problem := t.readHistory(ctx)
	if t.h != nil {
		defer func() { err = errors.Join(err, t.h.Close()) }()
	}
	if errors.Is(problem, sandbox.ErrInvalid) {
		return nil, problem
	}
	if err := t.readActs(ctx); err != nil {
		return nil, err
	}
	if problem != nil {
		if known, err := t.known(ctx); err != nil || !known {
			return nil, errors.Join(problem, err)
		}
	}
	out := &struct{ Body Operations }{Operations{Page: t.merge()}}
	if problem != nil {
		out.Body.Problem = s.problemOf(problem, v)
	}
	return out, nil
}

func (t *timeline) readHistory(ctx context.Context) error {
	h, err := t.s.history(ctx, t.in)
	if err != nil {
		return err
	}
	t.h = h
	page, err := h.List(ctx, t.filter)
	if err == nil {
		t.ops, t.more = page.Operations, page.More
	}
	return err
}

// known reports whether anything was ever done with the sandbox through here.
// What was only tried may have been meant for one that never was.
func (t *timeline) known(ctx context.Context) (bool, error) {
	list, err := t.s.opts.Acts.List(ctx, &act.Query{Sandbox: timelineOf(t.in.Connection, t.in.Sandbox), Outcomes: []act.Outcome{act.Done}, Limit: 1})
	return len(list) > 0, err
}

// readActs reads as many acts as fill a page, and one more.
func (t *timeline) readActs(ctx context.Context) error {
	q, possible := actQuery(t.filter)
	if !possible {
		return nil
	}
	q.Sandbox, q.Limit = timelineOf(t.in.Connection, t.in.Sandbox), t.filter.Limit+1
	last := t.after.Act
	for len(t.acts) <= t.filter.Limit {
		if q.After = last; t.filter.Newest {
			q.After, q.Before = "", last
		}
		list, err := t.s.opts.Acts.List(ctx, q)
		if err != nil {
			return err
		}
		for _, a := range list {
			last = a.ID
			twice, err := t.recorded(ctx, a)
			if err != nil {
				return err
			}
			if !twice && t.filter.Match(operationOf(a)) {
				t.acts = append(t.acts, a)
			}
		}
		if len(list) < q.Limit {
			break
		}
	}
	if len(t.acts) > t.filter.Limit {
		t.acts, t.more = t.acts[:t.filter.Limit], true
	}
	return nil
}

// actQuery asks for acts that a filter can pick; impossible: it picks none.
func actQuery(f *history.Filter) (q *act.Query, possible bool) {
	if f.Thread != "" || f.Run != "" || f.Path != "" || f.ExitCode != nil || f.ActorType != "" && f.ActorType != history.User ||
		len(f.Sources) > 0 && !slices.Contains(f.Sources, history.SourceConsole) {
		return nil, false
	}
	q = &act.Query{Actions: f.Types, UserName: f.ActorID, RequestID: f.Correlation, Since: f.Since, Until: f.Until, Oldest: !f.Newest}
	for _, status := range f.Statuses {
		switch status {
		case sandbox.Succeeded:
			q.Outcomes = append(q.Outcomes, act.Done)
		case sandbox.Unsuccessful:
			q.Outcomes = append(q.Outcomes, act.Failed, act.Denied)
		}
	}
	return q, len(f.Statuses) == 0 || len(q.Outcomes) > 0
}

// recorded reports whether the history holds an act itself. Whoever did it in
// the sandbox gave it the id of the request.
func (t *timeline) recorded(ctx context.Context, a *act.Act) (bool, error) {
	kind, _, _ := strings.Cut(a.Action, ".")
	if t.h == nil || a.Outcome == act.Denied || !slices.Contains(recordedKinds, kind) {
		return false, nil
	}
	if slices.ContainsFunc(t.ops, func(op *history.Operation) bool { return op.Actor.Correlation == a.RequestID }) {
		return true, nil
	}
	page, err := t.h.List(ctx, &history.Filter{Correlation: a.RequestID, Limit: 1})
	if err != nil { // its own trouble was told before
		return false, nil //nolint:nilerr // and an act that comes twice is better than none
	}
	return len(page.Operations) > 0, nil
}

// recordedKinds are acts that a recorder records, too.
var recordedKinds = []string{"command", "file", "terminal"}

// merge makes one list of both, each in its own order.
func (t *timeline) merge() Page[*history.Operation] {
	out := Page[*history.Operation]{Items: []*history.Operation{}}
	at := t.after
	ops, acts := t.ops, t.acts
	for len(out.Items) < t.filter.Limit && len(ops)+len(acts) > 0 {
		if len(acts) == 0 || len(ops) > 0 && ops[0].StartedAt.After(acts[0].At) == t.filter.Newest {
			out.Items, at.Seq, ops = append(out.Items, ops[0]), ops[0].Seq, ops[1:]
		} else {
			out.Items, at.Act, acts = append(out.Items, operationOf(acts[0])), acts[0].ID, acts[1:]
		}
	}
	if t.more || len(ops)+len(acts) > 0 {
		out.Next = cursor(at)
	}
	return out
}

// operationOf tells an act as an operation.
func operationOf(a *act.Act) *history.Operation {
	op := &history.Operation{
		ID: a.ID, Type: a.Action, Status: sandbox.Succeeded, Source: history.SourceConsole, StartedAt: a.At.UTC(), CompletedAt: a.At.UTC(),
		Actor: history.Actor{Type: history.User, ID: a.UserName, Correlation: a.RequestID},
	}
	request := map[string]any{"address": a.Address, "target": a.Target}
	if a.Via != "" {
		request["via"] = a.Via
	}
	if a.Detail != "" {
		request["detail"] = json.RawMessage(a.Detail)
	}
	result := map[string]any{"outcome": string(a.Outcome)}
	if a.Outcome != act.Done {
		op.Status, result["code"] = sandbox.Unsuccessful, a.Code
	}
	op.Request, op.Result = history.Encode(request), history.Encode(result)
	return op
}

// operation finds an operation of a timeline.
func (s *Server) operation(ctx context.Context, in *OperationPath) (_ *history.Operation, err error) {
	h, err := s.history(ctx, &in.SandboxPath)
	if err == nil {
		defer func() { err = errors.Join(err, h.Close()) }()
		var op *history.Operation
		if op, err = h.Get(ctx, in.Operation); err == nil {
			return op, nil
		}
	}
	a, actErr := s.opts.Acts.Get(ctx, timelineOf(in.Connection, in.Sandbox), in.Operation)
	if actErr != nil || a == nil {
		return nil, errors.Join(err, actErr)
	}
	return operationOf(a), nil
}
