package mirror

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/db"
	"github.com/glassboxhq/glassbox/sandbox"
)

// body is an operation as it is kept, without request and result, which are
// kept as they came.
type body struct {
	*history.Operation
	Nanos int64  `json:"duration_ns,omitempty"`
	Door  string `json:"actor_source,omitempty"`
}

func encodeBody(op *history.Operation) ([]byte, error) {
	kept := *op
	kept.Request, kept.Result = nil, nil
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(body{&kept, int64(op.Duration), op.Actor.Source})
	return b.Bytes(), err
}

// kept is an operation with what the mirror knows of it beside.
type kept struct {
	*history.Operation
	no             int64
	history        int64
	changeSeq      int64
	stdout, stderr int64
	bodies         bool
	unindexed      bool
}

const operationColumns = `o.no, o.history, o.change_seq, o.body, o.request, o.result, o.stdout_bytes, o.stderr_bytes, o.bodies, o.unindexed`

func scanKept(row db.Row) (*kept, error) {
	k := &kept{}
	var data, request, result []byte
	var bodies, unindexed int
	if err := row.Scan(&k.no, &k.history, &k.changeSeq, &data, &request, &result, &k.stdout, &k.stderr, &bodies, &unindexed); err != nil {
		return nil, err
	}
	k.bodies, k.unindexed = bodies != 0, unindexed != 0
	b := body{Operation: &history.Operation{}}
	if err := json.Unmarshal(data, &b); err != nil {
		return nil, &sandbox.Error{Op: "read operation", Code: sandbox.CodeHistoryCorrupt, Err: err}
	}
	k.Operation = b.Operation
	k.Duration, k.Actor.Source = time.Duration(b.Nanos), b.Door
	k.Request, k.Result = request, result
	if !k.bodies && k.Command != nil {
		k.Command.Recording, k.Command.StdoutBytes, k.Command.StderrBytes = sandbox.RecordedMetadata, 0, 0
	}
	return k, nil
}

// save writes an operation as it was read at a place in the feed; one that
// was read later is left.
func save(ctx context.Context, tx *db.Tx, h *History, op *history.Operation, changeSeq int64) (no int64, err error) {
	data, err := encodeBody(op)
	if err != nil {
		return 0, err
	}
	var exit any
	if op.Command != nil && op.Command.ExitCode != nil {
		exit = int64(*op.Command.ExitCode)
	}
	size := int64(len(data) + len(op.Request) + len(op.Result))
	a := &op.Actor
	list, err := db.Collect(ctx, tx, number, `insert into mirror_operations (history, id, seq, change_seq, type, status, source, actor_type, actor_id,
			thread_id, run_id, correlation_id, started_at, completed_at, exit_code, body, request, result, bytes)
		values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		on conflict (history, id) do update set seq = excluded.seq, change_seq = excluded.change_seq, type = excluded.type, status = excluded.status,
			source = excluded.source, started_at = excluded.started_at, completed_at = excluded.completed_at, exit_code = excluded.exit_code,
			body = excluded.body, request = excluded.request, result = excluded.result, unindexed = 1,
			bytes = excluded.bytes + mirror_operations.stdout_bytes + mirror_operations.stderr_bytes
		where mirror_operations.change_seq <= excluded.change_seq and mirror_operations.bodies = 1
		returning no`,
		h.No, plain(op.ID), op.Seq, changeSeq, plain(op.Type), plain(string(op.Status)), plain(op.Source), plain(a.Type), plain(a.ID),
		plain(a.Thread), plain(a.Run), plain(a.Correlation), startOf(op), db.At(op.CompletedAt), exit, data, orNull(op.Request), orNull(op.Result), size)
	if err != nil || len(list) == 0 {
		return 0, err
	}
	return list[0], savePaths(ctx, tx, list[0], op)
}

// number scans a row of one number.
func number(row db.Row) (n int64, err error) { return n, row.Scan(&n) }

func orNull(doc json.RawMessage) any {
	if doc == nil {
		return nil
	}
	return []byte(doc)
}

// startOf is when an operation began; other programs may have left it out.
func startOf(op *history.Operation) int64 {
	if op.StartedAt.IsZero() {
		return 0
	}
	return op.StartedAt.UnixMicro()
}

// savePaths keeps the paths by which an operation is found.
func savePaths(ctx context.Context, tx *db.Tx, no int64, op *history.Operation) error {
	paths := pathsOf(op)
	for path := range paths {
		_, err := tx.Exec(ctx, `insert into mirror_paths (path, op) values (?, ?) on conflict do nothing`, plain(path), no)
		if err != nil {
			return err
		}
	}
	return nil
}

func pathsOf(op *history.Operation) map[string]bool {
	paths := map[string]bool{}
	if op.File != nil {
		paths[op.File.Path], paths[op.File.OldPath] = true, true
	}
	if op.Changes != nil {
		for change := range op.Changes.All() {
			paths[change.Path] = true
		}
	}
	delete(paths, "")
	return paths
}
