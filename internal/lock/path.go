// Package lock decides who may work at the same time: so many callers at once
// ([Limit]), and those whose files do not overlap ([Paths]).
package lock

import (
	"context"
	"path"
	"slices"
	"sync"
	"time"
)

// Paths are locks of files and directories, by their clean absolute names. Who
// reads shares a file; who writes has it alone, with all below it. A writer
// that waits goes before the readers that come after it. A lock that nobody
// holds takes no room.
type Paths struct {
	timeout time.Duration

	mu    sync.Mutex
	locks map[string]*pathLock
}

// NewPaths returns locks. Who waits longer than the timeout gets ErrTimeout;
// 0: it waits as long as its context.
func NewPaths(timeout time.Duration) *Paths {
	return &Paths{timeout: timeout, locks: map[string]*pathLock{}}
}

type pathLock struct {
	readers int
	writer  bool
	queue   []*claim
}

func (l *pathLock) idle() bool { return l.readers == 0 && !l.writer && len(l.queue) == 0 }

type claim struct {
	write bool
	turn  chan struct{} // closed when it is granted
}

// Read shares files until release is called, once.
func (p *Paths) Read(ctx context.Context, names ...string) (release func(), err error) {
	return p.acquire(ctx, names, false)
}

// Write has files alone until release is called, once.
func (p *Paths) Write(ctx context.Context, names ...string) (release func(), err error) {
	return p.acquire(ctx, names, true)
}

type step struct {
	name  string
	write bool
}

// acquire takes the lock of each name, and shares those of the directories
// above, in one order for all callers, so that none waits for another in a
// circle.
func (p *Paths) acquire(ctx context.Context, names []string, write bool) (func(), error) {
	wanted := map[string]bool{}
	for _, name := range names {
		for dir := path.Dir(name); ; dir = path.Dir(dir) {
			wanted[dir] = wanted[dir] || false // shared, unless it is wanted alone
			if dir == "/" || dir == "." {
				break
			}
		}
		wanted[name] = wanted[name] || write
	}
	steps := make([]step, 0, len(wanted))
	for name, alone := range wanted {
		steps = append(steps, step{name, alone})
	}
	slices.SortFunc(steps, func(a, b step) int {
		if a.name < b.name {
			return -1
		}
		return 1
	})
	if p.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, p.timeout, ErrTimeout)
		defer cancel()
	}
	for i, s := range steps {
		if err := p.lock(ctx, s); err != nil {
			p.release(steps[:i])
			return nil, err
		}
	}
	return func() { p.release(steps) }, nil
}

func (p *Paths) lock(ctx context.Context, s step) error {
	p.mu.Lock()
	l, ok := p.locks[s.name]
	if !ok {
		l = &pathLock{}
		p.locks[s.name] = l
	}
	c := &claim{write: s.write, turn: make(chan struct{})}
	l.queue = append(l.queue, c)
	l.grant()
	p.mu.Unlock()
	select {
	case <-c.turn:
		return nil
	default:
	}
	select {
	case <-c.turn:
		return nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	if i := slices.Index(l.queue, c); i >= 0 {
		l.queue = slices.Delete(l.queue, i, i+1)
		l.grant() // those behind it may go now
		p.drop(s.name, l)
		p.mu.Unlock()
		return context.Cause(ctx)
	}
	p.mu.Unlock() // it was granted at that very moment
	p.release([]step{s})
	return context.Cause(ctx)
}

// grant lets go ahead who may: a writer that waits before the readers behind
// it, and before those that wait in front of it as long as others read.
func (l *pathLock) grant() {
	for len(l.queue) > 0 && !l.writer {
		i := max(slices.IndexFunc(l.queue, func(c *claim) bool { return c.write }), 0)
		next := l.queue[i]
		if next.write && l.readers > 0 {
			return
		}
		l.queue = slices.Delete(l.queue, i, i+1)
		if next.write {
			l.writer = true
		} else {
			l.readers++
		}
		close(next.turn)
	}
}

func (p *Paths) release(steps []step) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range slices.Backward(steps) {
		l := p.locks[s.name]
		if s.write {
			l.writer = false
		} else {
			l.readers--
		}
		l.grant()
		p.drop(s.name, l)
	}
}

func (p *Paths) drop(name string, l *pathLock) {
	if l.idle() {
		delete(p.locks, name)
	}
}
