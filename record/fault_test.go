package record_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/history/sqlite"
	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/record"
	"github.com/glassboxhq/glassbox/sandbox"
	"github.com/glassboxhq/glassbox/sandbox/native"
)

// lockable is a session on a history that another connection can lock.
func lockable(t *testing.T, opts *record.Options) (_ *record.Session, _ *sqlite.Store, lock func() (unlock func())) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "history", "history.sqlite3")
	store, err := sqlite.Open(file, &sqlite.Options{BusyTimeout: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	inner, err := native.New(&native.Options{Workdir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	s := record.New(inner, store, opts)
	t.Cleanup(func() {
		if err := errors.Join(s.Close(context.Background()), store.Close()); err != nil {
			t.Error(err)
		}
	})
	if _, err := s.Run(t.Context(), &sandbox.Command{Line: "true"}); err != nil { // makes the file
		t.Fatal(err)
	}
	return s, store, func() func() {
		db, err := sql.Open("sqlite", "file:"+file)
		if err != nil {
			t.Fatal(err)
		}
		db.SetMaxOpenConns(1)
		if _, err := db.ExecContext(t.Context(), "begin exclusive"); err != nil {
			t.Fatal(err)
		}
		return func() {
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestStrictStart(t *testing.T) {
	s, store, lock := lockable(t, nil)
	unlock := lock()
	for name, act := range map[string]func() error{
		"command": func() error {
			_, err := s.Run(t.Context(), &sandbox.Command{Line: "touch done"})
			return err
		},
		"write": func() error {
			_, err := s.Write(t.Context(), "done", strings.NewReader("x"), nil)
			return err
		},
		"remove": func() error { return s.Remove(t.Context(), "done", nil) },
		"read":   func() error { _, err := s.Read(t.Context(), "done", nil); return err },
		"list":   func() error { _, err := s.List(t.Context(), "."); return err },
	} {
		if err := act(); sandbox.CodeOf(err) != sandbox.CodeHistoryLocked {
			t.Errorf("%s: got %v, want that the history is locked", name, err)
		}
	}
	unlock()
	res, err := s.Run(t.Context(), &sandbox.Command{Line: "ls done"})
	if err != nil || res.ExitCode == 0 {
		t.Errorf("got %+v, %v, want that nothing was done", res, err)
	}
	if page, err := store.List(t.Context(), &history.Filter{}); err != nil || len(page.Operations) != 2 {
		t.Errorf("got %+v, %v, want two operations", page, err)
	}
}

func TestBestEffort(t *testing.T) {
	s, store, lock := lockable(t, &record.Options{BestEffort: true})
	unlock := lock()
	for range 3 {
		res, err := s.Run(t.Context(), &sandbox.Command{Line: "echo x"})
		if err != nil || string(res.Stdout) != "x\n" || res.Recording != sandbox.NotRecorded {
			t.Errorf("got %+v, %v, want it done and told that it is not recorded", res, err)
		}
	}
	unlock()
	if _, err := s.Run(t.Context(), &sandbox.Command{Line: "true"}); err != nil {
		t.Fatal(err)
	}
	gap := waitType(t, store, history.HistoryGap)
	if want := `"operations":3`; !strings.Contains(string(gap.Result), want) || !strings.Contains(string(gap.Result), "history_locked") {
		t.Errorf("gap is %s, want %s and the reason", gap.Result, want)
	}
}

// The history fails while a command runs: the command goes on, the client gets
// all, and the end is recorded as soon as that is possible.
func TestFaultInBetween(t *testing.T) {
	s, store, lock := lockable(t, nil)
	cmd := &sandbox.Command{ID: id.New(), Line: "echo first; sleep 0.4; echo second"}
	p, err := s.Start(t.Context(), cmd)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if c, err := p.Next(t.Context()); err != nil || string(c.Data) != "first\n" {
		t.Fatalf("got %q, %v, want the first line", c.Data, err)
	}
	unlock := lock()
	if c, err := p.Next(t.Context()); err != nil || string(c.Data) != "second\n" {
		t.Fatalf("got %q, %v, want the second line", c.Data, err)
	}
	res, err := p.Wait(t.Context())
	if err != nil || res.Status != sandbox.Succeeded || res.Recording != sandbox.RecordedPart {
		t.Errorf("got %+v, %v, want success, recorded in part", res, err)
	}
	unlock()
	op := waitEnd(t, store, cmd.ID)
	if op.Status != sandbox.Succeeded {
		t.Errorf("got %+v, want the end recorded afterwards", op)
	}
}

func waitType(t *testing.T, store history.Store, opType string) *history.Operation {
	t.Helper()
	query := &history.ChangeQuery{Wait: 10 * time.Second}
	for {
		feed, err := store.Changes(t.Context(), query)
		if err != nil {
			t.Fatal(err)
		}
		if len(feed.Changes) == 0 {
			t.Fatalf("no %s came in time", opType)
		}
		for _, c := range feed.Changes {
			op, err := store.Get(t.Context(), c.Operation)
			if err != nil {
				t.Fatal(err)
			}
			if op.Type == opType {
				return op
			}
		}
		query.After = feed.Next
	}
}
