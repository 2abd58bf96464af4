package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/console/door"
	"github.com/glassboxhq/glassbox/internal/server"
	"github.com/glassboxhq/glassbox/sandbox"
)

func sandboxCode(text string) sandbox.Code { return sandbox.Code(text) }

func TestSandboxes(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	c := s.user("op", door.Operator)
	const all = "/api/v1/connections/local/sandboxes"
	a := c.ask("POST", all, `{"image":"host","name":"研究 <b>员</b>","expires_in_seconds":600}`)
	var made server.Sandbox
	a.read(t, &made)
	if a.status != http.StatusCreated || made.Name != "研究 <b>员</b>" || made.Connection != "local" {
		t.Fatalf("%d %+v", a.status, made)
	}
	one := all + "/" + made.ID
	var got server.Sandbox
	c.ask("POST", one+"/pause", "").read(t, &got)
	if got.State != sandbox.Paused {
		t.Errorf("paused: %+v", got)
	}
	c.ask("POST", one+"/resume", "").read(t, &got)
	c.ask("POST", one+"/renew", `{"expires_in_seconds":3600}`).read(t, &got)
	if left := time.Until(got.ExpiresAt); left < 59*time.Minute || left > 61*time.Minute {
		t.Errorf("renewed: %v left", left)
	}
	c.ask("POST", one+"/renew", `{"expires_in_seconds":1}`).want(t, "too short", 422, "invalid_argument")
	c.ask("GET", one, "").want(t, "get", 200, "")
	c.ask("DELETE", one, "").want(t, "delete", 204, "")
	c.ask("DELETE", one, "").want(t, "delete again", 404, "sandbox_not_found")
	c.ask("GET", one, "").want(t, "gone", 404, "sandbox_not_found")
	c.ask("GET", "/api/v1/connections/none/sandboxes/x", "").want(t, "no connection", 404, "connection_not_found")

	var want []string
	for i := range 25 {
		info, err := s.rt.Create(t.Context(), &sandbox.Spec{Name: fmt.Sprint("box", i%5)})
		if err != nil {
			t.Fatal(err)
		}
		want = append([]string{info.ID}, want...)
	}
	var ids []string
	for next, pages := "", 0; ; pages++ {
		var page server.Sandboxes
		c.ask("GET", "/api/v1/sandboxes?limit=10&cursor="+next, "").read(t, &page)
		for _, b := range page.Items {
			ids = append(ids, b.ID)
		}
		if len(page.Connections) != 1 || page.Connections[0].ID != "local" || page.Now.IsZero() {
			t.Errorf("%+v", page.Connections)
		}
		if next = page.Next; next == "" {
			if pages != 2 {
				t.Errorf("%d pages", pages+1)
			}
			break
		}
	}
	if !slices.Equal(ids, want) {
		t.Errorf("%v\nwant\n%v", ids, want)
	}
	var page server.Sandboxes
	c.ask("GET", "/api/v1/sandboxes?q=BOX3&state=running", "").read(t, &page)
	if len(page.Items) != 5 {
		t.Errorf("%d are called box3", len(page.Items))
	}
	c.ask("GET", "/api/v1/sandboxes?state=Paused", "").read(t, &page)
	if len(page.Items) != 0 || page.Next != "" {
		t.Errorf("%+v", page.Items)
	}
}

