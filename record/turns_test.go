package record_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/record"
	"github.com/glassboxhq/glassbox/sandbox"
)

// one lets one act of each kind work at once.
func one(wait time.Duration) *sandbox.Concurrency {
	return &sandbox.Concurrency{Commands: 1, Reads: 1, Writes: 1, Uploads: 1, QueueTimeout: wait, UploadQueueTimeout: wait}
}

// running starts a command that ends with its input.
func running(t *testing.T, s *record.Session) sandbox.Process {
	t.Helper()
	p, err := s.Start(t.Context(), &sandbox.Command{Line: "cat", StdinPipe: true})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestCommandWaitsForItsTurn(t *testing.T) {
	s, _ := newSession(t, &record.Options{Spool: t.TempDir(), Concurrency: one(time.Minute)})
	first := running(t, s)
	for _, free := range []*sandbox.Command{
		{Line: "true", Detached: true}, {Line: "true", Terminal: &sandbox.TerminalSize{Columns: 80, Rows: 24}},
	} {
		p, err := s.Start(t.Context(), free)
		if err != nil {
			t.Fatalf("%+v has to wait: %v", free, err)
		}
		defer p.Close()
	}
	ended := make(chan error, 1)
	go func() {
		_, err := s.Run(t.Context(), &sandbox.Command{Line: "true"})
		ended <- err
	}()
	select {
	case err := <-ended:
		t.Fatalf("two worked at once: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	first.Stdin().Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestNoTurnInTime(t *testing.T) {
	s, store := newSession(t, &record.Options{Spool: t.TempDir(), Concurrency: one(50 * time.Millisecond)})
	first := running(t, s)
	defer func() { first.Stdin().Close() }()
	cmd := &sandbox.Command{ID: id.New(), Line: "touch never"}
	_, err := s.Run(t.Context(), cmd)
	if e, ok := errors.AsType[*sandbox.Error](err); !ok || e.Code != sandbox.CodeCommandQueue || !errors.Is(err, sandbox.ErrTimeout) {
		t.Errorf("got %v, want that no turn came", err)
	}
	op, err := store.Get(t.Context(), cmd.ID)
	if err != nil || op.Status != sandbox.TimedOut || !strings.Contains(string(op.Result), string(sandbox.CodeCommandQueue)) {
		t.Errorf("got %+v, %v, want it recorded", op, err)
	}
	content, more := io.Pipe()
	written := make(chan error, 1)
	go func() { _, err := s.Write(t.Context(), "slow", content, nil); written <- err }()
	if _, err := more.Write([]byte("x")); err != nil { // it is at work
		t.Fatal(err)
	}
	writeID := id.New()
	_, err = s.Write(t.Context(), "slow", strings.NewReader("y"), &sandbox.WriteOptions{ID: writeID})
	if sandbox.CodeOf(err) != sandbox.CodeLock {
		t.Errorf("the same file: got %v, want that no turn came", err)
	}
	if op, err := store.Get(t.Context(), writeID); err != nil || op.Status != sandbox.TimedOut || op.Type != history.FileWrite {
		t.Errorf("got %+v, %v, want it recorded", op, err)
	}
	more.Close()
	if err := <-written; err != nil {
		t.Error(err)
	}
}

func TestFilesWaitForTheirTurn(t *testing.T) {
	limits := one(time.Minute)
	limits.Writes = 2
	s, _ := newSession(t, &record.Options{Spool: t.TempDir(), Concurrency: limits})
	content, more := io.Pipe()
	first := make(chan error, 1)
	go func() { _, err := s.Write(t.Context(), "d/same", content, nil); first <- err }()
	if _, err := io.WriteString(more, "first"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Write(t.Context(), "d/other", strings.NewReader("x"), nil); err != nil {
		t.Errorf("another file: %v", err)
	}
	order := make(chan string, 2)
	go func() {
		_, err := s.Write(t.Context(), "d/same", strings.NewReader("second"), nil)
		if err != nil {
			t.Error(err)
		}
		order <- "write"
	}()
	go func() {
		if err := s.Remove(t.Context(), "d", &sandbox.RemoveOptions{Recursive: true}); err != nil && !errors.Is(err, sandbox.ErrNotFound) {
			t.Error(err)
		}
		order <- "remove"
	}()
	select {
	case who := <-order:
		t.Errorf("the %s did not wait", who)
	case <-time.After(100 * time.Millisecond):
	}
	more.Close()
	if err := <-first; err != nil {
		t.Error(err)
	}
	<-order
	<-order
}

// Whoever reads keeps its place until it has read, and the file free.
func TestReaderKeepsItsPlace(t *testing.T) {
	s, _ := newSession(t, &record.Options{Spool: t.TempDir(), Concurrency: one(50 * time.Millisecond)})
	if _, err := s.Write(t.Context(), "f", strings.NewReader("x"), nil); err != nil {
		t.Fatal(err)
	}
	f, err := s.Read(t.Context(), "f", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Write(t.Context(), "f", strings.NewReader("y"), nil); err != nil {
		t.Errorf("a write while it is read: %v", err)
	}
	if _, err := s.Read(t.Context(), "f", nil); sandbox.CodeOf(err) != sandbox.CodeLock {
		t.Errorf("a second reader: got %v, want it to wait", err)
	}
	if got, err := io.ReadAll(f); err != nil || string(got) != "x" {
		t.Errorf("got %q, %v", got, err)
	}
	f.Close()
	if g, err := s.Read(t.Context(), "f", nil); err != nil {
		t.Error(err)
	} else {
		g.Close()
	}
}

// Close does not wait for the turns of others.
func TestCloseEndsWaiting(t *testing.T) {
	s, store := newSession(t, &record.Options{Spool: t.TempDir(), Concurrency: one(time.Hour)})
	running(t, s)
	cmd := &sandbox.Command{ID: id.New(), Line: "true"}
	ended := make(chan error, 1)
	go func() { _, err := s.Run(t.Context(), cmd); ended <- err }()
	select {
	case err := <-ended:
		t.Fatalf("it did not wait: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-ended; !errors.Is(err, sandbox.ErrState) {
		t.Errorf("got %v, want that the session is closed", err)
	}
	if op, err := store.Get(t.Context(), cmd.ID); !errors.Is(err, sandbox.ErrNotFound) {
		t.Errorf("got %+v, %v: it has done nothing", op, err)
	}
}

func TestConcurrency(t *testing.T) {
	for _, tt := range []struct {
		limits sandbox.Concurrency
		field  string
	}{
		{sandbox.Concurrency{Commands: -1}, "max_parallel_commands"},
		{sandbox.Concurrency{Commands: 257}, "max_parallel_commands"},
		{sandbox.Concurrency{Reads: 1025}, "max_parallel_file_reads"},
		{sandbox.Concurrency{Writes: 257}, "max_parallel_file_writes"},
		{sandbox.Concurrency{Uploads: 65}, "max_parallel_uploads"},
		{sandbox.Concurrency{QueueTimeout: -1}, "queue_timeout"},
		{sandbox.Concurrency{UploadQueueTimeout: 2 * time.Hour}, "upload_queue_timeout"},
		{sandbox.Concurrency{Commands: 256, Reads: 1024, Writes: 256, Uploads: 64, QueueTimeout: time.Hour}, ""},
	} {
		field := ""
		if e, ok := errors.AsType[*sandbox.Error](tt.limits.Validate()); ok {
			field = e.Field
		}
		if field != tt.field {
			t.Errorf("%+v: got %q refused, want %q", tt.limits, field, tt.field)
		}
	}
	if got := (*sandbox.Concurrency)(nil).Filled(); got.Commands != 4 || got.Reads != 32 || got.Writes != 8 || got.Uploads != 1 || got.QueueTimeout != time.Minute || got.UploadQueueTimeout != 5*time.Minute {
		t.Errorf("defaults: %+v", got)
	}
}
