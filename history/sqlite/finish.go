package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/sandbox"
)

// ending is the end of an operation as the tables hold it.
type ending struct {
	status    string
	at        time.Time
	result    any
	exit      any
	complete  bool
	state     string
	completed string
	duration  int64
	file      *history.File
}

// Finish implements [history.Writer]. Output that would leave a gap is left
// out, and the operation is marked as recorded in part.
func (s *Store) Finish(ctx context.Context, id string, end *history.End) error {
	switch {
	case end.Status == "" || !history.Final(end.Status):
		return sandbox.Invalid("status", "must tell how the operation ended")
	case len(end.Result) > 0 && !json.Valid(end.Result):
		return sandbox.Invalid("result", "must be JSON")
	}
	out, err := s.newOutput(end.Chunks)
	if err != nil {
		return err
	}
	e := newEnding(end)
	if e.at.IsZero() {
		e.at = s.opts.Now()
	}
	return s.submit(ctx, "finish operation", 512+len(end.Result)+out.size, func(w *writer) error {
		return w.finish(id, e, out)
	})
}

func newEnding(end *history.End) *ending {
	e := &ending{
		status: string(end.Status), at: end.At, result: text(string(end.Result)),
		complete: end.OutputComplete, state: state(end.Recording),
	}
	if end.ExitCode != nil {
		e.exit = *end.ExitCode
	}
	if end.File != nil {
		file := *end.File
		e.file = &file
	}
	return e
}

// close settles when the operation ended. The clock may have been set back
// while it ran: an end never lies before its beginning.
func (e *ending) close(started time.Time) {
	at := e.at
	if at.Before(started) {
		at = started
	}
	e.completed = history.FormatTime(at)
	e.duration = at.Sub(started).Milliseconds()
}

func (w *writer) finish(id string, e *ending, out *output) error {
	r, err := w.lookup(id)
	if err != nil {
		return err
	}
	if done, err := settled("finish operation", id, r, e.status); done || err != nil {
		return err
	}
	rows, gap := r.plan(out)
	end := *e
	if gap != nil {
		// How it ended matters more than its last output.
		end.complete, end.state = false, string(sandbox.RecordedPart)
	}
	end.close(r.started)
	if err := w.end(id, &end); err != nil {
		return err
	}
	if err := w.store(id, r, rows); err != nil {
		return err
	}
	delete(w.running, id)
	w.pages += 4
	return w.change(id+":completed:"+end.status, id, history.Completed, end.completed)
}

// settled reports whether an operation already has this end, and refuses
// another.
func settled(op, id string, r *running, status string) (bool, error) {
	switch r.ended {
	case "":
		return false, nil
	case status:
		return true, nil
	}
	return false, &sandbox.Error{
		Op: op, Code: sandbox.CodeOperationConflict,
		Message: fmt.Sprintf("operation %s has already ended as %s", id, r.ended),
	}
}

// end writes the end of an operation that runs.
func (w *writer) end(id string, e *ending) error {
	err := w.conn.exec(`
		update history_events set status = ?, completed_at = ?, duration_ms = ?, result_json = ? where event_id = ?`,
		e.status, e.completed, e.duration, e.result, id)
	if err == nil {
		err = w.conn.exec(`
			update command_executions set exit_code = ?, output_complete = ?, history_storage_state = ? where event_id = ?`,
			e.exit, e.complete, e.state, id)
	}
	if err == nil && e.file != nil {
		err = w.saveFile(fileValues(id, e.file.Change, e.file))
	}
	return err
}

// running is what the writer must know of an operation to go on with it.
type running struct {
	started time.Time
	ended   string // the final status; empty: it runs
	streams [2]place
}

// place is the end of what is kept of a stream.
type place struct {
	next int   // index of the next row
	size int64 // bytes kept
}

// maxRunning bounds what is remembered of operations that nobody ends.
const maxRunning = 4096

func (w *writer) remember(id string, r *running) {
	if len(w.running) >= maxRunning {
		clear(w.running)
	}
	w.running[id] = r
}

// lookup finds an operation, running or ended.
func (w *writer) lookup(id string) (*running, error) {
	if r, ok := w.running[id]; ok {
		return r, nil
	}
	var status, started string
	err := w.conn.row(`select status, occurred_at from history_events where event_id = ?`, []any{id}, &status, &started)
	if noRows(err) {
		return nil, notFound("find operation", id)
	}
	if err != nil {
		return nil, err
	}
	r := &running{}
	if r.started, err = history.ParseTime(started); err != nil {
		r.started = w.s.opts.Now()
	}
	if history.Final(sandbox.Status(status)) {
		r.ended = status
		return r, nil
	}
	for i, stream := range streams {
		var next, size anyNumber
		err := w.conn.row(`
			select coalesce(max(chunk_index) + 1, 0), total(original_size)
			from command_output_chunks where event_id = ? and stream = ?`,
			[]any{id, string(stream)}, &next, &size)
		if err != nil {
			return nil, err
		}
		r.streams[i] = place{next: int(next.n), size: size.n}
	}
	w.remember(id, r)
	return r, nil
}
