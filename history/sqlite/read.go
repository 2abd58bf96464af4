package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/sandbox"
)

const day = 24 * time.Hour

// errScan marks a value that no writer of the format writes.
var errScan = errors.New("not a history of this format")

// operations is the query of all reads; what follows it picks and orders.
const operations = `
	select e.seq, e.event_id, e.operation_type, e.status, e.source,
		e.actor_type, e.actor_id, e.thread_id, e.run_id, e.correlation_id,
		e.occurred_at, e.completed_at, e.duration_ms, e.request_json, e.result_json,
		c.event_id, c.command, c.cwd, c.environment_json, c.timeout_ms, c.exit_code, c.output_complete, c.history_storage_state,
		f.event_id, f.path, f.old_path, f.change_type, f.before_hash, f.after_hash, f.before_size, f.after_size,
		f.diff_data, f.diff_encoding, f.diff_complete
	from history_events e
	left join command_executions c on c.event_id = e.event_id
	left join file_operations f on f.event_id = e.event_id
	`

// Get implements [history.Reader].
func (s *Store) Get(ctx context.Context, id string) (*history.Operation, error) {
	const op = "get operation"
	var found []*history.Operation
	alive, args := s.alive()
	err := s.read(ctx, op, func(q *sql.Tx) error {
		var err error
		found, _, err = queryOperations(ctx, q, `where e.event_id = ? and `+alive, append([]any{id}, args...))
		if err == nil {
			_, err = readChanges(ctx, q, found)
		}
		return errors.Join(err, s.countOutputs(ctx, q, found))
	})
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, notFound(op, id)
	}
	return found[0], nil
}

// alive is the condition under which an operation e is answered: it runs, or
// its time is not over or cannot be read, or an active consumer has yet to
// read it.
func (s *Store) alive() (string, []any) {
	ttl := s.ttl()
	if ttl <= 0 {
		return "true", nil
	}
	now := s.opts.Now()
	return `(e.status = 'started' or coalesce(e.completed_at, e.occurred_at) >= ?
		or coalesce(e.completed_at, e.occurred_at, '') not glob '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]T*'
		or coalesce((select max(seq) from history_changes where event_id = e.event_id), 0)
			> (select coalesce(min(acknowledged_seq), 9223372036854775807) from history_consumers where updated_at >= ?))`,
		[]any{history.FormatTime(now.Add(-ttl)), history.FormatTime(now.Add(-s.consumersLast()))}
}

// queryOperations reads operations until their rows are over or the answer is
// full; more tells that it is full.
func queryOperations(ctx context.Context, q *sql.Tx, rest string, args []any) (ops []*history.Operation, more bool, err error) {
	rows, err := q.QueryContext(ctx, operations+rest, args...)
	if err != nil {
		return nil, false, err
	}
	defer rows.Close()
	size := 0
	for rows.Next() {
		op, err := scanOperation(rows)
		if err != nil {
			return nil, false, err
		}
		size += weigh(op)
		if size > maxAnswer && len(ops) > 0 {
			more = true
			break
		}
		ops = append(ops, op)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return nil, false, err
	}
	return ops, more, nil
}

// countOutputs fills in how much output of commands is kept.
func (s *Store) countOutputs(ctx context.Context, q *sql.Tx, ops []*history.Operation) error {
	for _, op := range ops {
		if err := s.countOutput(ctx, q, op); err != nil {
			return err
		}
	}
	return nil
}

// weigh is about the size of an operation in an answer.
func weigh(op *history.Operation) int {
	n := 512 + len(op.Request) + len(op.Result)
	if op.Command != nil {
		n += len(op.Command.Line)
	}
	if op.File != nil {
		n += len(op.File.Diff)
	}
	if op.Changes != nil {
		for change := range op.Changes.All() {
			n += 64 + len(change.Path)
		}
	}
	return n
}

func (s *Store) countOutput(ctx context.Context, q *sql.Tx, op *history.Operation) error {
	if op.Command == nil {
		return nil
	}
	rows, err := q.QueryContext(ctx, `select stream, total(`+s.sizeOf(op.Foreign)+`)
		from command_output_chunks where event_id = ? group by stream`, op.ID)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var stream anyText
		var size anyNumber
		if err := rows.Scan(&stream, &size); err != nil {
			return err
		}
		switch sandbox.Stream(stream.text) {
		case sandbox.Stdout:
			op.Command.StdoutBytes = max(size.n, 0)
		case sandbox.Stderr:
			op.Command.StderrBytes = max(size.n, 0)
		}
	}
	return rows.Err()
}

