package localruntime_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/history/sqlite"
	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/internal/localruntime"
	"github.com/glassboxhq/glassbox/internal/localruntime/lifecycle"
	"github.com/glassboxhq/glassbox/sandbox"
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
	return actsOf(page.Operations)
}

func actsOf(ops []*history.Operation) (list []string) {
	for _, op := range ops {
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

// clock is one that a test can move.
type clock struct {
	mu    sync.Mutex
	ahead time.Duration
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.ahead)
}

func (c *clock) move(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead += by
}

// asker asks a runtime as a client of the lifecycle API does.
type asker struct {
	*httptest.Server
}

func newAsker(t *testing.T, rt *localruntime.Runtime) *asker {
	a := &asker{httptest.NewServer(lifecycle.New(rt, &lifecycle.Options{Trusted: true}))}
	t.Cleanup(a.Close)
	return a
}

// ask returns the id that the answer holds, if it holds one.
func (a *asker) ask(t *testing.T, route, body string, headers ...string) string {
	t.Helper()
	method, path, _ := strings.Cut(route, " ")
	req, err := http.NewRequestWithContext(t.Context(), method, a.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Agent-Id", "agent-1")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := a.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var answer struct{ ID string }
	if text, err := io.ReadAll(res.Body); err != nil || res.StatusCode/100 != 2 && method == http.MethodPost && body != "" || len(text) > 0 && json.Unmarshal(text, &answer) != nil {
		t.Fatalf("%s: %d %s, %v", route, res.StatusCode, text, err)
	}
	return answer.ID
}

// keptActs are the operations of the history that a sandbox left.
func keptActs(t *testing.T, rt *localruntime.Runtime, box string) []string {
	t.Helper()
	list, err := rt.Histories(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(list, func(h *localruntime.History) bool { return h.ID == box })
	if at < 0 || list[at].Live {
		t.Fatalf("no history of %s is kept", box)
	}
	store, err := sqlite.Open(filepath.Join(list[at].Dir, "history.sqlite3"), &sqlite.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	page, err := store.List(t.Context(), &history.Filter{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	return actsOf(page.Operations)
}

// A deletion is the last thing that the history of a sandbox tells, also of one
// that was paused, with what was done meanwhile.
func TestDeletionInHistory(t *testing.T) {
	t.Parallel()
	rt := startRuntime(t, options(t, t.TempDir()))
	a := newAsker(t, rt)
	for _, tt := range []struct {
		name   string
		before []string
		want   []string
	}{
		{"running", nil, nil},
		{"paused", []string{"/pause", "/pause"}, []string{"sandbox.pause succeeded", "sandbox.pause failed"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			box := a.ask(t, "POST /sandboxes", `{"image":{"uri":"host"}}`)
			for _, act := range tt.before {
				a.ask(t, "POST /sandboxes/"+box+act, "")
			}
			a.ask(t, "DELETE /sandboxes/"+box, "")
			want := slices.Concat([]string{"sandbox.create succeeded"}, tt.want, []string{"sandbox.delete succeeded"})
			if diff := cmp.Diff(keptActs(t, rt, box), want); diff != "" {
				t.Errorf("the history: %s", diff)
			}
		})
	}
}

// What is done with a sandbox that has failed is told beside its history, which
// nobody writes any more.
func TestActsAfterTheHistory(t *testing.T) {
	t.Parallel()
	rt := startRuntime(t, options(t, t.TempDir()))
	a := newAsker(t, rt)
	box := a.ask(t, "POST /sandboxes", `{"image":{"uri":"host"}}`)
	_, _ = try(t.Context(), rt, box, "kill -9 1")
	eventually(t, "it has failed", func() bool {
		info, err := rt.Get(t.Context(), box)
		return err == nil && info.State == sandbox.Failed
	})
	a.ask(t, "POST /sandboxes/"+box+"/pause", "")
	a.ask(t, "DELETE /sandboxes/"+box, "")
	list, err := rt.Histories(t.Context())
	if err != nil || len(list) != 1 {
		t.Fatalf("%v %v", err, list)
	}
	if diff := cmp.Diff(actsOf(list[0].After), []string{"sandbox.pause failed", "sandbox.delete succeeded"}); diff != "" {
		t.Error(diff)
	}
}

// Who says that he records what he does, and does not, hides nothing.
func TestClaimsAreProven(t *testing.T) {
	t.Parallel()
	time0, opts := &clock{}, options(t, t.TempDir())
	opts.Now, opts.WatchEvery = time0.now, 50*time.Millisecond
	rt := startRuntime(t, opts)
	a := newAsker(t, rt)
	python := []string{"User-Agent", "OpenSandbox-Python-SDK/0.1.16"}
	box := a.ask(t, "POST /sandboxes", `{"image":{"uri":"host"},"metadata":{"sandbox_instance_id":"i-1"}}`, python...)
	a.ask(t, "POST /sandboxes/"+box+"/pause", "", python...)
	a.ask(t, "POST /sandboxes/"+box+"/resume", "", python...)
	a.ask(t, "PATCH /sandboxes/"+box+"/metadata", `{"a":"b"}`, "X-Glassbox-Recorded", id.New())
	if got := acts(t, rt, box); len(got) != 0 {
		t.Errorf("before the client could record it: %v", got)
	}
	crowd := a.ask(t, "POST /sandboxes", `{"image":{"uri":"host"}}`, "X-Glassbox-Recorded", id.New())
	for range 80 { // within the minute
		a.ask(t, "PATCH /sandboxes/"+crowd+"/metadata", `{"a":"b"}`, "X-Glassbox-Recorded", id.New())
	}
	a.ask(t, "DELETE /sandboxes/"+crowd, "", "X-Glassbox-Recorded", id.New())
	if got := keptActs(t, rt, crowd); len(got) != 82 || got[0] != "sandbox.create succeeded" {
		t.Errorf("%d acts that came close together are kept, the first %v", len(got), got)
	}
	time0.move(2 * time.Minute)
	want := []string{"sandbox.create succeeded", "sandbox.pause succeeded", "sandbox.resume succeeded", "sandbox.metadata succeeded"}
	eventually(t, "the records", func() bool { return cmp.Equal(acts(t, rt, box), want) })
	// Nor does it wait for the end of the minute when the sandbox ends before.
	a.ask(t, "POST /sandboxes/"+box+"/pause", "", python...)
	a.ask(t, "DELETE /sandboxes/"+box, "", "X-Glassbox-Recorded", id.New())
	if diff := cmp.Diff(keptActs(t, rt, box), append(want, "sandbox.pause succeeded", "sandbox.delete succeeded")); diff != "" {
		t.Errorf("the history: %s", diff)
	}
}
