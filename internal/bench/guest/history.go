package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/history/sqlite"
	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/sandbox"
)

// warmUp is how many records go before those that count: the first makes the
// file and compiles the statements.
const warmUp = 20

// scratch makes a folder for histories below dir, and removes it.
func scratch(dir string, do func(dir string) error) (err error) {
	temp, err := os.MkdirTemp(dir, "bench-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	return do(temp)
}

// timeBegin times one durable Begin after the other and a bare commit of the
// same rows, by turns: nanoseconds of both on a line.
func timeBegin(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("begin", flag.ContinueOnError)
	dir := flags.String("dir", "", "folder for the histories")
	n := flags.Int("n", 100, "how often")
	seed := flags.Uint64("seed", 1, "of the order")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return scratch(*dir, func(dir string) (err error) {
		store, err := sqlite.Open(filepath.Join(dir, "store", "history.sqlite3"), nil)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, store.Close()) }()
		bare, err := newBare(filepath.Join(dir, "bare", "history.sqlite3"))
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, bare.close()) }()
		return pairs(store, bare, rand.New(rand.NewPCG(*seed, 0)), *n, out)
	})
}

func pairs(store *sqlite.Store, bare *bare, rng *rand.Rand, n int, out io.Writer) error {
	ctx := context.Background()
	arms := [2]func(op *history.Operation) error{
		func(op *history.Operation) error { return store.Begin(ctx, op) },
		bare.begin,
	}
	took := make([][2]time.Duration, n+warmUp)
	for i := range took {
		first := rng.IntN(2)
		for _, arm := range [2]int{first, 1 - first} {
			op := operation()
			began := time.Now()
			if err := arms[arm](op); err != nil {
				return err
			}
			took[i][arm] = time.Since(began)
		}
	}
	for _, pair := range took[warmUp:] {
		if _, err := fmt.Fprintln(out, pair[0].Nanoseconds(), pair[1].Nanoseconds()); err != nil {
			return err
		}
	}
	return nil
}

// countAppend has many callers record at once for a while: how many operations
// a second were begun, and, in a second go, begun, given output and ended.
func countAppend(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("append", flag.ContinueOnError)
	dir := flags.String("dir", "", "folder for the history")
	callers := flags.Int("callers", 32, "how many record at once")
	last := flags.Duration("for", time.Second, "how long")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return scratch(*dir, func(dir string) (err error) {
		store, err := sqlite.Open(filepath.Join(dir, "store", "history.sqlite3"), nil)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, store.Close()) }()
		for range warmUp {
			if err := whole(store); err != nil {
				return err
			}
		}
		begun, err := rate(*callers, *last, func() error { return store.Begin(context.Background(), operation()) })
		if err != nil {
			return err
		}
		ended, err := rate(*callers, *last, func() error { return whole(store) })
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(out, "%.0f %.0f\n", begun, ended)
		return err
	})
}

// rate returns how often a second the callers together get do done.
func rate(callers int, last time.Duration, do func() error) (float64, error) {
	var done atomic.Int64
	var group sync.WaitGroup
	errs := make([]error, callers)
	began := time.Now()
	for i := range callers {
		group.Go(func() {
			for time.Since(began) < last && errs[i] == nil {
				errs[i] = do()
				done.Add(1)
			}
		})
	}
	group.Wait()
	return float64(done.Load()) / time.Since(began).Seconds(), errors.Join(errs...)
}

// whole records an operation from its beginning to its end.
func whole(store *sqlite.Store) error {
	ctx := context.Background()
	op := operation()
	if err := store.Begin(ctx, op); err != nil {
		return err
	}
	chunks := []sandbox.Chunk{{Stream: sandbox.Stdout, Time: time.Now(), Data: []byte("a line of output, as a build prints it\n")}}
	if err := store.Append(ctx, op.ID, chunks); err != nil {
		return err
	}
	return store.Finish(ctx, op.ID, &history.End{Status: sandbox.Succeeded, OutputComplete: true})
}

// operation is one as the recorder begins it.
func operation() *history.Operation {
	const line = "sh -c true"
	return &history.Operation{
		ID: id.New(), Type: history.CommandExecute, Source: history.SourceSDK, StartedAt: time.Now(),
		Actor: history.Actor{
			Type: history.Agent, ID: "coder", Thread: "thread-1", Run: "run-1",
			Correlation: "01a22841-75d1-7ac2-8893-7a5a34ae46b4",
		},
		Request: history.EncodeRequest(map[string]any{"command": line, "cwd": "/workspace", "timeout_seconds": nil}),
		Command: &history.Command{Line: line, Dir: "/workspace"},
	}
}
