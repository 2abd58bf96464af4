package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/glassboxhq/glassbox"
	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/localruntime"
	"github.com/glassboxhq/glassbox/sandbox"
)

func (a *app) historyFollow() *cobra.Command {
	return &cobra.Command{
		Use: "follow [SANDBOX]", Short: "Show a sandbox's operations as they begin and end", Args: cobra.MaximumNArgs(1),
		Long: `Follow shows what was done in a sandbox so far, then what is done, until Ctrl-C
or until the sandbox is gone. An operation is shown when it has ended. One that
goes on for longer is shown twice: while it runs, with what it has printed by
then, and when it has ended.`,
		Example: `  glassbox history follow research
  glassbox history follow research -o json     one operation a line`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			h, op, err := a.choose(cmd.Context(), first(args))
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, h.close()) }()
			if op != nil {
				return usage("follow takes a sandbox, not an operation")
			}
			return a.follow(cmd.Context(), h)
		},
	}
}

// followWait is how long one request waits for something new.
const followWait = 30 * time.Second

// begunAfter is how long an operation runs before it is shown as running.
const begunAfter = 300 * time.Millisecond

// begun are the operations that run and have not been shown, with the moment
// from which on they are, in the order in which they began.
type begun struct {
	ids []string
	due map[string]time.Time
	// told are those that were shown with what they did to files, until the
	// feed tells it too.
	told map[string]bool
}

func (b *begun) add(id string) {
	b.ids, b.due[id] = append(b.ids, id), time.Now().Add(begunAfter)
}

func (b *begun) drop(id string) {
	b.ids = slices.DeleteFunc(b.ids, func(other string) bool { return other == id })
	delete(b.due, id)
}

// wait is how long there is nothing to be shown by itself.
func (b *begun) wait() time.Duration {
	if len(b.ids) == 0 {
		return followWait
	}
	return max(time.Until(b.due[b.ids[0]]), time.Millisecond)
}

// next returns the first operation that is to be shown as running by now.
func (b *begun) next() (id string, ok bool) {
	if len(b.ids) == 0 || time.Now().Before(b.due[b.ids[0]]) {
		return "", false
	}
	id = b.ids[0]
	b.drop(id)
	return id, true
}

// follow shows what ends, and what begins and does not end soon, from the
// beginning of the feed.
func (a *app) follow(ctx context.Context, h *opened) error {
	if a.flags.output == "table" {
		a.showHeader(h)
	}
	return a.followFrom(ctx, h, &history.ChangeQuery{Limit: 500}, &begun{due: map[string]time.Time{}, told: map[string]bool{}})
}

func (a *app) followFrom(ctx context.Context, h *opened, query *history.ChangeQuery, running *begun) error {
	for {
		if h.ref.Live {
			query.Wait = running.wait()
		}
		more, err := a.followOnce(ctx, h, query, running)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && h.ref.Live:
			left, err := a.left(ctx, h, err)
			if err != nil {
				return err
			}
			query.Wait = 0
			return errors.Join(a.followFrom(ctx, left, query, running), left.close())
		case err != nil:
			return err
		case !more && !h.ref.Live:
			return a.followEnd(ctx, h)
		}
	}
}

// followOnce shows a part of the feed, and moves the query behind what has been
// shown. It reports whether there was anything.
func (a *app) followOnce(ctx context.Context, h *opened, query *history.ChangeQuery, running *begun) (more bool, err error) {
	feed, err := h.Changes(ctx, query)
	if err != nil {
		return false, err
	}
	if feed.Reset {
		a.say("what was done before operation change %d is no longer kept", feed.Min)
	}
	for _, change := range feed.Changes {
		if err := a.showChange(ctx, h, change, running); err != nil {
			return true, err
		}
		query.After = change.Seq
	}
	query.After = feed.Next
	err = a.showRunning(ctx, h, running)
	return len(feed.Changes) > 0, errors.Join(err, a.page.flush())
}

// The time in which a sandbox that is being deleted is gone.
const (
	goneWithin = 5 * time.Second
	goneEvery  = 100 * time.Millisecond
)

