package server_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/glassboxhq/glassbox/internal/console/act"
	"github.com/glassboxhq/glassbox/internal/console/connection"
	"github.com/glassboxhq/glassbox/internal/console/door"
	"github.com/glassboxhq/glassbox/internal/server"
	"github.com/glassboxhq/glassbox/sandbox"
)

const boxes = "/api/v1/connections/local/sandboxes"

func TestIdempotency(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	c, other := s.user("op", door.Admin), s.user("other", door.Admin)
	const body, key = `{"image":"host","name":"b"}`, "Idempotency-Key: 0198f2c4-1"
	first := c.ask("POST", boxes, body, key)
	first.want(t, "first", 201, "")
	again := c.ask("POST", boxes, body, key)
	if again.status != 201 || again.body != first.body || again.header.Get("Idempotency-Replayed") != "true" || again.header.Get("Content-Type") != first.header.Get("Content-Type") {
		t.Errorf("again: %d %s %v", again.status, again.body, again.header)
	}
	c.ask("POST", boxes, `{"image":"host","name":"c"}`, key).want(t, "another request", 422, "idempotency_key_reused")
	c.ask("POST", boxes, body, "Idempotency-Key: with space").want(t, "no key", 400, sandbox.CodeInvalid)
	if a := other.ask("POST", boxes, body, key); a.status != 201 || a.body == first.body {
		t.Errorf("somebody else: %d %s", a.status, a.body)
	}
	c.ask("POST", boxes, body).want(t, "without a key", 201, "")
	if list, _ := s.rt.List(t.Context()); len(list) != 3 {
		t.Errorf("%d sandboxes", len(list))
	}
	acts, err := s.acts.List(t.Context(), &act.Query{Actions: []string{"sandbox.create"}, Outcomes: []act.Outcome{act.Done}, Limit: 10})
	if err != nil || len(acts) != 3 {
		t.Errorf("%d acts, %v", len(acts), err)
	}

	// What failed for sure may be tried again.
	c.ask("POST", boxes, `{"image":"missing"}`, "Idempotency-Key: 2").want(t, "no image", 404, sandbox.CodeImageNotFound)
	c.ask("POST", boxes, body, "Idempotency-Key: 2").want(t, "mended", 201, "")

	// A secret is not kept.
	const token = `{"name":"t","scopes":["sandboxes:read"],"expires_in_seconds":3600}`
	if a := c.ask("POST", "/api/v1/tokens", token, key); a.status != 201 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	c.ask("POST", "/api/v1/tokens", token, key).want(t, "token", 409, "idempotency_told_once")

	s.now(25 * time.Hour)
	c, _ = s.signIn("op"), other
	if a := c.ask("POST", boxes, body, key); a.status != 201 || a.body == first.body {
		t.Errorf("a day later: %d %s", a.status, a.body)
	}
	var doc struct {
		Paths map[string]map[string]struct {
			Parameters []struct{ Name string } `json:"parameters"`
		} `json:"paths"`
	}
	c.ask("GET", "/api/v1/openapi.json", "").read(t, &doc)
	named := false
	for _, p := range doc.Paths["/api/v1/connections/{connection}/sandboxes"]["post"].Parameters {
		named = named || p.Name == "Idempotency-Key"
	}
	if !named {
		t.Error("the document does not know the header")
	}
}

// slowly makes sandboxes when it is told to.
type slowly struct {
	connection.Service
	began, goOn chan struct{}
}

func (s *slowly) Create(ctx context.Context, spec *sandbox.Spec) (*sandbox.Info, error) {
	s.began <- struct{}{}
	select {
	case <-s.goOn:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return s.Service.Create(ctx, spec)
}

// A client that has lost its connection comes back for the answer.
func TestIdempotencyLostClient(t *testing.T) {
	t.Parallel()
	slow := &slowly{began: make(chan struct{}, 9), goOn: make(chan struct{})}
	s := start(t, &options{service: func(s connection.Service) connection.Service { slow.Service = s; return slow }})
	c := s.user("op", door.Operator)
	const body, key = `{"image":"host"}`, "Idempotency-Key: k"
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+boxes, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Cookie", c.cookie)
	req.Header.Set("Origin", s.url)
	req.Header.Set("Idempotency-Key", "k")
	var work sync.WaitGroup
	work.Go(func() { _, _ = http.DefaultTransport.RoundTrip(req) })
	<-slow.began
	c.ask("POST", boxes, body, key).want(t, "meanwhile", 409, "idempotency_in_progress")
	cancel()
	work.Wait()
	close(slow.goOn)
	deadline := time.Now().Add(time.Minute)
	for {
		a := c.ask("POST", boxes, body, key)
		if a.status == 201 {
			var made server.Sandbox
			a.read(t, &made)
			if list, _ := s.rt.List(t.Context()); len(list) != 1 || list[0].ID != made.ID {
				t.Errorf("%+v, want %s", list, made.ID)
			}
			return
		}
		a.want(t, "not yet", 409, "idempotency_in_progress")
		if time.Now().After(deadline) {
			t.Fatal("in vain")
		}
	}
}
