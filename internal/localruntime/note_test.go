package localruntime_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/localruntime"
	"github.com/glassboxhq/glassbox/internal/localruntime/lifecycle"
	"github.com/glassboxhq/glassbox/sandbox/recorded"
)

// What a plain client asks of the lifecycle API stands in the sandbox's own
// history, in order, also what was asked while it was paused and by way of two
// servers.
func TestActsInHistory(t *testing.T) {
	state := t.TempDir()
	o := startOwner(t, options(t, state))
	ask := func(rt *localruntime.Runtime, method, path, body string) string {
		t.Helper()
		server := httptest.NewServer(lifecycle.New(rt, &lifecycle.Options{Trusted: true}))
		defer server.Close()
		req, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Agent-Id", "agent-1")
		res, err := (&http.Client{Timeout: time.Minute}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	ask(o.Runtime, "POST", "/sandboxes", `{"image":{"uri":"host"}}`)
	list, err := o.List(t.Context())
	if err != nil || len(list) != 1 {
		t.Fatalf("%v %v", err, list)
	}
	box := list[0].ID
	ask(o.Runtime, "POST", "/sandboxes/"+box+"/pause", "")
	ask(o.Runtime, "POST", "/sandboxes/"+box+"/pause", "")
	ask(o.Runtime, "PATCH", "/sandboxes/"+box+"/metadata", `{"team":"a"}`)
	o.stop()
	rt := startRuntime(t, options(t, state))
	ask(rt, "POST", "/sandboxes/"+box+"/snapshots", `{}`)
	ask(rt, "POST", "/sandboxes/"+box+"/resume", "")
	ask(rt, "POST", "/sandboxes/"+box+"/renew-expiration", `{"expiresAt":"2001-01-02T03:04:05Z"}`)
	snapshots, err := rt.ListSnapshots(t.Context(), box)
	if err != nil || len(snapshots) != 1 {
		t.Fatalf("%v %v", err, snapshots)
	}
	settled(t, rt, snapshots[0])
	want := []string{
		"sandbox.create succeeded", "sandbox.pause succeeded", "sandbox.pause failed", "sandbox.metadata succeeded", "sandbox.snapshot succeeded",
		"sandbox.resume succeeded", "sandbox.renew failed",
	}
	if diff := cmp.Diff(acts(t, rt, box), want); diff != "" {
		t.Errorf("the history: %s", diff)
	}

	ask(rt, "POST", "/sandboxes", `{"snapshotId":"`+snapshots[0].ID+`"}`)
	if list, err = rt.List(t.Context()); err != nil || len(list) != 2 {
		t.Fatalf("%v %v", err, list)
	}
	if got := acts(t, rt, list[0].ID); cmp.Diff(got, []string{"sandbox.create succeeded from " + snapshots[0].ID}) != "" {
		t.Errorf("the history of the new one: %v", got)
	}
}

// acts are the operations of a sandbox's history.
func acts(t *testing.T, rt *localruntime.Runtime, box string) []string {
	t.Helper()
	access, err := rt.Access(t.Context(), box)
	if err != nil {
		t.Fatal(err)
	}
	session := recorded.New("http://sandbox", &recorded.Options{Token: access.Token, Client: &http.Client{Transport: rt.Conn(box)}, Sandbox: box})
	page, err := session.History().List(t.Context(), &history.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, op := range page.Operations {
		text := op.Type + " " + string(op.Status)
		if _, from, ok := strings.Cut(string(op.Request), `"snapshot":"`); ok && op.Type == history.SandboxCreate {
			text += " from " + from[:36]
		}
		if op.Source != history.SourceLifecycle || op.Actor.ID != "agent-1" {
			text += " by " + op.Source + " " + op.Actor.ID
		}
		list = append(list, text)
	}
	return list
}
