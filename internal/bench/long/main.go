// Command long writes a history of many operations, as a few agents would leave
// it in some days: what the page is tried and measured with.
//
//	long -file DIR/history.sqlite3 -n 100000
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/glassboxhq/glassbox/history/sqlite"
)

func main() {
	file := flag.String("file", "", "the history")
	n := flag.Int("n", 100_000, "operations")
	span := flag.Duration("span", 72*time.Hour, "from the first to the last, which ends now")
	seed := flag.Uint64("seed", 1, "of what is done")
	flag.Parse()
	if err := write(*file, *n, *span, *seed); err != nil {
		fmt.Fprintln(os.Stderr, "long:", err)
		os.Exit(1)
	}
}

// write records many at once, so that they share commits; they begin nearly in
// the order of their times.
func write(file string, n int, span time.Duration, seed uint64) (err error) {
	store, err := sqlite.Open(file, &sqlite.Options{MaxDatabaseBytes: -1})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	var (
		writers sync.WaitGroup
		slots   = make(chan struct{}, 64)
		mu      sync.Mutex
		failed  error
	)
	work := agents{rand: rand.New(rand.NewPCG(seed, 0)), at: time.Now().Add(-span), pace: span / time.Duration(n)}
	for range n {
		act := work.next()
		slots <- struct{}{}
		writers.Go(func() {
			defer func() { <-slots }()
			if err := act.record(context.Background(), store); err != nil {
				mu.Lock()
				failed = errors.Join(failed, err)
				mu.Unlock()
			}
		})
	}
	writers.Wait()
	return failed
}
