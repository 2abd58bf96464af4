package history_test

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/sandbox"
)

var moments = []history.TerminalEvent{
	{At: 0, Size: &sandbox.TerminalSize{Columns: 80, Rows: 24}},
	{At: 1500 * time.Microsecond, Shown: 4},
	{At: time.Second, Typed: "ls <研>\r"},
	{At: time.Second, Shown: 2},
	{At: 2 * time.Second, Hidden: 3},
	{At: 3 * time.Second, Shown: 100},
}

func TestTerminalLines(t *testing.T) {
	lines := history.EncodeTerminal(moments)
	const want = `[0,"r","80x24"]
[1500,"o",4]
[1000000,"i","ls <研>\r"]
[1000000,"o",2]
[2000000,"h",3]
[3000000,"o",100]
`
	if diff := cmp.Diff(want, string(lines)); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	got, err := history.DecodeTerminal(lines)
	if diff := cmp.Diff(moments, got); err != nil || diff != "" {
		t.Errorf("%v, moments (-want +got):\n%s", err, diff)
	}
	for _, bad := range []string{`{}`, `[1]`, `[-1,"o",1]`, `["1","o",1]`, `[1,"o",-1]`, `[1,"o","x"]`, `[1,"r","0x0"]`, `[1,"r","80"]`, `[1,"i",3]`, `[1,"h",-2]`, `[1e99,"o",1]`, `[99999999999999999,"o",1]`} {
		if got, err := history.DecodeTerminal([]byte(bad)); err == nil {
			t.Errorf("%s: got %+v, want an error", bad, got)
		}
	}
}

func FuzzDecodeTerminal(f *testing.F) {
	f.Add(history.EncodeTerminal(moments))
	f.Fuzz(func(t *testing.T, lines []byte) {
		events, err := history.DecodeTerminal(lines)
		if err != nil {
			return
		}
		again, err := history.DecodeTerminal(history.EncodeTerminal(events))
		if err != nil || len(again) != len(events) {
			t.Errorf("%d moments became %d: %v", len(events), len(again), err)
		}
	})
}

// kept is a history of one terminal.
type kept struct {
	history.Reader
	output []byte
	events []history.TerminalEvent
}

func (k kept) Output(_ context.Context, _ string, _ sandbox.Stream, offset, length int64) ([]byte, error) {
	from := min(offset, int64(len(k.output)))
	return k.output[from:min(from+length, int64(len(k.output)))], nil
}

func (k kept) Terminal(context.Context, string) ([]history.TerminalEvent, error) {
	return k.events, nil
}

func TestWriteCast(t *testing.T) {
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	op := &history.Operation{
		ID: "op", Type: history.TerminalSession, StartedAt: began, CompletedAt: began.Add(4 * time.Second),
		Request: json.RawMessage(`{"terminal": {"columns": 100, "rows": 30}}`), Command: &history.Command{Line: "top"},
	}
	// The moments cut ✓ in two, and the recorder wrote none for the end.
	from := kept{output: []byte("abc\xe2\x9c\x93\xffxyz\xe2"), events: moments[:5]}
	var b strings.Builder
	if err := history.WriteCast(t.Context(), &b, from, op); err != nil {
		t.Fatal(err)
	}
	const want = `{"command":"top","height":30,"timestamp":1767323045,"version":2,"width":100}
[0,"r","80x24"]
[0.0015,"o","abc"]
[1,"i","ls <研>\r"]
[1,"o","✓"]
[2,"i","***"]
[4,"o","�xyz"]
[4,"o","�"]
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("cast (-want +got):\n%s", diff)
	}
	if err := history.WriteCast(t.Context(), &b, from, &history.Operation{ID: "x", Type: history.FileRead}); err == nil {
		t.Error("an act on a file became a cast")
	}
}

// Whatever is shown, and however it is cut, a cast is JSON in UTF-8 that goes
// forward in time.
func FuzzWriteCast(f *testing.F) {
	f.Add([]byte("a\xe2\x9c\x93\xff"), history.EncodeTerminal(moments))
	f.Fuzz(func(t *testing.T, output, lines []byte) {
		events, err := history.DecodeTerminal(lines)
		if err != nil {
			return
		}
		var b bytes.Buffer
		op := &history.Operation{Type: history.TerminalSession, StartedAt: time.Unix(0, 0)}
		if err := history.WriteCast(t.Context(), &b, kept{output: output, events: events}, op); err != nil {
			t.Fatal(err)
		}
		last := 0.0
		for i, line := range bytes.Split(bytes.TrimSpace(b.Bytes()), []byte("\n")) {
			var event []any
			if i == 0 {
				continue
			}
			if err := json.Unmarshal(line, &event); err != nil || len(event) != 3 {
				t.Fatalf("line %q: %v", line, err)
			}
			at, _ := event[0].(float64)
			if at < last {
				t.Errorf("goes back in time from %v to %v", last, at)
			}
			last = at
		}
	})
}
