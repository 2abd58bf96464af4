package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/sandbox"
)

func (a *app) historyFollow() *cobra.Command {
	return &cobra.Command{
		Use: "follow [SANDBOX]", Short: "Show a sandbox's operations as they begin and end", Args: cobra.MaximumNArgs(1),
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

// follow shows what ends, from the beginning of the feed.
func (a *app) follow(ctx context.Context, h *opened) error {
	query := &history.ChangeQuery{Limit: 500}
	if h.ref.Live {
		query.Wait = followWait
	}
	for {
		feed, err := h.Changes(ctx, query)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if feed.Reset {
			a.say("what was done before operation change %d is no longer kept", feed.Min)
		}
		err = a.showCompleted(ctx, h, feed.Changes)
		if err = errors.Join(err, a.page.flush()); err != nil {
			return err
		}
		if query.After = feed.Next; !h.ref.Live && len(feed.Changes) == 0 {
			return a.followEnd(ctx, h)
		}
	}
}

func (a *app) showCompleted(ctx context.Context, h *opened, changes []*history.Change) error {
	for _, change := range changes {
		if change.Type != history.Completed {
			continue
		}
		op, err := h.Get(ctx, change.Operation)
		if errors.Is(err, sandbox.ErrNotFound) {
			continue // retention was faster
		}
		if err == nil {
			err = a.showNext(ctx, h, op)
		}
		if err != nil {
			return err
		}
	}
	return nil
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
