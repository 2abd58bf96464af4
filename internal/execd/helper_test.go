package execd_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/sandbox"
)

const helperLine = "python3 /.agent-history/bin/history-helper-v1.pyz --database /.agent-history/history.sqlite3 "

// tell has the history record what the Python package tells, as it does it.
func (s *setup) tell(t *testing.T, records ...fields) *answer {
	t.Helper()
	envelope, err := json.Marshal(fields{"schema_version": 1, "batch_id": "a batch", "records": records})
	if err != nil {
		t.Fatal(err)
	}
	name := "/.agent-history/tmp/request-" + id.New() + ".json"
	var form bytes.Buffer
	parts := multipart.NewWriter(&form)
	meta, _ := parts.CreateFormFile("metadata", "metadata")
	fmt.Fprintf(meta, `{"path":%q,"mode":755}`, name)
	file, _ := parts.CreateFormFile("file", "file")
	file.Write(envelope)
	parts.Close()
	s.must(t, "POST /files/upload", &form, "Content-Type", parts.FormDataContentType())
	a := s.must(t, "POST /command", fields{"command": helperLine + "apply --batch-file " + name})
	s.must(t, "DELETE /files?path="+name, nil)
	return a
}

func started(opID, line string) fields {
	return fields{"type": "operation_started", "event": fields{
		"event_id": opID, "operation_type": "command.execute", "occurred_at": history.FormatTime(time.Now()), "schema_version": 1,
		"actor": fields{"actor_type": "agent", "actor_id": "研究", "thread_id": "t"}, "request": fields{"command": line, "cwd": nil},
		"command": fields{"command": line, "cwd": "/workspace"},
	}}
}

func completed(opID, status string) fields {
	return fields{"type": "operation_completed", "event": fields{
		"event_id": opID, "status": status, "completed_at": history.FormatTime(time.Now()), "duration_ms": 1000, "result": fields{"exit_code": 0},
		"command": fields{"exit_code": 0, "output_complete": true, "history_storage_state": "complete"},
	}}
}

func output(opID, text string, index int) fields {
	return fields{"type": "command_output", "event_id": opID, "chunks": []fields{
		{"stream": "stdout", "chunk_index": index, "data_base64": base64.StdEncoding.EncodeToString([]byte(text)), "encoding": "identity"},
	}}
}

