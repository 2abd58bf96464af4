package main

import (
	"context"
	"errors"
	"time"

	"github.com/glassboxhq/glassbox"
	"github.com/glassboxhq/glassbox/internal/bench/report"
)

// timed measures what is done, in seconds.
func timed(do func() error) ([]float64, error) {
	began := time.Now()
	err := do()
	return []float64{time.Since(began).Seconds()}, err
}

// pause stops a sandbox and lets it go on.
func (b *bench) pause(ctx context.Context) (*report.Row, error) {
	row := &report.Row{Measure: "a sandbox paused and resumed, recorded", Kind: report.Reported, Unit: report.Seconds}
	return b.with(ctx, func(boxes []*glassbox.Sandbox) (*report.Row, error) {
		return b.compare(ctx, row, b.rounds(30, 3), arm{"pause and resume", func(ctx context.Context) ([]float64, error) {
			return timed(func() error { return errors.Join(boxes[0].Pause(ctx), boxes[0].Resume(ctx)) })
		}})
	}, glassbox.Recorded)
}

// fillFiles are 256 MiB that a snapshot has to keep.
const fillFiles = "head -c 256M /dev/urandom > /srv/files"

// snapshot keeps the files of a sandbox.
func (b *bench) snapshot(ctx context.Context) (*report.Row, error) {
	row := &report.Row{Measure: "256 MiB of files kept as a snapshot", Kind: report.Reported, Unit: report.Seconds}
	return b.with(ctx, func(boxes []*glassbox.Sandbox) (*report.Row, error) {
		if err := ended(boxes[0].Run(ctx, fillFiles, nil)); err != nil {
			return nil, err
		}
		return b.compare(ctx, row, b.rounds(10, 2), arm{"until it is ready", func(ctx context.Context) ([]float64, error) {
			var s *glassbox.Snapshot
			took, err := timed(func() (err error) {
				s, err = boxes[0].TakeSnapshot(ctx, "")
				return err
			})
			if err != nil {
				return nil, err
			}
			return took, b.deleteSnapshot(ctx, s)
		}})
	}, glassbox.Recorded)
}

func (b *bench) deleteSnapshot(ctx context.Context, s *glassbox.Snapshot) error {
	return glassbox.DeleteSnapshot(ctx, glassbox.Local, s.ID, b.options())
}

// fromSnapshot makes sandboxes that begin with 256 MiB of files.
func (b *bench) fromSnapshot(ctx context.Context) (*report.Row, error) {
	row := &report.Row{
		Measure: "a new sandbox from a snapshot of 256 MiB, up to its first recorded result", Kind: report.Reported, Unit: report.Seconds,
	}
	return b.with(ctx, func(boxes []*glassbox.Sandbox) (_ *report.Row, err error) {
		if err := ended(boxes[0].Run(ctx, fillFiles, nil)); err != nil {
			return nil, err
		}
		s, err := boxes[0].TakeSnapshot(ctx, "")
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, b.deleteSnapshot(ctx, s)) }()
		return b.compare(ctx, row, b.rounds(15, 3),
			arm{"from the snapshot", func(ctx context.Context) ([]float64, error) { return b.createAndRun(ctx, s.ID) }},
			arm{"from nothing", func(ctx context.Context) ([]float64, error) { return b.createAndRun(ctx, "") }},
		)
	}, glassbox.Recorded)
}
