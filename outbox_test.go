package glassbox_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/glassboxhq/glassbox"
	"github.com/glassboxhq/glassbox/sandbox"
)

// The outcome of a creation whose answer was lost is not known: it is not told
// as one that made nothing.
func TestLostCreation(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		answer http.HandlerFunc
		want   sandbox.Status
	}{
		{"lost", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, sandbox.Lost},
		{"refused", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "{}", http.StatusBadRequest) }, sandbox.Unsuccessful},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(tt.answer)
			defer server.Close()
			dir := t.TempDir()
			if _, err := glassbox.Create(t.Context(), server.URL, &glassbox.Options{StateDir: dir}); err == nil {
				t.Fatal("got a sandbox, want none")
			}
			pending, err := glassbox.ListPending(dir)
			if err != nil || len(pending) != 1 || pending[0].Operation.Status != tt.want {
				t.Errorf("got %+v, %v, want one creation that is %s", pending, err, tt.want)
			}
		})
	}
}

// One record that cannot be read keeps nobody from the others.
func TestDamagedRecord(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	dir := t.TempDir()
	if _, err := glassbox.Create(t.Context(), server.URL, &glassbox.Options{StateDir: dir}); err == nil {
		t.Fatal("got a sandbox, want none")
	}
	damaged := filepath.Join(dir, "outbox", "01939f3e-7c1e-7b1a-8f43-3b0d1a2c4d5e.json")
	if err := os.WriteFile(damaged, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	pending, err := glassbox.ListPending(dir)
	if len(pending) != 1 || !errors.Is(err, glassbox.ErrHistory) || !strings.Contains(err.Error(), damaged) {
		t.Errorf("got %+v, %v, want the one that is whole, and the name of the other", pending, err)
	}
}

// What is done with a sandbox from outside is recorded, also where nothing
// came of it and its history cannot be reached.
func TestChangesAreRecorded(t *testing.T) {
	t.Parallel()
	const box, taken = "0f6b2a34-7c1d-4f5e-9a55-3b2f6f1d2c11", "7c0e3a52-91c4-4f0a-8d1e-5a6b7c8d9e0f"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch path := strings.TrimPrefix(r.URL.Path, "/v1"); {
		case strings.HasSuffix(path, "/pause"):
			w.WriteHeader(http.StatusConflict)
			fmt.Fprint(w, `{"code":"DOCKER::SANDBOX_NOT_RUNNING","message":"it is paused"}`)
		case strings.HasSuffix(path, "/snapshots"):
			w.WriteHeader(http.StatusAccepted)
			fmt.Fprintf(w, `{"id":%q,"sandboxId":%q,"status":{"state":"Creating"}}`, taken, box)
		case path == "/snapshots/"+taken:
			fmt.Fprintf(w, `{"id":%q,"sandboxId":%q,"status":{"state":"Failed","message":"no space"}}`, taken, box)
		default:
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	opts := &glassbox.Options{StateDir: t.TempDir(), RequestTimeout: time.Second, Source: "console"}
	ctx := glassbox.WithActor(t.Context(), glassbox.Actor{ID: "agent-1"})
	if _, err := glassbox.Pause(ctx, server.URL, box, opts); !errors.Is(err, sandbox.ErrState) {
		t.Errorf("pause: %v", err)
	}
	if _, err := glassbox.TakeSnapshot(ctx, server.URL, box, "", opts); sandbox.CodeOf(err) != sandbox.CodeSnapshotState || !strings.Contains(err.Error(), "no space") {
		t.Errorf("snapshot: %v", err)
	}
	pending, err := glassbox.ListPending(opts.StateDir)
	if err != nil || len(pending) != 2 {
		t.Fatalf("got %+v, %v, want two operations", pending, err)
	}
	for i, want := range []string{"sandbox.pause", "sandbox.snapshot"} {
		op := pending[i].Operation
		if op.Type != want || op.Status != sandbox.Unsuccessful || op.Source != "console" || op.Actor.ID != "agent-1" || pending[i].Sandbox != box {
			t.Errorf("got %+v, want a failed %s", op, want)
		}
	}
}