// left opens what a sandbox has left that could not be read any more while it
// was followed, as err says.
func (a *app) left(ctx context.Context, h *opened, err error) (*opened, error) {
	if _, ok := errors.AsType[*sandbox.Error](err); !ok || a.settings.url != "" {
		return nil, err // it could not be shown, or is gone with its sandbox
	}
	for began := time.Now(); time.Since(began) < goneWithin; {
		list, listErr := a.localHistories(ctx)
		if listErr != nil {
			return nil, errors.Join(err, listErr)
		}
		at := slices.IndexFunc(list, func(ref *localruntime.History) bool { return ref.ID == h.ref.ID })
		switch {
		case at < 0:
			return nil, err
		case !list[at].Live:
			return a.open(ctx, glassbox.Local, list[at])
		}
		select {
		case <-time.After(goneEvery):
		case <-ctx.Done():
			return nil, err
		}
	}
	return nil, err
}

func (a *app) showChange(ctx context.Context, h *opened, change *history.Change, running *begun) error {
	switch change.Type {
	case history.Created:
		running.add(change.Operation)
	case history.Completed:
		running.drop(change.Operation)
		return a.showByID(ctx, h, change.Operation, running)
	case history.StorageChanged:
		if running.told[change.Operation] {
			delete(running.told, change.Operation)
			return nil
		}
		return a.showLate(ctx, h, change.Operation)
	}
	return nil
}

// showLate shows what a command did to files, which became known after its end.
func (a *app) showLate(ctx context.Context, h *opened, id string) error {
	op, err := h.Get(ctx, id)
	switch {
	case err != nil && sandbox.CodeOf(err) == sandbox.CodeOperationNotFound:
		return nil // retention was faster
	case err != nil:
		return err
	case op.Command == nil || op.Changes == nil || !op.Changes.Any():
		return nil // another program tells another state
	case a.flags.output != "table":
		return a.printNext(op)
	}
	fmt.Fprintf(a.page, "\n%s  [%s] %-18s   %s\n",
		op.CompletedAt.Local().Format("15:04:05.000"), plain(op.Source), plain(op.Type), a.paint(dim, plain(op.ID)))
	a.fact("%s", short(whatOf(op), 200))
	a.showChanges(op.Changes)
	return a.page.failed()
}

// showRunning shows what has begun and goes on.
func (a *app) showRunning(ctx context.Context, h *opened, running *begun) error {
	for h.ref.Live {
		id, ok := running.next()
		if !ok {
			break
		}
		if err := a.showByID(ctx, h, id, nil); err != nil {
			return err
		}
	}
	return nil
}

// showByID shows an operation whose end the feed has told, or, of no ended
// ones, one that runs.
func (a *app) showByID(ctx context.Context, h *opened, id string, ended *begun) error {
	op, err := h.Get(ctx, id)
	switch {
	case err != nil && sandbox.CodeOf(err) == sandbox.CodeOperationNotFound:
		return nil // retention was faster
	case err != nil:
		return err
	case ended == nil && history.Final(op.Status):
		return nil // the feed is about to tell
	case op.Changes != nil && op.Changes.Any() && ended != nil:
		ended.told[op.ID] = true
	}
	return a.showNext(ctx, h, op)
}

// showNext shows one of the operations that come one after the other.
func (a *app) showNext(ctx context.Context, h *opened, op *history.Operation) error {
	if a.flags.output != "table" {
		return a.printNext(op)
	}
	if err := a.showEntry(ctx, h, op); err != nil {
		return err
	}
	return a.page.failed()
}

// followEnd shows what the feed of a sandbox that has ended does not tell: what
// never came to an end of its own, and what was done afterwards.
func (a *app) followEnd(ctx context.Context, h *opened) error {
	var last []*history.Operation
	if e, ok := h.Reader.(*ended); ok {
		for more, after := true, int64(0); more; {
			page, err := e.unfinished(ctx, after)
			if err != nil {
				return err
			}
			last = append(last, page.Operations...)
			if more = page.More && len(page.Operations) > 0; more {
				after = last[len(last)-1].Seq
			}
		}
	}
	for _, op := range append(last, h.after...) {
		if err := a.showNext(ctx, h, op); err != nil {
			return err
		}
	}
	return nil
}
