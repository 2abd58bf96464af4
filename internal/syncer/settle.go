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
// that is not known are asked for again, a few times.
const (
	settleAfter  = 2 * time.Second
	settleTries  = 4
	maxUnsettled = 500
)

// unsettled are commands of which it is not known what they did to files.
type unsettled struct {
	tries map[string]int // by id
	asked time.Time
}

func (u *unsettled) note(ops map[string]*history.Operation) {
	for id, op := range ops {
		waits := op.Command != nil && history.Final(op.Status) && op.Changes == nil && !op.Foreign
		switch {
		case !waits:
			delete(u.tries, id)
		case u.tries == nil:
			u.tries, u.asked = map[string]int{id: 0}, time.Now()
		case len(u.tries) < maxUnsettled:
			u.tries[id] += 0
		}
	}
}

// settle asks again when it is time, and shortens the wait for that.
func (g *following) settle(ctx context.Context, wait *time.Duration) error {
	u := &g.unsettled
	if len(u.tries) == 0 || g.ended() {
		return nil
	}
	if since := time.Since(u.asked); since < settleAfter {
		*wait = min(*wait, settleAfter-since)
		return nil
	}
	u.asked = time.Now()
	b := &mirror.Batch{}
	for id := range u.tries {
		op, err := g.get(ctx, id)
		switch {
		case errors.Is(err, sandbox.ErrNotFound):
			delete(u.tries, id)
			continue
		case err != nil:
			return err
		}
		if op.Changes != nil {
			b.Operations = append(b.Operations, mirror.Entry{Operation: op, ChangeSeq: g.to.Position})
		}
		if u.tries[id]++; op.Changes != nil || u.tries[id] >= settleTries {
			delete(u.tries, id)
		}
	}
	if len(u.tries) > 0 {
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
