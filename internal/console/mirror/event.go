package mirror

import (
	"context"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/db"
)

// Event is a change in any of the histories.
type Event struct {
	No         int64 // counts the changes of the mirror
	Connection string
	Sandbox    string
	History    int64
	Change     *history.Change
}

// Events returns what has changed after a number, in any history, oldest
// first. It waits until there is something or the time is over.
func (m *Mirror) Events(ctx context.Context, after int64, limit int, wait time.Duration) (events []*Event, err error) {
	if limit, err = pageSize(limit); err != nil {
		return nil, err
	}
	err = m.await(ctx, wait, func() (bool, error) {
		events, err = db.Collect(ctx, m.db, scanEvent, `select c.no, h.connection_id, h.sandbox_id, h.no, c.seq, c.id, o.id, c.type, c.at
			from mirror_changes c join mirror_histories h on h.no = c.history join mirror_operations o on o.no = c.op
			where c.no > ? order by c.no limit ?`, after, limit)
		return len(events) > 0, err
	})
	return events, err
}

func scanEvent(row db.Row) (*Event, error) {
	e := &Event{Change: &history.Change{}}
	var at db.Time
	err := row.Scan(&e.No, &e.Connection, &e.Sandbox, &e.History, &e.Change.Seq, &e.Change.ID, &e.Change.Operation, &e.Change.Type, &at)
	e.Change.At = at.Time
	return e, err
}

// LastEvent returns the number of the newest change, from where to follow.
func (m *Mirror) LastEvent(ctx context.Context) (no int64, err error) {
	return no, m.db.QueryRow(ctx, `select coalesce(max(no), 0) from mirror_changes`).Scan(&no)
}
