package sqlite

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/glassboxhq/glassbox/history"
)

// cleaner begins clean-ups by itself: when a history that was there is opened,
// every so many operations, when a read finds that the last is long ago, and
// when there is no room.
type cleaner struct {
	due     chan struct{}
	quit    chan struct{}
	running sync.WaitGroup
	busy    sync.Mutex // held by the one clean-up of this store

	begun  atomic.Int64 // operations since the last clean-up
	bytes  atomic.Int64 // written since then, about
	last   atomic.Int64 // when one was last begun or done, in microseconds
	looked atomic.Int64 // when one last looked at every operation
}

func (c *cleaner) init() {
	c.due, c.quit = make(chan struct{}, 1), make(chan struct{})
}

func (c *cleaner) wake() {
	select {
	case c.due <- struct{}{}:
	default: // it is at it
	}
}

func (c *cleaner) stop() {
	close(c.quit)
	c.running.Wait()
}

// cleanUp cleans up when it is due, until the store closes. What goes wrong is
// told to the next record.
func (s *Store) cleanUp() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s.cleaner.running.Go(func() { <-s.cleaner.quit; cancel() })
	for {
		select {
		case <-s.cleaner.due:
			_, _ = s.prune(ctx, false)
		case <-s.cleaner.quit:
			return
		}
	}
}

// fullPart is the part of the size limit after which the cleaner looks, however
// few operations wrote so much.
const fullPart = 8

// counted tells the cleaner of operations that were begun, and of bytes that
// were written.
func (s *Store) counted(n, bytes int64) {
	c, limit := &s.cleaner, s.maxBytes()
	many := n > 0 && c.begun.Add(n) >= s.settings().CleanupIntervalOperations
	if much := limit > 0 && c.bytes.Add(bytes) >= limit/fullPart; many || much {
		c.begun.Store(0)
		c.bytes.Store(0)
		c.wake()
	}
}

// fullEvery is how often a clean-up looks for room where there is none.
const fullEvery = 10 * time.Second

// reading begins a clean-up before a read if the last is long ago. The read
// does not wait for it: what has expired is not answered either way.
func (s *Store) reading() {
	every := time.Duration(s.settings().CleanupMinIntervalSeconds) * time.Second
	if s.opts.ReadOnly || s.opts.ManualCleanup || s.since(&s.cleaner.last) < max(every, time.Second) {
		return
	}
	if _, err := s.start(); err == nil {
		s.touch(&s.cleaner.last)
		s.cleaner.wake()
	}
}

func (s *Store) since(moment *atomic.Int64) time.Duration {
	last := moment.Load()
	if last == 0 { // the history was made a moment ago
		s.touch(moment)
		return 0
	}
	return s.opts.Now().Sub(time.UnixMicro(last))
}

// overdue reports whether every operation is to be looked at.
func (s *Store) overdue() bool {
	return s.cleaner.looked.Load() == 0 || s.since(&s.cleaner.looked) >= thoroughEvery
}

func (s *Store) touch(moment *atomic.Int64) { moment.Store(s.opts.Now().UnixMicro()) }

// lastCleaned learns when the last clean-up was from the file.
func (c *cleaner) lastCleaned(meta map[string]string) {
	for _, key := range []string{keyCleaned, keyCreated} {
		if at, err := history.ParseTime(meta[key]); err == nil {
			c.last.Store(at.UnixMicro())
			return
		}
	}
}
