package syncer

import (
	"context"
	"reflect"
	"sync"
	"time"

	"github.com/glassboxhq/glassbox/sandbox"
)

// service is one connection, with a follower for each of its sandboxes.
type service struct {
	s *Syncer
	Connection
	cancel context.CancelFunc
	turns  chan struct{} // who reads a history has one
	ends   chan struct{} // who reads the history of a sandbox that has ended has one
	wake   chan struct{}

	work      sync.WaitGroup
	followers map[string]*follower
	failing   bool
	keptAt    time.Time
}

// run lists the sandboxes again and again.
func (v *service) run(ctx context.Context) {
	defer v.work.Wait()
	defer v.cancel()
	for {
		if err := v.look(ctx); err != nil && ctx.Err() == nil {
			v.trouble(ctx, err)
		} else if v.failing && ctx.Err() == nil {
			v.recovered(ctx)
		}
		pause := time.NewTimer(v.Every)
		select {
		case <-ctx.Done():
			pause.Stop()
			return
		case <-v.wake:
			pause.Stop()
		case <-pause.C:
		}
	}
}

// trouble tells that a service does not answer: its followers find out for
// themselves what of their sandboxes they still reach.
func (v *service) trouble(ctx context.Context, err error) {
	if !v.failing {
		v.failing = true
		v.s.opts.Logger.WarnContext(ctx, "connection does not list its sandboxes", "connection", v.ID, "error", err)
	}
	for _, f := range v.followers {
		if f.now().GoneAt.IsZero() {
			f.report(ctx, err)
		}
	}
}

// recovered tells that it answers again: what is left are the followers' own
// troubles.
func (v *service) recovered(ctx context.Context) {
	v.failing = false
	v.s.opts.Logger.InfoContext(ctx, "connection answers again", "connection", v.ID)
	for _, f := range v.followers {
		f.mu.Lock()
		fault := f.fault
		f.mu.Unlock()
		f.report(ctx, fault)
	}
}

// endsAtOnce is how many histories of sandboxes that have ended are open at the
// same time: of each a copy is made, which may be large.
const endsAtOnce = 2

// look lists the sandboxes once, and follows what is new.
func (v *service) look(ctx context.Context) error {
	asking, cancel := context.WithTimeout(ctx, v.s.opts.Request)
	defer cancel()
	list, err := v.s.fleet.List(asking, v.ID)
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for _, seen := range list {
		there[seen.ID] = true
		if err := v.see(ctx, seen); err != nil {
			return err
		}
	}
	missing := false
	for id, f := range v.followers {
		missing = missing || !there[id] && f.now().GoneAt.IsZero()
	}
	if !missing && time.Since(v.keptAt) < keptAfter*v.Every {
		return nil
	}
	return v.lookBack(ctx, there, missing)
}

// lookBack looks for sandboxes that are gone: whose histories are kept, and
// those that have only vanished.
func (v *service) lookBack(ctx context.Context, there map[string]bool, missing bool) error {
	asking, cancel := context.WithTimeout(ctx, v.s.opts.Request)
	defer cancel()
	kept, err := v.s.fleet.Kept(asking, v.ID)
	if err != nil {
		return err
	}
	first := v.keptAt.IsZero()
	v.keptAt = time.Now()
	for _, seen := range kept {
		if there[seen.ID] {
			continue
		}
		there[seen.ID] = true
		if err := v.see(ctx, seen); err != nil {
			return err
		}
	}
	if first { // what vanished while no syncer ran
		if err := v.remember(ctx, there); err != nil {
			return err
		}
	}
	if !missing && !first {
		return nil
	}
	for id, f := range v.followers {
		if there[id] || !f.now().GoneAt.IsZero() {
			continue
		}
		if f.missed++; f.missed >= vanishedAfter {
			f.vanished(ctx)
		}
	}
	return nil
}

// vanishedAfter is in how many lists in a row a sandbox must be missing.
const vanishedAfter = 2

// remember takes up what the mirror has as being there.
func (v *service) remember(ctx context.Context, there map[string]bool) error {
	list, err := v.s.mirror.Sandboxes(ctx, v.ID)
	if err != nil {
		return err
	}
	for _, box := range list {
		if v.followers[box.ID] == nil && !there[box.ID] && box.GoneAt.IsZero() {
			v.followers[box.ID] = newFollower(v, &Seen{Info: box.Info})
		}
	}
	return nil
}

// see keeps what is told of a sandbox, and follows it.
func (v *service) see(ctx context.Context, seen *Seen) error {
	f := v.followers[seen.ID]
	if f != nil && reflect.DeepEqual(f.now(), seen) {
		f.missed = 0
		f.start(ctx)
		return nil
	}
	if err := v.s.mirror.See(ctx, v.ID, &seen.Info, seen.GoneAt); err != nil {
		return err
	}
	if f == nil {
		f = newFollower(v, seen)
		v.followers[seen.ID] = f
	}
	f.missed = 0
	f.change(seen, false)
	f.start(ctx)
	return nil
}

// ended reports whether nothing more can come from a sandbox as it is.
func (s *Seen) ended() bool {
	return !s.GoneAt.IsZero() || s.State == sandbox.Failed || s.State == sandbox.Terminated
}
