package main

import (
	"context"
	"errors"
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
		select {
		case <-time.After(takeOverWait):
		case <-ctx.Done():
		}
	}
	return sandbox.FromContext(ctx, "reach the local runtime")
}
