package record_test

import (
	"testing"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/history/sqlite"
	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/record"
	"github.com/glassboxhq/glassbox/sandbox"
	"github.com/glassboxhq/glassbox/sandbox/native"
)

// What is done with a sandbox from outside is told by who does it and by who
// sees it, and is one operation.
func TestSeenFromOutside(t *testing.T) {
	for _, tt := range []struct {
		name string
		kind string
		told sandbox.Status // before it was seen; empty: after it
		seen sandbox.Status
		late time.Duration // since it was announced
		want []sandbox.Status
	}{
		{"while it is announced", history.SandboxResume, "", sandbox.Succeeded, 0, []sandbox.Status{sandbox.Succeeded}},
		{"otherwise than it is told then", history.SandboxResume, "", sandbox.Unsuccessful, 0, []sandbox.Status{sandbox.Unsuccessful}},
		{"after it was told", history.SandboxPause, sandbox.Succeeded, sandbox.Succeeded, 0, []sandbox.Status{sandbox.Succeeded}},
		{"otherwise than it was told", history.SandboxPause, sandbox.Unsuccessful, sandbox.Succeeded, 0, []sandbox.Status{sandbox.Unsuccessful, sandbox.Succeeded}},
		{"long after", history.SandboxPause, sandbox.Succeeded, sandbox.Succeeded, time.Hour, []sandbox.Status{sandbox.Succeeded, sandbox.Succeeded}},
		{"a creation, before it is told", history.SandboxCreate, "", sandbox.Succeeded, -time.Second, []sandbox.Status{sandbox.Succeeded}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inner, err := native.New(&native.Options{Workdir: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			store, err := sqlite.Open(t.TempDir()+"/history.sqlite3", nil)
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			s := record.New(inner, store, nil)
			defer s.Close(t.Context())
			began := time.Now().Add(-2 * time.Second)
			told := &history.Operation{ID: id.New(), Type: tt.kind, StartedAt: began, Source: history.SourceSDK, Actor: history.Actor{Type: history.Agent, ID: "a"}}
			seen := &history.Operation{ID: id.New(), Type: tt.kind, Status: tt.seen, Source: history.SourceLifecycle, StartedAt: began.Add(time.Second), CompletedAt: began.Add(2 * time.Second)}
			end := &history.End{Status: sandbox.Succeeded}
			if tt.told != "" {
				end.Status = tt.told
			}
			announce := func() error { return s.Announce(t.Context(), told, "") }
			conclude := func() error { return s.Conclude(t.Context(), told.ID, end) }
			look := func() error {
				seen.StartedAt = time.Now().Add(tt.late)
				seen.CompletedAt = seen.StartedAt.Add(time.Millisecond)
				return s.Import(t.Context(), seen)
			}
			order := []func() error{announce, look, look, conclude}
			switch {
			case tt.kind == history.SandboxCreate:
				order = []func() error{look, announce, conclude}
			case tt.told != "":
				order = []func() error{announce, conclude, look, look}
			}
			for _, step := range order {
				if err := step(); err != nil {
					t.Fatal(err)
				}
			}
			page, err := store.List(t.Context(), &history.Filter{})
			if err != nil || len(page.Operations) != len(tt.want) {
				t.Fatalf("got %d operations, %v, want %d", len(page.Operations), err, len(tt.want))
			}
			for i, want := range tt.want {
				if got := page.Operations[i].Status; got != want {
					t.Errorf("operation %d is %s, want %s", i, got, want)
				}
			}
		})
	}
}
