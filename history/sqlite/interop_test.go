package sqlite_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/history/sqlite"
	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/sandbox"
)

// seedPython names the environment variable with the Python interpreter that
// has the published package.
const seedPython = "GLASSBOX_SEED_PYTHON"

// helper is the Python package's own helper, as it puts it into sandboxes.
type helper struct {
	python, file string
	database     string
}

func pythonCommand(python, script string, args ...string) *exec.Cmd {
	return exec.Command(python, append([]string{"-c", script}, args...)...)
}

// fields is a JSON object of the helper.
type fields = map[string]any

// newHelper lets the package build its helper.
func newHelper(t *testing.T, database string) *helper {
	t.Helper()
	python := os.Getenv(seedPython)
	if python == "" {
		const hint = seedPython + " is not set: python3 -m venv /tmp/seed && /tmp/seed/bin/pip install agent-sandbox-backends==0.1.0, " +
			"then set it to /tmp/seed/bin/python (Python 3.11 or later)"
		t.Skip("needs the Python package: " + hint)
	}
	file := filepath.Join(t.TempDir(), "history-helper-v1.pyz")
	build := exec.Command(python, "-c", `
import importlib.metadata, sys
from agent_sandbox_backends.helper import build_helper_bytes
assert importlib.metadata.version("agent-sandbox-backends") == "0.1.0"
open(sys.argv[1], "wb").write(build_helper_bytes())`, file)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the helper: %v\n%s", err, out)
	}
	return &helper{python: python, file: file, database: database}
}

// call runs one command of the helper and returns its answer.
func (h *helper) call(args ...string) (fields, error) {
	cmd := exec.Command(h.python, append([]string{h.file, "--database", h.database}, args...)...)
	out, err := cmd.Output()
	var answer struct {
		OK    bool   `json:"ok"`
		Data  fields `json:"data"`
		Error fields `json:"error"`
	}
	if bad := json.Unmarshal(out, &answer); bad != nil {
		return nil, fmt.Errorf("helper %s: %w: %w", args[0], bad, err)
	}
	if !answer.OK {
		return nil, fmt.Errorf("helper %s: %v", args[0], answer.Error["message"])
	}
	return answer.Data, nil
}

func (h *helper) must(t *testing.T, args ...string) fields {
	t.Helper()
	data, err := h.call(args...)
	must(t, err)
	return data
}

// withFile runs a command that reads a JSON file.
func (h *helper) withFile(dir, flag string, value any, args ...string) (fields, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	name := filepath.Join(dir, id.New()+".json")
	if err := os.WriteFile(name, data, 0o600); err != nil {
		return nil, err
	}
	return h.call(append(args, flag, name)...)
}

// identity is how the helper is told whose history it works on.
func identity(sandboxID, instance string) fields {
	return fields{
		"provider_key": "opensandbox-default", "sandbox_id": sandboxID, "sandbox_instance_id": instance,
		"sdk_version": "0.1.0", "schema_version": 1, "history_config": fields{"ttl_days": 7},
		"sandbox_name": "shared", "sandbox_metadata": fields{"agent_sandbox.name": "shared"},
	}
}

// record lets the helper record a whole command as the package does: three
// calls.
func (h *helper) record(dir, event, command, output string) error {
	now := time.Now().UTC().Format("2006-01-02T15:04:05.000000Z")
	batches := [][]fields{
		{{"type": "operation_started", "change_id": event + ":created", "event": fields{
			"event_id": event, "operation_type": "command.execute", "occurred_at": now, "schema_version": 1,
			"request": fields{"command": command, "cwd": nil, "timeout_seconds": nil},
			"actor":   fields{"actor_type": "agent", "actor_id": "蟒蛇", "thread_id": "t", "run_id": "r", "correlation_id": "c"},
			"command": fields{"command": command, "cwd": "/workspace", "timeout_ms": nil},
		}}},
		{{"type": "command_output", "change_id": event + ":output:stdout:0", "event_id": event, "chunks": []fields{{
			"stream": "stdout", "chunk_index": 0, "encoding": "identity", "original_size": len(output),
			"data_base64": base64.StdEncoding.EncodeToString([]byte(output)),
		}}}},
		{{"type": "operation_completed", "change_id": event + ":completed:succeeded", "event": fields{
			"event_id": event, "status": "succeeded", "completed_at": now, "duration_ms": 5, "result": fields{"exit_code": 0},
			"command": fields{"exit_code": 0, "provider_command_id": "p", "output_complete": true, "history_storage_state": "complete"},
		}}},
	}
	for i, records := range batches {
		batch := fields{"batch_id": fmt.Sprintf("%s:%d", event, i), "schema_version": 1, "records": records}
		if _, err := h.withFile(dir, "--batch-file", batch, "apply"); err != nil {
			return err
		}
	}
	return nil
}