func TestOperations(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	c := s.user("ann", door.Viewer)
	box, op := s.box("a", "line 1\n\x1b[31mred\x00\xff\n")
	base := "/api/v1/connections/local/sandboxes/" + box + "/operations"
	for range 4 {
		s.record(box, "more")
	}
	var page server.Page[*history.Operation]
	c.ask("GET", base+"?limit=3", "").read(t, &page)
	first, next := page.Items, page.Next
	page = server.Page[*history.Operation]{}
	c.ask("GET", base+"?limit=3&cursor="+next, "").read(t, &page)
	if len(first) != 3 || len(page.Items) != 2 || page.Next != "" || first[0].Seq <= first[1].Seq || page.Items[1].ID != op {
		t.Errorf("%d, %d, %q", len(first), len(page.Items), page.Next)
	}
	c.ask("GET", base+"?order=oldest&limit=1", "").read(t, &page)
	if len(page.Items) != 1 || page.Items[0].ID != op || page.Items[0].Command.Line != "make\n\x1b[31mtest" {
		t.Errorf("%+v", page.Items)
	}
	for query, want := range map[string]int{
		"type=command.execute": 5, "type=file.read": 0, "type=file.read&type=command.execute": 5, "status=succeeded": 5, "status=failed": 0, "source=sdk": 5, "actor=research-agent": 5,
		"actor=x": 0, "run=run-1": 5, "exit_code=0": 5, "exit_code=1": 0, "q=MAKE": 5, "q=red": 1, "until=2020-01-01T00:00:00Z": 0, "since=2020-01-01T00:00:00Z": 5,
	} {
		c.ask("GET", base+"?"+query, "").read(t, &page)
		if len(page.Items) != want {
			t.Errorf("%s: %d, want %d", query, len(page.Items), want)
		}
	}
	var got history.Operation
	c.ask("GET", base+"/"+op, "").read(t, &got)
	if got.ID != op || got.Actor.Run != "run-1" || *got.Command.ExitCode != 0 {
		t.Errorf("%+v", got)
	}
	c.ask("GET", base+"/0198f2c4-0000-7000-8000-000000000000", "").want(t, "none", 404, "operation_not_found")

	a := c.ask("GET", base+"/"+op+"/output", "")
	if a.body != "line 1\n\x1b[31mred\x00\xff\n" || a.header.Get("Content-Type") != "application/octet-stream" || !strings.Contains(a.header.Get("Content-Security-Policy"), "sandbox") {
		t.Errorf("%q %v", a.body, a.header)
	}
	if a = c.ask("GET", base+"/"+op+"/output", "", "Range: bytes=-3"); a.status != 206 || a.body != "\x00\xff\n" {
		t.Errorf("%d %q", a.status, a.body)
	}
	if a = c.ask("GET", base+"/"+op+"/output", "", "Range: bytes=2-5"); a.body != "ne 1" || a.header.Get("Content-Range") != "bytes 2-5/18" {
		t.Errorf("%q %v", a.body, a.header)
	}
	if a = c.ask("GET", base+"/"+op+"/output", "", "Range: bytes=99-"); a.status != 416 {
		t.Errorf("%d", a.status)
	}
	if a = c.ask("GET", base+"/"+op+"/output?stream=stderr", ""); a.status != 200 || a.body != "" {
		t.Errorf("stderr: %d %q", a.status, a.body)
	}
	c.ask("GET", base+"/"+op+"/output?stream=x", "").want(t, "no stream", 422, "invalid_argument")
}

// stream reads events until it is closed.
type stream struct {
	t       *testing.T
	scanner *bufio.Scanner
	close   func()
}

type event struct{ id, name, data string }

func (c *client) follow(path string, headers ...string) *stream {
	c.s.t.Helper()
	ctx, cancel := context.WithTimeout(c.s.t.Context(), time.Minute)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.s.url+path, http.NoBody)
	if err != nil {
		c.s.t.Fatal(err)
	}
	req.Header.Set("Cookie", c.cookie)
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil || resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" {
		c.s.t.Fatalf("%v %v", err, resp)
	}
	stop := func() { cancel(); resp.Body.Close() }
	c.s.t.Cleanup(stop)
	return &stream{c.s.t, bufio.NewScanner(resp.Body), stop}
}

// next returns the next event; one without a name is the end of the stream.
func (s *stream) next() (e event) {
	for s.scanner.Scan() {
		name, value, _ := strings.Cut(s.scanner.Text(), ": ")
		switch name {
		case "id":
			e.id = value
		case "event":
			e.name = value
		case "data":
			e.data = value
		case "":
			if e.name != "" {
				return e
			}
		}
	}
	return event{}
}

func TestEvents(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	c := s.user("ann", door.Viewer)
	box, first := s.box("a", "x")
	path := "/api/v1/connections/local/sandboxes/" + box + "/events"
	operation := func(e event) string {
		t.Helper()
		var op history.Operation
		if e.name != "operation" || e.id == "" || json.Unmarshal([]byte(e.data), &op) != nil {
			t.Fatalf("%+v", e)
		}
		return op.ID
	}
	whole := c.follow(path + "?after=0")
	seen := whole.next()
	if operation(seen) != first {
		t.Error("the first is not told")
	}
	live := c.follow(path)
	second := s.record(box, "y")
	for operation(live.next()) != second { // what it was when it began, and when it ended
	}
	live.close()
	third := s.record(box, "z")
	again := c.follow(path, "Last-Event-ID: "+seen.id)
	told := map[string]bool{}
	for len(told) < 2 {
		told[operation(again.next())] = true
	}
	if told[first] || !told[second] || !told[third] {
		t.Errorf("after a break: %v", told)
	}
	c.ask("GET", path, "", "Last-Event-ID: x").want(t, "no id", 400, "invalid_argument")
	c.ask("GET", path+"?after=-1", "").want(t, "no place", 422, "invalid_argument")

	// Who is signed out hears nothing more.
	c.ask("POST", "/api/v1/auth/sign-out", "").want(t, "sign out", 204, "")
	s.record(box, "secret")
	for e := again.next(); ; e = again.next() {
		if strings.Contains(e.data, "sign_in_needed") || e.name == "" {
			break
		}
		if operation(e) != third {
			t.Errorf("signed out, and still told: %+v", e)
		}
	}
}
