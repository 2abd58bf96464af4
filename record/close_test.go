package record_test

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/glassboxhq/glassbox/history/sqlite"
	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/record"
	"github.com/glassboxhq/glassbox/sandbox"
	"github.com/glassboxhq/glassbox/sandbox/native"
)

// Close stops what runs, and every end is in the history when it returns.
func TestCloseWithRunningCommands(t *testing.T) {
	s, store := newSession(t, nil)
	ids := map[string]sandbox.Status{}
	for line, want := range map[string]sandbox.Status{
		"echo up; sleep 60":                       sandbox.Cancelled,
		"echo up; trap 'exit 0' TERM; sleep 60":   sandbox.Cancelled,
		"echo up; (sleep 60; echo never) & wait":  sandbox.Cancelled,
		"echo up; head -c 9000000 /dev/zero; cat": sandbox.Cancelled, // its client does not read
	} {
		p, err := s.Start(t.Context(), &sandbox.Command{ID: id.New(), Line: line, Detached: true, StdinPipe: true, Grace: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
		ids[p.ID()] = want
	}
	began := time.Now()
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("took %v", took)
	}
	for opID, want := range ids {
		op, err := store.Get(t.Context(), opID)
		if err != nil || op.Status != want || op.Command.StdoutBytes < 3 {
			t.Errorf("got %+v, %v, want %s with what was printed", op, err, want)
		}
	}
	if n := s.Running(); n != 0 {
		t.Errorf("%d commands run", n)
	}
}

// Close waits for an act on a file that is under way, and refuses new ones.
func TestCloseWithWrite(t *testing.T) {
	s, store := newSession(t, nil)
	content, feed := io.Pipe()
	opID, written := id.New(), make(chan error, 1)
	go func() {
		_, err := s.Write(context.WithoutCancel(t.Context()), "f", content, &sandbox.WriteOptions{ID: opID})
		written <- err
	}()
	if _, err := io.WriteString(feed, "half"); err != nil { // it is under way now
		t.Fatal(err)
	}
	closed := make(chan error, 1)
	go func() { closed <- s.Close(context.WithoutCancel(t.Context())) }()
	refused(t, s)
	select {
	case err := <-closed:
		t.Errorf("closed in the middle of a write: %v", err)
	default:
	}
	if _, err := io.WriteString(feed, " and half"); err != nil {
		t.Fatal(err)
	}
	feed.Close()
	if err := errors.Join(<-written, <-closed); err != nil {
		t.Error(err)
	}
	op, err := store.Get(t.Context(), opID)
	if err != nil || op.Status != sandbox.Succeeded || *op.File.AfterSize != 13 {
		t.Errorf("got %+v, %v, want the write recorded", op, err)
	}
	refused(t, s)
}

// refused waits until a session that is being closed refuses everything.
func refused(t *testing.T, s *record.Session) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := s.List(t.Context(), "."); errors.Is(err, sandbox.ErrState) {
			break
		}
		<-tick.C
	}
	for name, act := range map[string]func() error{
		"command": func() error { _, err := s.Run(t.Context(), &sandbox.Command{Line: "touch no"}); return err },
		"read":    func() error { _, err := s.Read(t.Context(), "f", nil); return err },
		"write":   func() error { _, err := s.Write(t.Context(), "no", strings.NewReader(""), nil); return err },
		"remove":  func() error { return s.Remove(t.Context(), "f", nil) },
	} {
		if err := act(); !errors.Is(err, sandbox.ErrState) {
			t.Errorf("%s: got %v, want it refused", name, err)
		}
	}
}

// What could not be recorded when it happened is recorded at the latest when
// the session closes.
func TestClosePaysDebts(t *testing.T) {
	s, store, lock := lockable(t, nil)
	cmd := &sandbox.Command{ID: id.New(), Line: "echo first; read x; echo second; exit 4", StdinPipe: true}
	p, err := s.Start(t.Context(), cmd)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if _, err := p.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	unlock := lock()
	p.Stdin().Close()
	if res, err := p.Wait(t.Context()); err != nil || res.Recording != sandbox.RecordedPart {
		t.Fatalf("got %+v, %v, want it recorded in part", res, err)
	}
	unlock()
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	op, err := store.Get(t.Context(), cmd.ID)
	if err != nil || op.Status != sandbox.Unsuccessful || *op.Command.ExitCode != 4 {
		t.Errorf("got %+v, %v, want its end", op, err)
	}
}

