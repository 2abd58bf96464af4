package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/sandbox"
)

// row is an operation as the tables hold it. It is made by the caller, who may
// change the operation once Begin has returned.
type row struct {
	id      string
	kind    string
	started time.Time
	event   []any
	command []any // nil: not a command
	file    []any // nil: not about a file
	end     *ending
	changes string // of files by a command that has ended elsewhere; empty: not known
	size    int
}

// Begin implements [history.Writer].
func (s *Store) Begin(ctx context.Context, op *history.Operation) error {
	if op.StartedAt.IsZero() {
		op.StartedAt = s.opts.Now()
	}
	row, err := newRow(op)
	if err != nil {
		return err
	}
	var seq int64
	err = s.submit(ctx, "begin operation", row.size, func(w *writer) error {
		if err := w.admit("begin operation", row); err != nil {
			return err
		}
		found, err := w.insert(row)
		if err == nil && found == 0 {
			return &sandbox.Error{
				Op: "begin operation", Code: sandbox.CodeOperationExists,
				Message: "the history already has an operation " + row.id,
			}
		}
		seq = found
		return err
	})
	if err == nil {
		op.Seq = seq
	}
	return err
}

// Import implements [history.Writer].
func (s *Store) Import(ctx context.Context, op *history.Operation) error {
	if !history.Final(op.Status) || op.Status == "" {
		return sandbox.Invalid("status", "must tell how the operation ended")
	}
	if op.StartedAt.IsZero() {
		op.StartedAt = s.opts.Now()
	}
	row, err := newRow(op)
	if err != nil {
		return err
	}
	var seq int64
	err = s.submit(ctx, "import operation", row.size, func(w *writer) error {
		if err := w.admit("import operation", row); err != nil {
			return err
		}
		var err error
		seq, err = w.add(row)
		return err
	})
	if err == nil && seq != 0 {
		op.Seq = seq
	}
	return err
}

// add adds an operation that has ended, unless the id is known.
func (w *writer) add(r *row) (seq int64, err error) {
	if seq, err = w.insert(r); err != nil || seq == 0 {
		return seq, err
	}
	if err := w.end(r.id, r.end); err != nil {
		return seq, err
	}
	delete(w.running, r.id)
	if r.changes != "" {
		if err := w.saveChanges(r.id, r.changes); err != nil {
			return seq, err
		}
	}
	return seq, w.change(r.id+":completed:"+r.end.status, r.id, history.Completed, r.end.completed)
}

// newRow checks an operation and lays it out as rows.
func newRow(op *history.Operation) (*row, error) {
	switch {
	case op.ID == "":
		return nil, sandbox.Invalid("id", "must not be empty")
	case op.Type == "":
		return nil, sandbox.Invalid("type", "must not be empty")
	case len(op.Request) > 0 && !json.Valid(op.Request):
		return nil, sandbox.Invalid("request", "must be JSON")
	case len(op.Result) > 0 && !json.Valid(op.Result):
		return nil, sandbox.Invalid("result", "must be JSON")
	}
	started := history.FormatTime(op.StartedAt)
	request := withTrace(op.Request, op.Actor.TraceParent)
	r := &row{
		id: op.ID, kind: op.Type, started: op.StartedAt,
		event: []any{
			op.ID, orElse(op.Source, history.SourceSDK), orElse(op.Actor.Type, history.System),
			text(op.Actor.ID), text(op.Actor.Thread), text(op.Actor.Run), text(op.Actor.Correlation),
			op.Type, started, text(string(request)),
		},
		command: commandRow(op), file: fileRow(op),
		size: 1024 + len(request) + len(op.Result),
	}
	if history.Final(op.Status) && op.Status != "" {
		end := &history.End{Status: op.Status, At: op.CompletedAt, Result: op.Result, OutputComplete: true}
		if op.Command != nil {
			end.ExitCode, end.OutputComplete, end.Recording = op.Command.ExitCode, op.Command.OutputComplete, op.Command.Recording
		}
		if end.At.IsZero() {
			end.At = op.StartedAt.Add(max(op.Duration, time.Duration(op.DurationMS)*time.Millisecond))
		}
		r.end = newEnding(end)
		r.end.close(op.StartedAt)
		return r, r.take(op.Changes)
	}
	return r, nil
}

func (r *row) take(changes *history.Changes) (err error) {
	if changes != nil && r.command != nil {
		r.changes, err = encodeChanges(changes)
		r.size += len(r.changes)
	}
	return err
}

func commandRow(op *history.Operation) []any {
	c := op.Command
	if c == nil || op.Type != history.CommandExecute && op.Type != history.TerminalSession {
		return nil
	}
	var env, timeout any
	if len(c.Env) > 0 {
		names := make(map[string]any, len(c.Env))
		for name := range c.Env {
			names[valid(name)] = "***"
		}
		env = string(history.Encode(names))
	}
	if c.TimeoutMS > 0 {
		timeout = c.TimeoutMS
	}
	return []any{op.ID, valid(c.Line), valid(c.Dir), env, timeout, state(c.Recording)}
}

