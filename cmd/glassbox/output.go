package main

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode"
)

// output is where a command writes its answer, buffered. Writing to it cannot
// fail: the first error is kept and told once, by failed or flush.
type output struct {
	buf  *bufio.Writer
	told bool
}

func newOutput(w io.Writer) *output { return &output{buf: bufio.NewWriterSize(w, 64<<10)} }

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	_, _ = o.buf.Write(p) // told by failed or flush
	return len(p), nil
}

// flush passes on what is buffered: a person waits for it, or the command ends.
func (o *output) flush() error { return o.tell(o.buf.Flush()) }

// failed tells whether there is use in writing more.
func (o *output) failed() error {
	_, err := o.buf.Write(nil)
	return o.tell(err)
}

func (o *output) tell(err error) error {
	if err == nil || o.told {
		return nil
	}
	o.told = true
	return fmt.Errorf("write the answer: %w", err)
}

// print answers in the format that was asked for: v as JSON or YAML, or what
// show writes for people.
func (a *app) print(v any, show func(*table)) error {
	var text []byte
	var err error
	switch a.flags.output {
	case "json":
		text, err = indentedJSON(v)
	case "yaml":
		text, err = toYAML(v)
	default:
		t := &table{tabwriter.NewWriter(a.page, 0, 4, 2, ' ', 0)}
		show(t)
		err = t.w.Flush()
	}
	if err != nil {
		return err
	}
	_, _ = a.page.Write(text)
	return a.page.flush()
}

// printNext answers one of many, as it comes: a line of JSON, or a document of
// YAML.
func (a *app) printNext(v any) error {
	text, err := lineOfJSON(v)
	if a.flags.output == "yaml" {
		if text, err = toYAML(v); err == nil {
			text = append([]byte("---\n"), text...)
		}
	}
	if err != nil {
		return err
	}
	_, _ = a.page.Write(text)
	return a.page.failed()
}

// table writes aligned columns.
type table struct{ w *tabwriter.Writer }

func (t *table) row(columns ...string) {
	for i, c := range columns {
		columns[i] = plain(c)
	}
	t.line(strings.Join(columns, "\t"))
}

func (t *table) line(text string) { fmt.Fprintln(t.w, text) }

// plain makes text safe to show in a terminal: it comes from a sandbox, and
// must not move the cursor, ring or rename the window.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t' || r == '\n' || r == '\r':
			return ' '
		case unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control):
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// plainLines is plain for a text of several lines.
func plainLines(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = plain(line)
	}
	return strings.Join(lines, "\n")
}

// say tells a person what goes on, on stderr.
func (a *app) say(format string, args ...any) {
	fmt.Fprintln(a.err, plainLines("glassbox: "+fmt.Sprintf(format, args...)))
}

// short cuts text to a number of characters.
func short(s string, n int) string {
	runes := []rune(s)
	if len(runes) <= n {
		return s
	}
	return string(runes[:n-1]) + "…"
}

// some is a list that is written as [] when it is empty, not as null.
func some[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
