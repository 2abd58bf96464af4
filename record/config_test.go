package record_test

import (
	"context"
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

// configured is a session whose history has a configuration and a small file.
func configured(t *testing.T, config *history.Config) (*record.Session, *sqlite.Store) {
	t.Helper()
	inner, err := native.New(&native.Options{Workdir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	store, err := sqlite.Open(filepath.Join(t.TempDir(), "history.sqlite3"), &sqlite.Options{Config: config, MaxDatabaseBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	s := record.New(inner, store, &record.Options{Config: store.Settings, BestEffort: config.Consistency == history.BestEffort})
	t.Cleanup(func() {
		if err := errors.Join(s.Close(context.Background()), store.Close()); err != nil {
			t.Error(err)
		}
	})
	return s, store
}

func fill(t *testing.T, s *record.Session) {
	t.Helper()
	if _, err := s.Run(t.Context(), &sandbox.Command{Line: "head -c 1200000 /dev/zero", MaxOutput: 10}); err != nil {
		t.Fatal(err)
	}
}

// Operations run in a history that is full, and a gap tells how many; it is
// there from the first on.
func TestStopRecording(t *testing.T) {
	s, store := configured(t, &history.Config{OverflowPolicy: history.StopRecording})
	fill(t, s)
	for range 3 {
		res, err := s.Run(t.Context(), &sandbox.Command{Line: "echo x"})
		if err != nil || string(res.Stdout) != "x\n" || res.Recording != sandbox.NotRecorded {
			t.Fatalf("got %+v, %v, want it done and told that it is not recorded", res, err)
		}
	}
	if gap := waitType(t, store, history.HistoryGap); gap.Status != sandbox.Started {
		t.Errorf("the gap is %+v, want it begun", gap)
	}
	if _, err := store.SetConfig(t.Context(), &history.ConfigChange{Changes: map[string]any{"overflow_policy": "delete_oldest"}}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []sandbox.Recording{sandbox.RecordedWhole, sandbox.RecordedWhole} {
		if res, err := s.Run(t.Context(), &sandbox.Command{Line: "true"}); err != nil || res.Recording != want {
			t.Errorf("got %+v, %v, want %s", res, err, want)
		}
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for late := time.Now().Add(10 * time.Second); ; <-tick.C {
		page, err := store.List(t.Context(), &history.Filter{Types: []string{history.HistoryGap}})
		if err != nil || time.Now().After(late) {
			t.Fatalf("got %+v, %v, want the gap to end", page, err)
		}
		if len(page.Operations) == 1 && page.Operations[0].Status == sandbox.Succeeded {
			if got := string(page.Operations[0].Result); !strings.Contains(got, `"operations":3`) || !strings.Contains(got, "stop_recording") {
				t.Errorf("the gap is %s, want three operations", got)
			}
			return
		}
	}
}

// An operation that has no room is refused before it acts, also where what
// cannot be recorded for other reasons would run.
func TestFailOperation(t *testing.T) {
	s, _ := configured(t, &history.Config{OverflowPolicy: history.FailOperation, Consistency: history.BestEffort})
	fill(t, s)
	for name, act := range map[string]func() error{
		"command": func() error { _, err := s.Run(t.Context(), &sandbox.Command{Line: "touch done"}); return err },
		"write":   func() error { _, err := s.Write(t.Context(), "done", strings.NewReader("x"), nil); return err },
	} {
		if err := act(); sandbox.CodeOf(err) != sandbox.CodeHistoryExhausted {
			t.Errorf("%s: got %v, want that the history is full", name, err)
		}
	}
}

// The configuration says which streams are kept, how much of them, and a
// change holds for the next command.
func TestCapture(t *testing.T) {
	s, store := configured(t, &history.Config{NoStderr: true})
	run := func() (*sandbox.Result, *history.Operation) {
		t.Helper()
		res, err := s.Run(t.Context(), &sandbox.Command{ID: id.New(), Line: "echo out; echo err >&2"})
		if err != nil || string(res.Stdout) != "out\n" || string(res.Stderr) != "err\n" {
			t.Fatalf("got %+v, %v, want both streams", res, err)
		}
		op, err := store.Get(t.Context(), res.OperationID)
		if err != nil {
			t.Fatal(err)
		}
		return res, op
	}
	if res, op := run(); op.Command.StdoutBytes != 4 || op.Command.StderrBytes != 0 || res.Recording != sandbox.RecordedTruncated {
		t.Errorf("got %+v, %s, want stdout kept", op.Command, res.Recording)
	}
	set := func(revision int64, changes map[string]any) {
		t.Helper()
		if _, err := store.SetConfig(t.Context(), &history.ConfigChange{Changes: changes, Expected: revision}); err != nil {
			t.Fatal(err)
		}
	}
	set(0, map[string]any{"capture_stdout": false})
	if res, op := run(); op.Command.StdoutBytes != 0 || op.Command.StderrBytes != 0 || res.Recording != sandbox.RecordedMetadata {
		t.Errorf("got %+v, %s, want nothing kept", op.Command, res.Recording)
	}
	set(1, map[string]any{"capture_stdout": true, "capture_stderr": true, "max_operation_output_bytes": 5})
	if res, op := run(); op.Command.StdoutBytes+op.Command.StderrBytes != 5 || res.Recording != sandbox.RecordedTruncated {
		t.Errorf("got %+v, %s, want five bytes kept", op.Command, res.Recording)
	}
}
