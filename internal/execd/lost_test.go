package execd_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/sandbox"
)

// lose starts what goes on for a minute, and drops the connection as soon as
// it has begun.
func (s *setup) lose(t *testing.T, path string) (opID string) {
	t.Helper()
	ctx, drop := context.WithCancel(t.Context())
	defer drop()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+path, strings.NewReader(`{"command":"sleep 60"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set(wire.HeaderExecdToken, token)
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var e event
	line, err := bufio.NewReader(resp.Body).ReadBytes('\n')
	if err != nil || json.Unmarshal(line, &e) != nil || e.Type != "init" {
		t.Fatalf("got %q, %v, want that it begins", line, err)
	}
	return resp.Header.Get(wire.HeaderID)
}

// wait waits until an operation has ended.
func (s *setup) wait(t *testing.T, opID string) *history.Operation {
	t.Helper()
	query := &history.ChangeQuery{Wait: 10 * time.Second}
	for {
		feed, err := s.store.Changes(t.Context(), query)
		if err != nil || len(feed.Changes) == 0 {
			t.Fatalf("operation %s did not end in time: %v", opID, err)
		}
		for _, c := range feed.Changes {
			if c.Operation == opID && c.Type == history.Completed {
				op, err := s.store.Get(t.Context(), opID)
				if err != nil {
					t.Fatal(err)
				}
				return op
			}
		}
		query.After = feed.Next
	}
}

// A command goes on for a while when its client is lost, so it can be asked
// for and interrupted.
func TestLostCommand(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	opID := s.lose(t, "/command")
	var st struct{ Running bool }
	s.must(t, "GET /command/status/"+opID, nil).json(t, &st)
	if !st.Running {
		t.Error("the command has ended with its client")
	}
	s.must(t, "DELETE /command?id="+opID, nil)
	if op := s.wait(t, opID); op.Status != sandbox.Cancelled {
		t.Errorf("got %s, want it cancelled", op.Status)
	}
}

// A run of a shell ends with its client, and lets the next one run.
func TestLostShell(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	name := s.shell(t, nil)
	opID := s.lose(t, "/session/"+name+"/run")
	if op := s.wait(t, opID); op.Status != sandbox.Cancelled || !strings.Contains(string(op.Result), "client was gone") {
		t.Errorf("got %s %s, want it stopped for want of a client", op.Status, op.Result)
	}
	if got := texts(s.must(t, "POST /session/"+name+"/run", fields{"command": "echo on"}).events(t), "stdout"); len(got) != 1 {
		t.Errorf("the next run printed %q", got)
	}
}
