package syncer_test

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/history/sqlite"
	"github.com/glassboxhq/glassbox/internal/db"
	"github.com/glassboxhq/glassbox/internal/db/dbtest"
	"github.com/glassboxhq/glassbox/internal/localruntime"
	"github.com/glassboxhq/glassbox/internal/syncer"
	"github.com/glassboxhq/glassbox/sandbox"
	"github.com/glassboxhq/glassbox/sandbox/recorded"
)

// localFleet is a local runtime.
type localFleet struct{ rt *localruntime.Runtime }

func (localFleet) Connections(context.Context) ([]syncer.Connection, error) {
	return []syncer.Connection{{ID: "local", Every: 500 * time.Millisecond}}, nil
}

func (f localFleet) List(ctx context.Context, _ string) (list []*syncer.Seen, err error) {
	infos, err := f.rt.List(ctx)
	for _, info := range infos {
		list = append(list, &syncer.Seen{Info: *info})
	}
	return list, err
}

func (f localFleet) Kept(ctx context.Context, _ string) (list []*syncer.Seen, err error) {
	refs, err := f.rt.Histories(ctx)
	for _, ref := range refs {
		if !ref.Deleted.IsZero() {
			list = append(list, &syncer.Seen{Info: sandbox.Info{ID: ref.ID, State: sandbox.Terminated, CreatedAt: ref.Created}, GoneAt: ref.Deleted})
		}
	}
	return list, err
}

func (f localFleet) Open(ctx context.Context, _, boxID string) (syncer.History, error) {
	refs, err := f.rt.Histories(ctx)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(refs, func(ref *localruntime.History) bool { return ref.ID == boxID })
	if at < 0 {
		return nil, &sandbox.Error{Op: "open history", Code: sandbox.CodeSandboxNotFound}
	}
	if !refs[at].Live {
		return f.dead(refs[at])
	}
	s, err := f.session(ctx, boxID)
	if err != nil {
		return nil, err
	}
	return &living{s.History(), s}, nil
}

func (localFleet) dead(ref *localruntime.History) (syncer.History, error) {
	store, err := sqlite.Open(filepath.Join(ref.Dir, "history.sqlite3"), &sqlite.Options{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	return dead{store}, nil
}

func (f localFleet) session(ctx context.Context, boxID string) (*recorded.Session, error) {
	access, err := f.rt.Access(ctx, boxID)
	if err != nil {
		return nil, err
	}
	return recorded.New("http://sandbox", &recorded.Options{Token: access.Token, Client: &http.Client{Transport: f.rt.Conn(boxID)}}), nil
}

// newRuntime runs a local runtime until the test ends.
func newRuntime(t *testing.T) *localruntime.Runtime {
	t.Helper()
	program := os.Getenv("GLASSBOX_RECORDER")
	if program == "" {
		t.Skip("needs GLASSBOX_RECORDER naming the recorder's binary")
	}
	rt, err := localruntime.New(&localruntime.Options{
		StateDir: t.TempDir(), Recorder: program, SelfArgs: []string{"local-launch"}, Here: true,
		Logger: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- rt.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return rt
}

// TestLocalRuntime follows a sandbox of the local runtime from its creation
// beyond its end.
func TestLocalRuntime(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := localFleet{newRuntime(t)}
		s, m := start(t, f, d, nil)
		info, err := f.rt.Create(t.Context(), &sandbox.Spec{Image: localruntime.ImageHere, Workdir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		eventually(t, "it is found", func() bool { _, err := m.Sandbox(t.Context(), "local", info.ID); return err == nil })
		t.Logf("found after %s", time.Since(began))
		session, err := f.session(t.Context(), info.ID)
		if err != nil {
			t.Fatal(err)
		}
		for range 5 {
			if _, err := session.Run(t.Context(), &sandbox.Command{Line: "echo here; touch file"}); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.CatchUp(t.Context(), "local", info.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := session.Start(t.Context(), &sandbox.Command{Line: "echo last; sleep 99"}); err != nil {
			t.Fatal(err)
		}
		if err := f.rt.Delete(t.Context(), info.ID); err != nil {
			t.Fatal(err)
		}
		eventually(t, "its history has ended", func() bool {
			list, err := m.Histories(t.Context(), "local", info.ID)
			if err != nil {
				t.Fatal(err)
			}
			return len(list) == 1 && !list[0].EndedAt.IsZero()
		})
		left, err := f.Open(t.Context(), "local", info.ID)
		if err != nil {
			t.Fatal(err)
		}
		defer left.Close()
		want, got := read(t, left), read(t, newest(t, m, "local", info.ID))
		if len(want.Operations) < 6 || len(got.Operations) != len(want.Operations) {
			t.Errorf("%d operations, want %d", len(got.Operations), len(want.Operations))
		}
		for i, op := range got.Operations {
			if op.ID != want.Operations[i].ID || got.Stdout[op.ID] != want.Stdout[op.ID] || !history.Final(op.Status) {
				t.Errorf("%+v, want %+v", op, want.Operations[i])
			}
		}
		box, err := m.Sandbox(t.Context(), "local", info.ID)
		if err != nil || box.GoneAt.IsZero() || box.State != sandbox.Terminated {
			t.Errorf("%+v, %v", box, err)
		}
	})
}
