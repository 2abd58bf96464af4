package sqlite_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/history/sqlite"
	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/sandbox"
)

// TestOpenAtOnce lets processes make the same new file at the same moment:
// all succeed, and the history is made once.
func TestOpenAtOnce(t *testing.T) {
	const rounds, processes = 20, 6
	for range rounds {
		path := filepath.Join(t.TempDir(), "sub", "history.sqlite3")
		var group []*process
		for range processes {
			group = append(group, startChild(t, "open", path))
		}
		for _, p := range group {
			p.stdin.Close() // go
		}
		for _, p := range group {
			if err := p.cmd.Wait(); err != nil {
				t.Fatalf("child: %v", err)
			}
		}
		s := open(t, path, &sqlite.Options{SandboxID: "shared"})
		if n := count(t, s); n != processes {
			t.Fatalf("List gave %d operations, want %d", n, processes)
		}
		must(t, s.Check(t.Context()))
	}
}

// TestFeedAcrossProcesses waits for what another process writes.
func TestFeedAcrossProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.sqlite3")
	child := startChild(t, "open", path)
	s := open(t, path, nil)
	got := make(chan *history.Feed, 1)
	go func() {
		feed, _ := s.Changes(context.Background(), &history.ChangeQuery{Wait: 20 * time.Second})
		got <- feed
	}()
	child.end(t)
	ended := time.Now()
	feed := <-got
	if feed == nil || len(feed.Changes) != 1 {
		t.Fatalf("Changes gave %+v", feed)
	}
	if late := time.Since(ended); late > 3*time.Second {
		t.Errorf("the change was seen %s later", late)
	}
}

// TestLogStaysSmall records many small pieces of output while readers follow
// the feed, list and search without a pause: the log is still emptied.
func TestLogStaysSmall(t *testing.T) {
	total := 200_000
	if testing.Short() || raceEnabled {
		total = 20_000
	}
	path := filepath.Join(t.TempDir(), "history.sqlite3")
	s := open(t, path, &sqlite.Options{MaxDatabaseBytes: -1})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var readers, writers sync.WaitGroup
	follow := func(query func(after int64) (int64, error)) {
		readers.Go(func() {
			for after := int64(0); ctx.Err() == nil; {
				next, err := query(after)
				if err != nil && !errors.Is(err, sandbox.ErrCancelled) {
					t.Errorf("reader: %v", err)
					return
				}
				after = next
			}
		})
	}
	follow(func(after int64) (int64, error) {
		feed, err := s.Changes(ctx, &history.ChangeQuery{After: after, Limit: 1000, Wait: time.Second})
		if err != nil {
			return 0, err
		}
		return feed.Next, nil
	})
	follow(func(after int64) (int64, error) { // an export of the output
		page, err := s.List(ctx, &history.Filter{})
		if err != nil || len(page.Operations) == 0 {
			return 0, err
		}
		data, err := s.Output(ctx, page.Operations[0].ID, sandbox.Stdout, after, 1<<20)
		if len(data) == 0 { // it has caught up
			select {
			case <-ctx.Done():
			case <-time.After(10 * time.Millisecond):
			}
		}
		return after + int64(len(data)), err
	})

	const callers, piece = 32, "ten bytes\n"
	for range callers {
		writers.Go(func() {
			op := benchOperation()
			if err := s.Begin(ctx, op); err != nil {
				t.Error(err)
			}
			for n := range total / callers {
				chunk := sandbox.Chunk{Stream: sandbox.Stdout, Offset: int64(n * len(piece)), Time: time.Now(), Data: []byte(piece)}
				if err := s.Append(ctx, op.ID, []sandbox.Chunk{chunk}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { writers.Wait(); close(done) }()
	var largest int64
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for running := true; running; {
		select {
		case <-done:
			running = false
		case <-tick.C:
		}
		if info, err := os.Stat(path + "-wal"); err == nil {
			largest = max(largest, info.Size())
		}
	}
	cancel()
	readers.Wait()
	t.Logf("the log had at most %.1f MiB", float64(largest)/(1<<20))
	if largest > 64<<20 {
		t.Errorf("the log grew to %d bytes, want at most 64 MiB", largest)
	}
}

// TestBatchFault puts records that must fail between others of one commit.
func TestBatchFault(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "history.sqlite3"), nil)
	known, gone := mustBegin(t, s), mustBegin(t, s)
	// The writer still knows this operation, and SQLite will refuse its rows.
	execOne(t, s.Path(), `delete from history_events where event_id = ?`, gone.ID)
	var group sync.WaitGroup
	for n := range 64 {
		group.Go(func() {
			switch n % 4 {
			case 0:
				again := benchOperation()
				again.ID = known.ID
				if err := s.Begin(t.Context(), again); !errors.Is(err, sandbox.ErrExists) {
					t.Errorf("Begin of a known id gave %v", err)
				}
			case 1:
				chunk := sandbox.Chunk{Stream: sandbox.Stdout, Offset: 1000, Data: []byte("x")}
				if err := s.Append(t.Context(), known.ID, []sandbox.Chunk{chunk}); !errors.Is(err, sandbox.ErrInvalid) {
					t.Errorf("Append with a gap gave %v", err)
				}
			case 2:
				if err := s.Append(t.Context(), gone.ID, benchChunk(0)); !errors.Is(err, sandbox.ErrNotFound) {
					t.Errorf("Append to what another process deleted gave %v", err)
				}
			default:
				if err := s.Begin(t.Context(), benchOperation()); err != nil {
					t.Errorf("Begin: %v", err)
				}
			}
		})
	}
	group.Wait()
	if n := count(t, s); n != 17 {
		t.Errorf("List gave %d operations, want 17", n)
	}
	mustFinish(t, s, known.ID)
}

// TestAppendAgain repeats an Append whose answer was lost.
func TestAppendAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.sqlite3")
	s, err := sqlite.Open(path, nil)
	must(t, err)
	op := mustBegin(t, s)
	data := bytes.Repeat([]byte("0123456789"), 5000)
	send := func(s *sqlite.Store, from, to int) {
		t.Helper()
		must(t, s.Append(t.Context(), op.ID, []sandbox.Chunk{{Stream: sandbox.Stdout, Offset: int64(from), Data: data[from:to]}}))
	}
	send(s, 0, 20_000)
	send(s, 0, 20_000)
	send(s, 10_000, 30_000)
	must(t, s.Close())
	s = open(t, path, nil) // knows nothing of the operation but what the file says
	send(s, 0, 30_000)
	send(s, 25_000, len(data))
	must(t, s.Finish(t.Context(), op.ID, &history.End{
		Status: sandbox.Succeeded, Chunks: []sandbox.Chunk{{Stream: sandbox.Stdout, Data: data}},
	}))
	got, err := s.Output(t.Context(), op.ID, sandbox.Stdout, 0, 1<<20)
	if err != nil || !bytes.Equal(got, data) {
		t.Errorf("Output gave %d bytes and %v, want %d", len(got), err, len(data))
	}
	var rows, largest int
	scanOne(t, path, `select count(*), max(original_size) from command_output_chunks`, &rows, &largest)
	if rows != 6 || largest != 16<<10 {
		t.Errorf("the output is in %d rows of at most %d bytes, want 6 of 16384", rows, largest)
	}
}

// TestGap loses output in between: what is kept of a stream stays its
// beginning, and the end is recorded all the same.
func TestGap(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "history.sqlite3"), nil)
	op := mustBegin(t, s)
	must(t, s.Append(t.Context(), op.ID, []sandbox.Chunk{{Stream: sandbox.Stdout, Data: []byte("first")}}))
	late := []sandbox.Chunk{
		{Stream: sandbox.Stdout, Offset: 9, Data: []byte("third")},
		{Stream: sandbox.Stderr, Data: []byte("whole")},
	}
	if err := s.Append(t.Context(), op.ID, late); !errors.Is(err, sandbox.ErrInvalid) {
		t.Errorf("Append with a gap gave %v", err)
	}
	must(t, s.Finish(t.Context(), op.ID, &history.End{
		Status: sandbox.Succeeded, Chunks: late, OutputComplete: true, Recording: sandbox.RecordedWhole,
	}))
	got, err := s.Get(t.Context(), op.ID)
	must(t, err)
	if got.Status != sandbox.Succeeded || got.Command.OutputComplete || got.Command.Recording != sandbox.RecordedPart ||
		got.Command.StdoutBytes != 5 || got.Command.StderrBytes != 5 {
		t.Errorf("Get gave %s, command %+v", got.Status, got.Command)
	}
}

