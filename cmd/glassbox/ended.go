package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/history/sqlite"
	"github.com/glassboxhq/glassbox/internal/localruntime"
	"github.com/glassboxhq/glassbox/sandbox"
)

// ended reads the history that a sandbox of this machine left. Nothing runs in
// it any more: what stands there as started came to an end that nobody saw, and
// is shown as that.
type ended struct {
	*sqlite.Store
	ref *localruntime.History
}

func historyFile(ref *localruntime.History) string { return filepath.Join(ref.Dir, "history.sqlite3") }

// holds reports whether there is a history: a sandbox may have been made
// without, or have failed before its recorder began.
func holds(ref *localruntime.History) bool {
	if ref.Dir == "" {
		return ref.Live // it is in the sandbox
	}
	_, err := os.Lstat(historyFile(ref))
	return !errors.Is(err, os.ErrNotExist)
}

func openEnded(ref *localruntime.History) (*ended, error) {
	e := &ended{ref: ref}
	if !holds(ref) {
		return nil, &sandbox.Error{
			Op: "open history", Code: sandbox.CodeUnsupported, Sandbox: ref.ID,
			Message: "sandbox " + ref.ID + " holds no history: it was made with its history off, or ended before anything was recorded",
		}
	}
	var err error
	if e.Store, err = sqlite.Open(historyFile(ref), &sqlite.Options{ReadOnly: true}); err != nil {
		return nil, e.fault(err)
	}
	return e, nil
}

// Get implements history.Reader.
func (e *ended) Get(ctx context.Context, opID string) (*history.Operation, error) {
	op, err := e.Store.Get(ctx, opID)
	if err != nil {
		return nil, e.fault(err)
	}
	return e.settle(op), nil
}

// List implements history.Reader.
func (e *ended) List(ctx context.Context, filter *history.Filter) (*history.Page, error) {
	asked := *filter
	if len(asked.Statuses) > 0 {
		asked.Statuses = slices.DeleteFunc(slices.Clone(asked.Statuses), func(s sandbox.Status) bool { return s == sandbox.Started })
		switch {
		case len(asked.Statuses) == 0:
			return &history.Page{}, nil
		case slices.Contains(asked.Statuses, sandbox.Lost):
			asked.Statuses = append(asked.Statuses, sandbox.Started)
		}
	}
	return e.list(ctx, &asked)
}

// unfinished lists what nobody saw the end of, and nothing else.
func (e *ended) unfinished(ctx context.Context, after int64) (*history.Page, error) {
	return e.list(ctx, &history.Filter{Statuses: []sandbox.Status{sandbox.Started}, After: after})
}

func (e *ended) list(ctx context.Context, filter *history.Filter) (*history.Page, error) {
	page, err := e.Store.List(ctx, filter)
	if err != nil {
		return nil, e.fault(err)
	}
	for _, op := range page.Operations {
		e.settle(op)
	}
	return page, nil
}

// Output implements history.Reader.
func (e *ended) Output(ctx context.Context, opID string, stream sandbox.Stream, offset, length int64) ([]byte, error) {
	data, err := e.Store.Output(ctx, opID, stream, offset, length)
	return data, e.fault(err)
}

// Changes implements history.Reader.
func (e *ended) Changes(ctx context.Context, query *history.ChangeQuery) (*history.Feed, error) {
	feed, err := e.Store.Changes(ctx, query)
	return feed, e.fault(err)
}

// Ended tells that nothing will be added.
func (*ended) Ended() bool { return true }

// settle turns what still runs, as the history has it, into what is known of it.
func (e *ended) settle(op *history.Operation) *history.Operation {
	if op.Status != sandbox.Started {
		return op
	}
	reason := strings.TrimSuffix("the sandbox ended while this ran: "+e.ref.Message, ": ")
	op.Status, op.Result = sandbox.Lost, history.Encode(map[string]any{"reason": reason})
	if op.Command != nil {
		op.Command.Recording, op.Command.OutputComplete = sandbox.RecordedPart, false
	}
	return op
}

// fault tells of a damaged history whose it is: nobody goes on with it, so
// there is nothing to be done but to look at it.
func (e *ended) fault(err error) error {
	f, ok := errors.AsType[*sandbox.Error](err)
	if !ok || f.Code != sandbox.CodeHistoryCorrupt {
		return err
	}
	return &sandbox.Error{
		Op: f.Op, Code: f.Code, Sandbox: e.ref.ID, Err: f.Err,
		Message: "the record of sandbox " + e.ref.ID + " is damaged; it lies in " + historyFile(e.ref),
	}
}
