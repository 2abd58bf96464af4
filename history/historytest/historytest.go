// Package historytest is the conformance suite of histories: what the port
// [history.Store] promises, every store passes.
//
//	func TestStore(t *testing.T) {
//		historytest.TestStore(t, func(t *testing.T) history.Store { return newStore(t) })
//	}
package historytest

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/sandbox"
)

// opener returns a new empty store, which ends with the test.
type opener func(t *testing.T) history.Store

// TestStore runs the suite. open returns a new empty store and closes it at
// the end of the test.
func TestStore(t *testing.T, open func(t *testing.T) history.Store) {
	for _, tt := range []struct {
		name string
		run  func(*testing.T, opener)
	}{
		{"Empty", testEmpty},
		{"RoundTrip", testRoundTrip},
		{"Begin", testBegin},
		{"Append", testAppend},
		{"Finish", testFinish},
		{"Import", testImport},
		{"UnknownID", testUnknownID},
		{"Order", testOrder},
		{"Output", testOutput},
		{"OutputRange", testOutputRange},
		{"Filter", testFilter},
		{"Paging", testPaging},
		{"Text", testText},
		{"Feed", testFeed},
		{"FeedReset", testFeedReset},
		{"FeedWait", testFeedWait},
		{"Terminal", testTerminal},
		{"Changes", testChanges},
		{"Concurrent", testConcurrent},
		{"CancelledCaller", testCancelledCaller},
	} {
		t.Run(tt.name, func(t *testing.T) { tt.run(t, open) })
	}
}

// start is when the operations of the suite begin: now, so that no retention
// has expired them.
func start() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

// command returns an operation that is not recorded yet.
func command(line string) *history.Operation {
	return &history.Operation{
		ID: id.New(), Type: history.CommandExecute, Status: sandbox.Started, Source: history.SourceSDK,
		Actor:     history.Actor{Type: history.Agent, ID: "coder", Thread: "thread-1", Run: "run-1", Correlation: "c-1"},
		StartedAt: start(),
		Request:   history.EncodeRequest(map[string]any{"command": line}),
		Command:   &history.Command{Line: line, Dir: "/workspace"},
	}
}

// file returns an operation on a file that is not recorded yet.
func file(kind, path string) *history.Operation {
	op := command("")
	op.Type, op.Command = kind, nil
	op.Request = history.EncodeRequest(map[string]any{"path": path})
	op.File = &history.File{Path: path}
	return op
}

func begin(t *testing.T, s history.Store, ops ...*history.Operation) {
	t.Helper()
	for _, op := range ops {
		if err := s.Begin(t.Context(), op); err != nil {
			t.Fatalf("Begin: %v", err)
		}
		if op.Seq <= 0 {
			t.Fatalf("Begin set Seq to %d, want more than 0", op.Seq)
		}
	}
}

func appendOutput(t *testing.T, s history.Store, id string, chunks ...sandbox.Chunk) {
	t.Helper()
	if err := s.Append(t.Context(), id, chunks); err != nil {
		t.Fatalf("Append: %v", err)
	}
}

// finish ends an operation in the simplest way.
func finish(t *testing.T, s history.Store, id string, status sandbox.Status) {
	t.Helper()
	end := &history.End{Status: status, OutputComplete: true, Recording: sandbox.RecordedWhole}
	if err := s.Finish(t.Context(), id, end); err != nil {
		t.Fatalf("Finish: %v", err)
	}
}

func get(t *testing.T, s history.Store, id string) *history.Operation {
	t.Helper()
	op, err := s.Get(t.Context(), id)
	if err != nil {
		t.Fatalf("Get: %v", err)
	}
	return op
}

// list returns the ids of one page.
func list(t *testing.T, s history.Store, filter *history.Filter) (ids []string, more bool) {
	t.Helper()
	page, err := s.List(t.Context(), filter)
	if err != nil {
		t.Fatalf("List: %v", err)
	}
	for _, op := range page.Operations {
		ids = append(ids, op.ID)
	}
	return ids, page.More
}

// changes reads the feed without waiting.
func changes(t *testing.T, s history.Store, after int64, limit int) *history.Feed {
	t.Helper()
	feed, err := s.Changes(t.Context(), &history.ChangeQuery{After: after, Limit: limit})
	if err != nil {
		t.Fatalf("Changes: %v", err)
	}
	return feed
}

// stdout and stderr make a chunk that was read now.
func stdout(offset int64, data string) sandbox.Chunk {
	return sandbox.Chunk{Stream: sandbox.Stdout, Offset: offset, Time: start(), Data: []byte(data)}
}

func stderr(offset int64, data string) sandbox.Chunk {
	return sandbox.Chunk{Stream: sandbox.Stderr, Offset: offset, Time: start(), Data: []byte(data)}
}

// wantOutput reads a whole stream in steps and compares it.
func wantOutput(t *testing.T, s history.Store, id string, stream sandbox.Stream, want []byte) {
	t.Helper()
	var got []byte
	for {
		data, err := s.Output(t.Context(), id, stream, int64(len(got)), 100_000)
		if err != nil {
			t.Fatalf("Output(%s, %d): %v", stream, len(got), err)
		}
		if len(data) == 0 {
			break
		}
		got = append(got, data...)
	}
	if !bytes.Equal(got, want) {
		t.Fatalf("Output(%s) gave %d bytes %.60q, want %d bytes %.60q", stream, len(got), got, len(want), want)
	}
}

func wantKind(t *testing.T, what string, err, kind error) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("%s: error is %v, want one of the kind %q", what, err, kind)
	}
}
