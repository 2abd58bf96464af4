package localruntime

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/sandbox"
)

// History is the folder of a sandbox's history, of a living sandbox or of one
// that is gone.
type History struct {
	ID      string        `json:"id"`
	Name    string        `json:"name,omitempty"`
	State   sandbox.State `json:"state"`
	Message string        `json:"message,omitempty"`
	Created time.Time     `json:"created_at"`
	Deleted time.Time     `json:"deleted_at,omitzero"`
	// Dir is /.agent-history of the sandbox. What lies in it was written by
	// the sandbox: open it without following links, and never while Live.
	Dir  string `json:"dir"`
	Live bool   `json:"live"`
	// After is what was done with a sandbox whose recorder could not write it
	// down any more, the oldest first.
	After []*history.Operation `json:"after,omitempty"`
}

// Histories lists the histories that are kept, the newest first.
func (rt *Runtime) Histories(ctx context.Context) ([]*History, error) {
	if err := rt.wait(ctx); err != nil {
		return nil, err
	}
	var list []*History
	err := rt.eachRecord(func(d dir, rec *record) {
		state := rec.Info.State
		live := rec.DeletedAt.IsZero() && state != sandbox.Failed
		if live && state == sandbox.Unknown {
			live = rt.runs(rec.Info.ID)
		}
		list = append(list, &History{
			ID: rec.Info.ID, Name: rec.Info.Name, State: state, Message: rec.Info.Message,
			Created: rec.Info.CreatedAt, Deleted: rec.DeletedAt, Dir: d.history(),
			Live: live, After: rec.unwritten(live),
		})
	})
	slices.SortFunc(list, func(a, b *History) int { return b.Created.Compare(a.Created) })
	return list, err
}

// unwritten is what waits for a recorder that will not come back.
func (r *record) unwritten(live bool) (ops []*history.Operation) {
	for _, n := range r.Notes {
		if !live && n.Op != nil {
			ops = append(ops, n.Op)
		}
	}
	return ops
}

// runs reports whether a process of the sandbox lives, as far as that is known
// here.
func (rt *Runtime) runs(id string) bool {
	rt.mu.Lock()
	b := rt.boxes[id]
	rt.mu.Unlock()
	return b != nil && b.process().Alive()
}

// serveHistories tells other processes of this user which histories are kept.
func (rt *Runtime) serveHistories(w http.ResponseWriter, r *http.Request) {
	list, err := rt.Histories(r.Context())
	if err != nil {
		wire.WriteError(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(list) // the client may have gone
}

// eachRecord calls do for every record on the disk, and for what is known of a
// sandbox without one that can be read.
func (rt *Runtime) eachRecord(do func(dir, *record)) error {
	folder := filepath.Join(rt.opts.StateDir, "sandboxes")
	entries, err := os.ReadDir(folder)
	if err != nil {
		return &sandbox.Error{Op: "list histories", Code: sandbox.CodeInternal, Err: err}
	}
	for _, entry := range entries {
		d := dir(filepath.Join(folder, entry.Name()))
		if !entry.IsDir() || !id.Valid(entry.Name()) {
			continue
		}
		if rec, err := d.loadOr(); err == nil {
			do(d, rec)
		}
	}
	return nil
}

const purgeEvery = time.Hour

// purgeLoop removes what is kept no longer, until ctx ends.
func (rt *Runtime) purgeLoop(ctx context.Context) {
	tick := time.NewTicker(purgeEvery)
	defer tick.Stop()
	for {
		if err := errors.Join(rt.Purge(ctx), rt.dropRecorders()); err != nil {
			rt.opts.Logger.ErrorContext(ctx, "old histories are not removed", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Purge removes the histories whose retention is over. Run does it every hour.
func (rt *Runtime) Purge(ctx context.Context) error {
	var errs error
	err := rt.eachRecord(func(d dir, rec *record) {
		if rec.DeletedAt.IsZero() || rt.opts.Now().Sub(rec.DeletedAt) < rt.opts.Retention || ctx.Err() != nil {
			return
		}
		// The record goes last: what is cut off in between is found again.
		err := removeTree(d.history())
		if err == nil {
			err = os.RemoveAll(string(d))
		}
		if err != nil {
			errs = errors.Join(errs, err)
			return
		}
		rt.opts.Logger.InfoContext(ctx, "history removed after its retention", "sandbox", rec.Info.ID)
	})
	return errors.Join(err, errs)
}

// maxConsole bounds what the first process of a sandbox has printed.
const maxConsole = 1 << 20

// watchSize ends the sandbox when its history folder, which lies on the host's
// disk and is not part of its own, grows over the cap. Its console's log lies
// there, too, and begins anew when it is long.
func (b *box) watchSize(ctx context.Context) {
	if !b.lives() {
		return
	}
	console := b.dir.file("console.log") // the engine's, no path of the sandbox
	if info, err := os.Lstat(console); err == nil && info.Size() > maxConsole {
		if err := os.Truncate(console, 0); err != nil {
			b.rt.opts.Logger.WarnContext(ctx, "console log grows", "sandbox", b.id, "error", err)
		}
	}
	if b.record().Engine == ImageHere {
		return
	}
	size := treeSize(b.dir.history(), b.rt.opts.HistoryCap)
	if size <= b.rt.opts.HistoryCap {
		return
	}
	b.op.Lock()
	defer b.op.Unlock()
	if !b.lives() {
		return
	}
	b.fail(ctx, "its history folder grew over the cap of the host")
}
