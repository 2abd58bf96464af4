package syncer

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/glassboxhq/glassbox/internal/console/mirror"
	"github.com/glassboxhq/glassbox/sandbox"
)

// follower brings the history of one sandbox into the mirror. There is one for
// each sandbox, so nothing is read twice at the same time.
type follower struct {
	v  *service
	id string
	// missed counts the looks in which it was not listed.
	missed int

	mu      sync.Mutex
	seen    *Seen // replaced, never changed
	running bool
	done    bool               // all there will ever be is in the mirror
	lost    bool               // its service has it no more, nor its history
	behind  bool               // the feed may hold what was not read
	fault   error              // why the history is not read
	cancel  context.CancelFunc // of what it does now: something has changed
}

func newFollower(v *service, seen *Seen) *follower {
	return &follower{v: v, id: seen.ID, seen: seen, behind: true}
}

// now is the sandbox as it was seen last.
func (f *follower) now() *Seen {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seen
}

// start begins to follow, unless it does already or all is there.
func (f *follower) start(ctx context.Context) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.running || f.done && f.seen.ended() {
		return
	}
	f.running, f.done = true, false
	f.v.work.Go(func() {
		f.run(ctx)
		f.mu.Lock()
		f.running = false
		f.mu.Unlock()
	})
}

// change takes what is seen now. What is at work looks at it again.
func (f *follower) change(seen *Seen, lost bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	moved := f.seen.State != seen.State || !f.seen.GoneAt.Equal(seen.GoneAt)
	f.seen, f.lost = seen, lost
	if moved && f.cancel != nil {
		f.cancel()
	}
}

// scope is ctx until the next turn.
func (f *follower) scope(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cancel = cancel
	return ctx, cancel
}

// run follows until ctx ends or there is nothing more to come.
func (f *follower) run(ctx context.Context) {
	for pause := f.v.s.opts.Retry; ctx.Err() == nil; {
		turn, cancel := f.scope(ctx)
		began := time.Now()
		done, err := f.step(turn)
		switch {
		case done:
			f.mu.Lock()
			f.done = true
			f.mu.Unlock()
			cancel()
			return
		case turn.Err() != nil: // it has changed: look at once
			pause = f.v.s.opts.Retry
			cancel()
			continue
		}
		f.problem(ctx, err)
		if time.Since(began) > maxPause {
			pause = f.v.s.opts.Retry
		}
		sleep(turn, pause/2+rand.N(pause)) // not all at once
		cancel()
		pause = min(2*pause, maxPause)
	}
}

// step follows the history while it is open, or tells its end.
func (f *follower) step(ctx context.Context) (done bool, err error) {
	f.mu.Lock()
	seen, lost, behind := f.seen, f.lost, f.behind
	f.mu.Unlock()
	if !seen.GoneAt.IsZero() {
		if dropped, err := f.drop(ctx); dropped || err != nil {
			return dropped, err
		}
	}
	if !lost {
		return f.follow(ctx)
	}
	if err := f.v.s.mirror.Gone(ctx, f.v.ID, f.id); err != nil {
		return false, err
	}
	err = f.end(ctx, "the sandbox is gone", behind)
	return err == nil, err
}

// drop lets the history go with its sandbox, where that is set.
func (f *follower) drop(ctx context.Context) (dropped bool, err error) {
	if f.v.s.opts.Limits == nil {
		return false, nil
	}
	limits, err := f.v.s.opts.Limits(ctx)
	if err != nil || !limits.Of(f.v.ID).Dies {
		return false, err
	}
	if err = f.v.s.mirror.Gone(ctx, f.v.ID, f.id); err == nil {
		_, err = f.v.s.mirror.Drop(ctx, f.v.ID, f.id)
	}
	return err == nil, err
}

// problem keeps and tells why the history is not read; nil: it is.
func (f *follower) problem(ctx context.Context, err error) {
	f.mu.Lock()
	f.fault = err
	f.mu.Unlock()
	f.report(ctx, err)
}

func (f *follower) report(ctx context.Context, err error) {
	recording := mirror.RecordingUnknown
	list, listErr := f.v.s.mirror.Histories(ctx, f.v.ID, f.id)
	switch {
	case listErr == nil && len(list) > 0:
		recording = mirror.Recorded
	case errors.Is(err, sandbox.ErrUnsupported):
		recording, err = mirror.NotRecorded, nil
	}
	f.tell(ctx, recording, err)
}

func (f *follower) tell(ctx context.Context, recording mirror.Recording, problem error) {
	if ctx.Err() != nil {
		return
	}
	if err := f.v.s.mirror.SetRecording(ctx, f.v.ID, f.id, recording, problem); err != nil && ctx.Err() == nil {
		f.v.s.opts.Logger.WarnContext(ctx, "the state of a sandbox is not kept", "sandbox", f.id, "error", err)
	}
}

// vanished tells that the service has no such sandbox any more and keeps no
// history of it.
func (f *follower) vanished(ctx context.Context) {
	gone := *f.now()
	gone.GoneAt, gone.State = time.Now().UTC(), sandbox.Terminated
	f.change(&gone, true)
	f.start(ctx)
}

// end closes the history in the mirror, if there is one.
func (f *follower) end(ctx context.Context, why string, gap bool) error {
	list, err := f.v.s.mirror.Histories(ctx, f.v.ID, f.id)
	if err != nil || len(list) == 0 || !list[0].EndedAt.IsZero() {
		return err
	}
	return f.v.s.mirror.End(ctx, list[0], why, gap)
}

func (f *follower) setBehind(behind bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.behind = behind
}
