package localruntime_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/history/sqlite"
	"github.com/glassboxhq/glassbox/internal/localruntime"
	"github.com/glassboxhq/glassbox/sandbox"
)

// TestEndIsRecorded ends sandboxes in which commands run: what is kept of them
// tells how they ended.
func TestEndIsRecorded(t *testing.T) {
	remove := func(ctx context.Context, rt *localruntime.Runtime, box string) error { return rt.Delete(ctx, box) }
	for _, tt := range []struct {
		name, line string
		end        func(ctx context.Context, rt *localruntime.Runtime, box string) error
	}{
		{"deleted", "touch /tmp/up; sleep 60", remove},
		{"deleted with a command that stays", "trap '' TERM; touch /tmp/up; while :; do sleep 1; done", remove},
		{"expired", "touch /tmp/up; sleep 60", func(ctx context.Context, rt *localruntime.Runtime, box string) error {
			_, err := rt.Renew(ctx, box, time.Now().Add(300*time.Millisecond))
			return err
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rt := startRuntime(t, options(t, t.TempDir()))
			info := create(t, rt, nil)
			start(t, rt, info.ID, tt.line)
			began := time.Now()
			if err := tt.end(t.Context(), rt, info.ID); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the sandbox is gone", func() bool {
				_, err := rt.Get(t.Context(), info.ID)
				return errors.Is(err, sandbox.ErrNotFound)
			})
			t.Logf("it took %v", time.Since(began))
			want := []sandbox.Status{sandbox.Cancelled}
			if got := statuses(t, rt, info.ID); !slices.Equal(got, want) {
				t.Errorf("the history tells %v, want %v", got, want)
			}
		})
	}
}

// start starts a command, and returns when it has made the file /tmp/up.
func start(t *testing.T, rt *localruntime.Runtime, box, line string) {
	t.Helper()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = try(context.WithoutCancel(t.Context()), rt, box, line) // it is cut off
	}()
	t.Cleanup(func() { <-ended })
	eventually(t, "the command runs", func() bool {
		out, err := try(t.Context(), rt, box, "test -e /tmp/up")
		return err == nil && out.code == 0
	})
}

// statuses returns how the commands of a sandbox that is gone have ended, but
// for those that did so well.
func statuses(t *testing.T, rt *localruntime.Runtime, box string) []sandbox.Status {
	t.Helper()
	histories, err := rt.Histories(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(histories, func(h *localruntime.History) bool { return h.ID == box })
	if i < 0 || histories[i].Live {
		t.Fatalf("%v", histories)
	}
	store, err := sqlite.Open(filepath.Join(histories[i].Dir, "history.sqlite3"), &sqlite.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	page, err := store.List(t.Context(), &history.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	var list []sandbox.Status
	for _, op := range page.Operations {
		failed := op.Command != nil && op.Status == sandbox.Unsuccessful // test, before there was a file
		if op.Type == history.CommandExecute && op.Status != sandbox.Succeeded && !failed {
			list = append(list, op.Status)
		}
	}
	return list
}

// TestDeleteIsQuick bounds the deletion of sandboxes in which nothing runs, or
// nothing answers.
func TestDeleteIsQuick(t *testing.T) {
	for _, tt := range []struct {
		name string
		hurt func(t *testing.T, rt *localruntime.Runtime, box string)
		most time.Duration
	}{
		{"idle", func(*testing.T, *localruntime.Runtime, string) {}, time.Second},
		{"paused", func(t *testing.T, rt *localruntime.Runtime, box string) {
			start(t, rt, box, "touch /tmp/up; sleep 60")
			if _, err := rt.Pause(t.Context(), box); err != nil {
				t.Fatal(err)
			}
		}, time.Second},
		{"stopped recorder", func(t *testing.T, rt *localruntime.Runtime, box string) {
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			_, _ = try(ctx, rt, box, "kill -STOP $PPID; sleep 60")
		}, 6 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rt := startRuntime(t, options(t, t.TempDir()))
			info := create(t, rt, nil)
			run(t, rt, info.ID, "true")
			tt.hurt(t, rt, info.ID)
			began := time.Now()
			if err := rt.Delete(t.Context(), info.ID); err != nil {
				t.Fatal(err)
			}
			took := time.Since(began)
			t.Logf("it took %v", took)
			if took > tt.most {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// TestOnlyTheHistoryIsKept leaves all kinds of things beside the history.
func TestOnlyTheHistoryIsKept(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte("whole"), 0o600); err != nil {
		t.Fatal(err)
	}
	rt := startRuntime(t, options(t, t.TempDir()))
	info := create(t, rt, nil)
	out := run(t, rt, info.ID, `cd /.agent-history && head -c 30M /dev/zero > junk && cp junk history.sqlite3-junk && mkdir -p a/b/c glassbox.sqlite3 &&
		cp junk a/b/c && ln -s `+outside+` history.sqlite3-journal && ln -s / root && mkfifo fifo && touch .hidden`)
	if out.code != 0 {
		t.Fatalf("%+v", out)
	}
	if err := rt.Delete(t.Context(), info.ID); err != nil {
		t.Fatal(err)
	}
	histories, err := rt.Histories(t.Context())
	if err != nil || len(histories) != 1 {
		t.Fatalf("%v %v", err, histories)
	}
	entries, err := os.ReadDir(histories[0].Dir)
	if err != nil || len(entries) == 0 {
		t.Fatalf("%v %v", err, entries)
	}
	for _, entry := range entries {
		if name := entry.Name(); !entry.Type().IsRegular() || !slices.Contains([]string{"history.sqlite3", "history.sqlite3-wal", "history.sqlite3-shm"}, name) {
			t.Errorf("it is kept: %v", entry)
		}
	}
	if text, err := os.ReadFile(outside); err != nil || string(text) != "whole" {
		t.Errorf("a link was followed: %v %q", err, text)
	}
	if got := statuses(t, rt, info.ID); len(got) > 0 {
		t.Errorf("the history tells %v", got)
	}
}

// TestRightsTakenAway ends a sandbox that has taken from its folders the rights
// that an ordinary user has to have to look into them.
func TestRightsTakenAway(t *testing.T) {
	opts := options(t, t.TempDir())
	opts.Retention = time.Nanosecond
	rt := startRuntime(t, opts)
	info := create(t, rt, nil)
	out := run(t, rt, info.ID, `cd /.agent-history && mkdir -p a/b/c d/e f && touch a/b/c/file d/file f/file &&
		chmod 0 a/b/c a/b a f/file && chmod 500 d/e d && chmod 4000 f && chmod 0 history.sqlite3* && chmod 0 .; echo done`)
	if out.stdout != "done\n" {
		t.Fatalf("%+v", out)
	}
	if out := run(t, rt, info.ID, "echo still recorded"); out.stdout != "still recorded\n" {
		t.Errorf("%+v", out)
	}
	if err := rt.Delete(t.Context(), info.ID); err != nil {
		t.Fatal(err)
	}
	if got := statuses(t, rt, info.ID); len(got) > 0 {
		t.Errorf("the history tells %v", got)
	}
	folder := filepath.Join(opts.StateDir, "sandboxes", info.ID)
	entries, err := os.ReadDir(filepath.Join(folder, "history"))
	if err != nil || len(entries) == 0 {
		t.Fatalf("%v %v", err, entries)
	}
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), "history.sqlite3") {
			t.Errorf("it is kept: %v", entry)
		}
	}
	if err := rt.Purge(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(folder); err == nil {
		t.Error("the history outlived its retention")
	}
}
