package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"

	"github.com/glassboxhq/glassbox/sandbox"
	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"
)

// fault turns what SQLite or the system reports into an error that says what
// to do. Errors that are already ours pass.
func (s *Store) fault(op string, err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*sandbox.Error](err); ok {
		return e
	}
	code, message := s.diagnose(err)
	return &sandbox.Error{
		Op: op, Code: code, Message: message, Err: err,
		Retryable: code == sandbox.CodeHistoryLocked || code == sandbox.CodeHistoryExhausted || errors.Is(err, errMoved),
	}
}

func (s *Store) diagnose(err error) (sandbox.Code, string) {
	if m, ok := errors.AsType[*misplaced](err); ok {
		return sandbox.CodeHistoryCorrupt, m.path + " is left as it is; move it away to begin a new history"
	}
	switch cause := s.cause(err); cause {
	case sandbox.CodeHistoryLocked:
		return cause, fmt.Sprintf("another process has kept %s locked for %s; try again, or end that process",
			s.path, s.busyTimeout())
	case sandbox.CodeHistoryExhausted:
		return cause, fmt.Sprintf("no space is left for %s; free some, or prune the history", s.path)
	case sandbox.CodeHistoryReadOnly:
		return cause, fmt.Sprintf("%s cannot be written; make the file and its folder writable", s.path)
	case sandbox.CodeHistoryCorrupt:
		return cause, fmt.Sprintf("%s is damaged and is left as it is; move it and its -wal file away to begin a new history", s.path)
	default:
		return cause, s.path
	}
}

// cause tells which of the known faults an error is.
func (s *Store) cause(err error) sandbox.Code {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return sandbox.CodeHistoryExhausted
	case errors.Is(err, syscall.EROFS), errors.Is(err, fs.ErrPermission):
		return sandbox.CodeHistoryReadOnly
	case errors.Is(err, errNotRegular), errors.Is(err, errTorn), errors.Is(err, errHostile), errors.Is(err, errScan):
		return sandbox.CodeHistoryCorrupt
	case errors.Is(err, context.Canceled):
		return sandbox.CodeCancelled
	case errors.Is(err, context.DeadlineExceeded):
		return sandbox.CodeTimeout
	}
	e, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return sandbox.CodeHistory
	}
	switch e.Code() & 0xff {
	case lib.SQLITE_BUSY, lib.SQLITE_LOCKED, lib.SQLITE_PROTOCOL:
		return sandbox.CodeHistoryLocked
	case lib.SQLITE_FULL:
		return sandbox.CodeHistoryExhausted
	case lib.SQLITE_READONLY, lib.SQLITE_PERM:
		return sandbox.CodeHistoryReadOnly
	case lib.SQLITE_CORRUPT, lib.SQLITE_NOTADB:
		return sandbox.CodeHistoryCorrupt
	case lib.SQLITE_CANTOPEN, lib.SQLITE_IOERR:
		return s.examine()
	case lib.SQLITE_TOOBIG:
		return sandbox.CodeTooLarge
	}
	return sandbox.CodeHistory
}

// examine finds out why a file of the history could not be made, opened or
// extended: SQLite reports a full or read-only disk as one of many errors.
func (s *Store) examine() sandbox.Code {
	dir := filepath.Dir(s.path)
	var stat syscall.Statfs_t
	if err := syscall.Statfs(dir, &stat); err == nil {
		const readOnly = 1 // ST_RDONLY
		switch {
		case stat.Flags&readOnly != 0:
			return sandbox.CodeHistoryReadOnly
		case stat.Blocks > 0 && stat.Bavail == 0, stat.Files > 0 && stat.Ffree == 0:
			return sandbox.CodeHistoryExhausted
		}
	}
	const write = 2 // W_OK
	for _, name := range []string{dir, s.path} {
		if err := syscall.Access(name, write); errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
			return sandbox.CodeHistoryReadOnly
		}
	}
	return sandbox.CodeHistory
}

// busy reports whether another connection holds a lock.
func busy(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	return ok && (e.Code()&0xff == lib.SQLITE_BUSY || e.Code()&0xff == lib.SQLITE_LOCKED)
}

// orphan reports whether a row was refused because its operation is not there.
func orphan(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	return ok && e.Code() == lib.SQLITE_CONSTRAINT_FOREIGNKEY
}

func errClosed() error {
	return &sandbox.Error{Op: "use history", Code: sandbox.CodeHistory, Message: "the store is closed"}
}

func notFound(op, id string) error {
	return &sandbox.Error{
		Op: op, Code: sandbox.CodeOperationNotFound,
		Message: fmt.Sprintf("the history has no operation %q, or no longer keeps it", id),
	}
}

func noRows(err error) bool { return errors.Is(err, sql.ErrNoRows) }
