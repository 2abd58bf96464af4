package record

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/record/redact"
	"github.com/glassboxhq/glassbox/sandbox"
)

// effects finds out what commands do to files. It looks at the working
// directory after a command has ended and its answer is on its way; what is
// different from the look before is the work of the commands in between.
//
//	look 1 ──── command A ──── look 2 ──── command B ─┐
//	                                       command C ─┴─ look 3
//
// Of A that is known exactly; B and C share it. A command is settled by the
// first look that begins after its end.
type effects struct {
	opts    effectsOptions
	ending  context.CancelFunc // of a look under way
	due     chan struct{}      // there may be something to settle
	closing chan struct{}
	close   sync.Once
	looker  sync.WaitGroup

	mu    sync.Mutex
	doers []*doer // that run, or ended after the last look began
	acts  int     // those among them that have ended, and are acts on files

	// What follows belongs to the looker.
	last   *sandbox.Scan // nil: there was no look, or it failed
	credit credit
}

type effectsOptions struct {
	scanner sandbox.Scanner
	root    string
	// tell records what a command did.
	tell func(ctx context.Context, id string, changes *history.Changes) error
	mask *redact.Masker
	// failed is told what the operator may want to know.
	failed func(ctx context.Context, err error)
}

// doer is one who may have changed files between two looks.
type doer struct {
	id       string
	began    time.Time
	ended    time.Time // zero: it runs
	recorded bool
	deeds    *deeds   // of a command; belongs to the looker
	act      *fileAct // on files; nil: it is a command
}

// now is a copy, which does not change when the doer ends.
func (p *doer) now() doer {
	now := *p
	if p.act != nil {
		act := *p.act
		now.act = &act
	}
	return now
}

const (
	// looksApart is the least time between two looks, and settleWait between
	// the end of a command and a look: times of files are as coarse as 10 ms,
	// and what is written in the same moment as it is looked at would be missed.
	looksApart = 250 * time.Millisecond
	settleWait = 20 * time.Millisecond
	// lastLook bounds the look when the session closes.
	lastLook = 500 * time.Millisecond
	// maxActs is how many acts on files are remembered until the next look.
	maxActs = 512
)

// newEffects begins to look, if files are to be looked at and can be.
func (s *Session) newEffects() *effects {
	scanner, canScan := s.inner.(sandbox.Scanner)
	store, canKeep := s.store.(history.ChangesStore)
	if s.opts.NoFileChanges || !canScan || !canKeep || s.workdir() == "" {
		return nil
	}
	return newEffects(effectsOptions{
		scanner: scanner, root: s.workdir(), tell: store.SetChanges, mask: s.opts.Mask,
		failed: func(ctx context.Context, err error) {
			s.opts.Logger.WarnContext(ctx, "what a command did to files is not recorded", "error", err)
		},
	})
}

func newEffects(opts effectsOptions) *effects {
	ctx, cancel := context.WithCancel(context.Background())
	e := &effects{opts: opts, ending: cancel, due: make(chan struct{}, 1), closing: make(chan struct{})}
	e.credit.begin(time.Now())
	e.looker.Go(func() { e.run(ctx) })
	return e
}

// begin tells that a command is about to begin. A nil effects knows nothing.
func (e *effects) begin(id string, recorded bool) *doer {
	if e == nil {
		return nil
	}
	return e.add(&doer{id: id, recorded: recorded, deeds: &deeds{}})
}

func (e *effects) add(p *doer) *doer {
	e.mu.Lock()
	defer e.mu.Unlock()
	p.began = time.Now()
	e.doers = append(e.doers, p)
	return p
}

// drop forgets a command that could not be started.
func (e *effects) drop(p *doer) {
	if e == nil || p == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.doers = slices.DeleteFunc(e.doers, func(other *doer) bool { return other == p })
}

// end tells that a command has ended.
func (e *effects) end(p *doer) {
	if e == nil || p == nil {
		return
	}
	e.mu.Lock()
	p.ended = time.Now()
	e.mu.Unlock()
	e.wake()
}

func (e *effects) wake() {
	select {
	case e.due <- struct{}{}:
	default:
	}
}

// stop takes a last look, for what has not been settled.
func (e *effects) stop() {
	if e == nil {
		return
	}
	e.close.Do(func() {
		e.ending()
		close(e.closing)
	})
	e.looker.Wait()
}

