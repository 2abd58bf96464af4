package historytest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/sandbox"
)

func testEmpty(t *testing.T, open opener) {
	s := open(t)
	ids, more := list(t, s, &history.Filter{})
	if len(ids) > 0 || more {
		t.Errorf("List of an empty store gave %v, more %v", ids, more)
	}
	want := &history.Feed{Changes: []*history.Change{}}
	if diff := cmp.Diff(want, changes(t, s, 0, 0)); diff != "" {
		t.Errorf("Changes of an empty store (-want +got):\n%s", diff)
	}
}

func testRoundTrip(t *testing.T, open opener) {
	s := open(t)
	ran := command("make 测试")
	ran.Actor.ID, ran.Actor.Type = "研究员", history.User
	ran.Actor.TraceParent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	ran.Source = history.SourceMCP
	ran.Command.Env = map[string]string{"API_KEY": "***", "空": "***"}
	ran.Command.TimeoutMS = 2500
	wrote := file(history.FileWrite, "/workspace/笔记.md")
	wrote.File.BeforeHash = "aa"
	made := command("")
	made.Type, made.Command, made.Request = history.SandboxCreate, nil, nil
	wrote.StartedAt, made.StartedAt = ran.StartedAt, ran.StartedAt
	begin(t, s, ran, wrote, made)
	if got := get(t, s, ran.ID); got.Status != sandbox.Started || got.Command == nil || got.Command.ExitCode != nil {
		t.Errorf("a running operation reads as %+v, command %+v", got, got.Command)
	}

	code, small, large := 3, int64(5), int64(0)
	ended := ran.StartedAt.Add(1500 * time.Millisecond)
	result := history.Encode(map[string]any{"stdout_bytes": 3})
	ends := map[string]*history.End{
		ran.ID: {
			Status: sandbox.Unsuccessful, At: ended, Result: result, ExitCode: &code,
			Chunks: []sandbox.Chunk{stdout(0, "out"), stderr(0, "errs")}, Recording: sandbox.RecordedTruncated,
		},
		wrote.ID: {
			Status: sandbox.Succeeded, At: ended, OutputComplete: true, Recording: sandbox.RecordedWhole,
			File: &history.File{AfterHash: "bb", BeforeSize: &small, AfterSize: &large, Diff: "-a\n+乙\n", DiffTruncated: true},
		},
		made.ID: {Status: sandbox.Succeeded, At: ended, OutputComplete: true, Recording: sandbox.RecordedWhole},
	}
	for id, end := range ends {
		if err := s.Finish(t.Context(), id, end); err != nil {
			t.Fatalf("Finish: %v", err)
		}
	}

	for _, op := range []*history.Operation{ran, wrote, made} {
		op.Status, op.CompletedAt = ends[op.ID].Status, ended
		op.DurationMS, op.Duration = 1500, 1500*time.Millisecond
	}
	ran.Result = result
	ran.Command.ExitCode, ran.Command.Recording = &code, sandbox.RecordedTruncated
	ran.Command.StdoutBytes, ran.Command.StderrBytes = 3, 4
	wrote.File.Change, wrote.File.AfterHash, wrote.File.Diff, wrote.File.DiffTruncated = "write", "bb", "-a\n+乙\n", true
	wrote.File.BeforeSize, wrote.File.AfterSize = &small, &large
	made.Foreign = true // its request has no marker
	for _, want := range []*history.Operation{ran, wrote, made} {
		if diff := cmp.Diff(want, get(t, s, want.ID)); diff != "" {
			t.Errorf("Get(%s) (-want +got):\n%s", want.Type, diff)
		}
	}
}

