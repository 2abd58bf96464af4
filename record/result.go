package record

import (
	"encoding/json"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/sandbox"
)

// result is a command's end as the history keeps it. The first names are those
// of the Python SDK.
type result struct {
	CommandID       string            `json:"command_id"`
	ExitCode        int               `json:"exit_code"`
	State           sandbox.Status    `json:"state"`
	OutputComplete  bool              `json:"output_complete"`
	Recording       sandbox.Recording `json:"history_storage_state"`
	StdoutBytes     int64             `json:"stdout_bytes"` // kept
	StdoutTotal     int64             `json:"stdout_total_bytes"`
	StdoutTruncated bool              `json:"stdout_truncated"`
	StderrBytes     int64             `json:"stderr_bytes"`
	StderrTotal     int64             `json:"stderr_total_bytes"`
	StderrTruncated bool              `json:"stderr_truncated"`
	Signal          string            `json:"signal,omitempty"`
	Reason          string            `json:"reason,omitempty"`
	DurationUS      int64             `json:"duration_us"`
}

func commandResult(res *sandbox.Result, kept pair) json.RawMessage {
	r := result{
		CommandID: res.OperationID, ExitCode: res.ExitCode, State: res.Status,
		OutputComplete: res.Recording != sandbox.RecordedPart, Recording: res.Recording,
		StdoutBytes: kept[0], StdoutTotal: res.StdoutBytes, StdoutTruncated: kept[0] < res.StdoutBytes,
		StderrBytes: kept[1], StderrTotal: res.StderrBytes, StderrTruncated: kept[1] < res.StderrBytes,
		Signal: res.Signal, Reason: res.Reason, DurationUS: res.Duration.Microseconds(),
	}
	fields := map[string]any{}
	b, err := json.Marshal(r)
	if err == nil {
		err = json.Unmarshal(b, &fields) // sorts the keys, as the format has them
	}
	if err != nil {
		panic(err) // plain values only
	}
	return history.Encode(fields)
}

// resultOf reads back the end of a recorded command.
func resultOf(op *history.Operation) (*sandbox.Result, error) {
	if op.Type != history.CommandExecute && op.Type != history.TerminalSession {
		return nil, &sandbox.Error{Op: "find command", Code: sandbox.CodeOperationNotFound, Message: "operation " + op.ID + " is a " + op.Type}
	}
	if !history.Final(op.Status) {
		return nil, &sandbox.Error{
			Op: "find command", Code: sandbox.CodeSandboxState,
			Message: "operation " + op.ID + " runs under another recorder, which has its output",
		}
	}
	res := &sandbox.Result{
		OperationID: op.ID, Status: op.Status, ExitCode: -1, StartedAt: op.StartedAt,
		Duration: op.CompletedAt.Sub(op.StartedAt),
	}
	if c := op.Command; c != nil {
		res.Recording = c.Recording
		res.StdoutBytes, res.StderrBytes = c.StdoutBytes, c.StderrBytes
		if c.ExitCode != nil {
			res.ExitCode = *c.ExitCode
		}
	}
	var kept result
	if len(op.Result) > 0 && json.Unmarshal(op.Result, &kept) == nil {
		res.Signal, res.Reason = kept.Signal, kept.Reason
		res.StdoutBytes = max(res.StdoutBytes, kept.StdoutTotal)
		res.StderrBytes = max(res.StderrBytes, kept.StderrTotal)
		if kept.DurationUS > 0 {
			res.Duration = time.Duration(kept.DurationUS) * time.Microsecond
		}
	}
	return res, nil
}
