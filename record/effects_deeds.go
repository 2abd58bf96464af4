package record

import (
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/record/redact"
	"github.com/glassboxhq/glassbox/sandbox"
)

// deeds gathers what a command may have done, look by look.
type deeds struct {
	list       []effect // in order; may be shared, so it is not to be changed
	with       []string
	incomplete string
}

// maxDeeds bounds what is gathered of a command that runs for long.
const maxDeeds = 50_000

// take adds what a look found.
func (d *deeds) take(f *finding, self string, commands []doer) {
	if d.incomplete == "" {
		d.incomplete = f.incomplete
	}
	if len(f.list) == 0 {
		return
	}
	for i := range commands {
		if len(d.with) == history.MaxChangedWith {
			break
		}
		if other := commands[i].id; other != self && !slices.Contains(d.with, other) {
			d.with = append(d.with, other)
		}
	}
	if len(d.list) == 0 {
		d.list = f.list
		return
	}
	if d.list = merge(d.list, f.list); len(d.list) > maxDeeds {
		d.list, d.incomplete = d.list[:maxDeeds], "it changed more files than can be remembered until its end"
	}
}

// merge joins what happened first with what happened then. Both are in order.
func merge(first, then []effect) []effect {
	list := make([]effect, 0, len(first)+len(then))
	for len(first)+len(then) > 0 {
		order := -1
		switch {
		case len(first) == 0:
			order = 1
		case len(then) > 0:
			order = sandbox.ComparePaths(first[0].path, then[0].path)
		}
		var x effect
		switch {
		case order < 0:
			x, first = first[0], first[1:]
		case order > 0:
			x, then = then[0], then[1:]
		default:
			x = effect{path: first[0].path, before: first[0].before, after: then[0].after}
			first, then = first[1:], then[1:]
		}
		if x.differs() {
			list = append(list, x)
		}
	}
	return list
}

// changes is what the history keeps of it.
func (d *deeds) changes(root string, mask *redact.Masker) *history.Changes {
	c := &history.Changes{Incomplete: d.incomplete, With: d.with}
	for i := range d.list {
		x := &d.list[i]
		change := history.FileChange{Path: strings.ToValidUTF8(path.Join(root, x.path), "\uFFFD")}
		change.Type = typeOf(x.after.Mode)
		change.Size, change.PreviousSize = sizeOf(&x.after), sizeOf(&x.before)
		switch {
		case !there(&x.before):
			c.Created = append(c.Created, change)
		case !there(&x.after):
			change.Type = typeOf(x.before.Mode)
			c.Deleted = append(c.Deleted, change)
		default:
			change.Attributes = x.attributes()
			c.Changed = append(c.Changed, change)
		}
	}
	c.Bound()
	maskChanges(mask, c)
	return c
}

// maskChanges masks secrets in paths.
func maskChanges(m *redact.Masker, c *history.Changes) {
	for change := range c.All() {
		maskText(m, &change.Path)
	}
	maskText(m, &c.Incomplete) // it may name a directory
}

func sizeOf(e *sandbox.ScanEntry) *int64 {
	if !there(e) || e.Mode.Type()&^fs.ModeSymlink != 0 {
		return nil
	}
	size := e.Size
	return &size
}

func typeOf(mode fs.FileMode) string {
	switch {
	case mode.IsRegular():
		return ""
	case mode.IsDir():
		return "directory"
	case mode&fs.ModeSymlink != 0:
		return "link"
	case mode&fs.ModeNamedPipe != 0:
		return "pipe"
	case mode&fs.ModeSocket != 0:
		return "socket"
	}
	return "device"
}
