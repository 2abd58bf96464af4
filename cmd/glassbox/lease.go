package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/glassboxhq/glassbox/internal/localruntime"
	"github.com/glassboxhq/glassbox/internal/owner"
	"github.com/glassboxhq/glassbox/sandbox"
)

// takeLease asks who owns the state folder to stay, and watches that it does:
// if it goes all the same, this process takes its place, and what it had under
// way goes on.
func (a *app) takeLease(ctx context.Context) error {
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	lease, err := owner.Take(watching, a.settings.stateDir)
	if err != nil {
		stop()
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closing {
		stop()
		return lease.Close()
	}
	a.closers = append(a.closers, stop)
	a.watching.Go(func() {
		lease.Wait()
		_ = lease.Close() // it has ended
		if watching.Err() == nil {
			if err := a.takeOver(watching); err != nil && watching.Err() == nil {
				a.say("the server of this machine's sandboxes has ended, and none could be started: %v", err)
			}
		}
	})
	return nil
}

// handOver makes way for a server that asks to own the state folder, and goes
// on as its client.
func (a *app) handOver() {
	a.mu.Lock()
	defer a.mu.Unlock()
	o := a.owner
	if o == nil || a.closing {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	a.owner, a.closers = nil, append(a.closers, stop)
	a.watching.Go(func() {
		if err := errors.Join(o.close(ctx), a.awaitNext(ctx)); err != nil && ctx.Err() == nil {
			a.say("this machine's sandboxes were handed over to another program, and it is not reached: %v", err)
		}
	})
}

// awaitNext becomes a client of the next owner, or the owner again if none
// comes.
func (a *app) awaitNext(ctx context.Context) error {
	for until := time.Now().Add(handOverWait); time.Now().Before(until) && ctx.Err() == nil; {
		if a.takeLease(ctx) == nil {
			return nil
		}
		rest(ctx)
	}
	return a.takeOver(ctx)
}

// ownForGood makes this process the owner. One that is it only because nobody
// else was makes way.
func (a *app) ownForGood(ctx context.Context) error {
	a.stays = true
	for until := time.Now().Add(handOverWait); ; rest(ctx) {
		err := a.own(ctx)
		if !errors.Is(err, localruntime.ErrOwned) || ctx.Err() != nil {
			return err
		}
		makesWay, askErr := owner.HandOver(ctx, a.settings.stateDir)
		switch {
		case askErr == nil && !makesWay:
			return fmt.Errorf("%w; it serves this machine's sandboxes already", err)
		case time.Now().After(until):
			return fmt.Errorf("%w; it has not made way within %v", err, handOverWait)
		}
	}
}

// handOverWait is what an owner has to make way, and the next one to come.
const handOverWait = 15 * time.Second

// rest waits a moment before the owner is looked for again.
func rest(ctx context.Context) {
	select {
	case <-time.After(takeOverWait):
	case <-ctx.Done():
	}
}

const takeOverWait = 20 * time.Millisecond

// takeOver finds the owner of the state folder, or makes this process it.
func (a *app) takeOver(ctx context.Context) error {
	for ctx.Err() == nil {
		if a.takeLease(ctx) == nil {
			return nil
		}
		if err := a.own(ctx); err == nil || !errors.Is(err, localruntime.ErrOwned) {
			return err
		}
		// It has just begun, or is about to end.
		rest(ctx)
	}
	return sandbox.FromContext(ctx, "reach the local runtime")
}
