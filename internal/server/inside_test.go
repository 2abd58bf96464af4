package server_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/console/connection"
	"github.com/glassboxhq/glassbox/internal/console/door"
	"github.com/glassboxhq/glassbox/internal/recorder"
	"github.com/glassboxhq/glassbox/record"
	"github.com/glassboxhq/glassbox/sandbox"
	"github.com/glassboxhq/glassbox/sandbox/native"
	"github.com/glassboxhq/glassbox/sandbox/recorded"
)

const recorderToken = "a token for tests"

// Open implements connection.Opener: each sandbox has a real recorder, on this
// very machine.
func (r *runtime) Open(ctx context.Context, boxID string) (connection.Inside, error) {
	info, err := r.Get(ctx, boxID)
	if err != nil {
		return nil, err
	}
	if info.State != sandbox.Running {
		return nil, &sandbox.Error{Op: "open sandbox", Code: sandbox.CodeSandboxState, Sandbox: boxID, Message: "the sandbox is paused"}
	}
	url, err := r.recorder(boxID)
	if err != nil {
		return nil, err
	}
	return recorded.New(url, &recorded.Options{Token: recorderToken, Sandbox: boxID}), nil
}

// workdir is where the files of a sandbox are.
func (r *runtime) workdir(boxID string) string { return filepath.Join(r.dir, boxID, "work") }

// recorder starts the recorder of a sandbox, once.
func (r *runtime) recorder(boxID string) (url string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if url, ok := r.recorders[boxID]; ok {
		return url, nil
	}
	if err := os.MkdirAll(r.workdir(boxID), 0o755); err != nil {
		return "", err
	}
	inner, err := native.New(&native.Options{Workdir: r.workdir(boxID)})
	if err != nil {
		return "", err
	}
	store := r.store(boxID)
	session := record.New(inner, store, nil)
	front := httptest.NewServer(recorder.New(session, store, &recorder.Options{Token: recorderToken, SandboxID: boxID, Abandoned: r.abandoned}))
	r.t.Cleanup(func() {
		front.Close()
		if err := errors.Join(session.Close(context.Background()), store.Close()); err != nil {
			r.t.Error(err)
		}
	})
	if r.recorders == nil {
		r.recorders = map[string]string{}
	}
	r.recorders[boxID] = front.URL
	return front.URL, nil
}

// room is a sandbox with somebody who works in it.
type room struct {
	*client
	box, base, dir string
}

func (s *site) room() *room {
	s.t.Helper()
	info, err := s.rt.Create(s.t.Context(), &sandbox.Spec{Name: "box", Image: "host"})
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := s.rt.recorder(info.ID); err != nil {
		s.t.Fatal(err)
	}
	return &room{s.user("олена", door.Operator), info.ID, "/api/v1/connections/local/sandboxes/" + info.ID, s.rt.workdir(info.ID)}
}

// history returns the operations of a type, oldest first.
func (r *room) history(kind string) []*history.Operation {
	r.s.t.Helper()
	store := r.s.rt.store(r.box)
	defer store.Close()
	page, err := store.List(r.s.t.Context(), &history.Filter{Types: []string{kind}})
	if err != nil {
		r.s.t.Fatal(err)
	}
	return page.Operations
}

// file makes a file in the sandbox, past the recorder.
func (r *room) file(name, content string) {
	r.s.t.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, name), []byte(content), 0o644); err != nil {
		r.s.t.Fatal(err)
	}
}

func mustRead(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// eventually waits for what happens at another place.
func (r *room) eventually(what string, holds func() bool) {
	r.s.t.Helper()
	for until := time.Now().Add(30 * time.Second); !holds(); {
		if time.Now().After(until) {
			r.s.t.Fatal("not yet: " + what)
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-r.s.t.Context().Done():
			r.s.t.Fatal(r.s.t.Context().Err())
		}
	}
}

// Port implements connection.Porter: the sandboxes are this very machine.
func (r *runtime) Port(_ context.Context, _ string, port int) (*connection.Port, error) {
	return &connection.Port{URL: fmt.Sprint("http://127.0.0.1:", port), Transport: &http.Transport{DisableKeepAlives: true}}, nil
}
