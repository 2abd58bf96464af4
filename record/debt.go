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

func (d *debts) count(err error) {
	now := time.Now()
	if d.missed == 0 {
		d.since, d.reason = now, string(sandbox.CodeOf(err))+": "+err.Error()
	}
	d.missed, d.until = d.missed+1, now
}

// nudge tells that the history has just taken a record.
func (d *debts) nudge() {
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
	d.mu.Lock()
	missed, since, until, reason := d.missed, d.since, d.until, d.reason
	d.missed = 0
	d.mu.Unlock()
	if missed == 0 {
		return
	}
	gap := &history.Operation{
		ID: id.New(), Type: history.HistoryGap, Status: sandbox.Succeeded,
		Source: history.SourceSDK, Actor: history.Actor{Type: history.System},
		StartedAt: since, CompletedAt: until,
		Request: history.EncodeRequest(map[string]any{}),
		Result:  history.Encode(map[string]any{"operations": missed, "reason": reason}),
	}
	if err := s.store.Import(ctx, gap); err != nil {
		d.mu.Lock()
		d.missed, d.since, d.reason = d.missed+missed, since, reason
		d.mu.Unlock()
	}
}
