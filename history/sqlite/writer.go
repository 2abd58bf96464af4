package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"runtime"
	"sync"
	"time"

	"github.com/glassboxhq/glassbox/sandbox"
)

// The bounds of one commit.
const (
	maxBatchJobs  = 512
	maxBatchBytes = 4 << 20
)

// job is one record that a caller waits for. do may run twice, when the batch
// it was in could not be committed; it returns a *sandbox.Error only if it has
// written nothing.
type job struct {
	op   string
	size int // bytes to write, about
	do   func(*writer) error
	err  error
	done chan error
}

// writer has the one connection that writes. Who has the turn may use it: the
// writer's goroutine, which commits together what many callers ask for, or a
// caller who is alone, since the way to another goroutine and back costs a
// third of a small commit.
type writer struct {
	s     *Store
	turn  sync.Mutex    // held by who uses what follows
	long  chan struct{} // the log is to be moved into the file
	ended bool
	conn  *conn // nil: to be opened
	batch []*job

	// running holds the operations that this process has begun and not
	// ended, so that an Append needs no look into the file. It is dropped
	// whenever a transaction fails, since it may then be ahead of the file.
	running map[string]*running

	changed bool // the transaction adds to the feed
	pages   int  // written into the log since the last checkpoint, about
	suspect bool // the file was found damaged

	connected bool // the file was opened before

	known  fs.FileInfo // the file that was open last
	sound  time.Time   // when it last stood under its name
	looked time.Time   // when its log and index were last looked at
	begun  int64       // operations that the transaction adds
	lost   *loss       // to be recorded in the next file
}

// submit hands a record to the writer and waits until it is committed. If ctx
// ends before, the record may be committed all the same.
func (s *Store) submit(ctx context.Context, op string, size int, do func(*writer) error) error {
	if s.opts.ReadOnly {
		return &sandbox.Error{Op: op, Code: sandbox.CodeHistoryReadOnly, Message: s.path + " was opened for reading only"}
	}
	if ctx.Err() != nil {
		return sandbox.FromContext(ctx, op)
	}
	w, err := s.start()
	if err != nil {
		return err
	}
	j := &job{op: op, size: size, do: do, done: make(chan error, 1)}
	defer s.callers.Add(-1)
	if s.callers.Add(1) == 1 && w.turn.TryLock() {
		return w.workFor(j)
	}
	select {
	case s.jobs <- j:
	case <-s.closing:
		return errClosed()
	case <-ctx.Done():
		return sandbox.FromContext(ctx, op)
	}
	select {
	case err := <-j.done:
		return err
	case <-ctx.Done():
		return sandbox.FromContext(ctx, op)
	}
}

// start starts the writer at the first record.
func (s *Store) start() (*writer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed()
	}
	if s.writer == nil {
		s.writer = &writer{s: s, long: make(chan struct{}, 1), running: map[string]*running{}, known: s.readFile}
		s.writing.Go(s.writer.run)
		if !s.opts.ManualCleanup {
			s.cleaner.running.Go(s.cleanUp)
		}
	}
	return s.writer, nil
}

func (w *writer) run() {
	defer w.close()
	idle := time.NewTicker(idleLook)
	defer idle.Stop()
	for {
		select {
		case j := <-w.s.jobs:
			w.take(func() {
				w.collect(j)
				w.work()
				w.checkpoint()
			})
		case <-w.long:
			w.take(w.checkpoint)
		case <-idle.C:
			w.take(func() {
				w.begun = 0
				_ = w.look(0) // a fault is told to the next record
			})
		case <-w.s.closing:
			return
		}
	}
}

// take does something in its turn.
func (w *writer) take(do func()) {
	w.turn.Lock()
	defer w.turn.Unlock()
	do()
	w.s.opts.phase("idle")
}

func (w *writer) close() {
	w.turn.Lock()
	defer w.turn.Unlock()
	if w.ended = true; w.conn != nil {
		w.conn.close()
	}
}

// workFor commits one record for a caller who has the turn.
func (w *writer) workFor(j *job) error {
	defer w.turn.Unlock()
	if w.ended {
		return errClosed()
	}
	clear(w.batch)
	w.batch = append(w.batch[:0], j)
	w.work()
	if w.pages >= w.s.opts.checkpointPages {
		select {
		case w.long <- struct{}{}:
		default:
		}
	}
	w.s.opts.phase("idle")
	return <-j.done
}

// collect takes what is asked for at this moment. Callers that were answered
// a moment ago get the chance to ask again, so that they share the commit.
func (w *writer) collect(first *job) {
	clear(w.batch)
	w.batch = append(w.batch[:0], first)
	size := first.size
	runtime.Gosched()
	for len(w.batch) < maxBatchJobs && size < maxBatchBytes {
		select {
		case j := <-w.s.jobs:
			w.batch = append(w.batch, j)
			size += j.size
		default:
			return
		}
	}
}

// work commits the batch and answers its callers. If it cannot be committed
// as a whole, each record is tried by itself: one that fails harms no other.
func (w *writer) work() {
	opened, err := w.attempt(w.batch)
	// One whose operation somebody else has deleted is tried again, too, as the
	// writer has forgotten by then that there was such an operation.
	if err != nil && opened && (len(w.batch) > 1 && !busy(err) || orphan(err)) {
		w.workAlone()
	} else {
		w.answer(w.batch, err)
	}
	if w.changed {
		w.s.feed.notify()
		w.changed = false
	}
}

