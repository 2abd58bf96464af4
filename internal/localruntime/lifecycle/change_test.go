package lifecycle_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/glassboxhq/glassbox/sandbox"
)

func TestMetadata(t *testing.T) {
	s := start(t, nil)
	a := s.ask("POST", "/v1/sandboxes", `{"image":{"uri":"host"},"metadata":{"team":"a","old":"x"}}`)
	id := a.field(t, "id").(string)
	for _, tt := range []struct {
		name, body, code string
		status           int
	}{
		{"merge", `{"team":"b","new":"","old":null}`, "", 200},
		{"nothing", `{}`, "", 200},
		{"no body", ``, "", 422},
		{"null", `null`, "", 422},
		{"a list", `[]`, "", 422},
		{"a number", `{"team":1}`, "", 422},
		{"an object", `{"team":{"a":"b"}}`, "", 422},
		{"a bad label", `{"bad":"x"}`, "INVALID_METADATA_LABEL", 400},
		{"too large", `{"team":"` + strings.Repeat("x", 1<<20) + `"}`, "SANDBOX::INVALID_PARAMETER", 413},
	} {
		a := s.ask("PATCH", "/v1/sandboxes/"+id+"/metadata", tt.body)
		if a.status != tt.status || tt.code != "" && a.field(t, "code") != tt.code || tt.status == 422 && a.field(t, "detail") == nil {
			t.Errorf("%s: %d %s, want %d %s", tt.name, a.status, a.text, tt.status, tt.code)
		}
		if tt.status == 200 && (a.field(t, "id") != id || a.field(t, "status", "state") != "Running") {
			t.Errorf("%s: %s is no sandbox", tt.name, a.text)
		}
	}
	want := map[string]any{"team": "b", "new": ""}
	if got := s.ask("GET", "/sandboxes/"+id, "").field(t, "metadata"); cmp.Diff(got, any(want)) != "" {
		t.Errorf("metadata: %v", got)
	}
	for path, want := range map[string]int{"/v1/sandboxes/none/metadata": 404, "/v1/sandboxes/a%2Fb/metadata": 404, "/v1/sandboxes/" + id + "/metadata/x": 404} {
		if a := s.ask("PATCH", path, "{}"); a.status != want {
			t.Errorf("%s: %d %s", path, a.status, a.text)
		}
	}
	if a := s.ask("PUT", "/v1/sandboxes/"+id+"/metadata", "{}"); a.status != 405 {
		t.Errorf("PUT: %d", a.status)
	}
}

func TestSnapshots(t *testing.T) {
	s := start(t, nil)
	box := s.create()
	take := func(body string) (string, answer) {
		a := s.ask("POST", "/v1/sandboxes/"+box+"/snapshots", body)
		if a.status != 202 {
			return "", a
		}
		return a.field(t, "id").(string), a
	}
	id, a := take(`{"name":"研究"}`)
	want := map[string]any{
		"id": id, "sandboxId": box, "name": "研究", "createdAt": "2026-01-02T03:04:05.6789Z",
		"status": map[string]any{"state": "Creating", "reason": "ACCEPTED", "lastTransitionAt": "2026-01-02T03:04:05.6789Z"},
	}
	if diff := cmp.Diff(a.field(t), any(want)); a.status != 202 || diff != "" || a.header.Get("Location") != "/v1/snapshots/"+id {
		t.Errorf("%d %v %s", a.status, a.header, diff)
	}
	for body, status := range map[string]int{"": 202, "{}": 202, `{"name":null}`: 202, `{"name":""}`: 422, `{"name":1}`: 422, "[]": 422, "{": 422, `{"name":"here"}`: 501} {
		if _, a := take(body); a.status != status {
			t.Errorf("%s: %d %s, want %d", body, a.status, a.text, status)
		}
	}
	if a := s.ask("GET", "/snapshots/"+id, ""); a.status != 200 || cmp.Diff(a.field(t), any(want)) != "" {
		t.Errorf("get: %d %s", a.status, a.text)
	}
	for _, tt := range []struct {
		method, path, code string
		status             int
	}{
		{"GET", "/v1/snapshots/none", "SNAPSHOT::NOT_FOUND", 404},
		{"GET", "/v1/snapshots/" + box, "SNAPSHOT::NOT_FOUND", 404},
		{"GET", "/v1/snapshots/..%2F" + id, "SNAPSHOT::NOT_FOUND", 404},
		{"DELETE", "/v1/snapshots/none", "SNAPSHOT::NOT_FOUND", 404},
		{"DELETE", "/v1/snapshots/" + id, "SNAPSHOT::INVALID_STATE", 409},
		{"POST", "/v1/snapshots", "", 405},
		{"GET", "/v1/snapshots/", "", 404},
		{"GET", "/v1/snapshots/" + id + "/files", "", 404},
		{"POST", "/v1/sandboxes/none/snapshots", "DOCKER::SANDBOX_NOT_FOUND", 404},
		{"GET", "/v1/sandboxes/" + box + "/snapshots", "", 405},
		{"GET", "/v1/snapshots?page=0", "", 422},
	} {
		if a := s.ask(tt.method, tt.path, ""); a.status != tt.status || tt.code != "" && a.field(t, "code") != tt.code {
			t.Errorf("%s %s: %d %s, want %d %s", tt.method, tt.path, a.status, a.text, tt.status, tt.code)
		}
	}
	create := `{"snapshotId":"` + id + `"}`
	if a := s.ask("POST", "/v1/sandboxes", create); a.status != 409 || a.field(t, "code") != "SNAPSHOT::NOT_READY" {
		t.Errorf("create too early: %d %s", a.status, a.text)
	}
	s.fake.snapshots[len(s.fake.snapshots)-1].State = sandbox.SnapshotReady
	a = s.ask("POST", "/v1/sandboxes", create)
	if a.status != 202 || a.field(t, "snapshotId") != nil || a.field(t, "image") != nil {
		t.Fatalf("create: %d %s", a.status, a.text)
	}
	if a := s.ask("GET", "/v1/sandboxes/"+a.field(t, "id").(string), ""); a.field(t, "snapshotId") != id {
		t.Errorf("the new one: %s", a.text)
	}
	s.ask("POST", "/v1/sandboxes/"+box+"/pause", "")
	if a := s.ask("POST", "/v1/sandboxes/"+box+"/snapshots", ""); a.status != 409 || a.field(t, "code") != "SNAPSHOT::INVALID_SOURCE_STATE" {
		t.Errorf("source in a wrong state: %d %s", a.status, a.text)
	}
	for query, want := range map[string]float64{
		"": 4, "?sandboxId=" + box: 4, "?sandboxId=x": 0, "?state=ready": 1, "?state=Ready&state=Creating": 4, "?state=None": 0,
		"?name=%E7%A0%94%E7%A9%B6": 1, "?name=x": 0, "?pageSize=3&page=2": 4,
	} {
		if a := s.ask("GET", "/v1/snapshots"+query, ""); a.status != 200 || a.field(t, "pagination", "totalItems") != want {
			t.Errorf("%s: %d %s, want %v", query, a.status, a.text, want)
		}
	}
	if a := s.ask("DELETE", "/v1/snapshots/"+id, ""); a.status != 204 || a.text != "" {
		t.Errorf("delete: %d %s", a.status, a.text)
	}
}