// TestPythonReadsOurs lets the helper read a file of ours with every command
// that it has, and write to it.
func TestPythonReadsOurs(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "history.sqlite3")
	h := newHelper(t, path)
	s := open(t, path, &sqlite.Options{SandboxID: "sandbox-1", InstanceID: "instance-1", SandboxName: "项目", SDKVersion: "glassbox-1"})
	ran, wrote := recordSamples(t, s)

	health := h.must(t, "health")
	if health["schema_version"] != 1.0 || health["journal_mode"] != "wal" {
		t.Errorf("health gave %v", health)
	}
	whose := h.must(t, "identity-get")
	if whose["sandbox_id"] != "sandbox-1" || whose["sandbox_instance_id"] != "instance-1" || whose["sandbox_name"] != "项目" {
		t.Errorf("identity-get gave %v", whose)
	}
	if _, err := h.withFile(dir, "--identity-file", identity("sandbox-2", "instance-2"), "init"); err == nil || !strings.Contains(err.Error(), "identity conflict") {
		t.Errorf("init as another sandbox gave %v", err)
	}
	_, err := h.withFile(dir, "--identity-file", identity("sandbox-1", "instance-1"), "init")
	must(t, err)

	checkPythonOperation(t, h.must(t, "get-operation", "--event-id", ran.ID))
	batch := h.must(t, "get-operations", "--event-ids", ran.ID+","+wrote.ID)["operations"].([]any)
	if len(batch) != 2 {
		t.Fatalf("get-operations gave %d operations", len(batch))
	}
	for _, item := range batch {
		if op := item.(fields); op["event_id"] == wrote.ID {
			file := op["file_operation"].(fields)
			if file["diff_data"] != "-旧\n+新\n" || file["diff_encoding"] != "identity" || file["change_type"] != "write" || file["after_size"] != 4.0 {
				t.Errorf("get-operations gave file %v", file)
			}
		}
	}
	if got := h.output(t, ran.ID, "stdout"); got != "a\n\n\xff b"+strings.Repeat("x", 40_000) {
		t.Errorf("get-output gave %d bytes %.10q", len(got), got)
	}
	feed := h.must(t, "query", "--after-change-seq", "0", "--limit", "100", "--max-bytes", "4194304")
	ours, err := s.Changes(t.Context(), &history.ChangeQuery{})
	must(t, err)
	if got := feed["changes"].([]any); len(got) != len(ours.Changes) || feed["max_change_seq"] != float64(ours.Max) || feed["reset_required"] != false {
		t.Errorf("query gave %v", feed)
	}
	h.writes(t, dir)

	event := id.New()
	must(t, h.record(dir, event, "echo 来自 Python", "来自 Python"))
	checkFromPython(t, s, event)
}

