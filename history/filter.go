package history

import (
	"bytes"
	"slices"
	"strings"
)

// Match reports whether the filter picks an operation, by all that stands in
// it: Text is not looked for in output, and the cursors do not count.
func (f *Filter) Match(op *Operation) bool {
	in := func(list []string, value string) bool { return len(list) == 0 || slices.Contains(list, value) }
	is := func(want, value string) bool { return want == "" || want == value }
	switch {
	case !in(f.Types, op.Type), !in(f.Sources, op.Source):
	case len(f.Statuses) > 0 && !slices.Contains(f.Statuses, op.Status):
	case !is(f.ActorType, op.Actor.Type), !is(f.ActorID, op.Actor.ID), !is(f.Thread, op.Actor.Thread):
	case !is(f.Run, op.Actor.Run), !is(f.Correlation, op.Actor.Correlation):
	case !f.Since.IsZero() && op.StartedAt.Before(f.Since), !f.Until.IsZero() && !op.StartedAt.Before(f.Until):
	case f.Path != "" && !op.below(f.Path):
	case f.ExitCode != nil && (op.Command == nil || op.Command.ExitCode == nil || *op.Command.ExitCode != *f.ExitCode):
	default:
		return f.Text == "" || op.holds(f.Text)
	}
	return false
}

func (op *Operation) below(dir string) bool {
	if op.File == nil {
		return false
	}
	dir = strings.TrimSuffix(dir, "/")
	return op.File.Path == dir || strings.HasPrefix(op.File.Path, dir+"/")
}

func (op *Operation) holds(text string) bool {
	word := bytes.ToLower([]byte(text))
	for _, field := range [][]byte{op.Request, op.Result} {
		if bytes.Contains(bytes.ToLower(field), word) {
			return true
		}
	}
	return false
}
