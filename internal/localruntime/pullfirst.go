package localruntime

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/glassboxhq/glassbox/internal/localruntime/image"
	"github.com/glassboxhq/glassbox/sandbox"
)

// patient is the runtime for programs of this user, which wait for an image as
// long as they like: they see how it ends.
type patient struct{ *Runtime }

// ownPatience is for a program that hangs.
const ownPatience = time.Hour

func (rt patient) Create(ctx context.Context, spec *sandbox.Spec) (*sandbox.Info, error) {
	return rt.create(ctx, spec, ownPatience)
}

// pullFirst pulls an image and starts the sandbox from it. It answers after a
// while, and the sandbox comes when it comes.
//
//	Pending ─pulled, started─► Running
//	   └─ fault: no sandbox, or Failed where its id is known ─► …
func (b *box) pullFirst(ctx context.Context, l *launch, name string) (*sandbox.Info, error) {
	ended := make(chan error, 1)
	select {
	case b.rt.jobs <- func(ctx context.Context) { ended <- b.pullAndStart(ctx, l, name) }:
	case <-b.rt.done:
		return nil, errors.Join(errStopped(), b.discard(ctx))
	}
	patience := time.NewTimer(l.patience)
	defer patience.Stop()
	for {
		select {
		case err := <-ended:
			if err != nil {
				return nil, err
			}
			return b.info(), nil
		case <-ctx.Done():
			b.leave() // nobody knows of it
			return nil, sandbox.FromContext(ctx, "create sandbox")
		case <-patience.C:
			if told, err := b.announce(); told || err != nil {
				return b.info(), err
			}
		}
	}
}

// announce notes that the sandbox is known by its id, unless its creation has
// ended by now.
func (b *box) announce() (bool, error) {
	b.mu.Lock()
	next := *b.rec
	settled := b.settled
	if !settled {
		next.Announced = true
		b.rec = &next
	}
	b.mu.Unlock()
	if settled {
		return false, nil
	}
	return true, b.change(func(*record) {})
}

// settle ends the creation, and reports whether the sandbox is known by its id.
func (b *box) settle() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.settled = true
	return b.rec.Announced
}

// pullAndStart is what goes on without the one who asked for the sandbox.
func (b *box) pullAndStart(ctx context.Context, l *launch, name string) error {
	img, err := b.pull(ctx, l, name)
	b.op.Lock()
	defer b.op.Unlock()
	select {
	case <-b.quit:
		b.closeSockets()
		return &sandbox.Error{Op: "create sandbox", Sandbox: b.id, Code: sandbox.CodeSandboxDeleting, Message: "the sandbox was deleted while its image was pulled"}
	default:
	}
	if err != nil {
		err = noImage(name, err)
	} else {
		l.image = img
		err = b.start(ctx, l)
	}
	announced := b.settle()
	select {
	case <-b.ending:
		if err == nil && !announced {
			err = &sandbox.Error{Op: "create sandbox", Code: sandbox.CodeCancelled, Message: "who asked for it has gone"}
		}
	default:
	}
	switch {
	case err == nil:
		return nil
	case !announced:
		return errors.Join(err, b.discard(ctx))
	}
	b.closeSockets()
	b.fail(ctx, err.Error())
	if !b.serving.Load() {
		select {
		case b.rt.started <- b: // its expiry, and its deletion
			b.serving.Store(true)
		case <-ctx.Done():
		}
	}
	return err
}

// pull waits for an image, which is pulled on when the sandbox is not wanted any
// more: who asked for it may come again, and find it.
func (b *box) pull(ctx context.Context, l *launch, name string) (*image.Image, error) {
	var watching sync.WaitGroup
	defer watching.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watching.Go(func() {
		select {
		case <-b.ending:
			cancel()
		case <-ctx.Done():
		}
	})
	images := b.rt.images.As(l.auth)
	if err := images.Begin(ctx, name); err != nil {
		return nil, err
	}
	return images.Pull(ctx, name, func(st image.Status) {
		b.mu.Lock()
		defer b.mu.Unlock()
		next := *b.rec // on disk it need not be
		next.Info.Reason, next.Info.Message = "IMAGE_PULLING", fmt.Sprintf("its image %s is pulled: %s", name, st)
		b.rec = &next
	})
}
