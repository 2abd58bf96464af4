// Package db is the console's database: an SQLite file, or PostgreSQL by URL,
// with the same tables and the same queries.
//
//	d, err := db.Open(ctx, "/var/lib/glassbox/console.sqlite3")
//	_, err = d.Exec(ctx, `update users set role = ? where id = ?`, role, id)
//	err = d.Tx(ctx, func(tx *db.Tx) error { … })
//
// Queries are written with ? for arguments. Rows are read to their end before
// anything else is waited for: a request that calls a slow service holds no
// connection meanwhile.
package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// DB is an open database whose tables are those of this program.
type DB struct {
	read, write *sql.DB // the same for PostgreSQL
	dialect     *dialect
}

// openTimeout bounds the wait for a database that does not answer, migrations
// not counted.
const openTimeout = 15 * time.Second

// Open opens the database at address, a path or a postgres:// URL, and brings
// its tables up to date.
func Open(ctx context.Context, address string) (*DB, error) {
	return open(ctx, address, 0)
}

// open is Open up to a version of the tables; 0: the newest.
func open(ctx context.Context, address string, version int64) (*DB, error) {
	d, err := connect(address)
	if err != nil {
		return nil, err
	}
	pinging, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	if err = d.write.PingContext(pinging); err == nil {
		err = d.migrate(ctx, version)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open database: %w", err), d.Close())
	}
	return d, nil
}

func connect(address string) (*DB, error) {
	if strings.HasPrefix(address, "postgres://") || strings.HasPrefix(address, "postgresql://") {
		return connectPostgres(address)
	}
	if scheme, _, ok := strings.Cut(address, "://"); ok {
		return nil, fmt.Errorf("open database: %s is not known; give a path for SQLite, or a URL that begins with postgres://", strconv.Quote(scheme))
	}
	return connectSQLite(address)
}

// Close closes the database.
func (d *DB) Close() error {
	err := d.write.Close()
	if d.read != d.write {
		err = errors.Join(err, d.read.Close())
	}
	return err
}

// Ping reports whether the database answers.
func (d *DB) Ping(ctx context.Context) error { return d.read.PingContext(ctx) }

// Kind names the database: sqlite or postgres.
func (d *DB) Kind() string { return d.dialect.name }

// Query reads rows. The caller closes them.
func (d *DB) Query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return d.read.QueryContext(ctx, d.dialect.bind(query), args...)
}

// QueryRow reads one row.
func (d *DB) QueryRow(ctx context.Context, query string, args ...any) *sql.Row {
	return d.read.QueryRowContext(ctx, d.dialect.bind(query), args...)
}

// Exec changes rows, and tells how many.
func (d *DB) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	res, err := d.write.ExecContext(ctx, d.dialect.bind(query), args...)
	return changed(res, err)
}

// Tx is a transaction.
type Tx struct {
	tx      *sql.Tx
	dialect *dialect
}

// Tx runs do in a transaction that writes: it is committed when do returns
// without an error. do calls nobody but the database.
func (d *DB) Tx(ctx context.Context, do func(*Tx) error) error {
	tx, err := d.write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after the commit there is nothing to undo
	if err := do(&Tx{tx, d.dialect}); err != nil {
		return err
	}
	return tx.Commit()
}

// Query is [DB.Query] in the transaction.
func (tx *Tx) Query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return tx.tx.QueryContext(ctx, tx.dialect.bind(query), args...)
}

// QueryRow is [DB.QueryRow] in the transaction.
func (tx *Tx) QueryRow(ctx context.Context, query string, args ...any) *sql.Row {
	return tx.tx.QueryRowContext(ctx, tx.dialect.bind(query), args...)
}

// Exec is [DB.Exec] in the transaction.
func (tx *Tx) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	res, err := tx.tx.ExecContext(ctx, tx.dialect.bind(query), args...)
	return changed(res, err)
}

func changed(res sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// Rows is what a query gives.
type Rows interface {
	Query(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// Collect reads every row of a query by scan.
func Collect[T any](ctx context.Context, from Rows, scan func(Row) (T, error), query string, args ...any) (list []T, err error) {
	rows, err := from.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		item, err := scan(rows)
		if err != nil {
			return nil, err
		}
		list = append(list, item)
	}
	return list, rows.Err()
}

// Row is a row to be scanned.
type Row interface{ Scan(into ...any) error }

// Exists reports whether an error is about a row whose unique value another
// one has.
func (d *DB) Exists(err error) bool { return err != nil && d.dialect.exists(err) }
