package mirror

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/db"
	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/sandbox"
)

// HistoryErase is the type of the one operation that stays of a history that
// was erased.
const HistoryErase = "history.erase"

// Erase removes all that is mirrored of a sandbox for good: operations, output,
// changes and what search knows of them. What is left is one operation that
// says who did it. What the sandbox records later is mirrored; what was erased
// is not taken from it again.
func (m *Mirror) Erase(ctx context.Context, connectionID, sandboxID string, by history.Actor) (*history.Operation, error) {
	if err := by.Validate(); err != nil {
		return nil, err
	}
	list, count, err := m.emptyAll(ctx, connectionID, sandboxID)
	if err == nil && len(list) == 0 {
		err = &sandbox.Error{Op: "erase history", Code: CodeHistoryNotFound, Sandbox: sandboxID, Message: "the mirror holds no history of this sandbox"}
	}
	if err != nil {
		return nil, err
	}
	return m.leave(ctx, list[0], count, by)
}

// Drop removes all that is mirrored of a sandbox that is gone, and that there
// was one. It tells how many operations it had.
func (m *Mirror) Drop(ctx context.Context, connectionID, sandboxID string) (int64, error) {
	_, count, err := m.emptyAll(ctx, connectionID, sandboxID)
	if err != nil {
		return count, err
	}
	return count, m.tx(ctx, func(tx *db.Tx) error {
		if _, err := tx.Exec(ctx, `delete from mirror_histories where connection_id = ? and sandbox_id = ?`, connectionID, sandboxID); err != nil {
			return err
		}
		// It may be there again.
		_, err := tx.Exec(ctx, `delete from mirror_sandboxes where connection_id = ? and sandbox_id = ? and gone_at is not null`, connectionID, sandboxID)
		return err
	})
}

// emptyAll empties the histories of a sandbox, and returns them with the number
// of operations that they had.
func (m *Mirror) emptyAll(ctx context.Context, connectionID, sandboxID string) (list []*History, count int64, err error) {
	if list, err = m.Histories(ctx, connectionID, sandboxID); err != nil || len(list) == 0 {
		return nil, 0, err
	}
	for _, h := range list {
		n, err := m.empty(ctx, h)
		if err != nil {
			return nil, count, err
		}
		count += n
	}
	return list, count, m.forget(ctx)
}

// empty removes all of a history, step by step, behind a mark that keeps a
// syncer from bringing it back.
func (m *Mirror) empty(ctx context.Context, h *History) (count int64, err error) {
	err = m.tx(ctx, func(tx *db.Tx) error {
		// The highest number that there ever was, also of what is on its way.
		_, err := tx.Exec(ctx, `update mirror_histories set erasures = erasures + 1,
			erased_seq = (select coalesce(max(seq), 0) from mirror_operations where history = ?) where no = ?`, h.No, h.No)
		return err
	})
	for err == nil {
		var list []*kept
		list, err = db.Collect(ctx, m.db, scanKept, `select `+operationColumns+` from mirror_operations o
			where o.history = ? order by o.no limit ?`, h.No, pruneStep)
		if err != nil || len(list) == 0 {
			break
		}
		if err = m.tx(ctx, func(tx *db.Tx) error { return removeOperations(ctx, tx, list) }); err == nil {
			count += int64(len(list))
		}
	}
	return count, err
}

// forget makes SQLite forget what was deleted: a contentless index keeps the
// grams of deleted documents until its parts are merged, and the log its pages until
// it begins anew. (In the file, what is deleted is overwritten at once.)
// PostgreSQL forgets in its next vacuum.
func (m *Mirror) forget(ctx context.Context) error {
	if m.db.Kind() != "sqlite" {
		return nil
	}
	const pages, few = -400, 2 // of one step; the others' writes go between
	for more := true; more; {
		err := m.db.Tx(ctx, func(tx *db.Tx) error {
			before, after := 0, 0
			if err := tx.QueryRow(ctx, `select total_changes()`).Scan(&before); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, `insert into mirror_index (mirror_index, rank) values ('merge', ?)`, pages); err != nil {
				return err
			}
			err := tx.QueryRow(ctx, `select total_changes()`).Scan(&after)
			more = after-before >= few
			return err
		})
		if err != nil {
			return err
		}
	}
	_, err := m.db.Exec(ctx, `pragma wal_checkpoint(truncate)`)
	return err
}

func (m *Mirror) leave(ctx context.Context, h *History, count int64, by history.Actor) (*history.Operation, error) {
	if by.Type == "" {
		by.Type = history.User
	}
	now := m.opts.Now().UTC()
	op := &history.Operation{
		ID: id.New(), Type: HistoryErase, Status: sandbox.Succeeded, Source: history.SourceConsole, Actor: by, StartedAt: now, CompletedAt: now,
		Request: history.EncodeRequest(map[string]any{"sandbox_id": h.Sandbox}), Result: history.Encode(map[string]any{"operations": count}),
	}
	err := m.tx(ctx, func(tx *db.Tx) error {
		var err error
		if *h, err = reread(ctx, tx, h.No); err != nil {
			return err
		}
		op.Seq = max(h.erasedSeq, 1) // a number that is free now
		if _, err := save(ctx, tx, h, op, h.Position); err != nil {
			return err
		}
		return (&storing{tx: tx, h: h, nos: map[string]int64{}, now: m.now()}).count(ctx)
	})
	if err != nil {
		return nil, err
	}
	m.changed()
	return op, nil
}

func reread(ctx context.Context, tx *db.Tx, no int64) (History, error) {
	h, err := scanHistory(tx.QueryRow(ctx, `select `+historyColumns+` from mirror_histories where no = ?`, no))
	if err != nil {
		return History{}, err
	}
	return *h, nil
}

// fieldsOf reads a document that is an object.
func fieldsOf(doc []byte) (map[string]any, bool) {
	fields := map[string]any{}
	dec := json.NewDecoder(bytes.NewReader(doc))
	dec.UseNumber()
	err := dec.Decode(&fields)
	return fields, err == nil
}