// What a history of the Python SDK gets wrong, and ours must not.
func TestBaselineFaults(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "not", "made", "yet")
	inner, err := native.New(&native.Options{Workdir: dir})
	if err != nil {
		t.Fatal(err)
	}
	store, err := sqlite.Open(filepath.Join(t.TempDir(), "history.sqlite3"), nil)
	if err != nil {
		t.Fatal(err)
	}
	s := record.New(inner, store, nil)
	t.Cleanup(func() {
		if err := errors.Join(s.Close(context.Background()), store.Close()); err != nil {
			t.Error(err)
		}
	})
	for _, tt := range []struct {
		name, line     string
		stdout, stderr string
		status         sandbox.Status
	}{
		{"line breaks", `printf 'a\nb\n'`, "a\nb\n", "", sandbox.Succeeded},
		{"blank lines", `printf 'a\n\n\nb\n'`, "a\n\n\nb\n", "", sandbox.Succeeded},
		{"CRLF and CR", `printf 'a\r\nb\rc'`, "a\r\nb\rc", "", sandbox.Succeeded},
		{"invalid bytes", `printf '\377\376\300\200x'`, "\xff\xfe\xc0\x80x", "", sandbox.Succeeded},
		{"no last newline", `printf 'a\nb'; printf e >&2`, "a\nb", "e", sandbox.Succeeded},
		{"a code is a failure", `echo no >&2; exit 7`, "", "no\n", sandbox.Unsuccessful},
		{"a signal is a failure", `kill -SEGV $$`, "", "", sandbox.Unsuccessful},
		{"a timeout is one", `printf before; sleep 9`, "before", "", sandbox.TimedOut},
		{"the directory is made", `pwd`, dir + "\n", "", sandbox.Succeeded},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cmd := &sandbox.Command{ID: id.New(), Line: tt.line}
			if tt.status == sandbox.TimedOut {
				cmd.Timeout = 200 * time.Millisecond
			}
			res, err := s.Run(t.Context(), cmd)
			if err != nil || res.Status != tt.status || string(res.Stdout) != tt.stdout || string(res.Stderr) != tt.stderr {
				t.Errorf("result: got %+v, %v", res, err)
			}
			op, err := store.Get(t.Context(), cmd.ID)
			if err != nil || op.Status != tt.status || op.Command.Recording != sandbox.RecordedWhole || op.Command.Dir != dir || !op.Command.OutputComplete {
				t.Errorf("history: got %+v %+v, %v", op, op.Command, err)
			}
			for stream, want := range map[sandbox.Stream]string{sandbox.Stdout: tt.stdout, sandbox.Stderr: tt.stderr} {
				if got, err := store.Output(t.Context(), cmd.ID, stream, 0, 1000); err != nil || string(got) != want {
					t.Errorf("history: got %s %q, %v, want %q", stream, got, err, want)
				}
			}
		})
	}
}

// A stop in the middle of much output is told as one, in the history too.
func TestCancelMuchOutput(t *testing.T) {
	s, store := newSession(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cmd := &sandbox.Command{ID: id.New(), Line: "head -c 100000000 /dev/zero | tr '\\0' z; sleep 60"}
	var n int64
	cmd.Stdout = writerFunc(func(p []byte) (int, error) {
		if n += int64(len(p)); n > 30_000_000 {
			cancel()
		}
		return len(p), nil
	})
	res, err := s.Run(ctx, cmd)
	if !errors.Is(err, sandbox.ErrCancelled) || res.Status != sandbox.Cancelled || res.StdoutBytes < n {
		t.Errorf("got %v, %s with %d bytes, want it cancelled with all %d", err, res.Status, res.StdoutBytes, n)
	}
	op, err := store.Get(t.Context(), cmd.ID)
	if err != nil || op.Status != sandbox.Cancelled || op.Command.StdoutBytes != 16<<20 || op.Command.Recording != sandbox.RecordedTruncated {
		t.Errorf("got %+v %+v, %v, want it cancelled, with the cap kept", op, op.Command, err)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
