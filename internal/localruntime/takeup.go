package localruntime

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/sandbox"
)

// takeUp looks at what an earlier owner left, and returns what is to be
// served: the sandboxes that live, and those that failed. The rest is cleared
// away.
func (rt *Runtime) takeUp(ctx context.Context) []*box {
	folder := filepath.Join(rt.opts.StateDir, "sandboxes")
	entries, err := os.ReadDir(folder)
	if err != nil {
		rt.opts.Logger.ErrorContext(ctx, "sandboxes of an earlier run are not read", "error", err)
		return nil
	}
	var mu sync.Mutex
	var boxes []*box
	var all sync.WaitGroup
	limit := make(chan struct{}, 8)
	for _, entry := range entries {
		if !entry.IsDir() || !id.Valid(entry.Name()) {
			continue
		}
		limit <- struct{}{}
		all.Go(func() {
			defer func() { <-limit }()
			b, err := rt.takeUpOne(ctx, dir(filepath.Join(folder, entry.Name())))
			if err != nil {
				rt.opts.Logger.ErrorContext(ctx, "sandbox of an earlier run is not taken up", "sandbox", entry.Name(), "error", err)
			}
			if b != nil {
				mu.Lock()
				defer mu.Unlock()
				boxes = append(boxes, b)
			}
		})
	}
	all.Wait()
	return boxes
}

// takeUpOne returns the box of one sandbox, or nil when nothing is to be served.
func (rt *Runtime) takeUpOne(ctx context.Context, d dir) (*box, error) {
	rec, err := d.loadOr()
	if errors.Is(err, fs.ErrNotExist) {
		rec, err = d.unreadable(err), nil // a server died before anything was started
		rec.Info.State, rec.DeletedAt = sandbox.Pending, time.Time{}
	}
	if err != nil {
		return nil, err
	}
	if !rec.DeletedAt.IsZero() {
		return nil, nil
	}
	if rt.engines[rec.Engine] == nil {
		return nil, &sandbox.Error{Op: "take up sandbox", Code: sandbox.CodeImageNotFound, Message: "it has the unknown engine " + rec.Engine}
	}
	b := rt.newBox(rec, d)
	b.serving.Store(true)
	if gone, err := b.complete(ctx); gone || err != nil {
		return nil, err
	}
	if err := b.resume(ctx); err != nil {
		return nil, err
	}
	rt.mu.Lock()
	defer rt.mu.Unlock()
	rt.boxes[rec.Info.ID] = b
	rt.hereOne = rt.hereOne || rec.Engine == ImageHere
	return b, nil
}

// complete ends what an earlier owner was ending, or could not begin.
func (b *box) complete(ctx context.Context) (gone bool, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	at := b.rec.Info.ExpiresAt
	switch {
	case b.rec.Info.State == sandbox.Pending && b.rec.Announced && !b.rec.Deleting:
		b.fail(ctx, "the server ended while the image of the sandbox was pulled; create it again")
	case b.rec.Info.State == sandbox.Pending:
		return true, b.abandon(ctx)
	case b.rec.Deleting:
		b.finish(ctx)
		return true, b.bury(ctx, "DELETED", "the sandbox was deleted")
	case !at.IsZero() && !b.rt.opts.Now().Before(at):
		b.finish(ctx)
		return true, b.bury(ctx, "EXPIRED", "the sandbox reached its expiry")
	}
	return false, nil
}

// resume makes ready to serve what an earlier owner left.
func (b *box) resume(ctx context.Context) error {
	switch state := b.rec.Info.State; {
	case state == sandbox.Unknown:
		return b.adopt(ctx)
	case state == sandbox.Failed:
		b.control.close("the sandbox has ended: " + b.rec.Info.Message)
	case !b.rec.Process.Alive():
		b.fail(ctx, b.engine.fault(b.rec)+" (while no server ran)")
	default:
		b.control.setPaused(state == sandbox.Paused)
		return b.listen()
	}
	return nil
}

// adopt takes up a sandbox whose record cannot be read, so that it is listed
// and can be deleted. What runs of it goes on until then.
func (b *box) adopt(ctx context.Context) error {
	b.rt.opts.Logger.ErrorContext(ctx, "record of a sandbox cannot be read", "sandbox", b.id, "error", b.rec.Info.Message)
	b.control.close("the sandbox is unknown: " + b.rec.Info.Message)
	found, err := b.engine.processes(b.dir)
	if err != nil {
		return err
	}
	if len(found) > 0 {
		b.rec.Process = found[0]
	}
	return nil
}

// abandon removes a sandbox whose creation was cut off: nobody knows its id.
func (b *box) abandon(ctx context.Context) error {
	if err := b.engine.remove(ctx, b.rec, b.dir); err != nil {
		return err
	}
	return os.RemoveAll(string(b.dir))
}
