package lifecycle_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Who asks over HTTP is recorded as one that works in a sandbox is. Who claims
// to do so itself is noted too, to be looked at later.
func TestActsAreRecorded(t *testing.T) {
	s := start(t, nil)
	a := s.ask("POST", "/v1/sandboxes", `{"image":{"uri":"host"},"timeout":600,"env":{"SECRET":"s3cret-value"},"metadata":{"team":"a"}}`, "X-Agent-Id: agent-1", "X-Run-Id: run-1")
	path := "/v1/sandboxes/" + a.field(t, "id").(string)
	for _, act := range [][3]string{
		{"PATCH", "/metadata", `{"team":"b"}`},
		{"PATCH", "/metadata", `{"bad":"b"}`},
		{"POST", "/snapshots", `{"name":"n"}`},
		{"POST", "/pause", ""},
		{"POST", "/pause", ""},
		{"POST", "/snapshots", ""},
		{"POST", "/resume", ""},
		{"POST", "/renew-expiration", `{"expiresAt":"2027-01-02T03:04:05Z"}`},
		{"POST", "/renew-expiration", `{"expiresAt":"2001-01-02T03:04:05Z"}`},
		{"POST", "/renew-expiration", `{"expiresAt":"soon"}`}, // nothing was tried
	} {
		s.ask(act[0], path+act[1], act[2], "User-Agent: OpenSandbox-SDK/1.1 (x)")
		s.ask(act[0], path+"x"+act[1], act[2]) // there is none
	}
	s.ask("DELETE", path, "")
	// Who records what it does itself says so, or is the Python package that does.
	const opID = "0193a8a0-0000-7000-8000-000000000001"
	a = s.ask("POST", "/v1/sandboxes", `{"image":{"uri":"host"},"metadata":{"sandbox_instance_id":"i-1"}}`, "User-Agent: OpenSandbox-Python-SDK/0.1.16")
	s.ask("POST", "/v1/sandboxes/"+a.field(t, "id").(string)+"/pause", "", "User-Agent: OpenSandbox-Python-SDK/0.1.16")
	s.ask("POST", "/v1/sandboxes/"+a.field(t, "id").(string)+"/resume", "", "X-Glassbox-Recorded: "+opID, "X-Agent-Id: ours")
	s.ask("POST", "/v1/sandboxes/"+a.field(t, "id").(string)+"/pause", "", "X-Glassbox-Recorded: yes", "X-Agent-Id: liar") // as what?
	s.ask("POST", "/v1/sandboxes/"+a.field(t, "id").(string)+"/resume", "", "X-Glassbox-Recorded: "+opID, "X-Agent-Id: twice")
	var got []string
	for _, op := range s.fake.done {
		text := op.Source + " " + op.Actor.ID + " " + op.Type
		if s.fake.claimed[op.ID] {
			text += " claimed"
		}
		got = append(got, text)
		if text := string(op.Request) + string(op.Result); strings.Contains(text, "s3cret-value") {
			t.Errorf("a secret is told: %s", text)
		}
	}
	const by = "lifecycle OpenSandbox-SDK/1.1 sandbox."
	want := []string{
		"lifecycle agent-1 sandbox.create", by + "metadata", by + "metadata failed", by + "snapshot", by + "pause", by + "pause failed",
		by + "snapshot failed", by + "resume", by + "renew", by + "renew failed", "lifecycle Go-http-client/1.1 sandbox.delete",
		"lifecycle OpenSandbox-Python-SDK/0.1.16 sandbox.create claimed", "lifecycle OpenSandbox-Python-SDK/0.1.16 sandbox.pause claimed",
		"lifecycle ours sandbox.resume claimed", "lifecycle liar sandbox.pause", "lifecycle twice sandbox.resume",
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("recorded: %s", diff)
	}
	if !s.fake.claimed[opID] {
		t.Error("the id of the client's own record is not kept")
	}
	if op := s.fake.done[0]; op.Actor.Run != "run-1" || !strings.Contains(string(op.Request), `"SECRET":"***"`) || !strings.Contains(string(op.Request), `"timeout_seconds":600`) {
		t.Errorf("the creation: %+v %s", op.Actor, op.Request)
	}
}
