package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/sandbox"
)

const (
	cleanupLease = "history:cleanup"
	leaseFor     = 5 * time.Minute
	// pruneStep is how many operations one transaction deletes.
	pruneStep = 32
	// thoroughEvery is how often every operation is looked at.
	thoroughEvery = time.Hour
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

// Consumers implements [history.ConsumerLister]: those that are active.
func (s *Store) Consumers(ctx context.Context) (list []*history.ConsumerState, err error) {
	if db, err := s.reader(); err != nil || db == nil {
		return nil, err
	}
	since := history.FormatTime(s.opts.Now().Add(-s.consumersLast()))
	err = s.read(ctx, "list consumers", func(q *sql.Tx) error {
		list = nil
		rows, err := q.QueryContext(ctx, `
			select consumer_id, acknowledged_seq, updated_at from history_consumers where updated_at >= ? order by consumer_id limit 1000`, since)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var id, at anyText
			var read anyNumber
			if err := rows.Scan(&id, &read, &at); err != nil {
				return err
			}
			c := &history.ConsumerState{ID: id.text, Acknowledged: read.n}
			c.UpdatedAt, _ = history.ParseTime(at.text)
			list = append(list, c)
		}
		return rows.Err()
	})
	return list, err
}

// Prune implements [history.Pruner]. It deletes operations whose time is
// over, and, if the policy is to delete the oldest, these until the used pages
// fit the limit. It spares what runs, and what an active consumer has not read
// while twice the limit holds.
func (s *Store) Prune(ctx context.Context) (*history.Pruned, error) { return s.prune(ctx, true) }

// prune cleans up. A thorough clean-up looks at the age of every operation,
// another only at those that began before the first that is young.
func (s *Store) prune(ctx context.Context, thorough bool) (*history.Pruned, error) {
	if db, err := s.reader(); err != nil || db == nil {
		return &history.Pruned{Reason: "nothing recorded"}, err
	}
	s.touch(&s.cleaner.last)
	if _, err := s.Config(ctx); err != nil { // another process may have changed it
		return nil, err
	}
	thorough = thorough || s.overdue()
	if !s.cleaner.busy.TryLock() {
		return &history.Pruned{Reason: "cleanup in progress"}, nil
	}
	defer s.cleaner.busy.Unlock()
	p := &pruning{s: s, gap: id.New(), thorough: thorough}
	held, err := s.AcquireLease(ctx, cleanupLease, s.opts.LeaseOwner, leaseFor)
	if ctx.Err() != nil { // it may have been taken all the same
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		err = errors.Join(err, s.ReleaseLease(ending, cleanupLease, s.opts.LeaseOwner))
	}
	if err != nil {
		return nil, err
	}
	if !held {
		return &history.Pruned{Reason: "cleanup in progress"}, nil
	}
	err = p.run(ctx)
	// The lease is given back also when the caller is gone.
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*s.busyTimeout()+time.Second)
	defer cancel()
	if end := p.finish(ending, err == nil); err == nil {
		err = end
	}
	if err != nil {
		return nil, err
	}
	if thorough {
		s.touch(&s.cleaner.looked)
	}
	return &p.result, nil
}

// pruning is one clean-up.
type pruning struct {
	s        *Store
	thorough bool
	result   history.Pruned

	unread bool     // what is deleted now has not been read by every consumer
	gap    string   // id of the operation that tells so, if there is one
	lost   int64    // operations that had not been read
	behind []string // the consumers that had not read them
}

// doom says which operations are to be deleted: those that fulfil a condition
// and whose last change has been read, oldest first, while more than limit
// bytes are used.
type doom struct {
	condition string
	args      []any
	read      int64
	limit     int64
}

func (p *pruning) run(ctx context.Context) error {
	now := p.s.opts.Now()
	var reasons []string
	read, err := p.protected(ctx, now)
	if err != nil {
		return err
	}
	before := p.result.Operations
	if ttl := p.s.ttl(); ttl > 0 {
		if err := p.expire(ctx, now.Add(-ttl), read); err != nil {
			return err
		}
	}
	if p.result.Operations > before {
		reasons, before = append(reasons, "age"), p.result.Operations
	}
	limit := p.s.maxBytes()
	if limit > 0 && p.s.settings().OverflowPolicy == history.DeleteOldest {
		err := p.delete(ctx, doom{condition: "true", read: read, limit: limit})
		if err == nil && read < math.MaxInt64 {
			p.unread = true
			err = p.delete(ctx, doom{condition: "true", read: math.MaxInt64, limit: 2 * limit})
		}
		if err != nil {
			return err
		}
	}
	if p.result.Operations > before {
		reasons = append(reasons, "size")
	}
	if len(reasons) == 0 {
		reasons = []string{"nothing to delete"}
	}
	p.result.Reason = strings.Join(reasons, " and ")
	return nil
}

