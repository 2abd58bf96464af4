package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/glassboxhq/glassbox"
	"github.com/glassboxhq/glassbox/internal/bench/report"
	"github.com/glassboxhq/glassbox/internal/wire"
)

// historyDir is on the host's folder, as the history is; what the recorder has
// not made there is ours.
const historyDir = wire.GuestHistory + "/tmp"

// begin compares a durable record with a bare commit of the same rows.
func (b *bench) begin(ctx context.Context) (*report.Row, error) {
	row := &report.Row{
		Measure: "history: one durable record, against a bare commit of the same rows in that sandbox",
		Kind:    report.Ratio, Unit: report.Seconds, Budget: &report.Budget{Value: 1.5},
	}
	return b.with(ctx, func(boxes []*glassbox.Sandbox) (*report.Row, error) {
		// The guest program itself lets both take turns, record by record.
		var both [2]report.Rounds
		for round := range b.rounds(10, 3) {
			table, err := guest(ctx, boxes[0], "begin", "-dir", historyDir, "-n", "200",
				"-seed", strconv.FormatUint(b.seed+uint64(round), 10))
			if err != nil {
				return nil, err
			}
			for i := range both {
				both[i] = append(both[i], column(table, i, nanosecond))
			}
		}
		for i, name := range []string{"record", "bare commit"} {
			all := both[i].All()
			row.Arms = append(row.Arms, &report.Arm{Name: name, Samples: len(all), P50: report.Median(all)})
		}
		row.Interval = report.Compare(both[0], both[1], b.rng)
		return row, nil
	}, glassbox.Recorded)
}

// append counts what many callers record together.
func (b *bench) append(ctx context.Context) (*report.Row, error) {
	row := &report.Row{
		Measure: "history: operations begun by 32 callers at once, in a sandbox",
		Kind:    report.Absolute, Unit: report.PerSecond, Budget: &report.Budget{Value: 20_000, AtLeast: true},
	}
	return b.with(ctx, func(boxes []*glassbox.Sandbox) (*report.Row, error) {
		var whole []float64
		row, err := b.compare(ctx, row, b.rounds(5, 2), arm{"begun", func(ctx context.Context) ([]float64, error) {
			table, err := guest(ctx, boxes[0], "append", "-dir", historyDir)
			whole = append(whole, column(table, 1, 1)...)
			return column(table, 0, 1), err
		}})
		if err == nil {
			row.Notes = append(row.Notes, fmt.Sprintf("begun, given output and ended, three records each: %s",
				report.Amount(report.Median(whole), report.PerSecond)))
		}
		return row, err
	}, glassbox.Recorded)
}

// create makes a sandbox from nothing, up to the first result.
func (b *bench) create(ctx context.Context) (*report.Row, error) {
	row := &report.Row{
		Measure: "a new sandbox, up to its first recorded result", Kind: report.Absolute, Unit: report.Seconds,
		Budget: &report.Budget{Value: 0.4},
	}
	return b.compare(ctx, row, b.rounds(15, 3), arm{"create and run", func(ctx context.Context) ([]float64, error) { return b.createAndRun(ctx, "") }})
}

// createAndRun makes a sandbox, from a snapshot if one is named, and tells how
// long it took up to the first result.
func (b *bench) createAndRun(ctx context.Context, snapshot string) ([]float64, error) {
	began := time.Now()
	opts := b.options()
	opts.Snapshot = snapshot
	box, err := glassbox.Create(ctx, glassbox.Local, opts)
	if err != nil {
		return nil, err
	}
	err = ended(box.Run(ctx, "true", nil))
	took := time.Since(began).Seconds()
	return []float64{took}, errors.Join(err, box.Close(ctx))
}

// memory tells what the recorder of a sandbox holds that does nothing.
func (b *bench) memory(ctx context.Context) (*report.Row, error) {
	row := &report.Row{Measure: "resident memory of an idle recorder", Kind: report.Reported, Unit: report.Bytes}
	return b.with(ctx, func(boxes []*glassbox.Sandbox) (*report.Row, error) {
		held, err := recorderMemory(ctx, boxes[0], func() error { return nil })
		row.Arms = []*report.Arm{{Name: "VmRSS", Samples: 1, P50: float64(held)}}
		return row, err
	}, glassbox.Recorded)
}

// recorderMemory returns the most that the recorder held while something was
// done, as the sandbox tells it.
func recorderMemory(ctx context.Context, box *glassbox.Sandbox, during func() error) (int64, error) {
	recorder, ok := box.Session().(interface {
		Info(context.Context) (*wire.Info, error)
	})
	if !ok {
		return 0, errors.New("the session is not one of a recorder")
	}
	info, err := recorder.Info(ctx)
	if err != nil {
		return 0, err
	}
	hold, release := io.Pipe()
	defer release.Close()
	p, err := box.Start(ctx, "", &glassbox.Command{
		Args: []string{guestFile, "memory", "-pid", strconv.Itoa(info.PID)}, Stdin: hold,
	})
	if err != nil {
		return 0, err
	}
	defer p.Close()
	if err := during(); err != nil {
		return 0, err
	}
	release.Close()
	var said []byte
	for {
		chunk, err := p.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, err
		}
		said = append(said, chunk.Data...)
	}
	table, err := numbers(string(said))
	if err != nil || len(table) != 1 || len(table[0]) != 1 {
		return 0, errors.Join(fmt.Errorf("the guest program said %q", said), err)
	}
	return int64(table[0][0]), nil
}

// size tells how large the recorder is that goes into every sandbox.
func (b *bench) size(context.Context) (*report.Row, error) {
	info, err := os.Stat(b.server.program("glassbox-recorder"))
	if err != nil {
		return nil, err
	}
	return &report.Row{
		Measure: "the recorder's file", Kind: report.Reported, Unit: report.Bytes,
		Arms: []*report.Arm{{Name: "size", Samples: 1, P50: float64(info.Size())}},
	}, nil
}
