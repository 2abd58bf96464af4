package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/glassboxhq/glassbox"
	"github.com/glassboxhq/glassbox/internal/bench/report"
)

func (b *bench) growth10k(ctx context.Context) (*report.Row, error) {
	return b.growth(ctx, "after 10 000 recorded ones", 10_000)
}

func (b *bench) growth1m(ctx context.Context) (*report.Row, error) {
	return b.growth(ctx, "after 1 000 000 recorded ones", 1_000_000)
}

func (b *bench) growthCap(ctx context.Context) (*report.Row, error) {
	return b.growth(ctx, "at a cap of 16 MiB, with retention", 0)
}

// growth compares an operation in a history that has grown with one in a
// history of ten operations.
func (b *bench) growth(ctx context.Context, when string, at int) (*report.Row, error) {
	row := &report.Row{
		Measure: "history: an operation, three records, " + when + ", against after 10",
		Kind:    report.Ratio, Unit: report.Seconds, Budget: &report.Budget{Value: 1.2},
	}
	return b.with(ctx, func(boxes []*glassbox.Sandbox) (*report.Row, error) {
		table, err := guest(ctx, boxes[0], "growth", "-dir", historyDir, "-at", strconv.Itoa(at),
			"-turns", strconv.Itoa(b.rounds(20, 4)), "-seed", strconv.FormatUint(b.seed, 10))
		if err != nil {
			return nil, err
		}
		var both [2]report.Rounds
		for i, name := range []string{"grown", "young"} {
			for _, value := range column(table, i, nanosecond) { // each turn is a round
				both[i] = append(both[i], []float64{value})
			}
			row.Arms = append(row.Arms, &report.Arm{Name: name, Samples: len(both[i]), P50: report.Median(both[i].All())})
		}
		row.Interval = report.Compare(both[0], both[1], b.rng)
		return row, nil
	}, glassbox.Recorded)
}

// recovery tells how long a recorder takes that follows one that was killed.
func (b *bench) recovery(ctx context.Context) (*report.Row, error) {
	row := &report.Row{
		Measure: "history of 128 MiB whose writer was killed: open and settle it",
		Kind:    report.Reported, Unit: report.Seconds,
	}
	return b.with(ctx, func(boxes []*glassbox.Sandbox) (*report.Row, error) {
		var settled, first []float64
		for range b.rounds(5, 1) {
			table, err := guest(ctx, boxes[0], "recovery", "-dir", historyDir)
			if err != nil {
				return nil, err
			}
			settled = append(settled, column(table, 0, nanosecond)...)
			first = append(first, column(table, 1, nanosecond)...)
		}
		row.Arms = []*report.Arm{{Name: "recovery", Samples: len(settled), P50: report.Median(settled)}}
		row.Notes = append(row.Notes, "the first record after it: "+report.Amount(report.Median(first), report.Seconds))
		return row, nil
	}, glassbox.Recorded)
}

const (
	streamCount = 32
	streamLines = 100_000
)

// streams has many commands print at once, each read to its end.
func (b *bench) streams(ctx context.Context) (*report.Row, error) {
	row := &report.Row{
		Measure: fmt.Sprintf("%d commands at once print %d lines each", streamCount, streamLines),
		Kind:    report.Reported, Unit: report.Seconds,
	}
	return b.with(ctx, func(boxes []*glassbox.Sandbox) (*report.Row, error) {
		var took []float64
		held, err := recorderMemory(ctx, boxes[0], func() error {
			for range b.rounds(5, 1) {
				began := time.Now()
				if err := printTogether(ctx, boxes[0]); err != nil {
					return err
				}
				took = append(took, time.Since(began).Seconds())
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		row.Arms = []*report.Arm{{Name: "all", Samples: len(took), P50: report.Median(took)}}
		row.Notes = append(row.Notes, "the recorder held at most "+report.Amount(float64(held), report.Bytes))
		return row, nil
	}, glassbox.Recorded)
}

func printTogether(ctx context.Context, box *glassbox.Sandbox) error {
	errs := make([]error, streamCount)
	var readers sync.WaitGroup
	for i := range streamCount {
		readers.Go(func() {
			res, err := box.Run(ctx, "", &glassbox.Command{
				Args: []string{"seq", strconv.Itoa(streamLines)}, Stdout: io.Discard, MaxOutput: 1,
			})
			const bytes = 588_895 // of seq 1 100000
			if err = ended(res, err); err == nil && res.StdoutBytes != bytes {
				err = fmt.Errorf("it printed %d bytes, not %d", res.StdoutBytes, bytes)
			}
			errs[i] = err
		})
	}
	readers.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
