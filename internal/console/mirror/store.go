package mirror

import (
	"cmp"
	"context"
	"slices"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/db"
	"github.com/glassboxhq/glassbox/sandbox"
)

// Entry is an operation, and the place in the feed at which it was read.
type Entry struct {
	Operation *history.Operation
	ChangeSeq int64
}

// Piece is output of an operation that is stored, or in the same batch.
type Piece struct {
	Operation string
	Stream    sandbox.Stream
	Offset    int64
	Data      []byte
}

// Batch is what is stored at once, or not at all.
type Batch struct {
	Operations []Entry
	Output     []Piece
	Terminals  map[string][]history.TerminalEvent // by the id of the operation
	Changes    []*history.Change
	// Position is up to where in the feed all is stored with this batch; 0: as
	// far as before.
	Position int64
}

// Store stores a batch in a history, and reads the history anew. What is
// stored already stays as it is.
func (m *Mirror) Store(ctx context.Context, h *History, b *Batch) error {
	next := *h
	err := m.tx(ctx, func(tx *db.Tx) error {
		next = *h
		if err := reload(ctx, tx, &next); err != nil {
			return err
		}
		return (&storing{tx: tx, h: &next, nos: map[string]int64{}, now: m.now()}).run(ctx, b)
	})
	if err != nil {
		return err
	}
	*h = next
	m.changed()
	return nil
}

// storing is a batch on its way into a history.
type storing struct {
	tx  *db.Tx
	h   *History
	nos map[string]int64 // numbers of operations by their ids
	now db.Time
}

func (s *storing) run(ctx context.Context, b *Batch) error {
	if err := s.operations(ctx, b.Operations); err != nil {
		return err
	}
	for i := range b.Output {
		if err := s.output(ctx, &b.Output[i]); err != nil {
			return err
		}
	}
	for id, events := range b.Terminals {
		no, err := s.find(ctx, id)
		if err != nil {
			return err
		}
		if no == 0 {
			continue
		}
		_, err = s.tx.Exec(ctx, `insert into mirror_terminals (op, moments) values (?, ?)
			on conflict (op) do update set moments = excluded.moments`, no, history.EncodeTerminal(events))
		if err != nil {
			return err
		}
	}
	for _, change := range b.Changes {
		if err := s.change(ctx, change); err != nil {
			return err
		}
	}
	s.h.Position, s.h.SyncedAt = max(s.h.Position, b.Position), s.now.Time
	return s.count(ctx)
}

func (s *storing) operations(ctx context.Context, entries []Entry) error {
	entries = slices.Clone(entries)
	slices.SortStableFunc(entries, func(a, b Entry) int { return cmp.Compare(a.Operation.Seq, b.Operation.Seq) })
	for _, e := range entries {
		if e.Operation.Seq <= s.h.erasedSeq {
			continue
		}
		no, err := save(ctx, s.tx, s.h, e.Operation, e.ChangeSeq)
		if err != nil {
			return err
		}
		if no != 0 {
			s.nos[e.Operation.ID] = no
		}
		s.h.LastSeq = max(s.h.LastSeq, e.Operation.Seq)
	}
	return nil
}

// find returns the number of an operation; 0: it is not here.
func (s *storing) find(ctx context.Context, id string) (int64, error) {
	if no, ok := s.nos[id]; ok {
		return no, nil
	}
	list, err := db.Collect(ctx, s.tx, number,
		`select no from mirror_operations where history = ? and id = ?`, s.h.No, plain(id))
	if err != nil || len(list) == 0 {
		return 0, err
	}
	s.nos[id] = list[0]
	return list[0], nil
}

// output appends what is not stored yet. A piece beyond the end would leave a
// hole, and is refused.
func (s *storing) output(ctx context.Context, p *Piece) error {
	no, err := s.find(ctx, p.Operation)
	if err != nil || no == 0 {
		return err
	}
	column := `stdout_bytes`
	if p.Stream == sandbox.Stderr {
		column = `stderr_bytes`
	}
	var has int64
	var bodies int
	if err := s.tx.QueryRow(ctx, `select `+column+`, bodies from mirror_operations where no = ?`, no).Scan(&has, &bodies); err != nil {
		return err
	}
	if p.Offset > has && bodies != 0 {
		return &sandbox.Error{Op: "store output", Code: sandbox.CodeInvalid, Message: "output would have a hole"}
	}
	skip := has - p.Offset
	if bodies == 0 || skip >= int64(len(p.Data)) {
		return nil
	}
	for data := range slices.Chunk(p.Data[skip:], maxRow) {
		if _, err := s.tx.Exec(ctx, `insert into mirror_output (op, stream, start, data) values (?, ?, ?, ?)`, no, string(p.Stream), has, data); err != nil {
			return err
		}
		has += int64(len(data))
	}
	added := int64(len(p.Data)) - skip
	_, err = s.tx.Exec(ctx, `update mirror_operations set `+column+` = ?, bytes = bytes + ?, unindexed = 1 where no = ?`, has, added, no)
	return err
}

// maxRow is the most output of one row.
const maxRow = 64 << 10

func (s *storing) change(ctx context.Context, c *history.Change) error {
	no, err := s.find(ctx, c.Operation)
	if err != nil || no == 0 {
		return err
	}
	_, err = s.tx.Exec(ctx, `insert into mirror_changes (history, seq, id, op, type, at) values (?, ?, ?, ?, ?, ?)
		on conflict (history, seq) do nothing`, s.h.No, c.Seq, plain(c.ID), no, plain(c.Type), db.At(c.At))
	return err
}

// count writes what has become of the history.
func (s *storing) count(ctx context.Context) error {
	_, err := s.tx.Exec(ctx, `update mirror_histories set position = ?, last_seq = ?, synced_at = ?, ended_at = ?, ended_why = ? where no = ?`,
		s.h.Position, s.h.LastSeq, s.now, db.At(s.h.EndedAt), s.h.EndedWhy, s.h.No)
	return err
}
