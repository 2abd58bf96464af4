package record_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/history/sqlite"
	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/record"
	"github.com/glassboxhq/glassbox/sandbox"
	"github.com/glassboxhq/glassbox/sandbox/native"
)

// As soon as the history tells an exit code, it has the whole output.
func TestFB009CodeAndOutput(t *testing.T) {
	s, store := newSession(t, nil)
	rounds := 50
	if testing.Short() {
		rounds = 5
	}
	const size = 1_288_895 // of seq 1 200000
	for range rounds {
		p, err := s.Start(t.Context(), &sandbox.Command{ID: id.New(), Line: "seq 1 200000; exit 3", Detached: true})
		if err != nil {
			t.Fatal(err)
		}
		p.Close()
		for late := time.Now().Add(10 * time.Second); ; {
			op, err := store.Get(t.Context(), p.ID())
			if err != nil || time.Now().After(late) {
				t.Fatalf("got %+v, %v, want its end", op, err)
			}
			if op.Command.ExitCode == nil {
				continue
			}
			if *op.Command.ExitCode != 3 || op.Command.StdoutBytes != size || !op.Command.OutputComplete {
				t.Fatalf("got code %d with %d bytes, complete %v, want 3 with %d", *op.Command.ExitCode, op.Command.StdoutBytes, op.Command.OutputComplete, size)
			}
			break
		}
	}
}

// The values of an environment reach the command, and no file of the history.
func TestFB107EnvIsMasked(t *testing.T) {
	const secret = "s3cr3t-abc123"
	dir := t.TempDir()
	inner, err := native.New(&native.Options{Workdir: t.TempDir(), Env: map[string]string{"PATH": os.Getenv("PATH"), "OF_THE_SANDBOX": secret}})
	if err != nil {
		t.Fatal(err)
	}
	store, err := sqlite.Open(filepath.Join(dir, "history.sqlite3"), nil)
	if err != nil {
		t.Fatal(err)
	}
	s := record.New(inner, store, &record.Options{Spool: dir})
	ctx := context.WithoutCancel(t.Context())
	env := map[string]string{"API_TOKEN": secret}
	for _, line := range []string{"test $API_TOKEN = s3cr3t-abc1$((20+3)) && test $OF_THE_SANDBOX = $API_TOKEN", "exit 1", "no-such-program"} {
		if _, err := s.Run(ctx, &sandbox.Command{Line: line, Env: env}); err != nil {
			t.Fatal(err)
		}
	}
	if res, err := s.Run(ctx, &sandbox.Command{Line: "test -n \"$API_TOKEN\"", Env: env}); err != nil || res.ExitCode != 0 {
		t.Errorf("got %+v, %v, want the command to have the value", res, err)
	}
	if _, err := s.Run(ctx, &sandbox.Command{Line: "cat", Env: env, Dir: "/nowhere"}); err == nil {
		t.Error("a directory that is not there: got no error")
	}
	page, err := store.List(ctx, &history.Filter{})
	if err != nil || page.Operations[0].Status != sandbox.Succeeded || page.Operations[0].Command.Env["API_TOKEN"] != "***" {
		t.Errorf("got %+v, %v, want the name, masked", page, err)
	}
	look := func(when string) {
		for _, name := range []string{"history.sqlite3", "history.sqlite3-wal"} {
			text, err := os.ReadFile(filepath.Join(dir, name))
			if err == nil && bytes.Contains(text, []byte(secret)) {
				t.Errorf("%s: %s holds the value", when, name)
			}
		}
	}
	look("while open")
	if err := errors.Join(s.Close(ctx), store.Close()); err != nil {
		t.Fatal(err)
	}
	look("after the end")
}
