package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/history/sqlite"
)

const (
	young      = 10  // operations in the history that is compared with
	growthTurn = 300 // operations in a turn: three clean-ups of the history's own
	growthCap  = 16 << 20
)

// growth times operations in a history that holds many, or that is at its cap,
// and in one that holds a few, by turns: nanoseconds an operation of both on a
// line.
func growth(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("growth", flag.ContinueOnError)
	dir := flags.String("dir", "", "folder for the histories")
	at := flags.Int("at", 10_000, "operations in the large one, without a cap; 0: at its cap, with retention")
	turns := flags.Int("turns", 10, "how many")
	seed := flags.Uint64("seed", 1, "of the order")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return scratch(*dir, func(dir string) (err error) {
		large := &sqlite.Options{MaxDatabaseBytes: -1}
		if *at == 0 {
			large.MaxDatabaseBytes = growthCap
		}
		var arms [2]*sqlite.Store
		for i, opts := range []*sqlite.Options{large, {MaxDatabaseBytes: -1}} {
			store, err := sqlite.Open(filepath.Join(dir, strconv.Itoa(i), "history.sqlite3"), opts)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, store.Close()) }()
			arms[i] = store
		}
		if err := errors.Join(grow(arms[0], *at), grow(arms[1], young)); err != nil {
			return err
		}
		return takeTurns(arms, rand.New(rand.NewPCG(*seed, 0)), *turns, out)
	})
}

// grow records until there are so many operations, or until the history is at
// its cap.
func grow(store *sqlite.Store, n int) error {
	if n == 0 {
		n = 2 * growthCap / 1200 // about what an operation takes
	}
	const callers = 32
	errs := make(chan error, callers)
	for i := range callers {
		go func() {
			var err error
			for at := i; at < n && err == nil; at += callers {
				err = whole(store)
			}
			errs <- err
		}()
	}
	var err error
	for range callers {
		err = errors.Join(err, <-errs)
	}
	return err
}

func takeTurns(arms [2]*sqlite.Store, rng *rand.Rand, turns int, out io.Writer) error {
	for turn := range turns + 1 {
		var took [2]time.Duration
		for _, arm := range rng.Perm(2) {
			began := time.Now()
			for range growthTurn {
				if err := whole(arms[arm]); err != nil {
					return err
				}
			}
			took[arm] = time.Since(began) / growthTurn
			<-time.After(50 * time.Millisecond) // what the turn has left to be cleaned up
		}
		if turn == 0 { // fills caches
			continue
		}
		if _, err := fmt.Fprintln(out, took[0].Nanoseconds(), took[1].Nanoseconds()); err != nil {
			return err
		}
	}
	return nil
}

// recovery kills a process that records into a large history, and times what
// the next does up to its first record: nanoseconds of opening and settling,
// and of the record.
func recovery(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("recovery", flag.ContinueOnError)
	dir := flags.String("dir", "", "folder for the history")
	size := flags.Int64("bytes", 128<<20, "how large it is")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return scratch(*dir, func(dir string) error {
		path := filepath.Join(dir, "history.sqlite3")
		if err := killWriter(path, *size); err != nil {
			return err
		}
		ctx := context.Background()
		began := time.Now()
		store, err := sqlite.Open(path, nil)
		if err != nil {
			return err
		}
		_, err = store.Recover(ctx, "killed")
		settled := time.Since(began)
		if err == nil {
			err = store.Begin(ctx, operation())
		}
		first := time.Since(began) - settled
		if err = errors.Join(err, store.Close()); err != nil {
			return err
		}
		_, err = fmt.Fprintln(out, settled.Nanoseconds(), first.Nanoseconds())
		return err
	})
}

// killWriter lets another process write a history of a size, and kills it while
// it writes.
func killWriter(path string, size int64) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(context.Background(), self, "fill", "-file", path, "-bytes", strconv.FormatInt(size, 10))
	cmd.Stderr = os.Stderr
	said, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	_, err = bufio.NewReader(said).ReadString('\n')
	<-time.After(100 * time.Millisecond) // it goes on writing
	err = errors.Join(err, cmd.Process.Kill())
	_ = cmd.Wait() // it was killed
	return err
}

// fill records until the history has a size, says so, and goes on until it is
// killed.
func fill(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("fill", flag.ContinueOnError)
	file := flags.String("file", "", "the history")
	size := flags.Int64("bytes", 128<<20, "how large it is to be")
	if err := flags.Parse(args); err != nil {
		return err
	}
	store, err := sqlite.Open(*file, &sqlite.Options{Config: &history.Config{MaxDatabaseBytes: 2 * *size}})
	if err != nil {
		return err
	}
	for {
		if err := grow(store, 5000); err != nil {
			return err
		}
		info, err := os.Stat(*file)
		if err != nil {
			return err
		}
		if info.Size() >= *size {
			break
		}
	}
	fmt.Fprintln(out, "full")
	for {
		if err := grow(store, 5000); err != nil {
			return err
		}
	}
}
