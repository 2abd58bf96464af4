package syncer

import (
	"context"
	"errors"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/console/mirror"
	"github.com/glassboxhq/glassbox/sandbox"
)

// following is a history that is open, and its copy.
type following struct {
	f    *follower
	from History
	to   *mirror.History

	told      time.Time // when the sandbox was told what is stored
	missed    bool      // the feed was cut before it was read
	unsettled unsettled
}

const (
	changesAtOnce = 200
	// tellEvery bounds how often a sandbox is told what is stored: each time is
	// a commit there.
	tellEvery = 2 * time.Second
	// tellAtLeast keeps this reader among those that a sandbox waits for.
	tellAtLeast = 24 * time.Hour
)

// follow brings over what the history has, and waits for more, until an error
// or until there can be no more.
func (f *follower) follow(ctx context.Context) (done bool, err error) {
	seen := f.now()
	if seen.State == sandbox.Paused || seen.State == sandbox.Pending { // it does not answer, and that is no fault
		<-ctx.Done()
		return false, ctx.Err()
	}
	if seen.ended() {
		if all, err := f.hasAll(ctx); all || err != nil {
			return all, err
		}
		select {
		case f.v.ends <- struct{}{}:
			defer func() { <-f.v.ends }()
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
	opening, cancel := context.WithTimeout(ctx, f.v.s.opts.Request)
	defer cancel()
	from, err := f.v.s.fleet.Open(opening, f.v.ID, f.id)
	if err != nil {
		return f.unopened(ctx, seen, err)
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	g := &following{f: f, from: from}
	if _, err := g.changes(ctx, &history.ChangeQuery{Limit: 1}); err != nil {
		return f.unopened(ctx, seen, err)
	}
	if err := g.begin(ctx, seen); err != nil {
		return false, err
	}
	f.problem(ctx, nil)
	return g.feed(ctx, seen)
}

// feed brings over change after change.
func (g *following) feed(ctx context.Context, seen *Seen) (done bool, err error) {
	f := g.f
	for wait := time.Duration(0); ; {
		feed, err := g.changes(ctx, &history.ChangeQuery{After: g.to.Position, Limit: changesAtOnce, Wait: wait})
		if err != nil {
			return false, err
		}
		if len(feed.Changes) == 0 && !feed.Reset {
			f.setBehind(false)
			wait = f.v.s.opts.Wait
			if err := g.care(ctx, &wait); err != nil {
				return false, err
			}
			if g.ended() {
				return true, f.end(ctx, endOf(seen), false)
			}
			continue
		}
		f.setBehind(true)
		if err := g.take(ctx, feed); err != nil {
			return false, err
		}
		if wait = 0; len(feed.Changes) < changesAtOnce && !feed.Reset { // it may be all
			wait = f.v.s.opts.Wait
			f.setBehind(false)
		}
		if g.ended() {
			wait = 0
		}
		if err := g.care(ctx, &wait); err != nil {
			return false, err
		}
	}
}

// care does what is due beside reading, and shortens the wait for what is due
// before its end.
func (g *following) care(ctx context.Context, wait *time.Duration) error {
	if err := g.settle(ctx, wait); err != nil {
		return err
	}
	return g.acknowledge(ctx, wait)
}

// hasAll reports whether the history has been read to its end.
func (f *follower) hasAll(ctx context.Context) (bool, error) {
	list, err := f.v.s.mirror.Histories(ctx, f.v.ID, f.id)
	return err == nil && len(list) > 0 && !list[0].EndedAt.IsZero(), err
}

// unopened tells of a history that cannot be opened: where its sandbox has
// ended, it never will be.
func (f *follower) unopened(ctx context.Context, seen *Seen, err error) (done bool, _ error) {
	final := errors.Is(err, sandbox.ErrUnsupported) || errors.Is(err, sandbox.ErrNotFound)
	if !seen.ended() || !final {
		return false, err
	}
	f.problem(ctx, err)
	f.mu.Lock()
	behind := f.behind
	f.mu.Unlock()
	return true, f.end(ctx, endOf(seen), behind)
}

func endOf(seen *Seen) string {
	why := "the sandbox ended while this ran"
	if seen.Message != "" {
		why += ": " + seen.Message
	}
	return why
}

func (g *following) ended() bool {
	e, ok := g.from.(interface{ Ended() bool })
	return ok && e.Ended()
}

// begin finds the copy, and makes sure that it is one of this history.
func (g *following) begin(ctx context.Context, seen *Seen) (err error) {
	m := g.f.v.s.mirror
	if g.to, err = m.History(ctx, g.f.v.ID, g.f.id, seen.InstanceID); err != nil {
		return err
	}
	same, err := g.same(ctx)
	if err != nil {
		return err
	}
	if !same {
		return g.replace(ctx)
	}
	if !g.to.EndedAt.IsZero() && !g.ended() {
		if err := m.Reopen(ctx, g.to); err != nil {
			return err
		}
	}
	return g.resume(ctx)
}

func (g *following) replace(ctx context.Context) (err error) {
	f := g.f
	f.v.s.opts.Logger.WarnContext(ctx, "a history was replaced in its sandbox; what was mirrored of it is kept", "connection", f.v.ID, "sandbox", f.id)
	g.to, err = f.v.s.mirror.Replace(ctx, g.to, g.to.InstanceID, "the history was replaced or cut in its sandbox")
	g.missed, g.unsettled = false, unsettled{}
	return err
}

// changes asks for a part of the feed.
func (g *following) changes(ctx context.Context, query *history.ChangeQuery) (*history.Feed, error) {
	ctx, cancel := context.WithTimeout(ctx, query.Wait+g.f.v.s.opts.Request)
	defer cancel()
	return g.from.Changes(ctx, query)
}

// same reports whether the open history is that of which the mirror has a
// part: whether what it tells of a place that was read is what was read there.
func (g *following) same(ctx context.Context) (bool, error) {
	at := g.to.Position
	if at == 0 {
		return true, nil
	}
	here, err := g.changes(ctx, &history.ChangeQuery{After: at - 1, Limit: 1})
	if err != nil {
		return false, err
	}
	if len(here.Changes) > 0 && here.Changes[0].Seq == at {
		return g.known(ctx, here.Changes[0])
	}
	// That change was deleted. Does the history reach as far at all?
	if here, err = g.changes(ctx, &history.ChangeQuery{After: at, Limit: 1}); err != nil {
		return false, err
	}
	if here.Reset && here.Next < at {
		return false, nil
	}
	first, err := g.changes(ctx, &history.ChangeQuery{Limit: 1})
	if err != nil || len(first.Changes) == 0 || first.Changes[0].Seq > at {
		return err == nil, err
	}
	return g.known(ctx, first.Changes[0])
}

// known reports whether the mirror has a change, or may have had it.
func (g *following) known(ctx context.Context, c *history.Change) (bool, error) {
	id, err := g.f.v.s.mirror.KnownChange(ctx, g.to, c.Seq)
	return id == "" || id == c.ID, err
}

// acknowledge tells the sandbox what is stored, not too often: what is left to
// tell shortens the next wait.
func (g *following) acknowledge(ctx context.Context, wait *time.Duration) error {
	consumer, ok := g.from.(history.Consumer)
	if !ok || g.to.Position == 0 || g.ended() { // nothing is deleted there any more
		return nil
	}
	since := time.Since(g.told)
	switch {
	case g.to.Acknowledged >= g.to.Position && since < tellAtLeast && !g.told.IsZero():
		return nil
	case since < tellEvery:
		*wait = min(*wait, tellEvery-since)
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, g.f.v.s.opts.Request)
	defer cancel()
	if err := consumer.Acknowledge(ctx, g.f.v.s.consumer, g.to.Position); err != nil {
		return err
	}
	g.told = time.Now()
	return g.f.v.s.mirror.Acknowledged(ctx, g.to, g.to.Position)
}
