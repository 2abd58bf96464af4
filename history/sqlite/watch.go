package sqlite

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/sandbox"
)

// Whoever is root in a sandbox can remove the history, or put something else
// in its place, while it is being written. The open file then takes records
// that nobody finds any more, and SQLite does not say so. So the writer looks,
// after each commit and before the callers are answered, whether the name
// still stands for the file that it has open.
//
// Names are only looked at: opening and closing the file would take all locks
// of this process on it.

const (
	// lookEvery is how often the log and its index are looked at while
	// records are written; the file itself is with every commit.
	lookEvery = 100 * time.Millisecond
	// idleLook is how often all three are while nothing is written.
	idleLook = time.Second
	// rescuePatience bounds the wait for other processes while a log is moved
	// into its file.
	rescuePatience = 100 * time.Millisecond
	// maxAttempts bounds how often a record is tried when its file is taken
	// away each time.
	maxAttempts = 3
)

const (
	lostFile = "the history file was removed or replaced while it was in use"
	lostLog  = "the log of the history file was replaced while it was in use, and what another program wrote into it may be missing"
)

// errMoved tells that the file was taken away before what was written in it
// could be acknowledged.
var errMoved = errors.New("the file was removed or replaced while it was being written")

// files are what the names of a history stand for: nil for nothing.
type files struct{ db, log, index fs.FileInfo }

// lookAt finds out what the names stand for now.
func lookAt(path string) (f files, err error) {
	if f.db, err = os.Lstat(path); err != nil {
		return f, err
	}
	if f.log, err = os.Lstat(path + "-wal"); err != nil {
		return f, err
	}
	f.index, err = os.Lstat(path + "-shm")
	return f, err
}

// moved reports whether a name stands for another file than before. When that
// cannot be found out, it does not.
func moved(before, now fs.FileInfo, err error) bool {
	if err != nil {
		return gone(err)
	}
	return before == nil || !os.SameFile(before, now)
}

func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP)
}

// loss is what a gap in the history tells.
type loss struct {
	reason     string
	since      time.Time // when all was well for the last time
	operations int64     // in the file that is lost; -1: not known
}

func (l *loss) operation(now time.Time) *history.Operation {
	fields := map[string]any{"reason": l.reason}
	if l.operations >= 0 {
		fields["operations"] = l.operations
	}
	since := l.since
	if since.IsZero() || since.After(now) {
		since = now
	}
	return &history.Operation{
		ID: id.New(), Type: history.HistoryGap, Status: sandbox.Succeeded,
		Source: history.SourceSDK, Actor: history.Actor{Type: history.System},
		StartedAt: since, CompletedAt: now,
		Request: history.EncodeRequest(map[string]any{}), Result: history.Encode(fields),
	}
}

// look checks that what was committed can be found under the file's name, and
// mends what can be mended. After errMoved nothing of the last transaction
// counts.
func (w *writer) look(every time.Duration) error {
	if w.conn == nil {
		return nil
	}
	path, have := w.s.path, &w.conn.files
	db, err := os.Lstat(path)
	if moved(have.db, db, err) {
		w.lose()
		return errMoved
	}
	if err == nil && db.Size() < have.db.Size() {
		return w.doubt()
	}
	if err == nil {
		have.db = db
	}
	w.sound = w.s.opts.Now()
	if time.Since(w.looked) < every {
		return nil
	}
	log, errLog := os.Lstat(path + "-wal")
	index, errIndex := os.Lstat(path + "-shm")
	if moved(have.log, log, errLog) || moved(have.index, index, errIndex) {
		return w.rescue(log)
	}
	w.looked = time.Now()
	return nil
}

