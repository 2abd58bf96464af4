package db

import (
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"
)

// dialect is where the two databases differ.
type dialect struct {
	name  string
	goose goose.Dialect
	// words stand in migrations as {{name}}.
	words  map[string]string
	bind   func(query string) string
	exists func(err error) bool
}

var sqliteDialect = &dialect{
	name: "sqlite", goose: goose.DialectSQLite3,
	words: map[string]string{"bytes": "blob"},
	bind:  func(query string) string { return query },
	exists: func(err error) bool {
		e, ok := errors.AsType[*sqlite.Error](err)
		return ok && (e.Code() == lib.SQLITE_CONSTRAINT_UNIQUE || e.Code() == lib.SQLITE_CONSTRAINT_PRIMARYKEY)
	},
}

var postgresDialect = &dialect{
	name: "postgres", goose: goose.DialectPostgres,
	words: map[string]string{"bytes": "bytea"},
	bind:  numbered,
	exists: func(err error) bool {
		const uniqueViolation = "23505"
		e, ok := errors.AsType[*pgconn.PgError](err)
		return ok && e.Code == uniqueViolation
	},
}

// numbered turns each ? into $1, $2 and so on. Our queries hold no ? otherwise.
func numbered(query string) string {
	var b strings.Builder
	n := 0
	for part := range strings.SplitSeq(query, "?") {
		if n > 0 {
			b.WriteString("$" + strconv.Itoa(n))
		}
		n++
		b.WriteString(part)
	}
	return b.String()
}

// The connections of one database.
const (
	maxConns     = 16
	maxIdle      = 4
	connLifetime = 30 * time.Minute
	busyTimeout  = 5 * time.Second
)

// connectSQLite makes the file, for this user only, with one connection that
// writes and others that read beside it.
func connectSQLite(path string) (*DB, error) {
	if err := makeFile(path); err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	pool := func(conns int, values url.Values) (*sql.DB, error) {
		values["_pragma"] = []string{
			fmt.Sprintf("busy_timeout(%d)", busyTimeout.Milliseconds()), "journal_mode(wal)", "foreign_keys(1)", "synchronous(full)",
		}
		name := url.URL{Scheme: "file", Path: abs, RawQuery: values.Encode()}
		p, err := sql.Open("sqlite", name.String())
		if err == nil {
			p.SetMaxOpenConns(conns)
			p.SetMaxIdleConns(conns)
		}
		return p, err
	}
	d := &DB{dialect: sqliteDialect}
	if d.write, err = pool(1, url.Values{"_txlock": {"immediate"}}); err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	if d.read, err = pool(maxIdle, url.Values{}); err != nil {
		return nil, errors.Join(fmt.Errorf("open database: %w", err), d.write.Close())
	}
	return d, nil
}

func makeFile(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return f.Close()
}

func connectPostgres(address string) (*DB, error) {
	config, err := pgx.ParseConfig(address)
	if err != nil { // its text may hold a part of the password
		return nil, errors.New("open database: the URL cannot be read; it must be postgres://user:password@host:port/database")
	}
	pool := stdlib.OpenDB(*config)
	pool.SetMaxOpenConns(maxConns)
	pool.SetMaxIdleConns(maxIdle)
	pool.SetConnMaxLifetime(connLifetime)
	return &DB{read: pool, write: pool, dialect: postgresDialect}, nil
}
