package sqlite

import (
	"context"
	"database/sql"
	"sync"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/sandbox"
)

const (
	maxWait = time.Minute
	// pollEvery is how often a waiting reader looks for what other processes
	// wrote; what this one writes wakes it at once.
	pollEvery = 250 * time.Millisecond
)

// notifier wakes those who wait for a change.
type notifier struct {
	mu   sync.Mutex
	next chan struct{} // closed at the next change; nil while nobody waits
}

func (n *notifier) wait() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.next == nil {
		n.next = make(chan struct{})
	}
	return n.next
}

func (n *notifier) notify() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.next != nil {
		close(n.next)
		n.next = nil
	}
}

// Changes implements [history.Reader].
func (s *Store) Changes(ctx context.Context, query *history.ChangeQuery) (*history.Feed, error) {
	if query == nil {
		query = &history.ChangeQuery{}
	}
	limit, err := pageSize(query.Limit)
	if err != nil {
		return nil, err
	}
	if query.After < 0 {
		return nil, sandbox.Invalid("after", "must not be negative")
	}
	over := time.NewTimer(min(query.Wait, maxWait))
	defer over.Stop()
	for {
		changed := s.feed.wait() // before the look, so that nothing falls between
		feed, err := s.changes(ctx, query.After, limit)
		if err != nil || len(feed.Changes) > 0 || feed.Reset || query.Wait <= 0 {
			return feed, err
		}
		poll := time.NewTimer(pollEvery)
		select {
		case <-changed:
		case <-poll.C:
		case <-over.C:
			poll.Stop()
			return feed, nil
		case <-s.closing:
			poll.Stop()
			return nil, errClosed()
		case <-ctx.Done():
			poll.Stop()
			return nil, sandbox.FromContext(ctx, "read changes")
		}
		poll.Stop()
	}
}

// changes reads the feed once.
func (s *Store) changes(ctx context.Context, after int64, limit int) (*history.Feed, error) {
	feed := &history.Feed{Changes: []*history.Change{}, Reset: after > 0}
	err := s.read(ctx, "read changes", func(q *sql.Tx) error {
		feed.Next, feed.Changes = after, feed.Changes[:0]
		last, err := s.bounds(ctx, q, feed)
		if err != nil {
			return err
		}
		switch {
		case after > last: // another history stands here now
			feed.Reset, feed.Next = true, 0
			return nil
		case feed.Min > 0:
			feed.Reset = after < feed.Min-1
		default: // all that there was is gone
			feed.Reset = after < last
			feed.Next = last
		}
		return s.readChanges(ctx, q, feed, limit)
	})
	if err != nil {
		return nil, err
	}
	return feed, nil
}

// bounds finds the first and last entry that are kept, and the last that ever
// was.
func (s *Store) bounds(ctx context.Context, q *sql.Tx, feed *history.Feed) (last int64, _ error) {
	alive, args := s.alive()
	var first, highest, ever anyNumber
	for _, bound := range []struct {
		query string
		args  []any
		found *anyNumber
	}{
		{`select c.seq from history_changes c join history_events e on e.event_id = c.event_id
			where typeof(c.seq) = 'integer' and ` + alive + ` order by c.seq limit 1`, args, &first},
		{`select seq from history_changes where typeof(seq) = 'integer' order by seq desc limit 1`, nil, &highest},
		{`select seq from sqlite_sequence where name = 'history_changes'`, nil, &ever},
	} {
		err := q.QueryRowContext(ctx, bound.query, bound.args...).Scan(bound.found)
		if err != nil && !noRows(err) {
			return 0, err
		}
	}
	feed.Min, feed.Max = first.n, highest.n
	return max(ever.n, feed.Max), nil
}

func (s *Store) readChanges(ctx context.Context, q *sql.Tx, feed *history.Feed, limit int) error {
	alive, args := s.alive()
	rows, err := q.QueryContext(ctx, `
		select c.seq, c.change_id, c.event_id, c.change_type, c.changed_at
		from history_changes c join history_events e on e.event_id = c.event_id
		where c.seq > ? and typeof(c.seq) = 'integer' and `+alive+` order by c.seq limit ?`,
		append(append([]any{feed.Next}, args...), limit)...)
	if err != nil {
		return err
	}
	defer rows.Close()
	size := 0
	for rows.Next() {
		var seq anyNumber
		var change, operation, kind, at anyText
		if err := rows.Scan(&seq, &change, &operation, &kind, &at); err != nil {
			return err
		}
		c := history.Change{Seq: seq.n, ID: change.text, Operation: operation.text, Type: kind.text}
		if size += 128 + len(c.ID); size > maxAnswer && len(feed.Changes) > 0 {
			break
		}
		c.At, _ = history.ParseTime(at.text)
		feed.Changes = append(feed.Changes, &c)
		feed.Next = c.Seq
	}
	return rows.Err()
}
