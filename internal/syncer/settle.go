package syncer

import (
	"context"
	"errors"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/console/mirror"
	"github.com/glassboxhq/glassbox/sandbox"
)

// A recorder finds out what a command did to files a while after its end, and
// the feed tells it only where there is something to tell. So commands of which
// that is not known are asked for again: after 2, 4, 8, 16 and 32 seconds, as
// a machine may have much to do.
const (
	settleAfter  = 2 * time.Second
	settleRounds = 16
	maxUnsettled = 500
	resumeAtMost = 200
	// resumeWithin is how long before the last contact a command may have ended
	// that is asked for again by who begins to follow.
	resumeWithin = time.Minute
)

// unsettled are commands of which it is not known what they did to files.
type unsettled struct {
	rounds map[string]int // since each was noted, by id
	asked  time.Time
}

func (u *unsettled) note(op *history.Operation) {
	waits := op.Command != nil && history.Final(op.Status) && op.Changes == nil && !op.Foreign
	switch {
	case !waits:
		delete(u.rounds, op.ID)
	case u.rounds == nil:
		u.rounds, u.asked = map[string]int{op.ID: 0}, time.Now()
	case len(u.rounds) < maxUnsettled:
		u.rounds[op.ID] += 0
	}
}

// resume notes what was not settled when the copy was last at work.
func (g *following) resume(ctx context.Context) error {
	page, err := g.f.v.s.mirror.Reader(g.to.No).List(ctx, &history.Filter{Newest: true, Limit: resumeAtMost})
	if err != nil {
		return err
	}
	for _, op := range page.Operations {
		if op.CompletedAt.After(g.to.SyncedAt.Add(-resumeWithin)) {
			g.unsettled.note(op)
		}
	}
	return nil
}

// settle asks again when it is time, and shortens the wait for that.
func (g *following) settle(ctx context.Context, wait *time.Duration) error {
	u := &g.unsettled
	if len(u.rounds) == 0 {
		return nil
	}
	last := g.ended() // nothing more will be known
	if since := time.Since(u.asked); since < settleAfter && !last {
		*wait = min(*wait, settleAfter-since)
		return nil
	}
	u.asked = time.Now()
	b := &mirror.Batch{}
	for id := range u.rounds {
		u.rounds[id]++
		n := u.rounds[id]
		if n&(n-1) != 0 && !last { // no power of two
			continue
		}
		op, err := g.get(ctx, id)
		switch {
		case errors.Is(err, sandbox.ErrNotFound):
			delete(u.rounds, id)
			continue
		case err != nil:
			return err
		}
		if op.Changes != nil {
			b.Operations = append(b.Operations, mirror.Entry{Operation: op, ChangeSeq: g.to.Position})
		}
		if op.Changes != nil || n >= settleRounds || last {
			delete(u.rounds, id)
		}
	}
	if len(u.rounds) > 0 {
		*wait = min(*wait, settleAfter)
	}
	if len(b.Operations) == 0 {
		return nil
	}
	return g.f.v.s.mirror.Store(ctx, g.to, b)
}

func (g *following) get(ctx context.Context, id string) (*history.Operation, error) {
	ctx, cancel := context.WithTimeout(ctx, g.f.v.s.opts.Request)
	defer cancel()
	return g.from.Get(ctx, id)
}