func testBegin(t *testing.T, open opener) {
	s := open(t)
	op := command("first")
	begin(t, s, op)
	again := command("second")
	again.ID = op.ID
	wantKind(t, "Begin with a known id", s.Begin(t.Context(), again), sandbox.ErrExists)
	finish(t, s, op.ID, sandbox.Succeeded)
	wantKind(t, "Begin with the id of an ended operation", s.Begin(t.Context(), again), sandbox.ErrExists)
	if got := get(t, s, op.ID); got.Command.Line != "first" || got.Status != sandbox.Succeeded {
		t.Errorf("a second Begin changed the operation to %+v", got)
	}
	if n := len(changes(t, s, 0, 0).Changes); n != 2 {
		t.Errorf("the feed has %d changes, want 2", n)
	}
}

func testAppend(t *testing.T, open opener) {
	s := open(t)
	op := command("loop")
	begin(t, s, op)
	want := ""
	for i := range 100 {
		line := fmt.Sprintf("line %d\n", i)
		appendOutput(t, s, op.ID, stdout(int64(len(want)), line))
		want += line
	}
	wantOutput(t, s, op.ID, sandbox.Stdout, []byte(want))
	wantOutput(t, s, op.ID, sandbox.Stderr, nil)
	if got := get(t, s, op.ID).Command; got.StdoutBytes != int64(len(want)) || got.StderrBytes != 0 {
		t.Errorf("kept are %d and %d bytes, want %d and 0", got.StdoutBytes, got.StderrBytes, len(want))
	}
	finish(t, s, op.ID, sandbox.Succeeded)
	err := s.Append(t.Context(), op.ID, []sandbox.Chunk{stdout(int64(len(want)), "late")})
	if err == nil {
		t.Error("Append to an ended operation gave no error")
	}
	wantOutput(t, s, op.ID, sandbox.Stdout, []byte(want))
}

func testFinish(t *testing.T, open opener) {
	s := open(t)
	for _, status := range []sandbox.Status{
		sandbox.Succeeded, sandbox.Unsuccessful, sandbox.Cancelled, sandbox.TimedOut, sandbox.Lost,
	} {
		op := command(string(status))
		begin(t, s, op)
		finish(t, s, op.ID, status)
		finish(t, s, op.ID, status) // the same end again
		other := sandbox.Succeeded
		if status == other {
			other = sandbox.Unsuccessful
		}
		wantKind(t, "Finish with another status", s.Finish(t.Context(), op.ID, &history.End{Status: other}), sandbox.ErrConflict)
		got := get(t, s, op.ID)
		if got.Status != status || got.CompletedAt.IsZero() || got.CompletedAt.Before(got.StartedAt) || got.Duration < 0 {
			t.Errorf("after Finish(%s): status %s, from %s to %s", status, got.Status, got.StartedAt, got.CompletedAt)
		}
	}
	running := command("still running")
	begin(t, s, running)
	err := s.Finish(t.Context(), running.ID, &history.End{Status: sandbox.Started})
	wantKind(t, "Finish as started", err, sandbox.ErrInvalid)
	if n := len(changes(t, s, 0, 0).Changes); n != 11 {
		t.Errorf("the feed has %d changes, want 11", n)
	}
}

func testImport(t *testing.T, open opener) {
	s := open(t)
	op := command("")
	op.Type, op.Command, op.Status = history.SandboxCreate, nil, sandbox.Unsuccessful
	op.CompletedAt = op.StartedAt.Add(time.Second)
	op.Result = history.Encode(map[string]any{"error": "no such image"})
	for range 2 {
		if err := s.Import(t.Context(), op); err != nil {
			t.Fatalf("Import: %v", err)
		}
	}
	got := get(t, s, op.ID)
	if got.Status != sandbox.Unsuccessful || got.DurationMS != 1000 || string(got.Result) != string(op.Result) {
		t.Errorf("imported reads as %+v", got)
	}
	if ids, _ := list(t, s, &history.Filter{}); len(ids) != 1 {
		t.Errorf("two imports gave %d operations, want 1", len(ids))
	}
	var kinds []string
	for _, change := range changes(t, s, 0, 0).Changes {
		kinds = append(kinds, change.Type)
	}
	if diff := cmp.Diff([]string{history.Created, history.Completed}, kinds); diff != "" {
		t.Errorf("changes of an import (-want +got):\n%s", diff)
	}

	running := command("runs here")
	begin(t, s, running)
	known := command("")
	known.ID, known.Status = running.ID, sandbox.Lost
	if err := s.Import(t.Context(), known); err != nil {
		t.Errorf("Import of a known id: %v", err)
	}
	if got := get(t, s, running.ID); got.Status != sandbox.Started || got.Command.Line != "runs here" {
		t.Errorf("Import of a known id changed it to %+v", got)
	}
}