// expire deletes what ended before a time. Operations begin in the order of
// their numbers, but for a clock that was set and for what was imported: so
// that not all of them are looked at each time, the first that began after
// that time ends the search, unless it is to be thorough.
func (p *pruning) expire(ctx context.Context, before time.Time, read int64) error {
	cutoff := history.FormatTime(before)
	d := doom{condition: `coalesce(e.completed_at, e.occurred_at) < ?`, args: []any{cutoff}, read: read, limit: -1}
	if !p.thorough {
		d.condition += ` and e.seq < coalesce((select seq from history_events where occurred_at >= ? order by seq limit 1), 9223372036854775807)`
		d.args = append(d.args, cutoff)
	}
	return p.delete(ctx, d)
}

// protected is the last change that all active consumers have read.
func (p *pruning) protected(ctx context.Context, now time.Time) (seq int64, err error) {
	seq = math.MaxInt64
	err = p.s.read(ctx, "read consumers", func(q *sql.Tx) error {
		rows, err := q.QueryContext(ctx, `select consumer_id, acknowledged_seq from history_consumers where updated_at >= ?`,
			history.FormatTime(now.Add(-p.s.consumersLast())))
		if err != nil {
			return err
		}
		defer rows.Close()
		p.behind, seq = nil, math.MaxInt64
		for rows.Next() {
			var name anyText
			var read anyNumber
			if err := rows.Scan(&name, &read); err != nil {
				return err
			}
			if read.n < seq {
				p.behind, seq = nil, read.n
			}
			if read.n == seq {
				p.behind = append(p.behind, name.text)
			}
		}
		return rows.Err()
	})
	return seq, err
}

// delete deletes ended operations, a few at a time, so that records that wait
// meanwhile wait shortly; where the history grows faster than that, more.
func (p *pruning) delete(ctx context.Context, d doom) error {
	var after int64
	for step := pruneStep; ; {
		ids, last, err := p.candidates(ctx, d, after, step)
		if err != nil || len(ids) == 0 {
			return err
		}
		over, err := p.deleteStep(ctx, ids, d.limit)
		if err != nil || over <= 0 {
			return err
		}
		if after, step = last, pruneStep; over > d.limit/4 {
			step = 8 * pruneStep
		}
	}
}

// candidates finds the next few operations on a reading connection, so that
// the writer need not search.
func (p *pruning) candidates(ctx context.Context, d doom, after int64, most int) (ids []any, last int64, err error) {
	err = p.s.read(ctx, "find operations to delete", func(q *sql.Tx) error {
		rows, err := q.QueryContext(ctx, `
			select e.event_id, e.seq from history_events e
			where e.status <> 'started' and `+d.condition+`
				and coalesce((select max(seq) from history_changes where event_id = e.event_id), 0) <= ?
				and e.seq > ?
			order by e.seq limit ?`, append(slices.Clone(d.args), d.read, after, most)...)
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

// deleteStep deletes operations until the used bytes fit, and returns how many
// are over the limit then.
func (p *pruning) deleteStep(ctx context.Context, ids []any, limit int64) (int64, error) {
	var deleted, over int64 // the writer's, if ctx ends before it has done this
	err := p.s.submit(ctx, "delete operations", 0, func(w *writer) error {
		w.s.opts.phase("prune")
		deleted, over = 0, 0
		for _, id := range ids {
			used, err := w.used()
			if err != nil {
				return err
			}
			if over = used - limit; over <= 0 {
				break
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
		if p.unread && deleted > 0 {
			return p.beginGap(w)
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	p.result.Operations += deleted
	if p.unread {
		p.lost += deleted
	}
	return over, nil
}

const lostUnread = "the history was over twice its limit, so the oldest operations were deleted before every consumer had read them"

// beginGap records that operations go that were not read. The record begins
// with the first that go, and ends with the clean-up: should this process die
// in between, there is still one.
func (p *pruning) beginGap(w *writer) error {
	r, err := newRow(&history.Operation{
		ID: p.gap, Type: history.HistoryGap, Source: history.SourceSDK, Status: sandbox.Started,
		Actor: history.Actor{Type: history.System}, StartedAt: p.s.opts.Now(),
		Request: history.EncodeRequest(map[string]any{}),
	})
	if err == nil {
		_, err = w.insert(r) // once
	}
	return err
}

func (p *pruning) endGap(w *writer) error {
	if _, err := w.lookup(p.gap); errors.Is(err, sandbox.ErrNotFound) {
		return nil
	}
	return w.finish(p.gap, newEnding(&history.End{
		Status: sandbox.Succeeded, At: p.s.opts.Now(), OutputComplete: true,
		Result: history.Encode(map[string]any{"reason": lostUnread, "operations": p.lost, "consumers": p.behind}),
	}), &output{})
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
		err := p.endGap(w)
		if err == nil {
			p.result.Bytes, err = w.used()
		}
		if err != nil {
			return err
		}
		policy, limit := p.s.settings().OverflowPolicy, p.s.maxBytes()
		if p.result.Operations == 0 && policy != history.DeleteOldest && limit > 0 && p.result.Bytes >= limit {
			p.result.Reason = fmt.Sprintf("it is over its %d bytes, for which its policy %s deletes nothing: raise max_database_bytes, or set overflow_policy to delete_oldest", limit, policy)
		}
		now := history.FormatTime(p.s.opts.Now())
		values := map[string]string{
			keyCleaned:                        now,
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
			cleanupLease, p.s.opts.LeaseOwner))
	})
}
