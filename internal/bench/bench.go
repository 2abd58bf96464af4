package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"

	"github.com/glassboxhq/glassbox"
	"github.com/glassboxhq/glassbox/internal/bench/report"
	"github.com/glassboxhq/glassbox/sandbox"
)

// bench is what all measurements share.
type bench struct {
	server *server
	rng    *rand.Rand
	seed   uint64
	short  bool
}

// rounds is how many rounds a row takes.
func (b *bench) rounds(full, short int) int {
	if b.short {
		return short
	}
	return full
}

// options let more commands run at once than a row starts.
func (b *bench) options() *glassbox.Options {
	return &glassbox.Options{StateDir: b.server.State(), Concurrency: &glassbox.Concurrency{Commands: 32}}
}

// with makes new sandboxes for a row, which nothing before has worn, and
// deletes them after it. The guest program is in each.
func (b *bench) with(ctx context.Context, do func(boxes []*glassbox.Sandbox) (*report.Row, error), histories ...glassbox.HistoryMode) (row *report.Row, err error) {
	var boxes []*glassbox.Sandbox
	defer func() {
		for _, box := range boxes {
			err = errors.Join(err, box.Close(ctx))
		}
	}()
	for _, history := range histories {
		opts := b.options()
		opts.HistoryMode = history
		box, err := glassbox.Create(ctx, glassbox.Local, opts)
		if err != nil {
			return nil, err
		}
		boxes = append(boxes, box)
		if err := b.upload(ctx, box); err != nil {
			return nil, err
		}
	}
	return do(boxes)
}

// guestFile is the guest program in a sandbox.
const guestFile = "/workspace/guest"

func (b *bench) upload(ctx context.Context, box *glassbox.Sandbox) error {
	f, err := os.Open(b.server.program("guest"))
	if err != nil {
		return err
	}
	_, err = box.Write(ctx, guestFile, f, &glassbox.WriteOptions{Mode: 0o755})
	return errors.Join(err, f.Close())
}

// guest runs the guest program, and returns the numbers that it printed, by
// line.
func guest(ctx context.Context, box *glassbox.Sandbox, args ...string) ([][]float64, error) {
	res, err := box.Run(ctx, "", &glassbox.Command{Args: append([]string{guestFile}, args...)})
	if err := ended(res, err); err != nil {
		return nil, fmt.Errorf("guest %s: %w", args[0], err)
	}
	return numbers(string(res.Stdout))
}

func numbers(text string) ([][]float64, error) {
	var table [][]float64
	for line := range strings.Lines(text) {
		var values []float64
		for word := range strings.FieldsSeq(line) {
			value, err := strconv.ParseFloat(word, 64)
			if err != nil {
				return nil, err
			}
			values = append(values, value)
		}
		table = append(table, values)
	}
	return table, nil
}

// ended refuses a command that did not end as it should.
func ended(res *glassbox.Result, err error) error {
	if err != nil {
		return err
	}
	if res.Status != sandbox.Succeeded {
		return fmt.Errorf("it ended as %s with code %d: %s%s", res.Status, res.ExitCode, res.Reason, res.Stderr)
	}
	return nil
}

// arm is one side of a row. A turn returns its samples.
type arm struct {
	name string
	turn func(context.Context) ([]float64, error)
}

// compare has the arms take turns, in each round in a new order. The first
// round does not count: it fills caches.
func (b *bench) compare(ctx context.Context, row *report.Row, rounds int, arms ...arm) (*report.Row, error) {
	samples := make([]report.Rounds, len(arms))
	for round := range rounds + 1 {
		for _, i := range b.rng.Perm(len(arms)) {
			turn, err := arms[i].turn(ctx)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", arms[i].name, err)
			}
			if round > 0 {
				samples[i] = append(samples[i], turn)
			}
		}
	}
	for i, a := range arms {
		all := samples[i].All()
		row.Arms = append(row.Arms, &report.Arm{Name: a.name, Samples: len(all), P50: report.Median(all)})
	}
	if row.Kind == report.Ratio {
		row.Interval = report.Compare(samples[0], samples[1], b.rng)
	}
	return row, nil
}
