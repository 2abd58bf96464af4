package mirror

import (
	"context"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/db"
	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/sandbox"
)

// End closes a history: no more will come. What stands there as started came
// to an end that nobody saw. gap tells that records may be missing at the end.
func (m *Mirror) End(ctx context.Context, h *History, why string, gap bool) error {
	next := *h
	err := m.tx(ctx, func(tx *db.Tx) error {
		next = *h
		if err := reload(ctx, tx, &next); err != nil || !next.EndedAt.IsZero() {
			return err
		}
		s := &storing{tx: tx, h: &next, nos: map[string]int64{}, now: m.now()}
		b := &Batch{}
		if err := s.settle(ctx, b, why, func(string) bool { return true }); err != nil {
			return err
		}
		if gap {
			s.gap(b, next.LastSeq+1, map[string]any{"reason": why, "after_change_seq": next.Position})
		}
		next.EndedAt, next.EndedWhy = s.now.Time, why
		return s.run(ctx, b)
	})
	if err != nil {
		return err
	}
	*h = next
	m.changed()
	return nil
}

// settle turns what still runs, as the history has it, into what is known.
func (s *storing) settle(ctx context.Context, b *Batch, why string, which func(id string) bool) error {
	running, err := db.Collect(ctx, s.tx, scanKept, `select `+operationColumns+` from mirror_operations o
		where o.history = ? and o.status = 'started' order by o.seq`, s.h.No)
	if err != nil {
		return err
	}
	for _, k := range running {
		if !which(k.ID) {
			continue
		}
		k.Status, k.Result = sandbox.Lost, history.Encode(map[string]any{"reason": why})
		if k.Command != nil {
			k.Command.Recording, k.Command.OutputComplete = sandbox.RecordedPart, false
		}
		b.Operations = append(b.Operations, Entry{k.Operation, k.changeSeq})
		b.Changes = append(b.Changes, s.told(b, k.ID, history.Completed))
	}
	return nil
}

// told is a change that the mirror adds behind those of the sandbox.
func (s *storing) told(b *Batch, operation, kind string) *history.Change {
	return &history.Change{
		Seq: s.h.Position + int64(len(b.Changes)) + 1, ID: operation + ":mirror:" + kind, Operation: operation, Type: kind, At: s.now.Time,
	}
}

// gap adds the record that records are missing.
func (s *storing) gap(b *Batch, seq int64, fields map[string]any) {
	op := Gap(seq, s.now.Time, fields)
	b.Operations = append(b.Operations, Entry{op, s.h.Position})
	b.Changes = append(b.Changes, s.told(b, op.ID, history.Created))
}

// Gap is an operation that tells that records are missing before its number.
func Gap(seq int64, at time.Time, fields map[string]any) *history.Operation {
	return &history.Operation{
		Seq: seq, ID: id.New(), Type: history.HistoryGap, Status: sandbox.Succeeded, Source: history.SourceConsole,
		Actor: history.Actor{Type: history.System}, StartedAt: at.UTC(), CompletedAt: at.UTC(),
		Request: history.EncodeRequest(fields),
	}
}

// Reopen goes on with a history that had ended: its sandbox is there again.
func (m *Mirror) Reopen(ctx context.Context, h *History) error {
	err := m.tx(ctx, func(tx *db.Tx) error {
		if err := reload(ctx, tx, h); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `delete from mirror_changes where history = ? and seq > ?`, h.No, h.Position); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `update mirror_histories set ended_at = null, ended_why = '' where no = ?`, h.No)
		return err
	})
	if err == nil {
		h.EndedAt, h.EndedWhy = time.Time{}, ""
	}
	return err
}
