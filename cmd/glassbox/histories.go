package main

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/glassboxhq/glassbox"
	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/internal/localruntime"
	"github.com/glassboxhq/glassbox/internal/owner"
	"github.com/glassboxhq/glassbox/sandbox"
)

// histories lists the histories that can be read: of every sandbox of a
// service, and on this machine of those that are gone, too. Newest first.
func (a *app) histories(ctx context.Context, url string) ([]*localruntime.History, error) {
	if url == glassbox.Local {
		return a.localHistories(ctx)
	}
	infos, err := glassbox.List(ctx, url, a.options())
	if err != nil {
		return nil, err
	}
	var list []*localruntime.History
	for _, info := range infos {
		list = append(list, &localruntime.History{
			ID: info.ID, Name: info.Name, State: info.State, Message: info.Message, Created: info.CreatedAt,
			Live: info.State == sandbox.Running,
		})
	}
	return list, nil
}

// localHistories asks the owner of the state folder.
func (a *app) localHistories(ctx context.Context) ([]*localruntime.History, error) {
	var list []*localruntime.History
	err := owner.Get(ctx, a.settings.stateDir, owner.PathHistories, &list)
	return list, err
}

// opened is a history that can be read.
type opened struct {
	history.Reader
	ref   *localruntime.History
	after []*history.Operation // what followed, and stands in the outbox
	close func() error
}

// open opens a history: of a sandbox that lives through its recorder, of one
// that is gone from the file that it left.
func (a *app) open(ctx context.Context, url string, ref *localruntime.History) (*opened, error) {
	after := a.pending(ref.ID)
	if ref.Live {
		opts := a.options()
		if a.warned { // which the SDK would do once more
			opts.Logger = nil
		}
		box, err := glassbox.Connect(ctx, url, ref.ID, opts)
		if err != nil {
			return nil, err
		}
		return &opened{box.History(), ref, after, func() error { return box.Close(context.WithoutCancel(ctx)) }}, nil
	}
	if ref.Dir == "" {
		return nil, &sandbox.Error{
			Op: "open history", Code: sandbox.CodeSandboxState, Sandbox: ref.ID,
			Message: "the sandbox is " + string(ref.State) + ", and its history is inside it",
		}
	}
	e, err := openEnded(ref)
	if err != nil {
		return nil, err
	}
	after = following(after, ref.After, func(opID string) bool {
		_, err := e.Get(ctx, opID)
		return err == nil // a deletion that the service could write down
	})
	return &opened{e, ref, after, e.Close}, nil
}

// following is what followed a history: what the outbox and the service keep of
// it, each once, and only if the history does not hold it.
func following(pending, kept []*history.Operation, holds func(opID string) bool) (ops []*history.Operation) {
	for _, op := range slices.Concat(pending, kept) {
		same := func(other *history.Operation) bool { return other.ID == op.ID }
		if !slices.ContainsFunc(ops, same) && !holds(op.ID) {
			ops = append(ops, op)
		}
	}
	slices.SortStableFunc(ops, func(a, b *history.Operation) int { return a.StartedAt.Compare(b.StartedAt) })
	return ops
}

// choose opens the history that is meant: of the sandbox that word names, or
// without a word the newest that there is. The word may be the id of an operation: then that
// is returned too.
func (a *app) choose(ctx context.Context, word string) (*opened, *history.Operation, error) {
	url, err := a.service(ctx)
	if err != nil {
		return nil, nil, err
	}
	list, err := a.histories(ctx, url)
	if err != nil {
		return nil, nil, err
	}
	if word == "" {
		at := slices.IndexFunc(list, holds)
		if at < 0 {
			return nil, nil, &sandbox.Error{Op: "open history", Code: sandbox.CodeSandboxNotFound, Message: "there is none yet; make one with glassbox run"}
		}
		h, err := a.open(ctx, url, list[at])
		return h, nil, err
	}
	i, err := pick(word, knownOf(list))
	switch {
	case err == nil:
		h, err := a.open(ctx, url, list[i])
		return h, nil, err
	case !errors.Is(err, sandbox.ErrNotFound):
		return nil, nil, err
	case id.Valid(word):
		return a.findOperation(ctx, url, list, word)
	case isPrefix(word):
		return a.findPrefix(ctx, url, list, word)
	}
	return nil, nil, noneCalled(word, "glassbox history list shows what is kept")
}

