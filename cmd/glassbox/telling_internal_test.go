package main

import (
	"bytes"
	"crypto/sha256"
	"testing"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/sandbox"
)

func TestWarning(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, opType, result, want string }{
		{"gap", history.HistoryGap, `{"operations":3,"reason":"disk full"}`, "3 operations missing here: disk full"},
		{"gap of one", history.HistoryGap, `{"operations":1}`, "1 operation missing here"},
		{"gap without a count", history.HistoryGap, `{"reason":"it was removed"}`, "operations are missing here, nobody knows how many: it was removed"},
		{"gap of a stranger", history.HistoryGap, `{"operations":"\u001b[2J"}`, "operations are missing here, nobody knows how many"},
		{"restart", history.RecorderRestart, `{"interrupted_operations":2,"killed_processes":1,"reason":"it died"}`, "the recorder began anew: 2 operations interrupted, 1 process killed: it died"},
		{"nothing lost", history.RecorderRestart, `{"reason":"it\u001b[2J died"}`, "the recorder began anew: 0 operations interrupted, 0 processes killed: it\ufffd[2J died"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := warning(&history.Operation{Type: tt.opType, Result: []byte(tt.result)}); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestTell(t *testing.T) {
	t.Parallel()
	noise := make([]byte, 0, 1024)
	for sum := sha256.Sum256(nil); len(noise) < 1024; sum = sha256.Sum256(sum[:]) {
		noise = append(noise, bytes.ReplaceAll(sum[:], []byte{0}, []byte{1})...)
	}
	for _, tt := range []struct {
		name string
		p    printed
		want string
	}{
		{"one line", printed{total: 4, data: []byte("one\n")}, "one"},
		{"lines", printed{total: 8, data: []byte("one\ntwo\n")}, "one  (+1 line)"},
		{"last of stderr", printed{stream: sandbox.Stderr, total: 14, data: []byte("one\ntwo\nthree\n")}, "three  (+2 lines)"},
		{"more than was read", printed{total: 1000, data: []byte("one\ntwo")}, "one  (of 1000 bytes)"},
		{"nothing but spaces", printed{total: 3, data: []byte(" \n ")}, ""},
		{"cut in a character", printed{total: 100, data: []byte("\xa9研究\xe7\xa0")}, "研究  (of 100 bytes)"},
		{"colours", printed{total: 9, data: []byte("\x1b[1mred\x1b[0m")}, "�[1mred�[0m"},
		{"NUL", printed{total: 5, data: []byte("a\x00b")}, "(5 bytes, binary)"},
		{"noise", printed{total: 1, data: noise}, "(1 byte, binary)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := tt.p.tell(); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestAround(t *testing.T) {
	t.Parallel()
	long := bytes.Repeat([]byte("x"), 1000)
	for _, tt := range []struct{ name, data, text, want string }{
		{"a line", "one\ntwo Needle\nthree", "nEEDLE", "two Needle"},
		{"not there", "one\ntwo", "three", ""},
		{"over a line break", "one\ntwo\nthree", "e\ntw", "one\ntwo"},
		{"long line", string(long) + "needle" + string(long), "needle", string(long[:lineAround]) + "needle" + string(long[:lineAround])},
		{"case beyond ASCII changes no offset", "İİ needle", "needle", "İİ needle"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := around([]byte(tt.data), []byte(tt.text)); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestReadable(t *testing.T) {
	t.Parallel()
	op := &history.Operation{Type: history.TerminalSession}
	const shown = "\x1b[?2004h\x1b]0;title\x07\x1b[1;32mroot\x1b[0m$ ls\x1b(B\x1b=\x1b]8;;x\x1b\\end\x1b"
	if got := string(readable(op, []byte(shown))); got != "root$ lsend\x1b" {
		t.Errorf("got %q", got)
	}
	if got := string(readable(&history.Operation{Type: history.CommandExecute}, []byte("\x1b[1mx"))); got != "\x1b[1mx" {
		t.Errorf("of a command: got %q, want it as it is", got)
	}
}
