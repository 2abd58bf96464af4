package record_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/record"
	"github.com/glassboxhq/glassbox/sandbox"
)

// A terminal is recorded with its moments; what it does not show of what is
// typed is not in the history.
func TestTerminalIsRecorded(t *testing.T) {
	s, store := newSession(t, &record.Options{Spool: t.TempDir()})
	p, err := s.Start(t.Context(), &sandbox.Command{
		Line:     `echo ready; read name; stty -echo; echo secret; read word; stty echo; echo "$name:${#word}"; stty size`,
		Terminal: &sandbox.TerminalSize{Columns: 90, Rows: 20}, StdinPipe: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	until := func(text string) {
		t.Helper()
		var seen []byte
		for !bytes.Contains(seen, []byte(text)) {
			c, err := p.Next(t.Context())
			if err != nil {
				t.Fatalf("wait for %q: %v after %q", text, err, seen)
			}
			seen = append(seen, c.Data...)
		}
	}
	until("ready")
	write(t, p, "研究员\n")
	until("secret")
	if err := p.(sandbox.Terminal).Resize(t.Context(), sandbox.TerminalSize{Columns: 91, Rows: 21}); err != nil {
		t.Fatal(err)
	}
	write(t, p, "hunter2\n")
	until("21 91")
	for err == nil {
		_, err = p.Next(t.Context())
	}
	if !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	op, err := store.Get(t.Context(), p.ID())
	if err != nil || op.Type != history.TerminalSession || op.Status != sandbox.Succeeded || op.Command == nil || op.Command.StdoutBytes == 0 {
		t.Fatalf("got %+v, %v", op, err)
	}
	events, err := store.Terminal(t.Context(), p.ID())
	if err != nil {
		t.Fatal(err)
	}
	var typed string
	var shown int64
	var hidden int
	var size *sandbox.TerminalSize
	for _, e := range events {
		if typed, shown, hidden = typed+e.Typed, shown+e.Shown, hidden+e.Hidden; e.Size != nil {
			size = e.Size
		}
		if e.At < 0 || e.At > time.Minute {
			t.Errorf("a moment at %v", e.At)
		}
	}
	if typed != "研究员\n" || hidden != len("hunter2\n") || shown != op.Command.StdoutBytes || size == nil || size.Columns != 91 {
		t.Errorf("got %q typed, %d hidden, %d of %d bytes shown, size %v", typed, hidden, shown, op.Command.StdoutBytes, size)
	}
	var cast strings.Builder
	if err := history.WriteCast(t.Context(), &cast, store, op); err != nil {
		t.Fatal(err)
	}
	if text := cast.String(); !strings.Contains(text, `"width":90`) || !strings.Contains(text, "研究员:7") || strings.Contains(text, "hunter2") {
		t.Errorf("cast:\n%s", text)
	}
}

func write(t *testing.T, p sandbox.Process, text string) {
	t.Helper()
	if _, err := io.WriteString(p.Stdin(), text); err != nil {
		t.Fatal(err)
	}
}

// A secret that is typed key by key is masked as one.
func TestTypedSecretIsMasked(t *testing.T) {
	s, store := newSession(t, &record.Options{Spool: t.TempDir()})
	p, err := s.Start(t.Context(), &sandbox.Command{
		Line: "read line; sleep 0.2; echo end", Terminal: &sandbox.TerminalSize{Columns: 200, Rows: 20}, StdinPipe: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	const line = "export T=ghp_" + "0123456789abcdefghijABCDEFGHIJ012345" + " x\n"
	for i := range line { // with what is shown in between
		write(t, p, line[i:i+1])
		if _, err := p.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for err == nil {
		_, err = p.Next(t.Context())
	}
	events, err := store.Terminal(t.Context(), p.ID())
	if err != nil {
		t.Fatal(err)
	}
	typed := ""
	for _, e := range events {
		typed += e.Typed
	}
	if strings.Contains(typed, "ghp_") || !strings.HasPrefix(typed, "export T=****") || !strings.HasSuffix(typed, "* x\n") {
		t.Errorf("got %q typed, want the token masked", typed)
	}
}
