// Package prepared opens SQLite databases whose connections keep the statements
// that they have read: to read one takes SQLite as long as to run it.
//
//	db, err := prepared.Open(dsn)
package prepared

import (
	"context"
	"database/sql"
	"database/sql/driver"

	"modernc.org/sqlite"
)

// maxKept bounds the statements that a connection keeps. A program has fewer,
// but for those that it puts together of filters.
const maxKept = 96

// Open is sql.Open of the driver "sqlite".
func Open(dsn string) (*sql.DB, error) {
	c, err := sqlite.NewConnector(dsn)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector{c}), nil
}

type connector struct{ driver.Connector }

// Connect implements driver.Connector.
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	opened, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &conn{driverConn: opened.(driverConn), kept: map[string]*statement{}}, nil
}

// driverConn is what a connection of the driver can do.
type driverConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

// conn is a connection. database/sql calls it from one goroutine at a time.
type conn struct {
	driverConn
	kept map[string]*statement
}

// driverStmt is what a statement of the driver can do.
type driverStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

type statement struct {
	driverStmt
	inUse bool
	keep  bool
}

// Unwrap shows the driver its connection.
func (c *conn) Unwrap() driver.Conn { return c.driverConn }

// take returns the statement of a query, for the caller alone until it is
// done with it.
func (c *conn) take(ctx context.Context, query string) (*statement, error) {
	st := c.kept[query]
	if st != nil && !st.inUse {
		st.inUse = true
		return st, nil
	}
	made, err := c.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	fresh := &statement{driverStmt: made.(driverStmt), inUse: true}
	if st == nil && c.room() {
		fresh.keep = true
		c.kept[query] = fresh
	}
	return fresh, nil
}

// room makes room for one more, if need be by closing any that is not in use.
func (c *conn) room() bool {
	if len(c.kept) < maxKept {
		return true
	}
	for query, st := range c.kept {
		if !st.inUse {
			delete(c.kept, query)
			return st.Close() == nil
		}
	}
	return false
}

// done gives a statement back.
func (s *statement) done() error {
	s.inUse = false
	if s.keep {
		return nil
	}
	return s.Close()
}

// QueryContext implements driver.QueryerContext.
func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	st, err := c.take(ctx, query)
	if err != nil {
		return nil, err
	}
	found, err := st.QueryContext(ctx, args)
	if err != nil {
		_ = st.done() // the error above says more
		return nil, err
	}
	return &rows{found, st}, nil
}

// ExecContext implements driver.ExecerContext. What has no arguments may be a
// script of several statements, and is not kept.
func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if len(args) == 0 {
		return c.driverConn.ExecContext(ctx, query, args)
	}
	st, err := c.take(ctx, query)
	if err != nil {
		return nil, err
	}
	res, err := st.ExecContext(ctx, args)
	if end := st.done(); err == nil {
		err = end
	}
	return res, err
}

// Close implements driver.Conn.
func (c *conn) Close() error {
	for _, st := range c.kept {
		_ = st.Close() // what it ran has already been told
	}
	clear(c.kept)
	return c.driverConn.Close()
}

// rows are those of a statement, which they give back.
type rows struct {
	driver.Rows
	of *statement
}

// Close implements driver.Rows.
func (r *rows) Close() error {
	err := r.Rows.Close()
	if r.of != nil {
		if end := r.of.done(); err == nil {
			err = end
		}
		r.of = nil
	}
	return err
}
