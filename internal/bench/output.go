package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/glassboxhq/glassbox"
	"github.com/glassboxhq/glassbox/internal/bench/report"
	"github.com/glassboxhq/glassbox/sandbox"
)

func (b *bench) lines100k(ctx context.Context) (*report.Row, error) {
	return b.lines(ctx, "100 000 lines", 100_000, b.rounds(40, 6))
}

func (b *bench) lines5m(ctx context.Context) (*report.Row, error) {
	return b.lines(ctx, "5 000 000 lines", 5_000_000, b.rounds(12, 3))
}

// lines compares what a client gets, to the last byte, with a pipe in the
// sandbox.
func (b *bench) lines(ctx context.Context, what string, n, rounds int) (*report.Row, error) {
	row := &report.Row{
		Measure: what + ", recorded up to the cap, exact at the client, against a bare pipe in that sandbox",
		Kind:    report.Ratio, Unit: report.Seconds, Budget: &report.Budget{Value: 2},
	}
	want := sequence(n)
	args := []string{"seq", strconv.Itoa(n)}
	return b.with(ctx, func(boxes []*glassbox.Sandbox) (*report.Row, error) {
		box := boxes[0]
		var last *glassbox.Result
		got := bytes.NewBuffer(make([]byte, 0, len(want)+bytes.MinRead))
		recorded := func(ctx context.Context) ([]float64, error) {
			got.Reset()
			began := time.Now()
			res, err := box.Run(ctx, "", &glassbox.Command{Args: args, Stdout: got})
			took := time.Since(began).Seconds()
			if err = ended(res, err); err == nil && !bytes.Equal(got.Bytes(), want) {
				err = fmt.Errorf("%d bytes came that are not the %d that were printed", got.Len(), len(want))
			}
			last = res
			return []float64{took}, err
		}
		bare := func(ctx context.Context) ([]float64, error) { return pipe(ctx, box, int64(len(want)), args...) }
		row, err := b.compare(ctx, row, rounds, arm{"recorded", recorded}, arm{"bare pipe", bare})
		if err != nil {
			return nil, err
		}
		note, err := kept(ctx, box, last, want)
		row.Notes = append(row.Notes, note)
		return row, err
	}, glassbox.Recorded)
}

// sequence is what seq prints.
func sequence(n int) []byte {
	var b []byte
	for i := 1; i <= n; i++ {
		b = append(strconv.AppendInt(b, int64(i), 10), '\n')
	}
	return b
}

// pipe returns how long the guest program read the output of another.
func pipe(ctx context.Context, box *glassbox.Sandbox, size int64, args ...string) ([]float64, error) {
	table, err := guest(ctx, box, append([]string{"pipe"}, args...)...)
	if err != nil {
		return nil, err
	}
	if got := int64(table[0][1]); got != size {
		return nil, fmt.Errorf("%d bytes came, not %d", got, size)
	}
	return column(table, 0, nanosecond), nil
}

// historyCap is what a history keeps of the output of one command.
const historyCap = 16 << 20

// kept reads the output back from the history, and tells how much there is.
func kept(ctx context.Context, box *glassbox.Sandbox, res *glassbox.Result, want []byte) (string, error) {
	want = want[:min(len(want), historyCap)]
	var got []byte
	for {
		part, err := box.History().Output(ctx, res.OperationID, sandbox.Stdout, int64(len(got)), historyCap)
		if err != nil {
			return "", err
		}
		if got = append(got, part...); len(part) == 0 {
			break
		}
	}
	if !bytes.Equal(got, want) {
		return "", fmt.Errorf("the history keeps %d bytes that are not the first %d", len(got), len(want))
	}
	return fmt.Sprintf("in the history: %d of %d bytes, exact (%s)", len(got), res.StdoutBytes, res.Recording), nil
}

const gibibyte = 1 << 30

// gibibyte compares throughput, and looks at the memory of both ends.
func (b *bench) gibibyte(ctx context.Context) (*report.Row, error) {
	row := &report.Row{
		Measure: "1 GiB of stdout to the client, against a bare pipe in that sandbox",
		Kind:    report.Ratio, Unit: report.Rate, Budget: &report.Budget{Value: 0.7, AtLeast: true},
	}
	size := int64(gibibyte)
	if b.short {
		size /= 8
		row.Notes = append(row.Notes, fmt.Sprintf("only %d MiB, in a short run", size>>20))
	}
	args := []string{"head", "-c", strconv.FormatInt(size, 10), "/dev/zero"}
	rate := func(seconds float64) float64 { return float64(size>>20) / seconds }
	return b.with(ctx, func(boxes []*glassbox.Sandbox) (*report.Row, error) {
		box := boxes[0]
		idle, err := recorderMemory(ctx, box, func() error { return nil })
		if err != nil {
			return nil, err
		}
		note, err := transferMemory(ctx, box, args, size, idle)
		if err != nil {
			return nil, err
		}
		row.Notes = append(row.Notes, note)
		recorded := func(ctx context.Context) ([]float64, error) {
			var got counter
			began := time.Now()
			res, err := box.Run(ctx, "", &glassbox.Command{Args: args, Stdout: &got})
			took := time.Since(began).Seconds()
			if err = ended(res, err); err == nil && int64(got) != size {
				err = fmt.Errorf("%d bytes came, not %d", got, size)
			}
			return []float64{rate(took)}, err
		}
		bare := func(ctx context.Context) ([]float64, error) {
			took, err := pipe(ctx, box, size, args...)
			for i := range took {
				took[i] = rate(took[i])
			}
			return took, err
		}
		return b.compare(ctx, row, b.rounds(10, 2), arm{"to the client", recorded}, arm{"bare pipe", bare})
	}, glassbox.Recorded)
}

type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// transferMemory moves the bytes once, whole and checked, and tells what both
// ends held at most.
func transferMemory(ctx context.Context, box *glassbox.Sandbox, args []string, size, idle int64) (string, error) {
	want, got := sha256.New(), sha256.New()
	zeros := make([]byte, 1<<20)
	for range size >> 20 {
		want.Write(zeros)
	}
	debug.FreeOSMemory()
	// The kernel forgets the mark of rows before.
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		return "", err
	}
	before, err := peak()
	if err != nil {
		return "", err
	}
	most, err := recorderMemory(ctx, box, func() error {
		return ended(box.Run(ctx, "", &glassbox.Command{Args: args, Stdout: got}))
	})
	if err != nil {
		return "", err
	}
	after, err := peak()
	if err != nil {
		return "", err
	}
	if !bytes.Equal(want.Sum(nil), got.Sum(nil)) {
		return "", fmt.Errorf("what came is not what was printed")
	}
	amount := func(n int64) string { return report.Amount(float64(n), report.Bytes) }
	return fmt.Sprintf("resident at most: client %s (%s before), recorder %s (%s before)",
		amount(after), amount(before), amount(most), amount(idle)), nil
}

// peak is the most that this process has held, in bytes.
func peak() (int64, error) {
	text, _, _ := strings.Cut(field("/proc/self/status", "VmHWM", ":"), " ")
	kib, err := strconv.ParseInt(text, 10, 64)
	return kib << 10, err
}
