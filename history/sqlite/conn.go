package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

const (
	// autocheckpoint is the net below the writer's own checkpoints, in pages.
	autocheckpoint = 12_000
	// maxLog is what stays of the log's file after a checkpoint, in bytes.
	maxLog = 8 << 20
)

func busyPragma(patience time.Duration) string {
	return fmt.Sprintf(`pragma busy_timeout = %d`, patience.Milliseconds())
}

// dsn names a file with the pragmas that every connection gets. The driver
// sets busy_timeout first, so that none of the others meets a lock unarmed.
func (s *Store) dsn(path string, pragmas ...string) string {
	return dsn(path, "rw", "", append(pragmas, fmt.Sprintf("busy_timeout(%d)", s.busyTimeout().Milliseconds())))
}

func dsn(path, mode, vfs string, pragmas []string) string {
	values := url.Values{"mode": {mode}, "_pragma": pragmas}
	if vfs != "" {
		values.Set("vfs", vfs)
	}
	name := url.URL{Scheme: "file", Path: path, RawQuery: values.Encode()}
	return name.String()
}

// conn is the writer's connection with its prepared statements.
type conn struct {
	db    *sql.DB
	conn  *sql.Conn
	stmts map[string]*sql.Stmt
	whose [3]any // provider key, sandbox id and instance id of the file
	files files  // what was opened
	made  bool   // it held no history before
}

// identify puts the identity of the file behind the id of an event's values.
func (c *conn) identify(event []any) []any {
	return append(append(make([]any, 0, len(event)+3), event[0], c.whose[0], c.whose[1], c.whose[2]), event[1:]...)
}

// openWriter opens the file for writing and makes what is missing: the
// folder, the file and the tables. What first does belongs to that.
func (s *Store) openWriter(ctx context.Context, first opening) (*conn, error) {
	if err := makeFile(s.path); err != nil {
		return nil, err
	}
	before, err := os.Lstat(s.path)
	if err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", s.dsn(s.path,
		"foreign_keys(1)", "synchronous(normal)", "cell_size_check(1)",
		fmt.Sprintf("cache_size(-%d)", s.settings().SQLiteCacheBytes>>10),
		fmt.Sprintf("wal_autocheckpoint(%d)", autocheckpoint),
		fmt.Sprintf("journal_size_limit(%d)", maxLog)))
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	c := &conn{db: db, stmts: map[string]*sql.Stmt{}}
	if c.conn, err = db.Conn(ctx); err == nil {
		if err = c.useLog(ctx, s.busyTimeout()); err == nil {
			err = s.prepare(ctx, c, before, first)
		}
	}
	if err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// makeFile makes the file that only its owner reads, whatever the umask.
// SQLite gives the log and its index the mode of the file.
func makeFile(path string) error {
	dir := filepath.Dir(path)
	info, err := os.Stat(dir)
	switch {
	case err == nil && !info.IsDir():
		return misplace(dir, info, "the folder of a history")
	case errors.Is(err, fs.ErrNotExist):
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		if err := os.Chmod(dir, 0o700); err != nil {
			return err
		}
	}
	if err := inspectBeside(path); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		_, err = inspect(path)
		return err
	}
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Chmod(0o600)
}

// useLog turns on the write-ahead log. The change of mode takes a lock for
// which SQLite does not always wait by itself.
func (c *conn) useLog(ctx context.Context, patience time.Duration) error {
	deadline := time.Now().Add(patience)
	for {
		var mode string
		err := c.conn.QueryRowContext(ctx, `pragma journal_mode = wal`).Scan(&mode)
		if err == nil && mode != "wal" {
			return fmt.Errorf("journal mode is %s, not wal", mode)
		}
		if !busy(err) || time.Now().After(deadline) {
			return err
		}
		pause := time.NewTimer(10 * time.Millisecond)
		select {
		case <-ctx.Done():
			pause.Stop()
			return ctx.Err()
		case <-pause.C:
		}
	}
}

// prepare checks what the file holds, and makes a history of an empty one.
// Of several processes that do so at once, the first makes it and the others
// find it.
func (s *Store) prepare(ctx context.Context, c *conn, before fs.FileInfo, first opening) error {
	if err := c.begin(); err != nil {
		return err
	}
	err := s.prepareLocked(ctx, c)
	if err == nil {
		err = first(c)
	}
	if err == nil {
		// What the name stood for before and stands for now is what was
		// opened in between.
		if c.files, err = lookAt(s.path); gone(err) || err == nil && moved(before, c.files.db, nil) {
			err = errMoved
		}
	}
	if err == nil {
		err = c.commit()
	}
	if err != nil {
		c.rollback()
	}
	return err
}

func (s *Store) prepareLocked(ctx context.Context, c *conn) error {
	found, err := hasSchema(ctx, c.conn, s.path)
	if err != nil {
		return err
	}
	if !found {
		if _, err := c.conn.ExecContext(ctx, schema); err != nil {
			return err
		}
	}
	meta, err := readMeta(ctx, c.conn)
	if err != nil {
		return err
	}
	if err := s.opts.checkIdentity(meta, s.path); err != nil {
		return err
	}
	if err := s.syncConfig(c, meta); err != nil {
		return err
	}
	for key, value := range s.opts.newMeta(s.opts.Now()) {
		if _, ok := meta[key]; ok || found && key != keyProvider && key != keySandbox && key != keyInstance {
			continue
		}
		if err := c.exec(`insert into history_meta (key, value) values (?, ?)`, key, value); err != nil {
			return err
		}
		meta[key] = value
	}
	c.whose = [3]any{meta[keyProvider], meta[keySandbox], meta[keyInstance]}
	c.made = !found
	return nil
}

// opening takes part in the transaction in which a history was found or made.
type opening func(*conn) error

// prepare compiles a query once: the driver keeps the statement, which makes
// a small insert three times as fast.
func (c *conn) prepare(query string) error {
	if c.stmts[query] != nil {
		return nil
	}
	st, err := c.conn.PrepareContext(context.Background(), query) //nolint:sqlclosecheck // kept until the connection closes
	if err == nil {
		c.stmts[query] = st
	}
	return err
}

// run runs a statement. The writer works without a context: a transaction is
// finished whoever waits for it.
func (c *conn) run(query string, args ...any) (sql.Result, error) {
	if err := c.prepare(query); err != nil {
		return nil, err
	}
	return c.stmts[query].ExecContext(context.Background(), args...)
}

func (c *conn) exec(query string, args ...any) error {
	_, err := c.run(query, args...)
	return err
}

// row reads the one row that query gives, or returns sql.ErrNoRows.
func (c *conn) row(query string, args []any, dest ...any) error {
	if err := c.prepare(query); err != nil {
		return err
	}
	return c.stmts[query].QueryRowContext(context.Background(), args...).Scan(dest...)
}

func (c *conn) begin() error  { return c.exec(`begin immediate`) }
func (c *conn) commit() error { return c.exec(`commit`) }

// rollback ends the transaction if SQLite has not already done so.
func (c *conn) rollback() { _ = c.exec(`rollback`) }

func (c *conn) close() {
	for _, st := range c.stmts {
		_ = st.Close()
	}
	if c.conn != nil {
		_ = c.conn.Close()
	}
	_ = c.db.Close()
}
