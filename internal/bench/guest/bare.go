package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/history/sqlite"
)

// bare is a connection with prepared statements and nothing around it.
type bare struct {
	db    *sql.DB
	conn  *sql.Conn
	stmts map[string]*sql.Stmt
}

// newBare opens a history that a store has made, so that both arms have the
// same tables.
func newBare(file string) (_ *bare, err error) {
	store, err := sqlite.Open(file, nil)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(store.Begin(context.Background(), operation()), store.Close()); err != nil {
		return nil, err
	}
	b := &bare{stmts: map[string]*sql.Stmt{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close())
		}
	}()
	b.db, err = sql.Open("sqlite", "file:"+file+
		"?_pragma=busy_timeout(5000)&_pragma=journal_mode(wal)&_pragma=synchronous(normal)&_pragma=foreign_keys(1)")
	if err != nil {
		return nil, err
	}
	b.conn, err = b.db.Conn(context.Background())
	return b, err
}

func (b *bare) exec(query string, args ...any) error {
	ctx := context.Background()
	st := b.stmts[query]
	if st == nil {
		var err error
		if st, err = b.conn.PrepareContext(ctx, query); err != nil {
			return fmt.Errorf("%s: %w", query, err)
		}
		b.stmts[query] = st
	}
	if _, err := st.ExecContext(ctx, args...); err != nil {
		return fmt.Errorf("%s: %w", query, err)
	}
	return nil
}

// begin commits the rows that a store writes when an operation begins.
func (b *bare) begin(op *history.Operation) error {
	at := history.FormatTime(op.StartedAt)
	return errors.Join(
		b.exec(`begin immediate`),
		b.exec(`insert into history_events (event_id, provider_key, sandbox_id, sandbox_instance_id, source, actor_type,
				actor_id, thread_id, run_id, correlation_id, operation_type, status, occurred_at, request_json)
			values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'started', ?, ?)`,
			op.ID, sqlite.DefaultProviderKey, sqlite.DefaultSandboxID, "legacy-d1d3ac53d8f0a8ed51a8bf86dd6e1f5a", op.Source,
			op.Actor.Type, op.Actor.ID, op.Actor.Thread, op.Actor.Run, op.Actor.Correlation, op.Type, at, string(op.Request)),
		b.exec(`insert into command_executions (event_id, command, cwd) values (?, ?, ?)`, op.ID, op.Command.Line, op.Command.Dir),
		b.exec(`insert into history_changes (change_id, event_id, change_type, changed_at) values (?, ?, 'created', ?)`,
			op.ID+":created", op.ID, at),
		b.exec(`commit`),
	)
}

func (b *bare) close() error {
	var errs []error
	for _, st := range b.stmts {
		errs = append(errs, st.Close())
	}
	if b.conn != nil {
		errs = append(errs, b.conn.Close())
	}
	if b.db != nil {
		errs = append(errs, b.db.Close())
	}
	return errors.Join(errs...)
}