func knownOf(list []*localruntime.History) []known {
	names := make([]known, len(list))
	for i, ref := range list {
		names[i] = known{ref.ID, ref.Name, ref.State, ref.Created}
	}
	return names
}

// findOperation looks for an operation in every history.
func (a *app) findOperation(ctx context.Context, url string, list []*localruntime.History, opID string) (*opened, *history.Operation, error) {
	for _, op := range a.pending("") { // a creation that made no sandbox
		if op.ID == opID {
			return &opened{ref: &localruntime.History{ID: "-"}, close: func() error { return nil }}, op, nil
		}
	}
	var faults error
	for _, ref := range list {
		if !holds(ref) {
			continue
		}
		h, err := a.open(ctx, url, ref)
		if err != nil {
			faults = errors.Join(faults, err)
			continue
		}
		op, err := h.find(ctx, opID)
		if err == nil {
			return h, op, nil
		}
		if !errors.Is(err, sandbox.ErrNotFound) {
			faults = errors.Join(faults, err)
		}
		faults = errors.Join(faults, h.close())
	}
	return nil, nil, errors.Join(&sandbox.Error{
		Op: "find operation", Code: sandbox.CodeOperationNotFound, Message: "no history that can be read here holds " + opID,
	}, faults)
}

// pending returns what the outbox of this machine holds of a sandbox, or for
// an empty id of creations that made none.
func (a *app) pending(sandboxID string) []*history.Operation {
	list, err := glassbox.ListPending(a.settings.stateDir)
	if err != nil && !a.warned {
		a.say("not all that was done is shown: %v", err)
		a.warned = true
	}
	ops := []*history.Operation{}
	for _, p := range list {
		if p.Sandbox == sandboxID {
			ops = append(ops, p.Operation)
		}
	}
	return ops
}

func (h *opened) find(ctx context.Context, opID string) (*history.Operation, error) {
	for _, op := range h.after {
		if op.ID == opID {
			return op, nil
		}
	}
	return h.Get(ctx, opID)
}

// operations returns every operation that a filter picks, oldest first, page
// by page; with a limit, the newest of them.
func (h *opened) operations(ctx context.Context, filter history.Filter, each func(*history.Operation) error) error {
	var after []*history.Operation
	for _, op := range h.after {
		if filter.Match(op) {
			after = append(after, op)
		}
	}
	if filter.Limit > 0 {
		return h.newest(ctx, filter, after, each)
	}
	for {
		page, err := h.List(ctx, &filter)
		if err != nil {
			return err
		}
		for _, op := range page.Operations {
			if err := each(op); err != nil {
				return err
			}
			filter.After = op.Seq
		}
		if !page.More || len(page.Operations) == 0 {
			break
		}
	}
	for _, op := range after {
		if err := each(op); err != nil {
			return err
		}
	}
	return nil
}

const maxPage = 1000

func (h *opened) newest(ctx context.Context, filter history.Filter, after []*history.Operation, each func(*history.Operation) error) error {
	list := slices.Clone(after)
	slices.Reverse(list)
	limit := filter.Limit
	list = list[:min(limit, len(list))]
	for filter.Newest = true; len(list) < limit; {
		filter.Limit = min(limit-len(list), maxPage)
		page, err := h.List(ctx, &filter)
		if err != nil {
			return err
		}
		list = append(list, page.Operations...)
		if !page.More || len(page.Operations) == 0 {
			break
		}
		filter.Before = list[len(list)-1].Seq
	}
	for _, op := range slices.Backward(list) {
		if err := each(op); err != nil {
			return err
		}
	}
	return nil
}

// keptUntil tells when the history of a sandbox that is gone will be removed.
func keptUntil(ref *localruntime.History) string {
	if ref.Deleted.IsZero() {
		return "-"
	}
	return moment(ref.Deleted.Add(retention))
}

const retention = 7 * 24 * time.Hour
