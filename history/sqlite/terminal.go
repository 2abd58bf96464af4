package sqlite

import (
	"bytes"
	"context"
	"database/sql"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/sandbox"
)

var _ history.TerminalStore = (*Store)(nil)

// The moments of terminals are a table of ours in the shared file: small, made
// with the first terminal, and gone with its operation, whoever deletes it.
const terminalSchema = `create table if not exists glassbox_terminal (
	event_id text not null references history_events (event_id) on delete cascade,
	position integer not null,
	lines    text not null,
	primary key (event_id, position)
) without rowid`

// maxTerminal is the most that is kept of the moments of one terminal, in bytes.
const maxTerminal = 4 << 20

// AppendTerminal implements [history.TerminalStore]. Beyond a bound, moments
// are not kept.
func (s *Store) AppendTerminal(ctx context.Context, id string, events []history.TerminalEvent) error {
	const op = "append moments of a terminal"
	lines := history.EncodeTerminal(events)
	return s.submit(ctx, op, 64+len(lines), func(w *writer) error {
		r, err := w.lookup(id)
		if err != nil {
			return err
		}
		if _, err := settled(op, id, r, ""); err != nil {
			return err
		}
		if err := w.conn.exec(terminalSchema); err != nil {
			return err
		}
		var next, size int
		err = w.conn.row(`select coalesce(max(position), 0) + 1, coalesce(sum(length(lines)), 0)
			from glassbox_terminal where event_id = ?`, []any{id}, &next, &size)
		if err != nil || size+len(lines) > maxTerminal {
			return err
		}
		w.pages += 2 + len(lines)/4096
		return w.conn.exec(`insert into glassbox_terminal (event_id, position, lines) values (?, ?, ?)`, id, next, string(lines))
	})
}

// Terminal implements [history.TerminalReader].
func (s *Store) Terminal(ctx context.Context, id string) ([]history.TerminalEvent, error) {
	const op = "read moments of a terminal"
	var lines bytes.Buffer
	found := false
	err := s.read(ctx, op, func(q *sql.Tx) error {
		lines.Reset()
		if _, err := s.origin(ctx, q, id); err != nil {
			return err
		}
		found = true
		var tables int
		err := q.QueryRowContext(ctx, `select count(*) from sqlite_schema where type = 'table' and name = 'glassbox_terminal'`).Scan(&tables)
		if err != nil || tables == 0 {
			return err
		}
		return readLines(ctx, q, id, &lines)
	})
	if err == nil && !found {
		err = notFound(op, id)
	}
	if err != nil {
		return nil, err
	}
	return history.DecodeTerminal(lines.Bytes())
}

func readLines(ctx context.Context, q *sql.Tx, id string, into *bytes.Buffer) error {
	rows, err := q.QueryContext(ctx, `select lines from glassbox_terminal where event_id = ? order by position`, id)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var lines anyText
		if err := rows.Scan(&lines); err != nil {
			return err
		}
		if into.Len()+len(lines.text) > 2*maxTerminal {
			return &sandbox.Error{Op: "read moments of a terminal", Code: sandbox.CodeHistoryCorrupt, Message: "there are more than any terminal has"}
		}
		into.WriteString(lines.text)
	}
	return rows.Err()
}
