package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/sandbox"
)

const (
	// activeConsumer is how long a consumer that says nothing protects what
	// it has not read.
	activeConsumer = 30 * day
	cleanupLease   = "history:cleanup"
	leaseFor       = 5 * time.Minute
	// pruneStep is how many operations one transaction deletes: few, so that
	// records which wait meanwhile wait shortly.
	pruneStep = 32
)

// Acknowledge implements [history.Consumer].
func (s *Store) Acknowledge(ctx context.Context, consumer string, seq int64) error {
	switch {
	case consumer == "":
		return sandbox.Invalid("consumer", "must not be empty")
	case seq < 0:
		return sandbox.Invalid("seq", "must not be negative")
	}
	return s.submit(ctx, "acknowledge changes", 128, func(w *writer) error {
		return w.conn.exec(`
			insert into history_consumers (consumer_id, acknowledged_seq, updated_at) values (?, ?, ?)
			on conflict (consumer_id) do update set
				acknowledged_seq = max(acknowledged_seq, excluded.acknowledged_seq), updated_at = excluded.updated_at`,
			valid(consumer), seq, history.FormatTime(s.opts.Now()))
	})
}

// Prune implements [history.Pruner]. It deletes operations whose time is
// over, then the oldest until the used pages fit the limit. It spares what
// runs, and what an active consumer has not read while twice the limit holds.
func (s *Store) Prune(ctx context.Context) (*history.Pruned, error) {
	if db, err := s.reader(); err != nil || db == nil {
		return &history.Pruned{Reason: "nothing recorded"}, err
	}
	p := &pruning{s: s, owner: "cleanup-" + id.New()}
	held, err := p.lease(ctx)
	if err != nil {
		return nil, err
	}
	if !held {
		return &history.Pruned{Reason: "cleanup in progress"}, nil
	}
	err = p.run(ctx)
	// The lease is given back also when the caller is gone.
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*s.opts.BusyTimeout+time.Second)
	defer cancel()
	if end := p.finish(ending, err == nil); err == nil {
		err = end
	}
	if err != nil {
		return nil, err
	}
	return &p.result, nil
}

// pruning is one clean-up.
type pruning struct {
	s      *Store
	owner  string
	result history.Pruned
}

// lease takes the right to clean up, unless another process has it.
func (p *pruning) lease(ctx context.Context) (held bool, err error) {
	now := p.s.opts.Now()
	err = p.s.submit(ctx, "take lease of clean-up", 128, func(w *writer) error {
		res, err := w.conn.run(`
			insert into history_leases (resource_key, owner_id, expires_at, updated_at) values (?, ?, ?, ?)
			on conflict (resource_key) do update set
				owner_id = excluded.owner_id, expires_at = excluded.expires_at, updated_at = excluded.updated_at
			where expires_at <= excluded.updated_at`,
			cleanupLease, p.owner, history.FormatTime(now.Add(leaseFor)), history.FormatTime(now))
		if err != nil {
			return err
		}
		n, err := res.RowsAffected()
		held = n == 1
		return err
	})
	return held, err
}

func (p *pruning) run(ctx context.Context) error {
	now := p.s.opts.Now()
	var reasons []string
	acknowledged, err := p.protected(ctx, now)
	if err != nil {
		return err
	}
	if p.s.opts.TTL > 0 {
		cutoff := history.FormatTime(now.Add(-p.s.opts.TTL))
		n, err := p.delete(ctx, `coalesce(e.completed_at, e.occurred_at) < ?`, cutoff, acknowledged, -1)
		if err != nil {
			return err
		}
		if n > 0 {
			reasons = append(reasons, "age")
		}
	}
	if limit := p.s.opts.MaxDatabaseBytes; limit > 0 {
		n, err := p.delete(ctx, `e.seq > ?`, 0, acknowledged, limit)
		if err == nil && acknowledged < math.MaxInt64 {
			var more int64
			more, err = p.delete(ctx, `e.seq > ?`, 0, math.MaxInt64, 2*limit)
			n += more
		}
		if err != nil {
			return err
		}
		if n > 0 {
			reasons = append(reasons, "size")
		}
	}
	if len(reasons) == 0 {
		reasons = []string{"nothing to delete"}
	}
	p.result.Reason = strings.Join(reasons, " and ")
	return nil
}