func (s *setup) stdout(t *testing.T, opID string) string {
	t.Helper()
	data, err := s.store.Output(t.Context(), opID, sandbox.Stdout, 0, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// A command that was announced and is run is one operation: who, as it was
// said, and what happened, as it was seen.
func TestAnnounced(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	opID := id.New()
	s.tell(t, started(opID, "echo real; exit 3"))
	run := s.must(t, "POST /command", fields{"command": "echo real; exit 3"})
	if list := run.events(t); list[0].Text != opID {
		t.Errorf("it ran as %s, want %s", list[0].Text, opID)
	}
	s.tell(t, output(opID, "a lie", 0))
	s.tell(t, completed(opID, "succeeded"))
	s.must(t, "POST /command", fields{"command": "echo real; exit 3"}) // nobody announced this one
	ops := s.operations(t)
	if len(ops) != 2 {
		t.Fatalf("got %d operations, want 2", len(ops))
	}
	op := ops[0]
	if op.ID != opID || op.Actor.ID != "研究" || op.Source != history.SourceSDK || op.Status != sandbox.Unsuccessful || *op.Command.ExitCode != 3 || op.Foreign {
		t.Errorf("got %+v %+v", op, op.Command)
	}
	if text := s.stdout(t, opID); text != "real\n" {
		t.Errorf("got the output %q", text)
	}
	if ops[1].Source != history.SourceExecd || ops[1].ID == opID {
		t.Errorf("the second run: got %+v", ops[1])
	}
}

// What nobody does through us is recorded as it is told.
func TestTold(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	opID := id.New()
	s.tell(t, started(opID, "elsewhere"))
	s.tell(t, started(opID, "elsewhere"), output(opID, "one", 0))
	s.tell(t, output(opID, "one", 0), output(opID, "two", 1))
	s.tell(t, completed(opID, "failed"))
	s.tell(t, completed(opID, "failed"))
	ops := s.operations(t)
	if len(ops) != 1 || ops[0].Status != sandbox.Unsuccessful || s.stdout(t, opID) != "onetwo" {
		t.Errorf("got %+v, %q", ops[0], s.stdout(t, opID))
	}
	for name, record := range map[string]fields{
		"another end":    completed(opID, "succeeded"),
		"packed output":  {"type": "command_output", "event_id": opID, "chunks": []fields{{"stream": "stdout", "chunk_index": 9, "data_base64": "H4sI", "encoding": "gzip"}}},
		"no such record": {"type": "nothing"},
		"no operation":   completed(id.New(), "failed"),
		"a bad id":       started("x", "ls"),
	} {
		a := s.tell(t, record)
		list := a.events(t)
		if last := list[len(list)-1]; last.Type != "error" || !strings.Contains(string(a.body), `\"ok\":false`) {
			t.Errorf("%s: got %s", name, a.body)
		}
	}
}

// Nothing can be done under the cover of the helper's calls.
func TestImitatedHelper(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	bin := t.TempDir()
	ran := filepath.Join(bin, "ran")
	if err := os.WriteFile(filepath.Join(bin, "python3"), []byte("#!/bin/sh\necho \"$@\" >>"+ran+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	path := fields{"PATH": bin + ":" + os.Getenv("PATH")}
	if err := os.WriteFile(s.env, []byte("PATH="+bin+":"+os.Getenv("PATH")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.must(t, "POST /command", fields{"command": helperLine + "health"})
	if _, err := os.Stat(ran); err == nil {
		t.Error("a call of the helper ran a program")
	}
	if ops := s.operations(t); len(ops) != 0 {
		t.Errorf("a call of the helper is an operation: %+v", ops[0])
	}
	opID := id.New()
	s.tell(t, started(opID, "ls"))
	lines := []fields{
		{"command": helperLine + "health; id"},
		{"command": helperLine + "health --database x"},
		{"command": helperLine + "nothing"},
		{"command": helperLine + "health\nid"},
		{"command": helperLine + "health $(id)"},
		{"command": "PATH=. " + helperLine + "health"},
		{"command": helperLine + "health", "envs": path},
		{"command": helperLine + "health", "cwd": "/"},
		{"command": helperLine + "health", "background": true},
		{"argv": strings.Fields(helperLine + "health")},
		{"command": "id"},                // not what was announced
		{"command": "ls", "cwd": "/"},    // nor this
		{"command": "ls ", "cwd": s.dir}, // nor this
	}
	for _, line := range lines {
		s.must(t, "POST /command", line)
	}
	eventually(t, "all are recorded", func() bool { return len(s.operations(t)) == len(lines)+1 })
	for _, op := range s.operations(t) {
		if op.ID != opID && op.Source != history.SourceExecd {
			t.Errorf("got %+v", op)
		}
	}
	// Files of other names are files.
	for _, name := range []string{"/.agent-history/tmp/request-x.json", "/.agent-history/history.sqlite3", "/.agent-history/tmp/../x"} {
		if s.helperOwns(t, name) {
			t.Errorf("%s is taken for the helper's", name)
		}
	}
}

// helperOwns reports whether an upload of a name is kept in memory. It is never
// written: the directory is not there, and cannot be made.
func (s *setup) helperOwns(t *testing.T, name string) bool {
	t.Helper()
	before := len(s.operations(t))
	s.do(t, "DELETE /files?path="+name, nil)
	return len(s.operations(t)) == before
}

// The verbs answer as the helper does.
func TestHelperVerbs(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.must(t, "POST /command", fields{"command": "seq 10000"})
	opID := s.operations(t)[0].ID
	ask := func(words string) map[string]any {
		t.Helper()
		list := s.must(t, "POST /command", fields{"command": helperLine + words}).events(t)
		var envelope struct {
			OK   bool
			Data map[string]any
		}
		out := texts(list, "stdout")
		if len(out) != 1 || json.Unmarshal([]byte(out[0]), &envelope) != nil || !envelope.OK {
			t.Fatalf("%s: got %v", words, list)
		}
		return envelope.Data
	}
	if got := ask("identity-get"); got["sandbox_id"] != "s-1" {
		t.Errorf("identity: got %v", got)
	}
	if got := ask("config-get"); got["revision"] != 0.0 {
		t.Errorf("configuration: got %v", got)
	}
	feed := ask("query --after-change-seq 0 --limit 2 --max-bytes 100000")
	if list := feed["changes"].([]any); len(list) != 2 || feed["next_change_seq"] != 2.0 || feed["reset_required"] != false {
		t.Errorf("feed: got %v", feed)
	}
	if got := ask("get-operation --event-id " + opID); got["operation_type"] != "command.execute" || got["command"].(map[string]any)["exit_code"] != 0.0 {
		t.Errorf("operation: got %v", got)
	}
	if got := ask("get-operations --event-ids " + opID + ",none"); len(got["operations"].([]any)) != 1 {
		t.Errorf("operations: got %v", got)
	}
	var text []byte
	for after := -1; ; after++ {
		chunks := ask(fmt.Sprintf("get-output --event-id %s --stream stdout --after-chunk %d", opID, after))["chunks"].([]any)
		if len(chunks) == 0 {
			break
		}
		data, _ := base64.StdEncoding.DecodeString(chunks[0].(map[string]any)["data_base64"].(string))
		text = append(text, data...)
	}
	if lines := strings.Fields(string(text)); len(lines) != 10000 || !slices.IsSortedFunc(lines[:9], strings.Compare) || lines[9999] != "10000" {
		t.Errorf("output: got %d lines", len(lines))
	}
	if got := ask("ack --consumer-id c --seq 2"); got["acknowledged_seq"] != 2.0 {
		t.Errorf("ack: got %v", got)
	}
	if got := ask("cleanup --max-bytes 1000000 --overflow-policy delete_oldest --if-due --ttl-days 7"); got["executed"] != true {
		t.Errorf("cleanup: got %v", got)
	}
	if ops := s.operations(t); len(ops) != 1 || time.Since(ops[0].StartedAt) > time.Hour {
		t.Errorf("got %d operations, want the one", len(ops))
	}
}