// run looks, one look at a time.
func (e *effects) run(ctx context.Context) {
	e.look(ctx, sandbox.ScanLimit{})
	for {
		select {
		case <-e.closing:
			if e.waiting() {
				e.look(context.WithoutCancel(ctx), sandbox.ScanLimit{Time: lastLook})
			}
			return
		case <-e.due:
		}
		if !e.waiting() {
			continue
		}
		select {
		case <-time.After(e.credit.wait(time.Now())):
		case <-e.closing:
			continue
		}
		e.look(ctx, sandbox.ScanLimit{})
	}
}

// waiting reports whether there is something to settle.
func (e *effects) waiting() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.acts > maxActs || slices.ContainsFunc(e.doers, func(p *doer) bool { return p.act == nil && !p.ended.IsZero() })
}

// look looks at the files, and settles what ended before.
func (e *effects) look(ctx context.Context, limit sandbox.ScanLimit) {
	began := time.Now()
	now, err := e.opts.scanner.Scan(ctx, e.opts.root, limit)
	switch {
	case errors.Is(err, sandbox.ErrNotFound):
		now, err = &sandbox.Scan{Root: e.opts.root}, nil
	case err != nil && ctx.Err() != nil:
		return // the last look comes
	case err != nil:
		e.opts.failed(ctx, err)
	}
	ended := time.Now()
	settled := e.share(began, ended, e.compare(now, err))
	if e.last = now; err != nil {
		e.last = nil
	}
	e.tell(context.WithoutCancel(ctx), settled)
	e.credit.spend(ended, time.Since(began))
}

// share gives what a look found to those who may have done it, and returns the
// commands that are settled by it.
func (e *effects) share(began, ended time.Time, found *finding) (settled []*doer) {
	commands, acts, settled := e.leave(began, ended)
	if len(commands) > 0 {
		found.leaveOut(acts)
	}
	for i := range commands {
		p := &commands[i]
		p.deeds.take(found, p.id, commands)
		p.deeds.beside(p, acts)
	}
	return settled
}

// leave returns who may have done what a look found, as they are now, and lets
// go of those who had ended before it began.
func (e *effects) leave(began, ended time.Time) (commands, acts []doer, settled []*doer) {
	e.mu.Lock()
	defer e.mu.Unlock()
	open := e.doers[:0]
	for _, p := range e.doers {
		command := p.act == nil
		switch {
		case p.began.After(ended):
		case command:
			commands = append(commands, p.now())
		default:
			acts = append(acts, p.now())
		}
		switch {
		case p.ended.IsZero() || p.ended.After(began):
			open = append(open, p)
		case command:
			settled = append(settled, p)
		default:
			e.acts--
		}
	}
	clear(e.doers[len(open):])
	e.doers = open
	return commands, acts, settled
}

// tellAtOnce is how many records are asked for at the same moment, so that the
// history commits them together.
const tellAtOnce = 32

// tell records what settled commands did. What cannot be recorded now is not
// tried again: that it is not known is what the history then says.
func (e *effects) tell(ctx context.Context, settled []*doer) {
	ctx, cancel := context.WithTimeout(ctx, finishTimeout)
	defer cancel()
	for some := range slices.Chunk(settled, tellAtOnce) {
		var group sync.WaitGroup
		for _, p := range some {
			if !p.recorded {
				continue
			}
			group.Go(func() {
				err := e.opts.tell(ctx, p.id, p.deeds.changes(e.opts.root, e.opts.mask))
				if err != nil {
					e.opts.failed(ctx, err)
				}
			})
		}
		group.Wait()
	}
}

// credit keeps looks to a part of the time: it grows with the time and each
// look takes from it what it took.
type credit struct {
	left   time.Duration
	at     time.Time // when it was reckoned
	looked time.Time // the end of the last look
}

const (
	creditPart = 10 // a tenth of the time
	creditMost = time.Second
)

func (c *credit) begin(now time.Time) { c.left, c.at = creditMost, now }

func (c *credit) grow(now time.Time) {
	c.left = min(c.left+now.Sub(c.at)/creditPart, creditMost)
	c.at = now
}

// wait is how long the next look has to wait.
func (c *credit) wait(now time.Time) time.Duration {
	c.grow(now)
	return max(settleWait, looksApart-now.Sub(c.looked), -c.left*creditPart)
}

func (c *credit) spend(now time.Time, took time.Duration) {
	c.grow(now)
	c.left -= took
	c.looked = now
}
