package execd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/sandbox"
)

// helperVerbs are the helper's commands. One that is not here is a command as
// any other.
var helperVerbs = map[string]*helperVerb{
	"init":           {[]string{"--identity-file"}, helperInit},
	"health":         {nil, helperHealth},
	"identity-get":   {nil, func(ctx context.Context, h *helper, _ map[string]string) (any, error) { return h.whose(ctx) }},
	"config-get":     {nil, helperConfig},
	"config-set":     {[]string{"--config-file", "--expected-revision"}, helperConfigSet},
	"apply":          {[]string{"--batch-file"}, helperApply},
	"query":          {[]string{"--after-change-seq", "--limit", "--max-bytes"}, helperQuery},
	"get-operation":  {[]string{"--event-id"}, helperOperation},
	"get-operations": {[]string{"--event-ids"}, helperOperations},
	"get-output":     {[]string{"--event-id", "--stream", "--after-chunk?"}, helperOutput},
	"ack":            {[]string{"--consumer-id", "--seq"}, helperAck},
	"cleanup": {[]string{
		"--max-bytes", "--overflow-policy", "--min-interval-seconds?", "--consumer-active-ttl-days?", "--ttl-days?", "--if-due!",
	}, helperCleanup},
}

func helperHealth(ctx context.Context, h *helper, _ map[string]string) (any, error) {
	mine, err := h.whose(ctx)
	if err != nil {
		return nil, err
	}
	return map[string]any{"schema_version": history.FormatVersion, "journal_mode": "wal", "identity": mine}, nil
}

func helperConfig(ctx context.Context, h *helper, _ map[string]string) (any, error) {
	c, ok := h.store.(history.Configurer)
	if !ok {
		return nil, errNothingRecorded
	}
	stored, err := c.Config(ctx)
	if err != nil {
		return nil, err
	}
	return configAnswer(stored), nil
}

func configAnswer(stored *history.StoredConfig) map[string]any {
	return map[string]any{
		"version": stored.Version, "revision": stored.Revision, "config": stored.Config.Values(),
		"updated_at": history.FormatTime(stored.UpdatedAt), "updated_by": stored.UpdatedBy,
	}
}

func helperNumber(flags map[string]string, name string) (int64, error) {
	n, err := strconv.ParseInt(flags[name], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s must be a whole number", name)
	}
	return n, nil
}

// maxQuery is what a page of the feed holds, whatever is asked for.
const maxQuery = 1000

func helperQuery(ctx context.Context, h *helper, flags map[string]string) (any, error) {
	after, err := helperNumber(flags, "--after-change-seq")
	limit, limitErr := helperNumber(flags, "--limit")
	room, roomErr := helperNumber(flags, "--max-bytes")
	if err := errors.Join(err, limitErr, roomErr); err != nil {
		return nil, err
	}
	if after < 0 || limit < 1 || room < 1 {
		return nil, errors.New("invalid query bounds")
	}
	feed, err := h.store.Changes(ctx, &history.ChangeQuery{After: after, Limit: int(min(limit, maxQuery))})
	if err != nil {
		return nil, err
	}
	next, changes := after, []any{}
	known := map[string]*history.Operation{}
	for _, c := range feed.Changes {
		op, ok := known[c.Operation]
		if !ok {
			if op, err = h.store.Get(ctx, c.Operation); err != nil {
				continue // it was deleted meanwhile
			}
			known[c.Operation] = op
		}
		item := map[string]any{
			"source_seq": c.Seq, "change_id": c.ID, "event_id": c.Operation, "change_type": c.Type, "changed_at": history.FormatTime(c.At),
			"schema_version": history.FormatVersion, "operation_type": op.Type, "status": op.Status,
		}
		size := int64(len(history.Encode(item)))
		if room -= size; room < 0 && len(changes) > 0 {
			break
		}
		changes, next = append(changes, item), c.Seq
	}
	return map[string]any{
		"changes": changes, "next_change_seq": next, "min_available_change_seq": feed.Min,
		"max_change_seq": feed.Max, "reset_required": feed.Reset,
	}, nil
}

func helperOperation(ctx context.Context, h *helper, flags map[string]string) (any, error) {
	op, err := h.store.Get(ctx, flags["--event-id"])
	if err != nil {
		return nil, errors.New("Operation does not exist: " + flags["--event-id"])
	}
	mine, err := h.whose(ctx)
	if err != nil {
		return nil, err
	}
	return operationAnswer(op, mine), nil
}

func helperOperations(ctx context.Context, h *helper, flags map[string]string) (any, error) {
	mine, err := h.whose(ctx)
	if err != nil {
		return nil, err
	}
	list := []any{}
	for name := range strings.SplitSeq(flags["--event-ids"], ",") {
		if op, err := h.store.Get(ctx, strings.TrimSpace(name)); err == nil { // unknown ones are passed over
			list = append(list, operationAnswer(op, mine))
		}
	}
	return map[string]any{"operations": list}, nil
}

