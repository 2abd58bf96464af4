package main

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/glassboxhq/glassbox"
	"github.com/glassboxhq/glassbox/internal/bench/report"
)

const nanosecond = 1e-9 // in seconds

// The rows that compare with a history that is off run this many commands at
// once, and this many in a turn.
const (
	atOnce  = 4
	perTurn = 20
)

func (b *bench) recordedTrue(ctx context.Context) (*report.Row, error) {
	return b.againstOff(ctx, "`true`, 4 at once", &glassbox.Command{Line: "true"}, 0)
}

func (b *bench) recordedArgs(ctx context.Context) (*report.Row, error) {
	return b.againstOff(ctx, "`true` without a shell, 4 at once", &glassbox.Command{Args: []string{"true"}}, 0)
}

func (b *bench) recordedOutput(ctx context.Context) (*report.Row, error) {
	return b.againstOff(ctx, "10 kB of output, 4 at once", &glassbox.Command{Line: "head -c 10000 /dev/zero"}, 10000)
}

// againstOff compares two sandboxes with the same recorder.
func (b *bench) againstOff(ctx context.Context, what string, cmd *glassbox.Command, bytes int64) (*report.Row, error) {
	row := &report.Row{
		Measure: what + ", recorded against the same recorder with its history off", Kind: report.Ratio, Unit: report.Seconds,
		Budget: &report.Budget{Value: 1.25},
	}
	return b.with(ctx, func(boxes []*glassbox.Sandbox) (*report.Row, error) {
		side := func(name string, box *glassbox.Sandbox) arm {
			return arm{name, func(ctx context.Context) ([]float64, error) { return together(ctx, box, cmd, bytes) }}
		}
		return b.compare(ctx, row, b.rounds(30, 5), side("recorded", boxes[0]), side("history off", boxes[1]))
	}, glassbox.Recorded, glassbox.NoHistory)
}

// together runs a command perTurn times by atOnce callers.
func together(ctx context.Context, box *glassbox.Sandbox, cmd *glassbox.Command, bytes int64) ([]float64, error) {
	samples := make([]float64, perTurn)
	errs := make([]error, atOnce)
	var callers sync.WaitGroup
	for caller := range atOnce {
		callers.Go(func() {
			for i := caller; i < perTurn && errs[caller] == nil; i += atOnce {
				began := time.Now()
				res, err := box.Run(ctx, "", cmd)
				samples[i] = time.Since(began).Seconds()
				if err = ended(res, err); err == nil && res.StdoutBytes != bytes {
					err = errors.New("output is missing")
				}
				errs[caller] = err
			}
		})
	}
	callers.Wait()
	return samples, errors.Join(errs...)
}

// againstExec compares a recorded command with what the sandbox itself takes to
// run it.
func (b *bench) againstExec(ctx context.Context) (*report.Row, error) {
	row := &report.Row{
		Measure: "`sh -c true`, recorded, against bare fork and exec in that sandbox", Kind: report.Ratio, Unit: report.Seconds,
		Budget: &report.Budget{Value: 2},
	}
	const turn = 10
	return b.with(ctx, func(boxes []*glassbox.Sandbox) (*report.Row, error) {
		recorded := func(ctx context.Context) ([]float64, error) {
			samples := make([]float64, turn)
			for i := range samples {
				began := time.Now()
				res, err := boxes[0].Run(ctx, "", &glassbox.Command{Args: []string{"sh", "-c", "true"}})
				samples[i] = time.Since(began).Seconds()
				if err := ended(res, err); err != nil {
					return nil, err
				}
			}
			return samples, nil
		}
		bare := func(ctx context.Context) ([]float64, error) {
			table, err := guest(ctx, boxes[0], "exec", "-n", strconv.Itoa(turn))
			return column(table, 0, nanosecond), err
		}
		return b.compare(ctx, row, b.rounds(50, 8), arm{"recorded", recorded}, arm{"bare", bare})
	}, glassbox.Recorded)
}

// column takes one number of each line.
func column(table [][]float64, i int, unit float64) []float64 {
	var values []float64
	for _, line := range table {
		values = append(values, line[i]*unit)
	}
	return values
}

const sleepers = 20

// parallel has sleepers sleep at once.
func (b *bench) parallel(ctx context.Context) (*report.Row, error) {
	row := &report.Row{
		Measure: "20 × `sleep 0.2` at once", Kind: report.Absolute, Unit: report.Seconds, Budget: &report.Budget{Value: 0.5},
	}
	return b.with(ctx, func(boxes []*glassbox.Sandbox) (*report.Row, error) {
		return b.compare(ctx, row, b.rounds(10, 3), arm{"recorded", func(ctx context.Context) ([]float64, error) {
			errs := make([]error, sleepers)
			var callers sync.WaitGroup
			began := time.Now()
			for i := range errs {
				callers.Go(func() { errs[i] = ended(boxes[0].Run(ctx, "sleep 0.2", nil)) })
			}
			callers.Wait()
			return []float64{time.Since(began).Seconds()}, errors.Join(errs...)
		}})
	}, glassbox.Recorded)
}
