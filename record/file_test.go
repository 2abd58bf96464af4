package record_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/sandbox"
)

func readFile(t *testing.T, s sandbox.Session, name string) string {
	t.Helper()
	f, err := s.Read(t.Context(), name, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The same id twice is one act, and answers the same; another act under it is
// refused.
func TestSameIDOfFiles(t *testing.T) {
	s, store := newSession(t, nil)
	ctx := history.WithActor(t.Context(), history.Actor{ID: "a", TraceParent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"})
	write, remove, missing := id.New(), id.New(), id.New()
	first, err := s.Write(ctx, "f", strings.NewReader("one"), &sandbox.WriteOptions{ID: write, Mode: 0o600})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Write(ctx, "f", strings.NewReader("two"), nil); err != nil {
		t.Fatal(err)
	}
	again, err := s.Write(ctx, "f", strings.NewReader("one"), &sandbox.WriteOptions{ID: write, Mode: 0o600})
	if err != nil || again.SHA256 != first.SHA256 || again.Size != 3 || again.Path != first.Path || again.Mode != first.Mode {
		t.Errorf("got %+v, %v, want %+v", again, err, first)
	}
	if got := readFile(t, s, "f"); got != "two" {
		t.Errorf("the file is %q: the first write was done again", got)
	}
	for name, act := range map[string]func() error{
		"another path": func() error {
			_, err := s.Write(ctx, "g", strings.NewReader("one"), &sandbox.WriteOptions{ID: write})
			return err
		},
		"a removal": func() error { return s.Remove(ctx, "f", &sandbox.RemoveOptions{ID: write}) },
		"a command": func() error {
			_, err := s.Run(ctx, &sandbox.Command{ID: write, Line: "rm f"})
			return err
		},
		"a read": func() error { _, err := s.Read(ctx, "f", &sandbox.ReadOptions{ID: write}); return err },
	} {
		if err := act(); !errors.Is(err, sandbox.ErrConflict) {
			t.Errorf("%s under the id of a write: got %v, want a conflict", name, err)
		}
	}
	for range 2 {
		if err := s.Remove(ctx, "f", &sandbox.RemoveOptions{ID: remove}); err != nil {
			t.Errorf("remove: %v", err)
		}
		if err := s.Remove(ctx, "nothing", &sandbox.RemoveOptions{ID: missing}); !errors.Is(err, sandbox.ErrNotFound) {
			t.Errorf("remove nothing: got %v, want not found", err)
		}
	}
	cmd := &sandbox.Command{ID: id.New(), Line: "echo x >> ran; cat ran"}
	for range 2 {
		if res, err := s.Run(ctx, cmd); err != nil || string(res.Stdout) != "x\n" {
			t.Errorf("a command with a trace: got %+v, %v, want one run", res, err)
		}
	}
	page, err := store.List(ctx, &history.Filter{Types: []string{history.FileWrite, history.FileDelete, history.CommandExecute}})
	if err != nil || len(page.Operations) != 5 {
		t.Errorf("got %d operations, %v, want one for each id", len(page.Operations), err)
	}
}

// A second request under an id whose act is under way is told so, as something
// to try again.
func TestSameIDUnderWay(t *testing.T) {
	s, _ := newSession(t, nil)
	opts := &sandbox.WriteOptions{ID: id.New()}
	content, feed := io.Pipe()
	done := make(chan error, 1)
	go func() {
		_, err := s.Write(t.Context(), "f", content, opts)
		done <- err
	}()
	if _, err := io.WriteString(feed, "one"); err != nil {
		t.Fatal(err)
	}
	_, err := s.Write(t.Context(), "f", strings.NewReader("one"), opts)
	if e, ok := errors.AsType[*sandbox.Error](err); !ok || !e.Retryable {
		t.Errorf("got %v, want that it is under way", err)
	}
	feed.Close()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if info, err := s.Write(t.Context(), "f", strings.NewReader("one"), opts); err != nil || info.Size != 3 {
		t.Errorf("got %+v, %v, want the result", info, err)
	}
}

// A write whose content is cut is an act that its caller broke off: nothing
// has changed, and the history says why.
func TestCutContent(t *testing.T) {
	s, store := newSession(t, nil)
	if _, err := s.Write(t.Context(), "f", strings.NewReader("old"), nil); err != nil {
		t.Fatal(err)
	}
	opts := &sandbox.WriteOptions{ID: id.New()}
	broken := errors.New("unexpected EOF")
	_, err := s.Write(t.Context(), "f", io.MultiReader(strings.NewReader("half"), iotest.ErrReader(broken)), opts)
	if !errors.Is(err, broken) || !errors.Is(err, sandbox.ErrCancelled) {
		t.Errorf("got %v, want it broken off", err)
	}
	if got := readFile(t, s, "f"); got != "old" {
		t.Errorf("the file is %q", got)
	}
	op, err := store.Get(t.Context(), opts.ID)
	if err != nil || op.Status != sandbox.Cancelled || !strings.Contains(string(op.Result), "read to its end") {
		t.Errorf("got %+v %s, %v, want it cancelled", op, op.Result, err)
	}
	if _, err := s.Write(t.Context(), "f", strings.NewReader("new"), opts); !errors.Is(err, sandbox.ErrCancelled) {
		t.Errorf("under the id again: got %v, want what became of it", err)
	}
}

// Sixteen writers of one file: it is one of the versions, and the history
// tells each of them.
func TestWritersAtOnce(t *testing.T) {
	s, store := newSession(t, nil)
	var group sync.WaitGroup
	version := func(i int) string { return strings.Repeat(fmt.Sprintf("%02d", i), 5000) }
	for i := range 16 {
		group.Go(func() {
			if _, err := s.Write(t.Context(), "f", strings.NewReader(version(i)), nil); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	got := readFile(t, s, "f")
	sum := sha256.Sum256([]byte(got))
	page, err := store.List(t.Context(), &history.Filter{Types: []string{history.FileWrite}})
	if err != nil || len(page.Operations) != 16 {
		t.Fatalf("got %d operations, %v, want 16", len(page.Operations), err)
	}
	found := false
	for _, op := range page.Operations {
		found = found || op.File.AfterHash == hex.EncodeToString(sum[:])
		if op.Status != sandbox.Succeeded || *op.File.AfterSize != 10_000 {
			t.Errorf("got %+v", op.File)
		}
	}
	if !found || !bytes.Equal([]byte(got), []byte(strings.Repeat(got[:2], 5000))) {
		t.Errorf("got %.20q…, want one of the versions", got)
	}
}
