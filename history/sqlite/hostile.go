package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/glassboxhq/glassbox/sandbox"
	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"
)

const (
	// maxHostile is the most that is read of a file and its log, in bytes.
	maxHostile = 2 << 30
	// maxValue is the longest value that such a file may hold, in bytes.
	maxValue = maxUnpacked
)

// errHostile marks a file that no recorder made.
var errHostile = errors.New("not a plain history")

// openCopy opens a private copy of the file and of its log. What lies beside
// the original is never touched, and whoever can write there cannot change
// what is being read.
func (s *Store) openCopy() error {
	const op = "open history for reading"
	if _, err := os.Lstat(s.path); errors.Is(err, fs.ErrNotExist) {
		return &sandbox.Error{Op: op, Code: sandbox.CodeHistory, Message: "there is no history", Err: err}
	}
	p, err := s.newPrivate()
	if err != nil {
		return s.fault(op, err)
	}
	if s.readers, err = s.openHostile(p); err != nil {
		p.close()
		return s.fault(op, err)
	}
	s.remove = p.close
	return nil
}

// copyHistory copies the file and, if there is one, its log.
func copyHistory(to, from string) error {
	n, err := copyRegular(to, from, maxHostile)
	if err != nil {
		return err
	}
	_, err = copyRegular(to+"-wal", from+"-wal", maxHostile-n)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return err
}

// copyRegular copies a regular file of at most limit bytes, without following
// a link in its place and without waiting for a pipe.
func copyRegular(to, from string, limit int64) (int64, error) {
	in, err := os.OpenFile(from, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.ENXIO) {
		err = &fs.PathError{Op: "open", Path: from, Err: errNotRegular}
	}
	if err != nil {
		return 0, err
	}
	defer in.Close()
	info, err := in.Stat()
	switch {
	case err != nil:
		return 0, err
	case !info.Mode().IsRegular():
		return 0, &fs.PathError{Op: "open", Path: from, Err: errNotRegular}
	case info.Size() > limit:
		return 0, fmt.Errorf("%w: the file and its log have more than %d bytes", errHostile, int64(maxHostile))
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, err
	}
	n, err := io.Copy(out, io.LimitReader(in, limit))
	if end := out.Close(); err == nil {
		err = end
	}
	return n, err
}

// openHostile opens the copy, with everything off that a file could use to
// run something, and refuses what a history does not have.
func (s *Store) openHostile(p *private) (*sql.DB, error) {
	db, err := s.openReaders(p.dsn("trusted_schema(0)", "query_only(1)", "cell_size_check(1)"))
	if err != nil {
		return nil, err
	}
	if db == nil {
		return nil, fmt.Errorf("%w: it has no tables of a history", errHostile)
	}
	if err := checkHostile(context.Background(), db); err != nil {
		_ = db.Close()
		return nil, err
	}
	return db, nil
}

// limitValues bounds what a connection reads as one value.
func limitValues(c *sql.Conn) error {
	_, err := sqlite.Limit(c, lib.SQLITE_LIMIT_LENGTH, maxValue)
	return err
}

func checkHostile(ctx context.Context, db *sql.DB) error {
	c, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := limitValues(c); err != nil {
		return err
	}
	rows, err := c.QueryContext(ctx, `select type, name, coalesce(sql, '') from sqlite_schema`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var kind, name, text string
		if err := rows.Scan(&kind, &name, &text); err != nil {
			return err
		}
		virtual := strings.HasPrefix(strings.ToLower(strings.Join(strings.Fields(text), " ")), "create virtual")
		if kind != "table" && kind != "index" || virtual {
			return fmt.Errorf("%w: it has a %s %q", errHostile, kind, name)
		}
	}
	return rows.Err()
}
