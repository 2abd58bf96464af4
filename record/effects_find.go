package record

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/glassboxhq/glassbox/sandbox"
)

// finding is what is different between two looks. The list is shared by all
// who may have done it, and does not change once they have it.
type finding struct {
	list       []effect
	root       string
	incomplete string
}

// effect is one path that is not as it was. Without a path of its own, before
// or after is nothing.
type effect struct {
	path          string
	before, after sandbox.ScanEntry
}

func there(e *sandbox.ScanEntry) bool { return e.Path != "" }

const beforeFirstLook = "it began before the first look at the files was over"

// compare compares a look with the one before.
func (e *effects) compare(now *sandbox.Scan, err error) *finding {
	f := &finding{root: e.opts.root}
	switch {
	case err != nil:
		f.incomplete = "the files could not be looked at: " + err.Error()
		return f
	case e.last == nil:
		f.incomplete = beforeFirstLook
		return f
	}
	f.incomplete = limits(now)
	if f.incomplete == "" {
		f.incomplete = limits(e.last)
	}
	c := comparison{[2]*sandbox.Scan{e.last, now}}
	before, after := c.known()
	for len(before)+len(after) > 0 {
		order := -1
		switch {
		case len(before) == 0:
			order = 1
		case len(after) > 0:
			order = sandbox.ComparePaths(before[0].Path, after[0].Path)
		}
		var x effect
		if order <= 0 {
			x.path, x.before, before = before[0].Path, before[0], before[1:]
		}
		if order >= 0 {
			x.path, x.after, after = after[0].Path, after[0], after[1:]
		}
		if x.differs() && !c.unread(x.path) {
			f.list = append(f.list, x)
		}
	}
	return f
}

// comparison is two looks, the earlier one first.
type comparison struct{ scans [2]*sandbox.Scan }

// known returns what both looks have come to.
func (c comparison) known() (before, after []sandbox.ScanEntry) {
	until := c.scans[0].Until
	if other := c.scans[1].Until; until == "" || other != "" && sandbox.ComparePaths(other, until) < 0 {
		until = other
	}
	cut := func(list []sandbox.ScanEntry) []sandbox.ScanEntry {
		if until == "" {
			return list
		}
		n, _ := slices.BinarySearchFunc(list, until, func(e sandbox.ScanEntry, at string) int { return sandbox.ComparePaths(e.Path, at) })
		return list[:n]
	}
	return cut(c.scans[0].Entries), cut(c.scans[1].Entries)
}

// unread reports whether one of the looks could not see a path.
func (c comparison) unread(name string) bool {
	for _, scan := range c.scans {
		for _, dir := range scan.Unread {
			if dir == "" || strings.HasPrefix(name, dir+"/") {
				return true
			}
		}
	}
	return false
}

// limits tells what a look did not see.
func limits(scan *sandbox.Scan) string {
	switch {
	case scan.Until != "" && scan.Late:
		return fmt.Sprintf("the look at the files took too long; from %s on they were not looked at", path.Join(scan.Root, scan.Until))
	case scan.Until != "":
		return fmt.Sprintf("there are too many files; from %s on they were not looked at", path.Join(scan.Root, scan.Until))
	case len(scan.Unread) > 0:
		return fmt.Sprintf("%d directories were not looked into, as of their rights, depth or size; the first is %s", len(scan.Unread), path.Join(scan.Root, scan.Unread[0]))
	}
	return ""
}

// differs reports whether something happened to the path. What a directory
// holds does not change the directory.
func (x *effect) differs() bool {
	a, b := &x.before, &x.after
	if !there(a) || !there(b) {
		return there(a) || there(b)
	}
	if a.Mode != b.Mode || a.UID != b.UID || a.GID != b.GID || a.Inode != b.Inode {
		return true
	}
	return !a.Mode.IsDir() && (a.Size != b.Size || a.Modified != b.Modified || a.Changed != b.Changed)
}

// attributes reports whether only those are different.
func (x *effect) attributes() bool {
	a, b := &x.before, &x.after
	return a.Mode.Type() == b.Mode.Type() && a.Inode == b.Inode && (a.Mode.IsDir() || a.Size == b.Size && a.Modified == b.Modified)
}
