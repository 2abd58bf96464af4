package mirror

import (
	"context"
	"strings"

	"github.com/glassboxhq/glassbox/internal/db"
	"github.com/glassboxhq/glassbox/internal/id"
)

// Consumer is the name under which this mirror reads feeds. Each mirror has its
// own: what one has stored does not tell a sandbox what another has.
func (m *Mirror) Consumer(ctx context.Context) (name string, err error) {
	_, err = m.db.Exec(ctx, `insert into mirror_meta (key, value) values ('consumer', ?) on conflict (key) do nothing`, "glassbox-console-"+id.New())
	if err != nil {
		return "", err
	}
	return name, m.db.QueryRow(ctx, `select value from mirror_meta where key = 'consumer'`).Scan(&name)
}

// Stored tells how much output of operations is stored, by their ids.
func (m *Mirror) Stored(ctx context.Context, h *History, ids []string) (map[string]Output, error) {
	stored := map[string]Output{}
	if len(ids) == 0 {
		return stored, nil
	}
	args := []any{h.No}
	for _, id := range ids {
		args = append(args, plain(id))
	}
	_, err := db.Collect(ctx, m.db, func(row db.Row) (id string, err error) {
		var o Output
		err = row.Scan(&id, &o.Stdout, &o.Stderr)
		stored[id] = o
		return id, err
	}, `select id, stdout_bytes, stderr_bytes from mirror_operations where history = ? and id in (?`+strings.Repeat(`, ?`, len(ids)-1)+`)`, args...)
	return stored, err
}

// Output is how many bytes of each stream there are.
type Output struct{ Stdout, Stderr int64 }

// Running lists the ids of operations that the mirror has as started.
func (m *Mirror) Running(ctx context.Context, h *History) ([]string, error) {
	return db.Collect(ctx, m.db, func(row db.Row) (id string, err error) { return id, row.Scan(&id) },
		`select id from mirror_operations where history = ? and status = 'started' order by seq`, h.No)
}

// Settle tells that the ends of operations were deleted before they were read.
func (m *Mirror) Settle(ctx context.Context, h *History, ids []string, why string) error {
	if len(ids) == 0 {
		return nil
	}
	lost := map[string]bool{}
	for _, id := range ids {
		lost[id] = true
	}
	return m.tx(ctx, func(tx *db.Tx) error {
		next := *h
		if err := reload(ctx, tx, &next); err != nil {
			return err
		}
		s := &storing{tx: tx, h: &next, nos: map[string]int64{}, now: m.now()}
		b := &Batch{}
		if err := s.settle(ctx, b, why, func(id string) bool { return lost[id] }); err != nil {
			return err
		}
		return s.run(ctx, &Batch{Operations: b.Operations})
	})
}
