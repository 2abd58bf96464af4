package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"strings"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/sandbox"
)

var _ history.ChangesStore = (*Store)(nil)

// What commands did to files is a table of ours in the shared file: small, made
// with the first of them, and gone with its operation, whoever deletes it.
const changesSchema = `create table if not exists glassbox_changes (
	event_id text not null primary key references history_events (event_id) on delete cascade,
	changes  text not null
) without rowid`

// maxChanges is the most that is kept, and read, of one operation, in bytes.
// Names full of characters that JSON escapes are longer there.
const maxChanges = 4 * history.MaxChangedBytes

// SetChanges implements [history.ChangesStore].
func (s *Store) SetChanges(ctx context.Context, id string, changes *history.Changes) error {
	const op = "record changes of files"
	text, err := encodeChanges(changes)
	if err != nil {
		return err
	}
	return s.submit(ctx, op, 256+len(text), func(w *writer) error {
		if _, err := w.lookup(id); err != nil {
			return err
		}
		if err := w.saveChanges(id, text); err != nil || !changes.Any() {
			return err
		}
		return w.change(id+":files", id, history.StorageChanged, history.FormatTime(s.opts.Now()))
	})
}

func (w *writer) saveChanges(id, text string) error {
	if err := w.conn.exec(changesSchema); err != nil {
		return err
	}
	w.pages += 2 + len(text)/4096
	return w.conn.exec(`insert into glassbox_changes (event_id, changes) values (?, ?)
		on conflict (event_id) do update set changes = excluded.changes`, id, text)
}

func encodeChanges(c *history.Changes) (string, error) {
	if err := c.Validate(); err != nil {
		return "", err
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // a filter looks for paths as they are
	if err := enc.Encode(c); err != nil {
		panic(err) // plain values only
	}
	if b.Len() > maxChanges {
		return "", sandbox.Invalid("changes", "must have at most 1 MiB")
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

// hasChanges reports whether the file has our table, as we make it: a file
// that others wrote may have another by that name.
func hasChanges(ctx context.Context, q *sql.Tx) (bool, error) {
	var columns int
	err := q.QueryRowContext(ctx, `select count(*) from pragma_table_info('glassbox_changes') where name in ('event_id', 'changes')`).Scan(&columns)
	return columns == 2, err
}

// readChanges fills in what commands did to files, as far as an answer holds
// it. It returns how many of the operations are complete.
func readChanges(ctx context.Context, q *sql.Tx, ops []*history.Operation) (int, error) {
	if len(ops) == 0 {
		return 0, nil
	}
	if found, err := hasChanges(ctx, q); err != nil || !found {
		return len(ops), err
	}
	sizes := map[string]int{}
	err := eachChanges(ctx, q, `length(changes)`, ops, func(id string, size *anyText) {
		var n anyNumber
		n.parse(size.text)
		sizes[id] = int(min(max(n.n, 0), maxChanges))
	})
	if err != nil {
		return 0, err
	}
	total, n := 0, 0
	for ; n < len(ops); n++ {
		if total += sizes[ops[n].ID]; total > maxAnswer && n > 0 {
			break
		}
	}
	byID := make(map[string]*history.Operation, n)
	for _, op := range ops[:n] {
		byID[op.ID] = op
	}
	return n, eachChanges(ctx, q, `changes`, ops[:n], func(id string, text *anyText) {
		if op := byID[id]; op != nil {
			op.Changes = decodeChanges(text.text)
		}
	})
}

// eachChanges reads a column of our table, of operations.
func eachChanges(ctx context.Context, q *sql.Tx, column string, ops []*history.Operation, each func(id string, value *anyText)) error {
	ids := make([]any, len(ops))
	for i, op := range ops {
		ids[i] = op.ID
	}
	rows, err := q.QueryContext(ctx, `select event_id, substr(`+column+`, 1, ?) from glassbox_changes
		where event_id in (?`+strings.Repeat(`, ?`, len(ids)-1)+`)`, append([]any{maxChanges}, ids...)...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id, value anyText
		if err := rows.Scan(&id, &value); err != nil {
			return err
		}
		each(id.text, &value)
	}
	return rows.Err()
}

func decodeChanges(text string) *history.Changes {
	var c history.Changes
	if json.Unmarshal([]byte(text), &c) != nil {
		return &history.Changes{Incomplete: "what is kept of it cannot be read"}
	}
	return &c
}

// changedPath is the condition that an operation e changed a file, or one below
// a directory. The table is looked through: it is small, and an index of all
// paths would not be.
func changedPath(name string) (string, []any) {
	text := strings.TrimSuffix(encodedText(name), `"`)
	below := strings.TrimSuffix(text, "/") + "/"
	return `exists (select 1 from glassbox_changes g where g.event_id = e.event_id
			and (instr(g.changes, ?) > 0 or instr(g.changes, ?) > 0))`,
		[]any{`"path":` + text + `"`, `"path":` + below}
}

// encodedText is a text as it stands in a JSON column.
func encodedText(s string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(valid(s)); err != nil {
		panic(err) // a text
	}
	return strings.TrimSuffix(b.String(), "\n")
}
