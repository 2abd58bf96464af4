package main

import (
	"context"
	"errors"
	"time"

	"github.com/glassboxhq/glassbox"
	"github.com/glassboxhq/glassbox/internal/bench/report"
)

// fileChanges compares two sandboxes of which one looks at the files after a
// command. Both hold many.
func (b *bench) fileChanges(ctx context.Context) (row *report.Row, failed error) {
	row = &report.Row{
		Measure: "`true` beside 10 000 files, 4 at once, with what commands do to files looked for against without",
		Kind:    report.Ratio, Unit: report.Seconds, Budget: &report.Budget{Value: 1.25},
	}
	var sides [2]arm
	for i, name := range []string{"looked for", "not looked for"} {
		opts := b.options()
		opts.NoFileChanges = i == 1
		box, err := glassbox.Create(ctx, glassbox.Local, opts)
		if err != nil {
			return nil, err
		}
		defer func() { failed = errors.Join(failed, box.Close(ctx)) }()
		if err := ended(box.Run(ctx, "mkdir d{0..99} && touch d{0..99}/f{0..99}", nil)); err != nil {
			return nil, err
		}
		sides[i] = arm{name, func(ctx context.Context) ([]float64, error) {
			return together(ctx, box, &glassbox.Command{Line: "true"}, 0)
		}}
		if i == 0 {
			if err := looksAt(ctx, box); err != nil {
				return nil, err
			}
		}
	}
	return b.compare(ctx, row, b.rounds(60, 5), sides[:]...)
}

// looksAt waits until the sandbox tells what a command did.
func looksAt(ctx context.Context, box *glassbox.Sandbox) error {
	res, err := box.Run(ctx, "touch d50/new", nil)
	if err := ended(res, err); err != nil {
		return err
	}
	for range 100 {
		op, err := box.History().Get(ctx, res.OperationID)
		if err != nil {
			return err
		}
		if op.Changes != nil && op.Changes.Incomplete == "" && op.Changes.Any() {
			return nil
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return errors.New("it is not told what a command did to files")
}
