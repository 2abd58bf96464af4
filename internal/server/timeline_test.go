package server_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/console/act"
	"github.com/glassboxhq/glassbox/internal/console/connection"
	"github.com/glassboxhq/glassbox/internal/console/door"
	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/internal/server"
	"github.com/glassboxhq/glassbox/sandbox"
)

// steps tells what a timeline lists, page after page.
func (c *client) steps(boxID, query string) (list []string, last server.Operations) {
	c.s.t.Helper()
	for next := ""; ; next = last.Next {
		last = server.Operations{}
		c.ask("GET", "/api/v1/connections/local/sandboxes/"+boxID+"/operations?cursor="+next+"&"+query, "").read(c.s.t, &last)
		for _, op := range last.Items {
			list = append(list, fmt.Sprintf("%s %s %s", op.Type, op.Status, op.Source))
		}
		if last.Next == "" {
			return list, last
		}
	}
}

// What is done with a sandbox through the server stands in its timeline, in
// the order of time.
func TestTimeline(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	op, viewer := s.user("op", door.Operator), s.user("ann", door.Viewer)
	var made server.Sandbox
	op.ask("POST", "/api/v1/connections/local/sandboxes", `{"image":"host","name":"b"}`).read(t, &made)
	one := "/api/v1/connections/local/sandboxes/" + made.ID
	first := s.record(made.ID, "x")
	op.ask("POST", one+"/pause", "").want(t, "pause", 200, "")
	viewer.ask("POST", one+"/resume", "").want(t, "a viewer", 403, "forbidden")
	op.ask("POST", one+"/renew", `{"expires_in_seconds":1}`).want(t, "too short", 422, sandbox.CodeInvalid)
	s.record(made.ID, "y")
	viewer.ask("GET", one+"/operations/"+first, "").want(t, "read", 200, "")
	want := []string{
		"sandbox.create succeeded console", "command.execute succeeded sdk", "sandbox.pause succeeded console", "sandbox.resume failed console",
		"sandbox.renew failed console", "command.execute succeeded sdk", "history.read succeeded console",
	}
	for _, limit := range []int{1, 2, 3, 50} {
		got, last := viewer.steps(made.ID, fmt.Sprint("order=oldest&limit=", limit))
		if !slices.Equal(got, want) || last.Problem != nil {
			t.Errorf("%d at once: %q", limit, got)
		}
		back, _ := viewer.steps(made.ID, fmt.Sprint("limit=", limit))
		slices.Reverse(back)
		if !slices.Equal(back, want) {
			t.Errorf("%d at once, newest first: %q", limit, back)
		}
	}
	for query, want := range map[string]int{
		"source=console": 5, "source=sdk": 2, "status=failed": 2, "status=succeeded&source=console": 3, "status=started": 0, "type=sandbox.pause": 1, "actor=op&source=console": 3, "actor=ann": 2,
		"actor_type=agent": 2, "run=run-1": 2, "exit_code=0": 2, "until=2020-01-01T00:00:00Z": 0, "q=FORBIDDEN": 1, "limit=1&q=address": 5,
	} {
		if got, _ := viewer.steps(made.ID, query); len(got) != want {
			t.Errorf("%s: %q, want %d", query, got, want)
		}
	}
	var page server.Operations
	viewer.ask("GET", one+"/operations?type=sandbox.resume", "").read(t, &page)
	denied := page.Items[0]
	var asked, came map[string]any
	if err := json.Unmarshal(denied.Request, &asked); err != nil || asked["address"] != "127.0.0.1" || asked["via"] != "link" {
		t.Errorf("%s", denied.Request)
	}
	if err := json.Unmarshal(denied.Result, &came); err != nil || came["outcome"] != "denied" || came["code"] != "forbidden" || denied.Actor.ID != "ann" {
		t.Errorf("%s by %+v", denied.Result, denied.Actor)
	}
	var again history.Operation
	viewer.ask("GET", one+"/operations/"+denied.ID, "").read(t, &again)
	if again.ID != denied.ID || again.Type != "sandbox.resume" {
		t.Errorf("%+v", again)
	}
	viewer.ask("GET", "/api/v1/connections/local/sandboxes/other/operations/"+denied.ID, "").want(t, "of another", 404, sandbox.CodeSandboxNotFound)
	viewer.ask("GET", "/api/v1/connections/local/sandboxes/other/operations", "").want(t, "no such sandbox", 404, sandbox.CodeSandboxNotFound)

	// Nobody who is not in writes into a timeline.
	before, _ := viewer.steps(made.ID, "")
	s.stranger().ask("POST", "/api/v1/auth/password", fmt.Sprintf(`{"name":"local/%s","password":"long enough it is"}`, made.ID), "Origin: "+s.url)
	if after, _ := viewer.steps(made.ID, ""); len(after) != len(before) {
		t.Errorf("a stranger is in it: %q", after)
	}

	// It stays when the sandbox is gone, and tells why the rest cannot be read.
	op.ask("DELETE", one, "").want(t, "delete", 204, "")
	got, last := viewer.steps(made.ID, "order=oldest&limit=2&type=sandbox.create&type=sandbox.delete")
	if !slices.Equal(got, []string{"sandbox.create succeeded console", "sandbox.delete succeeded console"}) || last.Problem == nil || last.Problem.Code != string(sandbox.CodeSandboxNotFound) {
		t.Errorf("%q %+v", got, last.Problem)
	}
}

