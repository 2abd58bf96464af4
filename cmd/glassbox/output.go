package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/goccy/go-yaml"
)

// print answers in the format that was asked for: v as JSON or YAML, or what
// show writes for people.
func (a *app) print(v any, show func(*table)) error {
	switch a.flags.output {
	case "json":
		enc := json.NewEncoder(a.out)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		return enc.Encode(v)
	case "yaml":
		text, err := json.Marshal(v) // one set of names for both
		if err != nil {
			return err
		}
		if text, err = yaml.JSONToYAML(text); err != nil {
			return err
		}
		_, err = a.out.Write(text)
		return err
	}
	t := &table{tabwriter.NewWriter(a.out, 0, 4, 2, ' ', 0)}
	show(t)
	return t.w.Flush()
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

// say tells a person what goes on, on stderr.
func (a *app) say(format string, args ...any) {
	fmt.Fprintf(a.err, "glassbox: "+format+"\n", args...)
}

// short cuts text to a number of characters.
func short(s string, n int) string {
	runes := []rune(s)
	if len(runes) <= n {
		return s
	}
	return string(runes[:n-1]) + "…"
}
