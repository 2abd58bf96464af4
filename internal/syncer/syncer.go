// Package syncer follows the history of every sandbox into the mirror.
//
//	s := syncer.New(fleet, mirror, nil)
//	err := s.Run(ctx)                                  // until ctx ends
//	err = s.CatchUp(ctx, connectionID, sandboxID)      // before it is deleted
//
// Sandboxes are found by listing their services. One follower waits for the
// changes of each that is recorded; it stores what it has read, and then tells
// the sandbox, which keeps until then what it would delete. Whatever dies in
// between, what was stored is not lost and what was not is read again. A
// service that hangs holds up no other.
package syncer

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/console/mirror"
	"github.com/glassboxhq/glassbox/sandbox"
)

// Connection is a service whose sandboxes are followed.
type Connection struct {
	ID string
	// Every is how often it is asked for its sandboxes; 0: 5 s.
	Every time.Duration
}

// Seen is a sandbox as a service tells of it.
type Seen struct {
	sandbox.Info
	GoneAt time.Time // zero: it is there
}

// Fleet is the services. Its methods may be called at the same time.
type Fleet interface {
	// Connections lists those that are enabled.
	Connections(ctx context.Context) ([]Connection, error)
	// List lists the sandboxes that a service has.
	List(ctx context.Context, connectionID string) ([]*Seen, error)
	// Kept lists those that are gone and whose histories can be read still.
	Kept(ctx context.Context, connectionID string) ([]*Seen, error)
	// Open opens the history of a sandbox. It installs nothing: one that is
	// not recorded is an error of the kind sandbox.ErrUnsupported.
	Open(ctx context.Context, connectionID, sandboxID string) (History, error)
}

// History is a history that is open. It may be a [history.Consumer] and a
// [history.TerminalReader], too; one that also has Ended() bool, and says yes,
// gets no more records.
type History interface {
	history.Reader
	io.Closer
}

// Options of a syncer.
type Options struct {
	// Logger; nil: silent.
	Logger *slog.Logger
	// Limits of what the mirror keeps, asked for every time; nil: none.
	Limits func(ctx context.Context) (*mirror.Limits, error)
	// Request bounds one request, and Wait one wait for changes; 0: 30 s, 50 s.
	Request, Wait time.Duration
	// AtOnce is how many histories of one connection are read at the same
	// moment, waiting not counted; 0: 4.
	AtOnce int
	// Retry is the first pause after a fault, which then doubles up to a minute;
	// 0: 1 s.
	Retry time.Duration
}

// Syncer follows histories.
type Syncer struct {
	fleet  Fleet
	mirror *mirror.Mirror
	opts   Options

	consumer string
	work     sync.WaitGroup
	mu       sync.Mutex
	services map[string]*service
}

const (
	defaultEvery     = 5 * time.Second
	connectionsEvery = 2 * time.Second
	keptAfter        = 5 // lists: what lived for a moment only is found then
	pruneEvery       = 5 * time.Minute
	maxPause         = time.Minute
)

// New returns a syncer, which does nothing until it runs.
func New(fleet Fleet, m *mirror.Mirror, opts *Options) *Syncer {
	s := &Syncer{fleet: fleet, mirror: m, services: map[string]*service{}}
	if opts != nil {
		s.opts = *opts
	}
	if s.opts.Logger == nil {
		s.opts.Logger = slog.New(slog.DiscardHandler)
	}
	if s.opts.Request == 0 {
		s.opts.Request = 30 * time.Second
	}
	if s.opts.Wait == 0 {
		s.opts.Wait = 50 * time.Second
	}
	if s.opts.AtOnce == 0 {
		s.opts.AtOnce = 4
	}
	if s.opts.Retry == 0 {
		s.opts.Retry = time.Second
	}
	return s
}

// Run follows every sandbox of every connection until ctx ends.
func (s *Syncer) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer s.work.Wait()
	defer cancel()
	for pause := s.opts.Retry; ; pause = min(2*pause, maxPause) {
		var err error
		if s.consumer, err = s.mirror.Consumer(ctx); err == nil {
			break
		}
		if !sleep(ctx, pause) {
			return nil
		}
		s.opts.Logger.ErrorContext(ctx, "the mirror cannot be used", "error", err)
	}
	s.work.Go(func() { s.prune(ctx) })
	s.work.Go(func() { _ = s.mirror.Run(ctx) }) // it ends with ctx, without an error
	tick := time.NewTicker(connectionsEvery)
	defer tick.Stop()
	for {
		list, err := s.fleet.Connections(ctx)
		switch {
		case err == nil:
			s.attend(ctx, list)
		case ctx.Err() == nil:
			s.opts.Logger.WarnContext(ctx, "connections cannot be listed", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// attend begins with new connections, and leaves those that are no more.
func (s *Syncer) attend(ctx context.Context, list []Connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	there := map[string]bool{}
	for _, c := range list {
		there[c.ID] = true
		if s.services[c.ID] != nil {
			continue
		}
		if c.Every == 0 {
			c.Every = defaultEvery
		}
		one := &service{s: s, Connection: c, followers: map[string]*follower{}, turns: make(chan struct{}, s.opts.AtOnce), ends: make(chan struct{}, endsAtOnce), wake: make(chan struct{}, 1)}
		serving, cancel := context.WithCancel(ctx)
		one.cancel = cancel
		s.services[c.ID] = one
		s.work.Go(func() { one.run(serving) })
	}
	for id, one := range s.services {
		if !there[id] {
			one.cancel()
			delete(s.services, id)
		}
	}
}

// Look asks a connection for its sandboxes now: somebody has just made or
// deleted one.
func (s *Syncer) Look(connectionID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one := s.services[connectionID]; one != nil {
		select {
		case one.wake <- struct{}{}:
		default:
		}
	}
}

// CatchUp waits until all that a history holds now is in the mirror.
func (s *Syncer) CatchUp(ctx context.Context, connectionID, sandboxID string) error {
	h, err := s.fleet.Open(ctx, connectionID, sandboxID)
	if err != nil {
		return err
	}
	feed, err := h.Changes(ctx, &history.ChangeQuery{Limit: 1})
	if end := h.Close(); err == nil {
		err = end
	}
	if err != nil || feed.Max == 0 {
		return err
	}
	s.Look(connectionID) // it may be younger than the last look
	for {
		list, err := s.mirror.Histories(ctx, connectionID, sandboxID)
		if err != nil || len(list) > 0 && list[0].Position >= feed.Max {
			return err
		}
		if !sleep(ctx, lookAgain) {
			return sandbox.FromContext(ctx, "catch up with history")
		}
	}
}

const lookAgain = 50 * time.Millisecond

func (s *Syncer) prune(ctx context.Context) {
	for s.opts.Limits != nil {
		limits, err := s.opts.Limits(ctx)
		if err == nil {
			_, err = s.mirror.Prune(ctx, limits)
		}
		if err != nil && ctx.Err() == nil {
			s.opts.Logger.WarnContext(ctx, "the mirror is not cleaned up", "error", err)
		}
		if !sleep(ctx, pruneEvery) {
			return
		}
	}
}

// sleep waits, unless ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
