package localruntime

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

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
	rec, err := d.load()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, os.RemoveAll(string(d)) // a server died before anything was started
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
	cleaning, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	switch state, now := rec.Info.State, rt.opts.Now(); {
	case state == sandbox.Pending:
		return nil, b.abandon(cleaning)
	case rec.Deleting:
		return nil, b.bury(cleaning, "DELETED", "the sandbox was deleted")
	case !rec.Info.ExpiresAt.IsZero() && !now.Before(rec.Info.ExpiresAt):
		return nil, b.bury(cleaning, "EXPIRED", "the sandbox reached its expiry")
	case state == sandbox.Failed:
		b.control.close("the sandbox has ended: " + rec.Info.Message)
	case !rec.Process.Alive():
		b.fail(ctx, b.engine.fault(rec)+" (while no server ran)")
	default:
		b.control.setPaused(state == sandbox.Paused)
		if err := b.listen(); err != nil {
			return nil, err
		}
	}
	rt.mu.Lock()
	defer rt.mu.Unlock()
	rt.boxes[rec.Info.ID] = b
	rt.hereOne = rt.hereOne || rec.Engine == ImageHere
	return b, nil
}

// abandon removes a sandbox whose creation was cut off: nobody knows its id.
func (b *box) abandon(ctx context.Context) error {
	if err := b.engine.remove(ctx, b.rec, b.dir); err != nil {
		return err
	}
	return os.RemoveAll(string(b.dir))
}

// bury finishes a deletion.
func (b *box) bury(ctx context.Context, reason, message string) error {
	if err := b.engine.remove(ctx, b.rec, b.dir); err != nil {
		return err
	}
	if err := os.RemoveAll(b.dir.run()); err != nil {
		return err
	}
	return b.change(func(r *record) { r.entomb(reason, message, b.rt.opts.Now().UTC()) })
}
