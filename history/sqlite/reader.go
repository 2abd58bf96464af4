package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"

	"github.com/glassboxhq/glassbox/internal/prepared"
	"github.com/glassboxhq/glassbox/sandbox"
)

const maxReaders = 4

// reader returns the pool of reading connections, or nil while there is
// nothing to read.
func (s *Store) reader() (*sql.DB, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, errClosed()
	case s.readers != nil:
		return s.readers, nil
	case s.opts.ReadOnly:
		return nil, nil
	}
	file, err := inspect(s.path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && file.Size() == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, s.fault("open history", err)
	}
	db, err := s.openReaders(s.dsn(s.path, "query_only(1)"))
	if (err != nil || db != nil) && s.replaced(file) {
		if db != nil {
			_ = db.Close()
		}
		err = errMoved
	}
	if err != nil {
		return nil, s.fault("open history", err)
	}
	if db != nil {
		s.readers, s.readFile = db, file
	}
	return db, nil
}

// openReaders opens the file for reading. It returns nil if the file holds no
// history yet.
func (s *Store) openReaders(dsn string) (*sql.DB, error) {
	db, err := prepared.Open(dsn)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(maxReaders)
	db.SetMaxIdleConns(maxReaders)
	ctx := context.Background()
	found, err := hasSchema(ctx, db, s.path)
	if err == nil && !s.opts.ReadOnly { // of a copy it was done before
		err = checkPages(ctx, db, s.path)
	}
	if err == nil && found {
		var meta map[string]string
		if meta, err = readMeta(ctx, db); err == nil {
			err = s.opts.checkIdentity(meta, s.path)
		}
		if err == nil {
			s.cleaner.lastCleaned(meta)
			err = s.adopt(meta)
		}
	}
	if err != nil || !found {
		_ = db.Close()
		return nil, err
	}
	return db, nil
}

// read runs do in a short transaction. Of a history that is not there yet
// nothing is read, and do is not called. It is called again if the file was
// taken away meanwhile.
func (s *Store) read(ctx context.Context, op string, do func(*sql.Tx) error) error {
	for n := 1; ; n++ {
		s.refresh()
		s.reading()
		file, err := s.readOnce(ctx, op, do)
		again := errors.Is(err, errMoved) || err != nil && file != nil && s.replaced(file)
		if !again || n == maxAttempts || ctx.Err() != nil {
			return err
		}
	}
}

// readOnce also returns the file that it read, unless that is a private copy.
func (s *Store) readOnce(ctx context.Context, op string, do func(*sql.Tx) error) (fs.FileInfo, error) {
	if ctx.Err() != nil {
		return nil, sandbox.FromContext(ctx, op)
	}
	s.gate.RLock()
	defer s.gate.RUnlock()
	db, err := s.reader()
	if err != nil || db == nil {
		return nil, err
	}
	s.mu.Lock()
	file := s.readFile
	s.mu.Unlock()
	if err = s.transaction(ctx, db, do); err != nil && ctx.Err() != nil {
		return nil, sandbox.FromContext(ctx, op)
	}
	return file, s.fault(op, err)
}

// transaction runs do while the gate is held, so that nobody closes db.
func (s *Store) transaction(ctx context.Context, db *sql.DB, do func(*sql.Tx) error) error {
	c, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if s.opts.ReadOnly {
		if err := limitValues(c); err != nil {
			return err
		}
	}
	tx, err := c.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	err = do(tx)
	if end := tx.Rollback(); err == nil && !errors.Is(end, sql.ErrTxDone) {
		err = end
	}
	return err
}
