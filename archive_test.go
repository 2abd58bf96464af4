package glassbox_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/glassboxhq/glassbox"
	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/history/sqlite"
	"github.com/glassboxhq/glassbox/sandbox"
)

// making makes a sandbox that the test closes.
type making func(t *testing.T, o *glassbox.Options) *glassbox.Sandbox

func TestArchive(t *testing.T) {
	needLocal(t)
	testArchive(t, serverURL, newBox, func(o *glassbox.Options) *glassbox.Options { return o })
}

func TestOpenSandboxArchive(t *testing.T) {
	t.Parallel()
	r := needOpenSandbox(t)
	testArchive(t, r.url, r.create, r.options)
}

// worked leaves a history with a bit of everything.
func worked(t *testing.T, box *glassbox.Sandbox) {
	t.Helper()
	if res, err := box.Run(t.Context(), `printf 'text\n'; printf '\377\000' >&2; exit 3`, nil); err != nil || res.ExitCode != 3 {
		t.Fatalf("got %+v, %v", res, err)
	}
	if _, err := box.Run(t.Context(), "seq 1 400000", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := box.Write(t.Context(), "f", bytes.NewReader([]byte("x")), nil); err != nil {
		t.Fatal(err)
	}
}

func testArchive(t *testing.T, url string, create making, with func(*glassbox.Options) *glassbox.Options) {
	t.Helper()
	t.Run("folder", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "archive")
		box := create(t, &glassbox.Options{ArchiveDir: dir})
		worked(t, box)
		if err := box.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(dir, box.ID()+".jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		var types []string
		for line := range bytes.Lines(text) {
			var op struct {
				Type         string `json:"type"`
				Sandbox      string `json:"sandbox_id"`
				Stdout       string `json:"stdout"`
				StderrBase64 []byte `json:"stderr_base64"`
			}
			if err := json.Unmarshal(line, &op); err != nil || op.Sandbox != box.ID() {
				t.Errorf("%.100s: %v", line, err)
			}
			switch types = append(types, op.Type); len(types) {
			case 2:
				if op.Stdout != "text\n" || string(op.StderrBase64) != "\xff\x00" {
					t.Errorf("got %q and %q", op.Stdout, op.StderrBase64)
				}
			case 3:
				if len(op.Stdout) != 2688895 {
					t.Errorf("got %d bytes of output", len(op.Stdout))
				}
			}
		}
		if fmt.Sprint(types) != "[sandbox.create command.execute command.execute file.write]" {
			t.Errorf("got %v", types)
		}
	})
	t.Run("store", func(t *testing.T) {
		store, err := sqlite.Open(filepath.Join(t.TempDir(), "history.sqlite3"), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		box := create(t, &glassbox.Options{Archive: store})
		worked(t, box)
		want := list(t, box, nil)
		if err := box.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		page, err := store.List(t.Context(), &history.Filter{})
		if err != nil || len(page.Operations) != len(want) {
			t.Fatalf("got %+v, %v, want %d operations", page, err, len(want))
		}
		for i, op := range page.Operations {
			if op.ID != want[i].ID || op.Status != want[i].Status || op.Type != want[i].Type || !op.StartedAt.Equal(want[i].StartedAt) || !op.CompletedAt.Equal(want[i].CompletedAt) {
				t.Errorf("got %+v, want %+v", op, want[i])
			}
		}
		stderr, err := store.Output(t.Context(), want[1].ID, sandbox.Stderr, 0, 10)
		if err != nil || string(stderr) != "\xff\x00" || *page.Operations[1].Command.ExitCode != 3 {
			t.Errorf("got %q, %v, and %+v", stderr, err, page.Operations[1].Command)
		}
		if page.Operations[2].Command.StdoutBytes != 2688895 {
			t.Errorf("got %+v", page.Operations[2].Command)
		}
	})
	t.Run("nowhere", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		box, err := glassbox.Create(t.Context(), url, with(&glassbox.Options{ArchiveDir: filepath.Join(file, "archive")}))
		if err != nil {
			t.Fatal(err)
		}
		if err := box.Close(t.Context()); !errors.Is(err, glassbox.ErrHistory) {
			t.Errorf("got %v, want that it could not be saved", err)
		}
		if err := glassbox.Delete(t.Context(), url, box.ID(), with(nil)); err != nil {
			t.Errorf("it was to be kept: %v", err)
		}
	})
	t.Run("readers", func(t *testing.T) {
		box := create(t, &glassbox.Options{ConsumerWait: time.Minute})
		if err := box.History().Acknowledge(t.Context(), "slow", 1); err != nil {
			t.Fatal(err)
		}
		feed, err := box.History().Changes(t.Context(), &history.ChangeQuery{})
		if err != nil {
			t.Fatal(err)
		}
		closed := make(chan error, 1)
		began := time.Now()
		go func() { closed <- box.Close(t.Context()) }()
		time.AfterFunc(300*time.Millisecond, func() { _ = box.History().Acknowledge(t.Context(), "slow", feed.Max) })
		if err := <-closed; err != nil || time.Since(began) < 300*time.Millisecond {
			t.Errorf("closed after %v: %v, want it to wait for the reader", time.Since(began), err)
		}
	})
	t.Run("a reader that is gone", func(t *testing.T) {
		box := create(t, &glassbox.Options{ConsumerWait: 300 * time.Millisecond})
		if err := box.History().Acknowledge(t.Context(), "gone", 1); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := box.Close(t.Context()); err != nil || time.Since(began) < 300*time.Millisecond || time.Since(began) > 20*time.Second {
			t.Errorf("closed after %v: %v", time.Since(began), err)
		}
	})
}