func TestDiagnostics(t *testing.T) {
	s := start(t, nil)
	box := s.create()
	const (
		logs   = "one\ntwo\ufffd[31m\nthree\n"
		events = "2026-01-02T03:04:05.6789Z  CREATED  \n2026-01-02T03:04:06.6789Z  ENDED  killed\ufffd[2J\n"
	)
	inspect := "id: " + box + "\nmessage: two lines\n"
	for _, tt := range []struct{ path, want string }{
		{"logs", logs},
		{"logs?tail=1&since=10m", "three\n"},
		{"events", events},
		{"events?limit=1", events[strings.Index(events, "\n")+1:]},
		{"inspect", inspect},
		{"summary", "== INSPECT ==\n" + inspect + "\n== EVENTS ==\n" + events + "\n== LOGS ==\n" + logs + "\n"},
		{"summary?tail=1&event_limit=1", "== INSPECT ==\n" + inspect + "\n== EVENTS ==\n" + events[strings.Index(events, "\n")+1:] + "\n== LOGS ==\nthree\n\n"},
	} {
		a := s.ask("GET", "/v1/sandboxes/"+box+"/diagnostics/"+tt.path, "")
		if a.status != 200 || a.text != tt.want || !strings.HasPrefix(a.header.Get("Content-Type"), "text/plain") {
			t.Errorf("%s: %d %v %q, want %q", tt.path, a.status, a.header, a.text, tt.want)
		}
		older := strings.HasPrefix(tt.path, "logs") || strings.HasPrefix(tt.path, "events")
		if got := a.header.Get("Deprecation"); (got == "true") != older {
			t.Errorf("%s: Deprecation %q", tt.path, got)
		}
	}
	for _, tt := range []struct{ kind, scope, content string }{{"logs", "container", logs}, {"logs", "all", logs}, {"events", "runtime", events}} {
		a := s.ask("GET", "/v1/sandboxes/"+box+"/diagnostics/"+tt.kind+"?scope="+tt.scope, "")
		want := map[string]any{
			"sandboxId": box, "kind": tt.kind, "scope": tt.scope, "delivery": "inline", "contentType": "text/plain; charset=utf-8",
			"content": tt.content, "contentLength": float64(len(tt.content)), "truncated": false,
		}
		if diff := cmp.Diff(a.field(t), any(want)); a.status != http.StatusOK || diff != "" {
			t.Errorf("%s of %s: %d %s", tt.kind, tt.scope, a.status, diff)
		}
	}
	for path, want := range map[string]int{
		"logs?scope=runtime": 400, "events?scope=container": 400, "logs?tail=0": 422, "logs?tail=10001": 422, "events?limit=501": 422,
		"nothing": 404, "": 404, "logs/more": 404,
	} {
		if a := s.ask("GET", "/v1/sandboxes/"+box+"/diagnostics/"+path, ""); a.status != want {
			t.Errorf("%s: %d %s, want %d", path, a.status, a.text, want)
		}
	}
	for _, kind := range []string{"logs", "events", "inspect", "summary"} {
		if a := s.ask("GET", fmt.Sprintf("/v1/sandboxes/none/diagnostics/%s", kind), ""); a.status != 404 || a.field(t, "code") != "DOCKER::SANDBOX_NOT_FOUND" {
			t.Errorf("%s of none: %d %s", kind, a.status, a.text)
		}
	}
}