// What a recorder has recorded itself, by the id of the request, does not come
// twice; what it has not, does.
func TestTimelineOnce(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	c := s.user("op", door.Operator)
	box, _ := s.box("b", "x")
	request := id.New()
	record := func(requestID string, at time.Time) {
		store := s.rt.store(box)
		defer store.Close()
		op := &history.Operation{
			ID: id.New(), Type: history.CommandExecute, Status: sandbox.Started, Source: history.SourceConsole, StartedAt: at,
			Actor: history.Actor{Type: history.User, ID: "op", Correlation: requestID}, Command: &history.Command{Line: "true"},
		}
		if err := store.Begin(t.Context(), op); err != nil {
			t.Fatal(err)
		}
	}
	record(request, time.Now())
	for i, outcome := range []act.Outcome{act.Done, act.Denied, act.Failed} {
		requestID := request
		if i > 0 {
			requestID = id.New()
		}
		a := &act.Act{At: time.Now(), UserName: "op", Action: "command.execute", Sandbox: "local/" + box, Outcome: outcome, RequestID: requestID}
		if err := s.acts.Add(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"command.execute failed console", "command.execute failed console", "command.execute started console", "command.execute succeeded sdk"}
	for _, limit := range []int{1, 2, 50} {
		if got, _ := c.steps(box, fmt.Sprint("limit=", limit)); !slices.Equal(got, want) {
			t.Errorf("%d at once: %q", limit, got)
		}
	}
}

// unrecorded keeps no histories.
type unrecorded struct{ connection.Service }

func TestTimelineUnrecorded(t *testing.T) {
	t.Parallel()
	s := start(t, &options{service: func(s connection.Service) connection.Service { return unrecorded{s} }})
	c := s.user("op", door.Operator)
	box, _ := s.box("b", "x")
	path := "/api/v1/connections/local/sandboxes/" + box
	c.ask("GET", path+"/operations", "").want(t, "nothing was done", 409, "history_not_available")
	c.ask("POST", path+"/pause", "").want(t, "pause", 200, "")
	got, last := c.steps(box, "")
	if !slices.Equal(got, []string{"sandbox.pause succeeded console"}) || last.Problem == nil || last.Problem.Code != "history_not_available" || !strings.Contains(last.Problem.Advice, "resume") {
		t.Errorf("%q %+v", got, last.Problem)
	}
}