// protected is the last change that all active consumers have read.
func (p *pruning) protected(ctx context.Context, now time.Time) (seq int64, err error) {
	err = p.s.read(ctx, "read consumers", func(q *sql.Tx) error {
		return q.QueryRowContext(ctx, `
			select coalesce(min(acknowledged_seq), ?) from history_consumers where updated_at >= ?`,
			int64(math.MaxInt64), history.FormatTime(now.Add(-activeConsumer))).Scan(&seq)
	})
	return seq, err
}

// delete deletes ended operations that fulfil a condition and have been read,
// oldest first, while more than limit bytes are used.
func (p *pruning) delete(ctx context.Context, condition string, arg any, acknowledged, limit int64) (deleted int64, err error) {
	var after int64
	for {
		ids, last, err := p.candidates(ctx, condition, []any{arg, acknowledged, after})
		if err != nil || len(ids) == 0 {
			return deleted, err
		}
		n, full, err := p.deleteStep(ctx, ids, limit)
		deleted += n
		p.result.Operations += n
		if err != nil || !full {
			return deleted, err
		}
		after = last
	}
}

// candidates finds the next few operations on a reading connection, so that
// the writer need not search.
func (p *pruning) candidates(ctx context.Context, condition string, args []any) (ids []any, last int64, err error) {
	err = p.s.read(ctx, "find operations to delete", func(q *sql.Tx) error {
		rows, err := q.QueryContext(ctx, `
			select e.event_id, e.seq from history_events e
			where e.status <> 'started' and `+condition+`
				and coalesce((select max(seq) from history_changes where event_id = e.event_id), 0) <= ?
				and e.seq > ?
			order by e.seq limit `+strconv.Itoa(pruneStep), args...)
		ids = nil
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var id string
			if err := rows.Scan(&id, &last); err != nil {
				return err
			}
			ids = append(ids, id)
		}
		return rows.Err()
	})
	return ids, last, err
}

// deleteStep deletes operations until the used bytes fit; full tells that
// they do not yet.
func (p *pruning) deleteStep(ctx context.Context, ids []any, limit int64) (deleted int64, full bool, err error) {
	err = p.s.submit(ctx, "delete operations", 0, func(w *writer) error {
		w.s.opts.phase("prune")
		deleted, full = 0, true
		for _, id := range ids {
			used, err := w.used()
			if err != nil {
				return err
			}
			if full = used > limit; !full {
				return nil
			}
			if err := w.conn.exec(`delete from history_changes where event_id = ?`, id); err != nil {
				return err
			}
			if err := w.conn.exec(`delete from history_events where event_id = ?`, id); err != nil {
				return err
			}
			deleted++
			w.pages += 16
		}
		return nil
	})
	return deleted, full, err
}

// used is the size of the pages that hold something.
func (w *writer) used() (bytes int64, err error) {
	err = w.conn.row(`select (page_count - freelist_count) * page_size
		from pragma_page_count, pragma_freelist_count, pragma_page_size`, nil, &bytes)
	return bytes, err
}

// finish writes down what the clean-up did, and gives the lease back.
func (p *pruning) finish(ctx context.Context, done bool) error {
	return p.s.submit(ctx, "end clean-up", 512, func(w *writer) error {
		var err error
		if p.result.Bytes, err = w.used(); err != nil {
			return err
		}
		now := history.FormatTime(p.s.opts.Now())
		values := map[string]string{
			"last_cleanup_at":                 now,
			"last_cleanup_deleted_operations": strconv.FormatInt(p.result.Operations, 10),
			"last_cleanup_database_bytes":     strconv.FormatInt(p.result.Bytes, 10),
			"last_cleanup_reason":             p.result.Reason,
			"last_cleanup_result": string(history.Encode(map[string]any{
				"executed": true, "reason": p.result.Reason, "deleted_operations": p.result.Operations,
				"logical_database_bytes": p.result.Bytes, "last_cleanup_at": now,
			})),
		}
		for key, value := range values {
			if !done {
				break
			}
			err = errors.Join(err, w.conn.exec(`insert or replace into history_meta (key, value) values (?, ?)`, key, value))
		}
		return errors.Join(err, w.conn.exec(`delete from history_leases where resource_key = ? and owner_id = ?`,
			cleanupLease, p.owner))
	})
}