func (w *writer) workAlone() {
	for i := range w.batch {
		jobs := w.batch[i : i+1]
		opened, err := w.attempt(jobs)
		if !opened {
			w.answer(w.batch[i:], err)
			return
		}
		w.answer(jobs, err)
	}
}

// answer tells the callers: err, or else what became of each record.
func (w *writer) answer(jobs []*job, err error) {
	for _, j := range jobs {
		if err != nil {
			j.err = err
		}
		j.done <- w.s.fault(j.op, j.err)
	}
}

// attempt runs jobs in one transaction, in a file that is still there when it
// has been committed. It sets the error of each record that is refused. If the
// file cannot be opened, all that follow would fail alike.
func (w *writer) attempt(jobs []*job) (opened bool, err error) {
	for range maxAttempts {
		if err = w.open(); err == nil {
			opened = true
			err = w.transact(jobs)
		} else if !errors.Is(err, errMoved) {
			return false, err
		}
		if !errors.Is(err, errMoved) {
			break
		}
	}
	return opened, err
}

// open opens the file unless it is open. A file that was found damaged is
// looked through first: perhaps someone has put another in its place.
func (w *writer) open() error {
	if w.conn != nil {
		return nil
	}
	w.s.opts.phase("open")
	if w.lost == nil && w.missed() {
		w.lost = &loss{reason: lostFile, since: w.sound, operations: -1}
	}
	c, err := w.s.openWriter(context.Background(), w.recordLoss)
	if err != nil {
		return err
	}
	w.lost = nil
	if w.suspect {
		if err := c.check("quick_check"); err != nil {
			c.close()
			return err
		}
		w.suspect = false
	}
	if !w.connected && !c.made && !w.s.settings().NoCleanupOnConnect {
		w.s.cleaner.wake()
	}
	w.connected = true
	w.conn, w.known = c, c.files.db
	w.sound, w.looked = w.s.opts.Now(), time.Now()
	return nil
}

// transact runs jobs in one transaction. An error means that nothing of them
// was committed.
func (w *writer) transact(jobs []*job) error {
	w.s.opts.phase("write")
	w.begun = 0
	err := w.conn.begin()
	if err == nil {
		for _, j := range jobs {
			j.err = j.do(w)
			if _, refused := errors.AsType[*sandbox.Error](j.err); j.err != nil && !refused {
				err = j.err
				break
			}
		}
	}
	if err == nil {
		w.s.opts.phase("commit")
		err = w.conn.commit()
	}
	if err != nil {
		w.abandon(err)
		return err
	}
	w.s.opts.phase("committed")
	size := 0
	for _, j := range jobs {
		size += j.size
	}
	w.s.counted(w.begun, int64(size))
	return w.look(lookEvery)
}

// abandon ends a transaction that failed.
func (w *writer) abandon(err error) {
	w.conn.rollback()
	w.running = map[string]*running{}
	w.changed = false
	switch code := w.s.cause(err); code {
	case sandbox.CodeHistoryLocked, sandbox.CodeHistoryExhausted, sandbox.CodeTooLarge:
		return
	case sandbox.CodeHistoryCorrupt:
		w.suspect = true
	}
	// What the connection knows of the file may be wrong: the next record
	// opens it anew.
	w.conn.close()
	w.conn = nil
}

// checkpoint moves the log into the file once it is long. It runs after the
// callers were answered, so that none waits for it.
func (w *writer) checkpoint() {
	limit := w.s.opts.checkpointPages
	if w.conn == nil || w.pages < limit {
		return
	}
	// Records of one commit share pages, so the count is above the truth.
	log, moved, err := w.conn.checkpoint("noop")
	if err == nil && log-moved >= limit {
		w.s.opts.phase("checkpoint")
		// It makes the file longer, which would hide that it has been cut.
		if w.look(lookEvery) != nil || w.conn == nil {
			return
		}
		log, moved, err = w.conn.checkpoint("passive")
		if w.look(lookEvery) != nil || w.conn == nil {
			return
		}
	}
	w.pages = log - moved // a fault here is met again by the next record
	if err != nil || log < 2*limit {
		return
	}
	// Readers have kept the log from being begun anew. A moment without one
	// of this process will do, until the log is so long that they are asked
	// to pause. Readers of other processes have a moment to finish.
	if log >= 8*limit {
		w.s.gate.Lock()
	} else if !w.s.gate.TryLock() {
		return
	}
	defer w.s.gate.Unlock()
	_ = w.conn.exec(`pragma busy_timeout = 100`)
	_, _, _ = w.conn.checkpoint("truncate")
	_ = w.conn.exec(busyPragma(w.s.busyTimeout()))
}

// checkpoint returns how many pages the log had, and how many of them are in
// the file now.
func (c *conn) checkpoint(mode string) (log, moved int, err error) {
	var blocked int
	err = c.row(`pragma wal_checkpoint(`+mode+`)`, nil, &blocked, &log, &moved)
	return log, moved, err
}

// check runs a check of the whole file.
func (c *conn) check(pragma string) error {
	return checkFile(context.Background(), c.conn, pragma)
}

func checkFile(ctx context.Context, q querier, pragma string) error {
	var found string
	if err := q.QueryRowContext(ctx, `pragma `+pragma+`(1)`).Scan(&found); err != nil {
		return err
	}
	if found != "ok" {
		return &sandbox.Error{Op: "check history", Code: sandbox.CodeHistoryCorrupt, Message: found}
	}
	return nil
}

// Check looks through the whole file for damage.
func (s *Store) Check(ctx context.Context) error {
	return s.read(ctx, "check history", func(q *sql.Tx) error { return checkFile(ctx, q, "integrity_check") })
}
