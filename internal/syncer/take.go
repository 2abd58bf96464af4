package syncer

import (
	"context"
	"errors"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/console/mirror"
	"github.com/glassboxhq/glassbox/sandbox"
)

// take brings over what a part of the feed tells of, when it is this follower's
// turn.
func (g *following) take(ctx context.Context, feed *history.Feed) error {
	select {
	case g.f.v.turns <- struct{}{}:
		defer func() { <-g.f.v.turns }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if same, err := g.same(ctx); err != nil {
		return err
	} else if !same {
		return g.replace(ctx)
	}
	g.missed = g.missed || feed.Reset || g.to.Position == 0 && feed.Min > 1
	p := &page{following: g, feed: feed}
	err := p.run(ctx)
	if e, ok := errors.AsType[*sandbox.Error](err); ok && e.Code == mirror.CodeErased {
		return g.begin(ctx, g.f.now()) // from the same place, without what was erased
	}
	if err == nil {
		g.missed = false
		for _, op := range p.ops {
			g.unsettled.note(op)
		}
	}
	return err
}

// page is a part of the feed on its way into the mirror.
type page struct {
	*following
	feed *history.Feed
	ops  map[string]*history.Operation
	b    mirror.Batch
	size int // of the output in b
}

const (
	maxBatch  = 2 << 20 // bytes of output in one transaction
	maxPiece  = 1 << 20
	listAbove = 8 // operations that began are listed, not asked for one by one
)

func (p *page) run(ctx context.Context) error {
	ids := idsOf(p.feed.Changes)
	if err := p.fetch(ctx, ids); err != nil {
		return err
	}
	if p.missed {
		if err := p.gap(ctx); err != nil {
			return err
		}
	}
	for _, id := range ids {
		if op := p.ops[id]; op != nil {
			p.b.Operations = append(p.b.Operations, mirror.Entry{Operation: op, ChangeSeq: p.feed.Next})
		}
	}
	stored, err := p.f.v.s.mirror.Stored(ctx, p.to, ids)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if op := p.ops[id]; op != nil {
			if err := p.body(ctx, op, stored[id]); err != nil {
				return err
			}
		}
	}
	p.b.Changes, p.b.Position = p.feed.Changes, p.feed.Next
	return p.flush(ctx)
}

func idsOf(changes []*history.Change) (ids []string) {
	seen := map[string]bool{}
	for _, c := range changes {
		if !seen[c.Operation] {
			seen[c.Operation] = true
			ids = append(ids, c.Operation)
		}
	}
	return ids
}

// fetch reads the operations. One that was deleted meanwhile is left out.
func (p *page) fetch(ctx context.Context, ids []string) error {
	p.ops = map[string]*history.Operation{}
	began := 0
	for _, c := range p.feed.Changes {
		if c.Type == history.Created {
			began++
		}
	}
	if began >= listAbove {
		list, err := p.list(ctx, began)
		if err != nil {
			return err
		}
		for _, op := range list.Operations {
			p.ops[op.ID] = op
		}
	}
	for _, id := range ids {
		if p.ops[id] != nil {
			continue
		}
		op, err := p.get(ctx, id)
		if err != nil && !errors.Is(err, sandbox.ErrNotFound) {
			return err
		}
		if err == nil {
			p.ops[id] = op
		}
	}
	return nil
}

func (p *page) list(ctx context.Context, n int) (*history.Page, error) {
	ctx, cancel := context.WithTimeout(ctx, p.f.v.s.opts.Request)
	defer cancel()
	return p.from.List(ctx, &history.Filter{After: p.to.LastSeq, Limit: n})
}