// operationAnswer is an operation as the helper tells it.
func operationAnswer(op *history.Operation, mine *Identity) map[string]any {
	fields := map[string]any{
		"seq": op.Seq, "event_id": op.ID, "provider_key": mine.ProviderKey, "sandbox_id": mine.SandboxID, "sandbox_instance_id": mine.InstanceID,
		"source": op.Source, "actor_type": op.Actor.Type, "actor_id": orNull(op.Actor.ID), "thread_id": orNull(op.Actor.Thread),
		"run_id": orNull(op.Actor.Run), "correlation_id": orNull(op.Actor.Correlation), "operation_type": op.Type, "status": op.Status,
		"occurred_at": history.FormatTime(op.StartedAt), "completed_at": nil, "duration_ms": nil, "schema_version": history.FormatVersion,
		"request": rawOrNull(op.Request), "result": rawOrNull(op.Result), "command": nil, "file_operation": nil,
	}
	if !op.CompletedAt.IsZero() {
		fields["completed_at"], fields["duration_ms"] = history.FormatTime(op.CompletedAt), op.DurationMS
	}
	if c := op.Command; c != nil {
		fields["command"] = map[string]any{
			"event_id": op.ID, "command": c.Line, "cwd": c.Dir, "environment_json": nil, "timeout_ms": c.TimeoutMS, "exit_code": c.ExitCode,
			"provider_command_id": op.ID, "output_complete": bit(c.OutputComplete), "history_storage_state": c.Recording,
		}
	}
	if f := op.File; f != nil {
		fields["file_operation"] = map[string]any{
			"event_id": op.ID, "path": f.Path, "old_path": orNull(f.OldPath), "change_type": f.Change, "before_hash": orNull(f.BeforeHash),
			"after_hash": orNull(f.AfterHash), "before_size": f.BeforeSize, "after_size": f.AfterSize, "diff_data": orNull(f.Diff),
			"diff_encoding": "identity", "diff_complete": bit(!f.DiffTruncated),
		}
	}
	return fields
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func rawOrNull(raw json.RawMessage) any {
	if len(raw) == 0 {
		return nil
	}
	return raw
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Output is told in chunks of one size, whatever the rows are.
const (
	helperChunkBytes = 16 << 10
	helperChunks     = 128 // in one answer
)

func helperOutput(ctx context.Context, h *helper, flags map[string]string) (any, error) {
	after := int64(-1)
	if flags["--after-chunk"] != "" {
		var err error
		if after, err = helperNumber(flags, "--after-chunk"); err != nil {
			return nil, err
		}
	}
	stream := sandbox.Stream(flags["--stream"])
	if stream != sandbox.Stdout && stream != sandbox.Stderr {
		return nil, errors.New("stream must be stdout or stderr")
	}
	op, err := h.store.Get(ctx, flags["--event-id"])
	if err != nil {
		return nil, errors.New("Operation does not exist: " + flags["--event-id"])
	}
	chunks := []any{}
	for i := max(after, -1) + 1; len(chunks) < helperChunks; i++ {
		data, err := readWhole(ctx, h.store, op.ID, stream, i*helperChunkBytes)
		if err != nil {
			return nil, err
		}
		if len(data) == 0 || len(data) < helperChunkBytes && op.Status == sandbox.Started { // it may become longer
			break
		}
		chunks = append(chunks, map[string]any{
			"chunk_index": i, "data_base64": data, "encoding": "identity", "original_size": len(data), "created_at": history.FormatTime(op.StartedAt),
		})
	}
	return map[string]any{"event_id": op.ID, "stream": stream, "chunks": chunks}, nil
}

// readWhole reads a chunk; the store may give it in parts.
func readWhole(ctx context.Context, store history.Reader, opID string, stream sandbox.Stream, at int64) (data []byte, err error) {
	for len(data) < helperChunkBytes {
		part, err := store.Output(ctx, opID, stream, at+int64(len(data)), helperChunkBytes-int64(len(data)))
		if err != nil || len(part) == 0 {
			return data, err
		}
		data = append(data, part...)
	}
	return data, nil
}

func helperAck(ctx context.Context, h *helper, flags map[string]string) (any, error) {
	seq, err := helperNumber(flags, "--seq")
	if err != nil {
		return nil, err
	}
	consumer, ok := h.store.(history.Consumer)
	if !ok {
		return nil, errNothingRecorded
	}
	if err := consumer.Acknowledge(ctx, flags["--consumer-id"], seq); err != nil {
		return nil, err
	}
	return map[string]any{"consumer_id": flags["--consumer-id"], "acknowledged_seq": seq, "updated_at": history.FormatTime(time.Now())}, nil
}

// helperCleanup cleans up as the history's own configuration says.
func helperCleanup(ctx context.Context, h *helper, _ map[string]string) (any, error) {
	p, ok := h.store.(history.Pruner)
	if !ok {
		return nil, errNothingRecorded
	}
	done, err := p.Prune(ctx)
	if err != nil {
		return nil, err
	}
	now := history.FormatTime(time.Now())
	return map[string]any{
		"executed": true, "reason": done.Reason, "database_now": now, "last_cleanup_at": now,
		"deleted_operations": done.Operations, "logical_database_bytes": done.Bytes,
	}, nil
}
