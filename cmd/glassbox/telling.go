package main

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/sandbox"
)

// lookAt bounds what of a stream is read to tell of it.
const lookAt = 64 << 10

// printed is what a history keeps of one stream of a command.
type printed struct {
	stream sandbox.Stream
	kept   int64
	total  int64 // that the command has written
	whole  bool
	data   []byte // the beginning, or of stderr the end
}

// showTelling prints the line that tells most of a command's output: the last
// of stderr when something failed, else the first that was printed.
func (a *app) showTelling(ctx context.Context, h history.Reader, op *history.Operation) error {
	c, o := op.Command, outcomeOf(op)
	p := &printed{stream: sandbox.Stdout, kept: c.StdoutBytes, total: o.StdoutTotal}
	if c.StderrBytes > 0 && (op.Status != sandbox.Succeeded || c.StdoutBytes == 0) {
		p = &printed{stream: sandbox.Stderr, kept: c.StderrBytes, total: o.StderrTotal}
	}
	p.total = max(p.total, p.kept)
	p.whole = p.total == p.kept && c.Recording != sandbox.RecordedPart
	if err := p.load(ctx, h, op.ID); err != nil {
		return err
	}
	p.data = readable(op, p.data)
	if text := p.tell(); text != "" {
		a.fact("▸ %s: %s", p.stream, text)
	}
	if text := missing(c, o); text != "" {
		a.fact("%s", a.paint(yellow, "⚠ "+text))
	}
	return nil
}

// sequences are what moves the cursor and sets colours of a terminal: ECMA-48
// control sequences, operating system commands, and escapes of one character.
var sequences = regexp.MustCompile(`\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-~])`)

// readable leaves out of what a terminal showed what is not to be read.
func readable(op *history.Operation, data []byte) []byte {
	if op.Type != history.TerminalSession {
		return data
	}
	return sequences.ReplaceAll(data, nil)
}

func (p *printed) load(ctx context.Context, h history.Reader, opID string) error {
	at, want := int64(0), min(lookAt, p.kept)
	if p.stream == sandbox.Stderr {
		at = p.kept - want
	}
	for int64(len(p.data)) < want {
		part, err := h.Output(ctx, opID, p.stream, at+int64(len(p.data)), want-int64(len(p.data)))
		if err != nil {
			return err
		}
		if len(part) == 0 {
			break
		}
		p.data = append(p.data, part...)
	}
	return nil
}

// tell is one line of what was printed, with how much more there is.
func (p *printed) tell() string {
	text := p.data
	if p.total > int64(len(text)) {
		text = wholeRunes(text)
	}
	text = bytes.TrimSpace(text)
	switch {
	case len(text) == 0:
		return ""
	case binary(text):
		return fmt.Sprintf("(%s, binary)", number(p.total, "byte"))
	}
	lines := bytes.Split(text, []byte("\n"))
	line := lines[0]
	if p.stream == sandbox.Stderr {
		line = lines[len(lines)-1]
	}
	shown := short(plain(strings.TrimSpace(string(line))), 200)
	switch more := len(lines) - 1; {
	case p.total > int64(len(p.data)):
		shown += fmt.Sprintf("  (of %s)", number(p.total, "byte"))
	case more > 0:
		shown += fmt.Sprintf("  (+%s)", number(int64(more), "line"))
	}
	return shown
}

// missing tells what of a command's output the history does not hold.
func missing(c *history.Command, o outcome) string {
	kept := c.StdoutBytes + c.StderrBytes
	written := max(o.StdoutTotal, c.StdoutBytes) + max(o.StderrTotal, c.StderrBytes)
	switch {
	case c.Recording == sandbox.RecordedPart:
		return "the output is kept in part only"
	case written > kept:
		return fmt.Sprintf("not all of the output is kept: %d of %d bytes", kept, written)
	case c.Recording == sandbox.RecordedTruncated:
		return "not all of the output is kept: it went over the cap"
	}
	return ""
}

// binary reports whether bytes are no text for people: they hold a NUL, or
// more than a tenth of them are no printable characters.
func binary(data []byte) bool {
	if bytes.IndexByte(data, 0) >= 0 {
		return true
	}
	odd, all := 0, 0
	for len(data) > 0 {
		r, size := utf8.DecodeRune(data)
		if r == utf8.RuneError && size == 1 || unicode.IsControl(r) && !strings.ContainsRune("\t\n\v\f\r\b\x1b", r) {
			odd++
		}
		all, data = all+1, data[size:]
	}
	return odd*10 > all
}

// wholeRunes leaves out a character that is cut at either end.
func wholeRunes(data []byte) []byte {
	for range utf8.UTFMax - 1 {
		if len(data) > 0 && !utf8.RuneStart(data[0]) {
			data = data[1:]
		}
	}
	for i := 1; i < utf8.UTFMax && i <= len(data); i++ {
		if end := data[len(data)-i:]; utf8.RuneStart(end[0]) && !utf8.FullRune(end) {
			return data[:len(data)-i]
		}
	}
	return data
}