// lose lets go of a file that is no longer where it was. Perhaps it has only
// been moved, so it gets all that is in its log first; then what is left of
// that must not be taken for the log of the next file.
func (w *writer) lose() {
	w.lost = &loss{reason: lostFile, since: w.sound, operations: -1}
	var n int64
	if err := w.conn.row(`select count(*) from history_events`, nil, &n); err == nil {
		w.lost.operations = max(n-w.begun, 0)
	}
	have := w.conn.files
	_, _, err := w.conn.checkpoint("passive")
	w.s.gate.Lock()
	defer w.s.gate.Unlock()
	w.letGo()
	for suffix, file := range map[string]fs.FileInfo{"-wal": have.log, "-shm": have.index} {
		if now, lookErr := os.Lstat(w.s.path + suffix); err == nil && lookErr == nil && os.SameFile(file, now) {
			_ = os.Remove(w.s.path + suffix)
		}
	}
}

// doubt opens a file anew that has become shorter, as SQLite never makes it
// in our use, and looks through it.
func (w *writer) doubt() error {
	w.suspect = true
	w.s.gate.Lock()
	w.letGo()
	w.s.gate.Unlock()
	if err := w.open(); err != nil {
		return err
	}
	if w.conn.made {
		return errMoved
	}
	return nil
}

// letGo closes all connections to the file. The gate is closed.
func (w *writer) letGo() {
	w.s.dropReaders()
	w.conn.close()
	w.conn, w.running, w.pages = nil, map[string]*running{}, 0
}

// rescue moves a log that has lost its name, or whose index has, into the
// file, so that nothing is missing there, and lets go of both.
func (w *writer) rescue(log fs.FileInfo) error {
	w.s.gate.Lock()
	defer w.s.gate.Unlock()
	w.s.dropReaders()
	_ = w.conn.exec(busyPragma(rescuePatience))
	pages, done, err := w.conn.checkpoint("full")
	_ = w.conn.exec(busyPragma(w.s.busyTimeout()))
	if err != nil {
		w.abandon(err)
		return err
	}
	w.looked = time.Now()
	if pages < 0 || done < pages {
		return nil // another process holds it up: the next look tries again
	}
	strange := log != nil && log.Mode().IsRegular() && log.Size() > 0 && !os.SameFile(log, w.conn.files.log)
	if strange {
		w.suspect = true
		w.lost = &loss{reason: lostLog, since: w.sound, operations: -1}
	}
	w.letGo()
	return nil
}

// missed reports whether the file that was in use the last time has been
// taken away while it was not open.
func (w *writer) missed() bool {
	if w.known == nil {
		return false
	}
	return w.s.replaced(w.known)
}

// recordLoss begins the next history, or goes on in the one that is found,
// with an operation that tells of the loss.
func (w *writer) recordLoss(c *conn) error {
	if w.lost == nil && c.made && w.known != nil { // even if the new file has the old one's number
		w.lost = &loss{reason: lostFile, since: w.sound, operations: -1}
	}
	if w.lost == nil {
		return nil
	}
	r, err := newRow(w.lost.operation(w.s.opts.Now()))
	if err != nil {
		return err
	}
	w.conn = c
	_, err = w.add(r)
	w.conn = nil
	return err
}

// refresh lets go of the readers of a file that its name no longer stands for.
func (s *Store) refresh() {
	s.mu.Lock()
	file := s.readFile
	s.mu.Unlock()
	if file == nil || !s.replaced(file) {
		return
	}
	s.gate.Lock()
	defer s.gate.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.readFile == file {
		s.closeReaders()
	}
}

// replaced reports whether the name of the history stands for another file.
func (s *Store) replaced(file fs.FileInfo) bool {
	now, err := os.Lstat(s.path)
	return moved(file, now, err)
}

// dropReaders lets go of the file; the next reader opens what is there then.
// The gate is closed.
func (s *Store) dropReaders() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.opts.ReadOnly {
		s.closeReaders()
	}
}

func (s *Store) closeReaders() {
	if s.readers != nil {
		_ = s.readers.Close()
	}
	s.readers, s.readFile = nil, nil
}