func testUnknownID(t *testing.T, open opener) {
	s := open(t)
	for _, state := range []string{"an empty store", "a store with others"} {
		unknown := command("").ID
		_, err := s.Get(t.Context(), unknown)
		wantKind(t, "Get in "+state, err, sandbox.ErrNotFound)
		_, err = s.Output(t.Context(), unknown, sandbox.Stdout, 0, 10)
		wantKind(t, "Output in "+state, err, sandbox.ErrNotFound)
		err = s.Append(t.Context(), unknown, []sandbox.Chunk{stdout(0, "x")})
		wantKind(t, "Append in "+state, err, sandbox.ErrNotFound)
		err = s.Finish(t.Context(), unknown, &history.End{Status: sandbox.Succeeded})
		wantKind(t, "Finish in "+state, err, sandbox.ErrNotFound)
		begin(t, s, command("other"))
	}
}

// testConcurrent works on many operations at once: each must read as if it
// had been alone.
func testConcurrent(t *testing.T, open opener) {
	s := open(t)
	const workers, each, pieces = 32, 8, 5
	var group sync.WaitGroup
	for worker := range workers {
		group.Go(func() {
			for n := range each {
				if err := record(t.Context(), s, fmt.Sprintf("worker %d op %d", worker, n), pieces); err != nil {
					t.Errorf("worker %d: %v", worker, err)
					return
				}
				if _, err := s.List(t.Context(), &history.Filter{Newest: true, Limit: 5}); err != nil {
					t.Errorf("worker %d: List: %v", worker, err)
				}
			}
		})
	}
	group.Wait()
	page, err := s.List(t.Context(), &history.Filter{Limit: 1000})
	if err != nil || len(page.Operations) != workers*each {
		t.Fatalf("List gave %d operations and %v, want %d", len(page.Operations), err, workers*each)
	}
	for i, op := range page.Operations {
		if i > 0 && op.Seq <= page.Operations[i-1].Seq {
			t.Fatalf("seq %d follows %d", op.Seq, page.Operations[i-1].Seq)
		}
		var want []byte
		for n := range pieces {
			want = fmt.Appendf(want, "%s: %d\n", op.Command.Line, n)
		}
		wantOutput(t, s, op.ID, sandbox.Stdout, want)
	}
}

func record(ctx context.Context, s history.Store, line string, pieces int) error {
	op := command(line)
	if err := s.Begin(ctx, op); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	offset := int64(0)
	for n := range pieces {
		chunk := stdout(offset, fmt.Sprintf("%s: %d\n", line, n))
		offset += int64(len(chunk.Data))
		if err := s.Append(ctx, op.ID, []sandbox.Chunk{chunk}); err != nil {
			return fmt.Errorf("append: %w", err)
		}
	}
	if err := s.Finish(ctx, op.ID, &history.End{Status: sandbox.Succeeded, OutputComplete: true}); err != nil {
		return fmt.Errorf("finish: %w", err)
	}
	return nil
}

func testCancelledCaller(t *testing.T, open opener) {
	s := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wantKind(t, "Begin of a caller that is gone", s.Begin(ctx, command("x")), sandbox.ErrCancelled)
	_, err := s.List(ctx, &history.Filter{})
	wantKind(t, "List of a caller that is gone", err, sandbox.ErrCancelled)
	begin(t, s, command("y")) // the store goes on
}
