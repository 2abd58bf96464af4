package history

import (
	"bytes"
	"slices"
	"strings"
)

// Match reports whether the filter picks an operation, by all that stands in
// it: Text is not looked for in output, and the cursors do not count.
func (f *Filter) Match(op *Operation) bool {
	return f.matchActor(op) && f.matchTime(op) &&
		among(f.Types, op.Type) && among(f.Sources, op.Source) && among(f.Statuses, op.Status) &&
		(f.Path == "" || op.below(f.Path)) &&
		(f.ExitCode == nil || op.exited(*f.ExitCode)) &&
		(f.Text == "" || op.holds(f.Text))
}

func (f *Filter) matchActor(op *Operation) bool {
	for _, pair := range [][2]string{
		{f.ActorType, op.Actor.Type},
		{f.ActorID, op.Actor.ID},
		{f.Thread, op.Actor.Thread},
		{f.Run, op.Actor.Run},
		{f.Correlation, op.Actor.Correlation},
	} {
		if pair[0] != "" && pair[0] != pair[1] {
			return false
		}
	}
	return true
}

func (f *Filter) matchTime(op *Operation) bool {
	return (f.Since.IsZero() || !op.StartedAt.Before(f.Since)) && (f.Until.IsZero() || op.StartedAt.Before(f.Until))
}

// among reports whether a list holds a value; an empty one holds every.
func among[T comparable](list []T, value T) bool {
	return len(list) == 0 || slices.Contains(list, value)
}

func (op *Operation) below(dir string) bool {
	dir = strings.TrimSuffix(dir, "/")
	below := func(name string) bool { return name == dir || strings.HasPrefix(name, dir+"/") }
	if op.File != nil && (below(op.File.Path) || below(op.File.OldPath)) {
		return true
	}
	if op.Changes != nil {
		for change := range op.Changes.All() {
			if below(change.Path) {
				return true
			}
		}
	}
	return false
}

func (op *Operation) exited(code int) bool {
	return op.Command != nil && op.Command.ExitCode != nil && *op.Command.ExitCode == code
}

func (op *Operation) holds(text string) bool {
	word := bytes.ToLower([]byte(text))
	return bytes.Contains(bytes.ToLower(op.Request), word) || bytes.Contains(bytes.ToLower(op.Result), word)
}
