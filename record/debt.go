package record

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/sandbox"
)

// debts are what the history could not take when it happened: ends of
// operations, and the count of operations that ran unrecorded. They are paid
// as soon as the history takes records again, the count as an operation of
// the type history.gap.
type debts struct {
	due   chan struct{} // there may be something to pay
	last  chan struct{} // closed when no more will come
	payer sync.WaitGroup

	mu     sync.Mutex
	ends   []owed
	missed int
	since  time.Time
	until  time.Time
	reason string
	// stopped tells that the policy of the history keeps it from recording. The
	// gap that this leaves is begun at once, so that it stands there even if
	// this process dies, and ended when there is room.
	stopped bool
	begun   bool
	gap     string // id of the operation that tells what is missing
}

type owed struct {
	id  string
	end *history.End
}

// maxOwed bounds what is kept in memory; each end is small, its last output
// up to a mebibyte.
const (
	maxOwed  = 256
	payEvery = 2 * time.Second
)

func (d *debts) owe(opID string, end *history.End) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.ends) == maxOwed {
		d.ends[0].end.Chunks = nil // the status matters more than the output
		d.ends = d.ends[1:]
		d.count(errors.New("too many ends of operations wait to be recorded"))
	}
	d.ends = append(d.ends, owed{opID, end})
}

func (d *debts) miss(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.count(err)
}

// stop counts an operation that the policy leaves out.
func (d *debts) stop(err error) {
	d.mu.Lock()
	d.count(err)
	d.stopped = true
	d.mu.Unlock()
	d.wake()
}

// resume tells that the history has just taken a record.
func (d *debts) resume() {
	d.mu.Lock()
	d.stopped = false
	d.mu.Unlock()
	d.wake()
}

func (d *debts) count(err error) {
	now := time.Now()
	if d.missed == 0 {
		d.since, d.reason, d.gap, d.begun = now, string(sandbox.CodeOf(err))+": "+err.Error(), id.New(), false
	}
	d.missed, d.until = d.missed+1, now
}

// wake lets the payer look.
func (d *debts) wake() {
	select {
	case d.due <- struct{}{}:
	default:
	}
}

func (d *debts) any() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.missed > 0 || len(d.ends) > 0
}

// settleDebts pays until the session closes, and once more then.
func (s *Session) settleDebts() {
	tick := time.NewTicker(payEvery)
	defer tick.Stop()
	for {
		select {
		case <-s.debts.due:
		case <-tick.C:
		case <-s.debts.last:
			s.debts.resume() // there is no other time to tell what is missing
			s.pay()
			return
		}
		if s.debts.any() {
			s.pay()
		}
	}
}

func (s *Session) pay() {
	ctx, cancel := context.WithTimeout(context.Background(), finishTimeout)
	defer cancel()
	d := &s.debts
	d.mu.Lock()
	ends := d.ends
	d.mu.Unlock()
	for _, o := range ends {
		err := s.store.Finish(ctx, o.id, o.end)
		if errors.Is(err, sandbox.ErrHistory) || ctx.Err() != nil {
			return
		}
		if err != nil {
			s.opts.Logger.ErrorContext(ctx, "end of operation is lost", "operation", o.id, "error", err)
		}
		d.mu.Lock()
		if len(d.ends) > 0 && d.ends[0].id == o.id {
			d.ends = d.ends[1:]
		}
		d.mu.Unlock()
	}
	s.tellGap(ctx)
}

// tellGap records how many operations ran unrecorded, and when.
func (s *Session) tellGap(ctx context.Context) {
	d := &s.debts
	d.mu.Lock()
	missed, until, begun, stopped := d.missed, d.until, d.begun, d.stopped
	gap := &history.Operation{
		ID: d.gap, Type: history.HistoryGap, Status: sandbox.Started,
		Source: history.SourceSDK, Actor: history.Actor{Type: history.System}, StartedAt: d.since,
		Request: history.EncodeRequest(map[string]any{}),
	}
	result := history.Encode(map[string]any{"operations": missed, "reason": d.reason})
	if !stopped {
		d.missed = 0
	}
	d.mu.Unlock()
	var err error
	switch {
	case missed == 0, stopped && begun:
	case stopped:
		if err = s.store.Begin(ctx, gap); err == nil || errors.Is(err, sandbox.ErrExists) {
			d.mu.Lock()
			d.begun = true
			d.mu.Unlock()
		}
	case begun:
		err = s.store.Finish(ctx, gap.ID, &history.End{Status: sandbox.Succeeded, At: until, Result: result, OutputComplete: true})
	default:
		gap.Status, gap.CompletedAt, gap.Result = sandbox.Succeeded, until, result
		err = s.store.Import(ctx, gap)
	}
	if err == nil || stopped {
		return
	}
	d.mu.Lock() // the next time
	defer d.mu.Unlock()
	if d.missed == 0 {
		d.gap, d.begun, d.since, d.until = gap.ID, begun, gap.StartedAt, until
	}
	d.missed += missed
}