// scanOperation reads one row of operations, as well as it can be read.
func scanOperation(rows *sql.Rows) (*history.Operation, error) {
	var (
		op                                history.Operation
		seq                               anyNumber
		opID, kind, status, source        anyText
		actorType                         anyText
		actor, thread, run, correlation   anyText
		occurred, completed               anyText
		request, result                   anyText
		duration, timeout, exit, complete anyNumber
		command, line, dir, env, storage  anyText
		file                              fileColumns
	)
	err := rows.Scan(append([]any{
		&seq, &opID, &kind, &status, &source,
		&actorType, &actor, &thread, &run, &correlation,
		&occurred, &completed, &duration, &request, &result,
		&command, &line, &dir, &env, &timeout, &exit, &complete, &storage,
	}, file.dest()...)...)
	if err != nil {
		return nil, errors.Join(errScan, err)
	}
	op.Seq, op.ID, op.Type, op.Status, op.Source = seq.n, opID.text, kind.text, statusOf(status.text), source.text
	op.Actor = history.Actor{
		Type: actorType.text, ID: actor.text, Thread: thread.text, Run: run.text, Correlation: correlation.text,
	}
	op.Request, op.Result = document(request.text), document(result.text)
	op.Foreign = !history.Ours(op.Request)
	op.Request, op.Actor.TraceParent = cutTrace(op.Request)
	setTimes(&op, occurred.text, completed.text, duration.n)
	if command.valid {
		op.Command = &history.Command{
			Line: line.text, Dir: dir.text, Env: environment(env.text), TimeoutMS: timeout.n,
			OutputComplete: complete.n != 0, Recording: sandbox.Recording(storage.text),
		}
		if exit.valid {
			code := int(exit.n)
			op.Command.ExitCode = &code
		}
	}
	op.File = file.file()
	return &op, nil
}

// fileColumns are the columns of an act on a file.
type fileColumns struct {
	id, path, old, change, before, after anyText
	beforeSize, afterSize                anyNumber
	diff, encoding                       anyText
	whole                                anyNumber
}

func (f *fileColumns) dest() []any {
	return []any{
		&f.id, &f.path, &f.old, &f.change, &f.before, &f.after, &f.beforeSize, &f.afterSize, &f.diff, &f.encoding, &f.whole,
	}
}

func (f *fileColumns) file() *history.File {
	if !f.id.valid {
		return nil
	}
	diff, err := unpack([]byte(f.diff.text), f.encoding.text, anySize)
	if err != nil {
		diff = []byte("unreadable diff: " + err.Error())
	}
	return &history.File{
		Path: f.path.text, OldPath: f.old.text, Change: f.change.text,
		BeforeHash: f.before.text, AfterHash: f.after.text,
		BeforeSize: f.beforeSize.pointer(), AfterSize: f.afterSize.pointer(),
		Diff: string(diff), DiffTruncated: f.whole.valid && f.whole.n == 0,
	}
}

// setTimes reads the times, which other programs may have written wrongly:
// then they are zero.
func setTimes(op *history.Operation, occurred, completed string, ms int64) {
	op.StartedAt, _ = history.ParseTime(occurred)
	if completed == "" {
		return
	}
	op.CompletedAt, _ = history.ParseTime(completed)
	op.DurationMS = max(ms, 0)
	op.Duration = time.Duration(op.DurationMS) * time.Millisecond
	// The times know the duration to the microsecond.
	if exact := op.CompletedAt.Sub(op.StartedAt); exact.Milliseconds() == op.DurationMS {
		op.Duration = exact
	}
}

// document is a JSON column; text that is no JSON becomes JSON that holds it.
func document(s string) json.RawMessage {
	switch {
	case s == "":
		return nil
	case !json.Valid([]byte(s)):
		return history.Encode(map[string]any{"unreadable": valid(s)})
	}
	return json.RawMessage(s)
}

// environment reads names and masked values.
func environment(s string) map[string]string {
	var fields map[string]any
	if s == "" || json.Unmarshal([]byte(s), &fields) != nil || len(fields) == 0 {
		return nil
	}
	env := make(map[string]string, len(fields))
	for name, value := range fields {
		env[name], _ = value.(string)
	}
	return env
}

// cutTrace takes the trace context out of a request.
func cutTrace(request json.RawMessage) (json.RawMessage, string) {
	if !bytes.Contains(request, []byte(`"`+traceKey+`"`)) {
		return request, ""
	}
	fields := map[string]any{}
	dec := json.NewDecoder(strings.NewReader(string(request)))
	dec.UseNumber()
	trace, ok := "", dec.Decode(&fields) == nil
	if ok {
		trace, ok = fields[traceKey].(string)
	}
	if !ok {
		return request, ""
	}
	delete(fields, traceKey)
	return history.Encode(fields), trace
}
