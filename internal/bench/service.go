package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/glassboxhq/glassbox"
	"github.com/glassboxhq/glassbox/internal/bench/report"
)

// place is a service that makes sandboxes.
type place struct {
	name, url string
	opts      glassbox.Options
}

// places are the local runtime and, where scripts/opensandbox.sh has started
// one, a real OpenSandbox server with Docker. Both are used by the SDK, through
// the server's proxy.
func (b *bench) places() []*place {
	list := []*place{{"local runtime", glassbox.Local, *b.options()}}
	if url := os.Getenv("GLASSBOX_OPENSANDBOX"); url != "" {
		opts := *b.options()
		opts.APIKey = glassbox.Secret(os.Getenv("GLASSBOX_OPENSANDBOX_KEY"))
		list = append(list, &place{"OpenSandbox with Docker", url, opts})
	}
	return list
}

// atPlaces measures the same at each service.
func (b *bench) atPlaces(ctx context.Context, row *report.Row, full, short int, turn func(context.Context, *place) ([]float64, error)) (*report.Row, error) {
	var arms []arm
	for _, at := range b.places() {
		arms = append(arms, arm{at.name, func(ctx context.Context) ([]float64, error) { return turn(ctx, at) }})
	}
	return b.compare(ctx, row, b.rounds(full, short), arms...)
}

func (at *place) create(ctx context.Context) (*glassbox.Sandbox, error) {
	opts := at.opts
	return glassbox.Create(ctx, at.url, &opts)
}

// with does something in a new sandbox.
func (at *place) with(ctx context.Context, do func(*glassbox.Sandbox) ([]float64, error)) (samples []float64, err error) {
	box, err := at.create(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, box.Close(context.WithoutCancel(ctx))) }()
	return do(box)
}

// many makes sandboxes at once, runs a command in each, and returns them.
func (at *place) many(ctx context.Context, n int) ([]*glassbox.Sandbox, error) {
	boxes, errs := make([]*glassbox.Sandbox, n), make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			if boxes[i], errs[i] = at.create(ctx); errs[i] == nil {
				errs[i] = ended(boxes[i].Run(ctx, "true", nil))
			}
		})
	}
	all.Wait()
	return boxes, errors.Join(errs...)
}

func closeAll(ctx context.Context, boxes []*glassbox.Sandbox) error {
	errs := make([]error, len(boxes))
	var all sync.WaitGroup
	for i, box := range boxes {
		if box != nil {
			all.Go(func() { errs[i] = box.Close(ctx) })
		}
	}
	all.Wait()
	return errors.Join(errs...)
}

func (b *bench) serviceCreate(ctx context.Context) (*report.Row, error) {
	row := &report.Row{Measure: "a new sandbox, up to its first recorded result", Kind: report.Reported, Unit: report.Seconds}
	return b.atPlaces(ctx, row, 15, 2, func(ctx context.Context, at *place) ([]float64, error) {
		began := time.Now()
		return at.with(ctx, func(box *glassbox.Sandbox) ([]float64, error) {
			err := ended(box.Run(ctx, "true", nil))
			return []float64{time.Since(began).Seconds()}, err
		})
	})
}

// crowd is how many sandboxes are made at the same time.
const crowd = 20

func (b *bench) serviceMany(ctx context.Context) (*report.Row, error) {
	row := &report.Row{Measure: strconv.Itoa(crowd) + " new sandboxes at once, up to the last first result", Kind: report.Reported, Unit: report.Seconds}
	return b.atPlaces(ctx, row, 3, 1, func(ctx context.Context, at *place) ([]float64, error) {
		began := time.Now()
		boxes, err := at.many(ctx, crowd)
		took := time.Since(began).Seconds()
		return []float64{took}, errors.Join(err, closeAll(ctx, boxes))
	})
}

func (b *bench) servicePause(ctx context.Context) (*report.Row, error) {
	row := &report.Row{Measure: "a sandbox paused and resumed, recorded", Kind: report.Reported, Unit: report.Seconds}
	return b.atPlaces(ctx, row, 5, 1, func(ctx context.Context, at *place) ([]float64, error) {
		return at.with(ctx, func(box *glassbox.Sandbox) (samples []float64, err error) {
			for range 5 {
				took, err := timed(func() error { return errors.Join(box.Pause(ctx), box.Resume(ctx)) })
				if err != nil {
					return nil, err
				}
				samples = append(samples, took...)
			}
			return samples, nil
		})
	})
}

// download is the size of a file that is read through the server's proxy.
const download = 256 << 20

func (b *bench) serviceDownload(ctx context.Context) (*report.Row, error) {
	row := &report.Row{Measure: "a file of 256 MiB read through the server's proxy", Kind: report.Reported, Unit: report.Rate}
	return b.atPlaces(ctx, row, 5, 1, func(ctx context.Context, at *place) ([]float64, error) {
		return at.with(ctx, func(box *glassbox.Sandbox) ([]float64, error) {
			if err := ended(box.Run(ctx, fmt.Sprintf("head -c %d /dev/urandom > big", download), nil)); err != nil {
				return nil, err
			}
			began := time.Now()
			f, err := box.Read(ctx, "big", nil)
			if err != nil {
				return nil, err
			}
			n, err := io.Copy(io.Discard, f)
			if err = errors.Join(err, f.Close()); err == nil && n != download {
				err = fmt.Errorf("got %d bytes of %d", n, download)
			}
			return []float64{float64(n) / (1 << 20) / time.Since(began).Seconds()}, err
		})
	})
}

// idle is how long sandboxes settle before the machine is asked what they take.
const idle = 3 * time.Second

func (b *bench) serviceMemory(ctx context.Context) (*report.Row, error) {
	row := &report.Row{Measure: "memory of this machine that an idle sandbox takes, of " + strconv.Itoa(crowd), Kind: report.Reported, Unit: report.Bytes}
	return b.atPlaces(ctx, row, 3, 1, func(ctx context.Context, at *place) (_ []float64, err error) {
		before, err := available()
		if err != nil {
			return nil, err
		}
		boxes, err := at.many(ctx, crowd)
		defer func() { err = errors.Join(err, closeAll(ctx, boxes)) }()
		if err != nil {
			return nil, err
		}
		select {
		case <-time.After(idle):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		after, err := available()
		return []float64{float64(before-after) / crowd}, err
	})
}

// available is the memory that new programs could have, in bytes.
func available() (int64, error) {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0, err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), "MemAvailable:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kib << 10, err
		}
	}
	return 0, errors.New("/proc/meminfo does not tell MemAvailable")
}
