package localruntime

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/glassboxhq/glassbox/internal/localruntime/egress"
	"github.com/glassboxhq/glassbox/internal/localruntime/proc"
	"github.com/glassboxhq/glassbox/internal/sockets"
	"github.com/glassboxhq/glassbox/sandbox"
)

// box is one sandbox as its owner sees it.
//
//	Pending ─► Running ◄─► Paused        any ─delete, expiry─► Terminated (kept as a history)
//	               └─ends by itself─► Failed
type box struct {
	rt      *Runtime
	id      string
	dir     dir
	engine  engine
	control *control

	sockets []net.Listener // to serve: the recorder's, and the proxy's if any
	renewed chan struct{}  // the expiry has changed
	ending  chan struct{}  // closed when the sandbox is not wanted any more
	leave   func()         // closes ending, once
	quit    chan struct{}  // closed when the sandbox is gone
	served  chan struct{}  // closed when nothing is served any more

	serving atomic.Bool // somebody closes served in the end

	op sync.Mutex // held through every change: create, pause, snapshot, end …

	mu      sync.Mutex
	rec     *record
	settled bool // its creation has ended, well or not
}

func (rt *Runtime) newBox(rec *record, d dir) *box {
	ending := make(chan struct{})
	return &box{
		rt: rt, id: rec.Info.ID, dir: d, rec: rec, engine: rt.engines[rec.Engine],
		control: newControl(rec.Info.ID, rt.opts.Logger),
		renewed: make(chan struct{}, 1), quit: make(chan struct{}), served: make(chan struct{}),
		ending: ending, leave: sync.OnceFunc(func() { close(ending) }),
	}
}

// listen makes the sockets that the sandbox sees.
func (b *box) listen() error {
	names := []string{b.dir.socket()}
	if b.rec.Spec.Network == NetworkProxy && b.rec.Engine != ImageHere {
		names = append(names, b.dir.egress())
	}
	for _, name := range names {
		l, err := sockets.Listen(name)
		if err != nil {
			b.closeSockets()
			return err
		}
		b.sockets = append(b.sockets, l)
	}
	return nil
}

func (b *box) closeSockets() {
	for _, l := range b.sockets {
		l.Close()
	}
	b.sockets = nil
}

// serve serves the sandbox's sockets and follows its life, until it is gone
// or ctx ends.
func (b *box) serve(ctx context.Context) {
	defer close(b.served)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var parts sync.WaitGroup
	for i, l := range b.sockets {
		if i == 0 {
			parts.Go(func() { b.control.serve(ctx, l) })
			continue
		}
		parts.Go(func() { b.serveEgress(ctx, l) })
	}
	b.follow(ctx)
	cancel()
	parts.Wait()
	b.control.close("the server is stopping")
}

func (b *box) serveEgress(ctx context.Context, l net.Listener) {
	proxy := egress.New(&egress.Options{
		Sandbox: b.id, Allowed: b.rt.opts.AllowPrivateNetwork,
		OnConnect: b.rt.opts.OnConnect, Logger: b.rt.opts.Logger,
	})
	if err := proxy.Serve(ctx, l); err != nil {
		b.rt.opts.Logger.ErrorContext(ctx, "sandbox has no way out any more", "sandbox", b.id, "error", err)
	}
}

// follow waits for what ends a sandbox: its process, its expiry, the size of
// its history folder.
func (b *box) follow(ctx context.Context) {
	ended := make(chan struct{})
	var waiting sync.WaitGroup
	defer waiting.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if h, err := b.process().Open(); err == nil {
		waiting.Go(func() {
			defer h.Close()
			if h.Wait(ctx) == nil {
				close(ended)
			}
		})
	} else {
		close(ended)
	}
	sizes := time.NewTicker(b.rt.opts.WatchEvery)
	defer sizes.Stop()
	expiry := b.untilExpiry()
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.quit:
			return
		case <-b.renewed:
			expiry = b.untilExpiry()
		case <-ended:
			ended = nil
			b.ended(ctx)
		case <-expiry:
			b.expired(ctx)
			expiry = time.After(retryExpiry) // for the case that it failed
		case <-sizes.C:
			b.watchSize(ctx)
			b.noteDue(ctx)
		}
	}
}

// retryExpiry is how long an expired sandbox that could not be ended is left
// before the next try.
const retryExpiry = 10 * time.Second

// untilExpiry returns a channel that answers at the expiry.
func (b *box) untilExpiry() <-chan time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rec.Info.ExpiresAt.IsZero() {
		return nil
	}
	return time.After(b.rec.Info.ExpiresAt.Sub(b.rt.opts.Now()))
}

// info describes the sandbox as it is now.
func (b *box) info() *sandbox.Info {
	b.mu.Lock()
	info := b.rec.copyInfo()
	deleting := b.rec.Deleting
	b.mu.Unlock()
	switch {
	case deleting:
		info.Reason, info.Message = "DELETING", "the sandbox is being deleted"
	case info.State == sandbox.Running && !b.control.answers():
		info.State, info.Reason = sandbox.Unknown, "NO_ANSWER"
		info.Message = "its recorder does not answer on the control channel"
	}
	return info
}

// state returns the recorded state and whether the sandbox is being deleted.
func (b *box) state() (sandbox.State, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.rec.Info.State, b.rec.Deleting
}

// change changes the record, on disk first.
func (b *box) change(how func(*record)) error {
	b.mu.Lock()
	next := *b.rec
	b.mu.Unlock()
	before := next.Info.State
	how(&next)
	if next.Info.State != before {
		next.ChangedAt = b.rt.now()
		next.happened(next.ChangedAt, next.Info.Reason, next.Info.Message)
	}
	if err := b.dir.save(&next); err != nil {
		return err
	}
	b.mu.Lock()
	b.rec = &next
	b.mu.Unlock()
	return nil
}

func (b *box) process() proc.Ref {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.rec.Process
}

// record returns what is recorded now. It must not be changed.
func (b *box) record() *record {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.rec
}

// lives reports whether the sandbox runs or is paused, and stays.
func (b *box) lives() bool {
	select {
	case <-b.quit:
		return false
	default:
	}
	state, deleting := b.state()
	return !deleting && (state == sandbox.Running || state == sandbox.Paused)
}