func fileRow(op *history.Operation) []any {
	change, ok := strings.CutPrefix(op.Type, "file.")
	if f := op.File; ok && f != nil {
		return fileValues(op.ID, orElse(f.Change, change), f)
	}
	return nil
}

// fileValues are the columns of file_operations in their order. A diff is
// bound as text: other readers of the format cannot take bytes here.
func fileValues(id, change string, f *history.File) []any {
	var encoding any
	if f.Diff != "" {
		encoding = "identity"
	}
	return []any{
		id, valid(f.Path), text(f.OldPath), valid(change), text(f.BeforeHash), text(f.AfterHash),
		size(f.BeforeSize), size(f.AfterSize), text(f.Diff), encoding, !f.DiffTruncated,
	}
}

// insert adds the rows of an operation that starts and returns its seq, or 0
// and no change if the id is known.
func (w *writer) insert(r *row) (int64, error) {
	res, err := w.conn.run(`
		insert into history_events (event_id, provider_key, sandbox_id, sandbox_instance_id, source, actor_type,
			actor_id, thread_id, run_id, correlation_id, operation_type, status, occurred_at, request_json)
		values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'started', ?, ?)
		on conflict (event_id) do nothing`, w.conn.identify(r.event)...)
	if err != nil {
		return 0, err
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		return 0, err
	}
	seq, err := res.LastInsertId()
	if err != nil {
		return 0, err
	}
	w.pages += 8
	w.begun++
	if r.command != nil {
		err = w.conn.exec(`
			insert into command_executions (event_id, command, cwd, environment_json, timeout_ms, history_storage_state)
			values (?, ?, ?, ?, ?, ?)`, r.command...)
	}
	if err == nil && r.file != nil {
		err = w.saveFile(r.file)
	}
	if err == nil {
		err = w.change(r.id+":created", r.id, history.Created, history.FormatTime(r.started))
	}
	w.remember(r.id, &running{started: r.started})
	return seq, err
}

// saveFile adds what is known of a file; what was known before stays.
func (w *writer) saveFile(values []any) error {
	return w.conn.exec(`
		insert into file_operations (event_id, path, old_path, change_type, before_hash, after_hash,
			before_size, after_size, diff_data, diff_encoding, diff_complete)
		values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		on conflict (event_id) do update set
			path = case when excluded.path = '' then path else excluded.path end,
			old_path = coalesce(excluded.old_path, old_path),
			before_hash = coalesce(excluded.before_hash, before_hash),
			after_hash = coalesce(excluded.after_hash, after_hash),
			before_size = coalesce(excluded.before_size, before_size),
			after_size = coalesce(excluded.after_size, after_size),
			diff_data = coalesce(excluded.diff_data, diff_data),
			diff_encoding = coalesce(excluded.diff_encoding, diff_encoding),
			diff_complete = min(excluded.diff_complete, diff_complete)`, values...)
}

// change adds an entry to the feed. Its id follows from what changed, so that
// the same change twice is one.
func (w *writer) change(id, operation, kind, at string) error {
	w.changed = true
	return w.conn.exec(`
		insert into history_changes (change_id, event_id, change_type, changed_at) values (?, ?, ?, ?)
		on conflict (change_id) do nothing`, id, operation, kind, at)
}

// withTrace puts the trace context, which has no column, into the request.
func withTrace(request json.RawMessage, trace string) json.RawMessage {
	if trace == "" {
		return request
	}
	fields := map[string]any{}
	if len(request) > 0 {
		dec := json.NewDecoder(strings.NewReader(string(request)))
		dec.UseNumber()
		if dec.Decode(&fields) != nil {
			return request // not an object: it has no room for a field
		}
	}
	fields[traceKey] = trace
	return history.Encode(fields)
}

const traceKey = "traceparent"

// text is a text column: NULL when empty. Other readers of the format cannot
// read text that is not UTF-8.
func text(s string) any {
	if s == "" {
		return nil
	}
	return valid(s)
}

func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

func size(n *int64) any {
	if n == nil {
		return nil
	}
	return *n
}

func orElse(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return valid(s)
}

// state is the storage state as the format knows it.
func state(r sandbox.Recording) string {
	switch r {
	case "":
		return string(sandbox.RecordedWhole)
	case sandbox.NotRecorded:
		return string(sandbox.RecordedMetadata)
	}
	return string(r)
}

func badStream(stream sandbox.Stream) error {
	return sandbox.Invalid("stream", fmt.Sprintf("must be stdout or stderr, not %q", stream))
}
