package mirror

import (
	"context"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/db"
	"github.com/glassboxhq/glassbox/sandbox"
)

// Reader reads one mirrored history as if it were that of a living sandbox.
type Reader struct {
	m       *Mirror
	history int64
}

var _ interface {
	history.Reader
	history.TerminalReader
} = (*Reader)(nil)

// Reader returns a reader of a history.
func (m *Mirror) Reader(historyNo int64) *Reader { return &Reader{m, historyNo} }

// Close implements io.Closer: there is nothing to close.
func (*Reader) Close() error { return nil }

// find returns an operation with what is kept beside it.
func (r *Reader) find(ctx context.Context, op, id string) (*kept, error) {
	list, err := db.Collect(ctx, r.m.db, scanKept, `select `+operationColumns+` from mirror_operations o where o.history = ? and o.id = ?`, r.history, plain(id))
	if err == nil && len(list) == 0 {
		err = &sandbox.Error{Op: op, Code: sandbox.CodeOperationNotFound, Message: "no operation " + id + " is in the mirror of this history"}
	}
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

// Get implements history.Reader.
func (r *Reader) Get(ctx context.Context, id string) (*history.Operation, error) {
	k, err := r.find(ctx, "get operation", id)
	if err != nil {
		return nil, err
	}
	return k.Operation, nil
}

const (
	maxAnswer    = 4 << 20
	defaultLimit = 100
	maxLimit     = 1000
)

// Output implements history.Reader.
func (r *Reader) Output(ctx context.Context, id string, stream sandbox.Stream, offset, length int64) ([]byte, error) {
	if offset < 0 || length < 0 {
		return nil, sandbox.Invalid("offset", "must not be negative, nor the length")
	}
	k, err := r.find(ctx, "read output", id)
	if err != nil {
		return nil, err
	}
	if !k.bodies {
		return nil, nil
	}
	return r.m.output(ctx, k.no, stream, offset, min(length, maxAnswer))
}

// output reads a range of what is stored.
func (m *Mirror) output(ctx context.Context, no int64, stream sandbox.Stream, offset, length int64) ([]byte, error) {
	if length == 0 {
		return nil, nil
	}
	type row struct {
		start int64
		data  []byte
	}
	rows, err := db.Collect(ctx, m.db, func(r db.Row) (o row, err error) { return o, r.Scan(&o.start, &o.data) },
		`select start, data from mirror_output where op = ? and stream = ? and start > ? and start < ? order by start`,
		no, string(stream), offset-maxRow, offset+length)
	if err != nil {
		return nil, err
	}
	var data []byte
	for _, o := range rows {
		from, to := max(offset-o.start, 0), min(offset+length-o.start, int64(len(o.data)))
		if from < to {
			data = append(data, o.data[from:to]...)
		}
	}
	return data, nil
}

// Terminal implements history.TerminalReader.
func (r *Reader) Terminal(ctx context.Context, id string) ([]history.TerminalEvent, error) {
	k, err := r.find(ctx, "read moments of a terminal", id)
	if err != nil {
		return nil, err
	}
	list, err := db.Collect(ctx, r.m.db, func(row db.Row) (lines []byte, err error) { return lines, row.Scan(&lines) },
		`select moments from mirror_terminals where op = ?`, k.no)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return history.DecodeTerminal(list[0])
}

// maxWait is the longest wait for a change; pollEvery is how often it looks for
// what another server wrote, as what this one writes wakes it at once.
const (
	maxWait   = time.Minute
	pollEvery = time.Second
)

// Changes implements history.Reader.
func (r *Reader) Changes(ctx context.Context, query *history.ChangeQuery) (*history.Feed, error) {
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
	var feed *history.Feed
	err = r.m.await(ctx, query.Wait, func() (bool, error) {
		feed, err = r.changes(ctx, query.After, limit)
		return err == nil && (len(feed.Changes) > 0 || feed.Reset), err
	})
	return feed, err
}

// await calls look until it has found something, or the time is over.
func (m *Mirror) await(ctx context.Context, wait time.Duration, look func() (bool, error)) error {
	over := time.NewTimer(min(wait, maxWait))
	defer over.Stop()
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	for {
		changed := m.wait() // before the look, so that nothing falls between
		if found, err := look(); found || err != nil || wait <= 0 {
			return err
		}
		select {
		case <-changed:
		case <-poll.C:
		case <-over.C:
			return nil
		case <-ctx.Done():
			return sandbox.FromContext(ctx, "read changes")
		}
	}
}

func (r *Reader) changes(ctx context.Context, after int64, limit int) (*history.Feed, error) {
	feed := &history.Feed{Next: after}
	err := r.m.db.QueryRow(ctx, `select coalesce(min(seq), 0), coalesce(max(seq), 0) from mirror_changes where history = ?`, r.history).
		Scan(&feed.Min, &feed.Max)
	if err != nil {
		return nil, err
	}
	var position int64
	if err := r.m.db.QueryRow(ctx, `select position from mirror_histories where no = ?`, r.history).Scan(&position); err != nil {
		return nil, err
	}
	last := max(feed.Max, position)
	switch {
	case after > last:
		feed.Reset, feed.Next = true, 0
	case feed.Min > 0:
		feed.Reset = after > 0 && after < feed.Min-1
	default:
		feed.Reset, feed.Next = after > 0 && after < last, last
	}
	feed.Changes, err = db.Collect(ctx, r.m.db, scanChange, `select c.seq, c.id, o.id, c.type, c.at from mirror_changes c
		join mirror_operations o on o.no = c.op where c.history = ? and c.seq > ? order by c.seq limit ?`, r.history, feed.Next, limit)
	if n := len(feed.Changes); n > 0 {
		feed.Next = feed.Changes[n-1].Seq
		if feed.Min == 0 { // they came between the two looks
			feed.Min = feed.Changes[0].Seq
		}
		feed.Max = max(feed.Max, feed.Next)
	} else if feed.Changes == nil {
		feed.Changes = []*history.Change{}
	}
	return feed, err
}

func scanChange(row db.Row) (*history.Change, error) {
	c := &history.Change{}
	var at db.Time
	err := row.Scan(&c.Seq, &c.ID, &c.Operation, &c.Type, &at)
	c.At = at.Time
	return c, err
}
