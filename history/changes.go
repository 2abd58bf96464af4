package history

import (
	"context"
	"slices"
	"strings"

	"github.com/glassboxhq/glassbox/sandbox"
)

// Changes are what a command did to the files below the working directory:
// the difference between two looks, of which one came before it began and one
// after it ended. What was made and removed in between is not in it. A renamed
// file is deleted under one name and created under another.
type Changes struct {
	Created []FileChange `json:"created,omitempty"`
	Changed []FileChange `json:"changed,omitempty"`
	Deleted []FileChange `json:"deleted,omitempty"`
	// The counts are of all; the lists are bounded, and keep what is nearest
	// to the working directory.
	CreatedCount int `json:"created_count"`
	ChangedCount int `json:"changed_count"`
	DeletedCount int `json:"deleted_count"`
	// Incomplete tells why there may be more; empty: this is all.
	Incomplete string `json:"incomplete,omitempty"`
	// With are other commands that ran between the same two looks: each of the
	// changes is the work of one of them or of several. At most 20 are named.
	With []string `json:"with,omitempty"`
}

// FileChange is one file that a command changed.
type FileChange struct {
	Path string `json:"path"`
	// Type is directory, link, pipe, socket or device; empty: a file.
	Type         string `json:"type,omitempty"`
	Size         *int64 `json:"size,omitempty"`          // of a file or link, now
	PreviousSize *int64 `json:"previous_size,omitempty"` // before
	// Attributes: size, time and content's place are as before; mode, owner or
	// other attributes are not.
	Attributes bool `json:"attributes,omitempty"`
}

// The bounds of what is kept of one operation.
const (
	MaxChangedPaths = 2000
	MaxChangedBytes = 256 << 10
	MaxChangedWith  = 20
)

// ChangesStore is a Store that keeps what commands did to files.
type ChangesStore interface {
	// SetChanges tells what an operation did to files, when it has ended. The
	// feed tells it too, where there is something to tell.
	SetChanges(ctx context.Context, id string, changes *Changes) error
}

// Any reports whether anything was changed.
func (c *Changes) Any() bool { return c.CreatedCount+c.ChangedCount+c.DeletedCount > 0 }

// countedList is one of the lists, and how many there are in all.
type countedList struct {
	list  *[]FileChange
	count *int
}

// Bound shortens the lists to what is kept, and counts first if nobody has.
// The deepest paths go first. No kind of change pushes out the others.
func (c *Changes) Bound() {
	lists := []countedList{{&c.Deleted, &c.DeletedCount}, {&c.Created, &c.CreatedCount}, {&c.Changed, &c.ChangedCount}}
	slices.SortStableFunc(lists, func(a, b countedList) int { return len(*a.list) - len(*b.list) })
	paths, bytes := MaxChangedPaths, MaxChangedBytes
	for i, l := range lists { // what the short ones leave is for the longer ones
		*l.count = max(*l.count, len(*l.list))
		rest := len(lists) - i
		var used int
		*l.list, used = nearest(*l.list, paths/rest, bytes/rest)
		paths, bytes = paths-len(*l.list), bytes-used
	}
	if len(c.With) > MaxChangedWith {
		c.With = c.With[:MaxChangedWith]
	}
}

// nearest returns the changes with the shortest ways, in their order.
func nearest(list []FileChange, most, bytes int) (kept []FileChange, used int) {
	if len(list) == 0 {
		return nil, 0
	}
	order := make([]int, len(list))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return strings.Count(list[a].Path, "/") - strings.Count(list[b].Path, "/")
	})
	n := 0
	for n < len(order) && n < most {
		size := len(list[order[n]].Path) + changeOverhead
		if used+size > bytes {
			break
		}
		used += size
		n++
	}
	order = order[:n]
	slices.Sort(order)
	kept = make([]FileChange, n)
	for i, at := range order {
		kept[i] = list[at]
	}
	return kept, used
}

// changeOverhead is about what a change takes beside its path.
const changeOverhead = 48

// Validate refuses what no store keeps.
func (c *Changes) Validate() error {
	n := len(c.Created) + len(c.Changed) + len(c.Deleted)
	if n > MaxChangedPaths || len(c.With) > MaxChangedWith {
		return sandbox.Invalid("changes", "must have at most 2000 paths, and name at most 20 other operations")
	}
	return nil
}

// All iterates over the changes that are kept.
func (c *Changes) All() func(yield func(*FileChange) bool) {
	return func(yield func(*FileChange) bool) {
		for _, list := range [][]FileChange{c.Created, c.Changed, c.Deleted} {
			for i := range list {
				if !yield(&list[i]) {
					return
				}
			}
		}
	}
}