// TestRecover ends what a dead recorder left running, and only that.
func TestRecover(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.sqlite3")
	s, err := sqlite.Open(path, nil)
	must(t, err)
	ended, running, foreign := mustBegin(t, s), mustBegin(t, s), benchOperation()
	mustFinish(t, s, ended.ID)
	foreign.Request = history.Encode(map[string]any{"command": "true"})
	must(t, s.Begin(t.Context(), foreign))
	must(t, s.Append(t.Context(), running.ID, benchChunk(0)))
	must(t, s.Close())

	s = open(t, path, nil)
	ids, err := s.Recover(t.Context(), "the recorder was killed")
	if err != nil || len(ids) != 1 || ids[0] != running.ID {
		t.Fatalf("Recover gave %v, %v, want %s", ids, err, running.ID)
	}
	op, err := s.Get(t.Context(), running.ID)
	must(t, err)
	if op.Status != sandbox.Lost || string(op.Result) != `{"reason":"the recorder was killed"}` || op.CompletedAt.IsZero() ||
		op.Command.OutputComplete || op.Command.Recording != sandbox.RecordedPart || op.Command.StdoutBytes != int64(len(benchText)) {
		t.Errorf("recovered is %+v, command %+v", op, op.Command)
	}
	if ids, err := s.Recover(t.Context(), "again"); err != nil || len(ids) != 0 {
		t.Errorf("a second Recover gave %v, %v", ids, err)
	}
	if op, err := s.Get(t.Context(), foreign.ID); err != nil || op.Status != sandbox.Started {
		t.Errorf("the foreign operation is %+v, %v", op, err)
	}
}

// TestInvalidText keeps bytes that are no text out of text columns, which
// other programs could not read.
func TestInvalidText(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.sqlite3")
	s := open(t, path, nil)
	op := benchOperation()
	op.Command.Line, op.Command.Dir = "echo \xff", "/\xe4"
	op.Command.Env = map[string]string{"A\xff": "secret"}
	must(t, s.Begin(t.Context(), op))
	got, err := s.Get(t.Context(), op.ID)
	must(t, err)
	if got.Command.Line != "echo \uFFFD" || got.Command.Dir != "/\uFFFD" || got.Command.Env["A\uFFFD"] != "***" {
		t.Errorf("Get gave %+v", got.Command)
	}
	bad := benchOperation()
	bad.Request = []byte(`{"cut`)
	if err := s.Begin(t.Context(), bad); !errors.Is(err, sandbox.ErrInvalid) {
		t.Errorf("Begin with a request that is no JSON gave %v", err)
	}
	if err := s.Begin(t.Context(), &history.Operation{ID: id.New()}); !errors.Is(err, sandbox.ErrInvalid) {
		t.Errorf("Begin without a type gave %v", err)
	}
}