// writes runs the helper's commands that change something else than
// operations.
func (h *helper) writes(t *testing.T, dir string) {
	t.Helper()
	if got := h.must(t, "ack", "--consumer-id", "console", "--seq", "3"); got["acknowledged_seq"] != 3.0 {
		t.Errorf("ack gave %v", got)
	}
	revision := fmt.Sprint(h.must(t, "config-get")["revision"])
	change := fields{"changes": fields{"ttl_days": 3}, "updated_by": "test"}
	got, err := h.withFile(dir, "--config-file", change, "config-set", "--expected-revision", revision)
	must(t, err)
	if got["config"].(fields)["ttl_days"] != 3.0 {
		t.Errorf("config-set gave %v", got)
	}
	if _, err := h.withFile(dir, "--config-file", change, "config-set", "--expected-revision", revision); err == nil {
		t.Error("config-set with an old revision gave no error")
	}
	lease := []string{"--resource-key", "history:test", "--owner-id", "me"}
	if got := h.must(t, append(append([]string{"lease-acquire"}, lease...), "--ttl-ms", "60000")...); got["acquired"] != true {
		t.Errorf("lease-acquire gave %v", got)
	}
	if got := h.must(t, append(append([]string{"lease-renew"}, lease...), "--ttl-ms", "60000")...); got["renewed"] != true {
		t.Errorf("lease-renew gave %v", got)
	}
	if got := h.must(t, append([]string{"lease-release"}, lease...)...); got["released"] != true {
		t.Errorf("lease-release gave %v", got)
	}
	got = h.must(t, "cleanup", "--ttl-days", "7", "--max-bytes", "134217728", "--overflow-policy", "delete_oldest")
	if got["executed"] != true || got["deleted_operations"] != 0.0 {
		t.Errorf("cleanup gave %v", got)
	}
}

func (h *helper) output(t *testing.T, event, stream string) string {
	t.Helper()
	var out strings.Builder
	for _, item := range h.must(t, "get-output", "--event-id", event, "--stream", stream)["chunks"].([]any) {
		data, err := base64.StdEncoding.DecodeString(item.(fields)["data_base64"].(string))
		must(t, err)
		out.Write(data)
	}
	return out.String()
}

// recordSamples records a command and an edit.
func recordSamples(t *testing.T, s *sqlite.Store) (ran, wrote *history.Operation) {
	t.Helper()
	ran, wrote = benchOperation(), benchOperation()
	ran.Actor.ID = "研究员"
	ran.Command.Env, ran.Command.TimeoutMS = map[string]string{"KEY": "***"}, 1000
	must(t, s.Begin(t.Context(), ran))
	code := 3
	must(t, s.Finish(t.Context(), ran.ID, &history.End{
		Status: sandbox.Unsuccessful, ExitCode: &code, OutputComplete: true, Result: history.Encode(fields{"exit_code": 3}),
		Chunks: []sandbox.Chunk{
			{Stream: sandbox.Stdout, Time: time.Now(), Data: []byte("a\n\n\xff b")},
			{Stream: sandbox.Stdout, Offset: 6, Time: time.Now(), Data: bytes.Repeat([]byte("x"), 40_000)},
			{Stream: sandbox.Stderr, Time: time.Now(), Data: []byte("e")},
		},
	}))
	must(t, s.SetChanges(t.Context(), ran.ID, &history.Changes{Deleted: []history.FileChange{{Path: "/工作/b.md"}}, DeletedCount: 1}))
	wrote.Type, wrote.Command, wrote.File = history.FileWrite, nil, &history.File{Path: "/工作/a.md", Diff: "-旧\n+新\n"}
	must(t, s.Begin(t.Context(), wrote))
	size := int64(4)
	must(t, s.Finish(t.Context(), wrote.ID, &history.End{Status: sandbox.Succeeded, File: &history.File{AfterSize: &size}}))
	return ran, wrote
}

func checkPythonOperation(t *testing.T, op fields) {
	t.Helper()
	command := op["command"].(fields)
	got := fields{
		"status": op["status"], "actor": op["actor_id"], "type": op["operation_type"], "result": op["result"],
		"request": op["request"].(fields)["command"], "exit": command["exit_code"], "env": command["environment_json"],
		"timeout": command["timeout_ms"], "state": command["history_storage_state"], "complete": command["output_complete"],
	}
	want := fields{
		"status": "failed", "actor": "研究员", "type": "command.execute", "result": fields{"exit_code": 3.0},
		"request": "sh -c true", "exit": 3.0, "env": `{"KEY":"***"}`, "timeout": 1000.0, "state": "complete", "complete": 1.0,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("get-operation (-want +got):\n%s", diff)
	}
}