// body reads what an operation has beside it.
func (p *page) body(ctx context.Context, op *history.Operation, has mirror.Output) error {
	if op.Command == nil {
		return nil
	}
	for _, stream := range []struct {
		name     sandbox.Stream
		from, to int64
	}{{sandbox.Stdout, has.Stdout, op.Command.StdoutBytes}, {sandbox.Stderr, has.Stderr, op.Command.StderrBytes}} {
		for at := stream.from; at < stream.to; {
			data, err := p.output(ctx, op.ID, stream.name, at, min(stream.to-at, maxPiece))
			if errors.Is(err, sandbox.ErrNotFound) || err == nil && len(data) == 0 {
				break // deleted meanwhile
			}
			if err != nil {
				return err
			}
			p.b.Output = append(p.b.Output, mirror.Piece{Operation: op.ID, Stream: stream.name, Offset: at, Data: data})
			at += int64(len(data))
			if p.size += len(data); p.size > maxBatch {
				if err := p.flush(ctx); err != nil {
					return err
				}
			}
		}
	}
	return p.terminal(ctx, op)
}

func (p *page) output(ctx context.Context, id string, stream sandbox.Stream, offset, length int64) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, p.f.v.s.opts.Request)
	defer cancel()
	return p.from.Output(ctx, id, stream, offset, length)
}

// terminal reads how a terminal that has ended moved.
func (p *page) terminal(ctx context.Context, op *history.Operation) error {
	reader, ok := p.from.(history.TerminalReader)
	if !ok || op.Type != history.TerminalSession || !history.Final(op.Status) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, p.f.v.s.opts.Request)
	defer cancel()
	events, err := reader.Terminal(ctx, op.ID)
	if errors.Is(err, sandbox.ErrNotFound) || errors.Is(err, sandbox.ErrUnsupported) {
		return nil
	}
	if err == nil && len(events) > 0 {
		if p.b.Terminals == nil {
			p.b.Terminals = map[string][]history.TerminalEvent{}
		}
		p.b.Terminals[op.ID] = events
	}
	return err
}

// flush stores what there is so far. The place in the feed moves with the last
// of it: who dies in between begins the part again.
func (p *page) flush(ctx context.Context) error {
	err := p.f.v.s.mirror.Store(ctx, p.to, &p.b)
	p.b, p.size = mirror.Batch{}, 0
	return err
}

// gap records what was deleted before it was read: operations of which nothing
// is known but that they were, and the ends of others.
func (p *page) gap(ctx context.Context) error {
	m := p.f.v.s.mirror
	running, err := m.Running(ctx, p.to)
	if err != nil {
		return err
	}
	var lost []string
	for _, id := range running {
		if p.ops[id] != nil {
			continue
		}
		switch op, err := p.get(ctx, id); {
		case errors.Is(err, sandbox.ErrNotFound):
			lost = append(lost, id)
		case err != nil:
			return err
		default:
			p.ops[id] = op
			p.b.Operations = append(p.b.Operations, mirror.Entry{Operation: op, ChangeSeq: p.feed.Next})
		}
	}
	if err := m.Settle(ctx, p.to, lost, "its record was deleted in the sandbox before its end was read"); err != nil {
		return err
	}
	next := p.next()
	if next <= p.to.LastSeq+1 {
		return nil
	}
	op := mirror.Gap(next-1, p.ops[p.first(next)].StartedAt, map[string]any{
		"reason":     "deleted in the sandbox before it was read",
		"operations": next - 1 - p.to.LastSeq, "after_seq": p.to.LastSeq, "before_seq": next,
	})
	p.b.Operations = append(p.b.Operations, mirror.Entry{Operation: op, ChangeSeq: p.feed.Next})
	return nil
}

// next is the lowest number of an operation that is new; 0: none is.
func (p *page) next() (seq int64) {
	for _, op := range p.ops {
		if op.Seq > p.to.LastSeq && (seq == 0 || op.Seq < seq) {
			seq = op.Seq
		}
	}
	return seq
}

func (p *page) first(seq int64) string {
	for id, op := range p.ops {
		if op.Seq == seq {
			return id
		}
	}
	return ""
}
