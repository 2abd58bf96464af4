package glassbox

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/sandbox"
)

// keeper lets a sandbox live on for as long as it is used, and a while longer.
// It asks the service at most once in a twentieth of that while. The nil keeper
// does nothing.
type keeper struct {
	life   time.Duration
	always bool          // also while nothing uses it: the handle is open
	last   bool          // also at the end: the sandbox stays
	busy   atomic.Int64  // requests on their way
	used   chan struct{} // there was one
	cancel context.CancelFunc
	done   sync.WaitGroup
}

func newKeeper(o *Options) *keeper {
	if o.life() == 0 {
		return nil
	}
	return &keeper{life: o.life(), always: o.TTL == 0, used: make(chan struct{}, 1), cancel: func() {}}
}

// use tells that a request is on its way until done is called.
func (k *keeper) use() (done func()) {
	k.busy.Add(1)
	return func() {
		k.busy.Add(-1)
		select {
		case k.used <- struct{}{}:
		default:
		}
	}
}

// start begins to renew the life of a sandbox, until stop.
func (k *keeper) start(ctx context.Context, box *Sandbox) {
	if k == nil {
		return
	}
	k.last = !box.created || box.service.opts.Cleanup == Never
	ctx, k.cancel = context.WithCancel(context.WithoutCancel(ctx))
	k.done.Go(func() { k.run(ctx, box) })
}

// stop ends that, when what is due has been renewed.
func (k *keeper) stop() {
	if k == nil {
		return
	}
	k.cancel()
	k.done.Wait()
}

func (k *keeper) run(ctx context.Context, box *Sandbox) {
	renewed, due := time.Now(), false
	for {
		wait := k.life / 3
		if due {
			wait = k.life / 20
		}
		select {
		case <-ctx.Done():
		case <-k.used:
			due = true
			continue
		case <-time.After(time.Until(renewed.Add(wait))):
			due = due || k.working(ctx, box)
		}
		due = due || len(k.used) > 0
		if ctx.Err() != nil && !k.last {
			return
		}
		if due {
			if err := k.renew(context.WithoutCancel(ctx), box); gone(err) {
				box.service.opts.Logger.WarnContext(ctx, "life is not renewed", "sandbox", box.ID(), "error", err)
				return
			}
			due = false
		}
		if ctx.Err() != nil {
			return
		}
		renewed = time.Now()
	}
}

func gone(err error) bool {
	return errors.Is(err, sandbox.ErrNotFound) || errors.Is(err, sandbox.ErrState) || errors.Is(err, sandbox.ErrInvalid)
}

// working reports whether something is done in the sandbox, whoever does it.
func (k *keeper) working(ctx context.Context, box *Sandbox) bool {
	if k.always || k.busy.Load() > 0 {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, box.service.opts.RequestTimeout)
	defer cancel()
	info, err := box.session.Info(ctx)
	return err == nil && info.Running > 0
}

// renew lets the sandbox live from now on. A life that is longer stays.
func (k *keeper) renew(ctx context.Context, box *Sandbox) error {
	p := box.service.provider
	info, err := p.Get(ctx, box.ID())
	if err != nil {
		return err
	}
	at := p.Now().Add(k.life)
	if info.ExpiresAt.IsZero() || !info.ExpiresAt.Before(at) {
		return nil
	}
	// It is no act of the user, so a service of ours records none.
	_, err = p.Renew(wire.WithRecorded(ctx, id.New()), box.ID(), at)
	return err
}