// checkFromPython checks what we read of a command that the helper recorded.
func checkFromPython(t *testing.T, s *sqlite.Store, event string) {
	t.Helper()
	op, err := s.Get(t.Context(), event)
	must(t, err)
	if !op.Foreign || op.Status != sandbox.Succeeded || op.Actor.ID != "蟒蛇" || *op.Command.ExitCode != 0 || op.DurationMS != 5 {
		t.Errorf("Get gave %+v, command %+v", op, op.Command)
	}
	data, err := s.Output(t.Context(), event, sandbox.Stdout, 0, 1000)
	if err != nil || !strings.HasPrefix(string(data), "来自 Python") || op.Command.StdoutBytes != int64(len(data)) {
		t.Errorf("Output gave %q, %v", data, err)
	}
}

// TestWeWriteToPythons records into a file that the helper made.
func TestWeWriteToPythons(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "history.sqlite3")
	h := newHelper(t, path)
	_, err := h.withFile(dir, "--identity-file", identity("sandbox-9", "instance-9"), "init")
	must(t, err)
	event := id.New()
	must(t, h.record(dir, event, "echo", "来自 Python"))

	_, err = sqlite.Open(path, &sqlite.Options{SandboxID: "sandbox-8"})
	wantFault(t, "Open as another sandbox", err, sandbox.CodeHistoryConflict)
	s := open(t, path, &sqlite.Options{SandboxID: "sandbox-9", InstanceID: "instance-9"})
	checkFromPython(t, s, event)
	ran, _ := recordSamples(t, s)
	checkPythonOperation(t, h.must(t, "get-operation", "--event-id", ran.ID))
	if ids, err := s.Recover(t.Context(), "x"); err != nil || len(ids) > 0 {
		t.Errorf("Recover gave %v, %v", ids, err)
	}
	if p, err := s.Prune(t.Context()); err != nil || p.Operations != 0 {
		t.Errorf("Prune gave %+v, %v", p, err)
	}
	if whose := h.must(t, "identity-get"); whose["sandbox_id"] != "sandbox-9" {
		t.Errorf("identity-get gave %v", whose)
	}
	if got := h.must(t, "cleanup", "--if-due", "--max-bytes", "134217728", "--overflow-policy", "delete_oldest"); got["executed"] != false || got["reason"] != "not_due" {
		t.Errorf("cleanup that is not due after ours gave %v", got)
	}
}

// TestBothAtOnce records with both at the same time into one file.
func TestBothAtOnce(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "history.sqlite3")
	h := newHelper(t, path)
	s := open(t, path, &sqlite.Options{SandboxID: "sandbox-1"})
	first := mustBegin(t, s)
	mustFinish(t, s, first.ID)

	const each = 16
	theirs := make([]string, each)
	failed := make(chan error, 1)
	go func() {
		for n := range theirs {
			theirs[n] = id.New()
			if err := h.record(dir, theirs[n], fmt.Sprint("python ", n), fmt.Sprint("来自 Python ", n)); err != nil {
				failed <- err
				return
			}
		}
		failed <- nil
	}()
	var ours []string
	var err error
	for running := true; running || len(ours) < each; {
		op := mustBegin(t, s)
		must(t, s.Append(t.Context(), op.ID, benchChunk(0)))
		mustFinish(t, s, op.ID)
		ours = append(ours, op.ID)
		// Ours go on as long as theirs do, one about every 30 ms.
		select {
		case err = <-failed:
			running = false
		case <-time.After(30 * time.Millisecond):
		}
	}
	must(t, err)
	for _, event := range theirs {
		checkFromPython(t, s, event)
	}
	seen := map[string]bool{}
	page, err := s.List(t.Context(), &history.Filter{Limit: 1000})
	must(t, err)
	for _, op := range page.Operations {
		seen[op.ID] = op.Status == sandbox.Succeeded
	}
	for _, id := range slices.Concat(ours, theirs) {
		if !seen[id] {
			t.Errorf("operation %s is not there whole", id)
		}
	}
	if len(page.Operations) != 1+len(ours)+each {
		t.Errorf("List gave %d operations, want %d", len(page.Operations), 1+len(ours)+each)
	}
	feed := h.must(t, "query", "--after-change-seq", "0", "--limit", "10000", "--max-bytes", "4194304")
	if got, want := len(feed["changes"].([]any)), 2+3*(len(ours)+each); got != want {
		t.Errorf("query gave %d changes, want %d", got, want)
	}
	must(t, s.Check(t.Context()))
	t.Logf("%d operations of ours, %d of the helper's", len(ours), each)
}
