package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/glassboxhq/glassbox/sandbox"
)

// Status tells how far a pull is.
type Status struct {
	Phase string `json:"phase"`           // what is being done
	Done  int64  `json:"done"`            // bytes, of this phase
	Total int64  `json:"total,omitempty"` // bytes; 0: not known
}

func (s Status) String() string {
	const mib = 1 << 20
	switch {
	case s.Total > 0:
		return fmt.Sprintf("%s, %d of %d MiB", s.Phase, s.Done/mib, (s.Total+mib-1)/mib)
	case s.Done > 0:
		return fmt.Sprintf("%s, %d MiB", s.Phase, s.Done/mib)
	}
	return s.Phase
}

// Progress counts what a pull does.
type Progress struct {
	mu     sync.Mutex
	now    string
	total  int64
	counts atomic.Int64
}

func (p *Progress) phase(what string) { p.of(what, 0) }

func (p *Progress) of(what string, total int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now, p.total = what, total
	p.counts.Store(0)
}

// Status returns how far it is.
func (p *Progress) Status() Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	return Status{p.now, p.counts.Load(), p.total}
}

func (p *Progress) count(r io.Reader) *counted { return &counted{r, p, 0} }

type counted struct {
	io.Reader
	p *Progress
	n int64
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.n += int64(n)
	c.p.counts.Add(int64(n))
	return n, err
}

// undo takes back what was counted.
func (c *counted) undo() { c.p.counts.Add(-c.n) }

// flightKey tells pulls apart: who has no right to an image waits for no other's.
type flightKey struct {
	name string
	auth sandbox.RegistryAuth
}

// flight is one pull, for all who want the image.
type flight struct {
	Progress
	cancel  context.CancelCauseFunc
	done    chan struct{}
	waiters int // under the store's mu

	image *Image // when done
	err   error
}

var errNobody = errors.New("nobody waits for it any more")

// board takes part in the pull of an image, and begins it if nobody has.
func (s *Store) board(ctx context.Context, key flightKey, pull func(context.Context, *Progress) (*Image, error)) (*flight, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errors.New("the server is stopping")
	}
	if f, ok := s.flights[key]; ok {
		f.waiters++
		return f, nil
	}
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	f := &flight{cancel: cancel, done: make(chan struct{}), waiters: 1}
	s.flights[key] = f
	s.pulls.Go(func() {
		defer cancel(nil)
		f.image, f.err = pull(ctx, &f.Progress)
		if f.err != nil && ctx.Err() != nil {
			f.err = context.Cause(ctx)
		}
		s.mu.Lock()
		if s.flights[key] == f {
			delete(s.flights, key)
		}
		s.mu.Unlock()
		close(f.done)
	})
	return f, nil
}

// leave gives a pull up, which ends it when nobody else wants it.
func (s *Store) leave(key flightKey, f *flight) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.waiters--; f.waiters > 0 {
		return
	}
	f.cancel(errNobody)
	if s.flights[key] == f {
		delete(s.flights, key) // who comes now begins anew
	}
}

// seeEvery is how often the progress of a pull is told.
const seeEvery = 200 * time.Millisecond

// follow waits for a pull, and tells of it meanwhile.
func (f *flight) follow(ctx context.Context, see func(Status)) (*Image, error) {
	tick := time.NewTicker(seeEvery)
	defer tick.Stop()
	for {
		select {
		case <-f.done:
			return f.image, f.err
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-tick.C:
			if see != nil {
				see(f.Status())
			}
		}
	}
}
