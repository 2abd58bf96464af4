package history_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/glassboxhq/glassbox/history"
)

func changed(paths ...string) (list []history.FileChange) {
	for _, path := range paths {
		list = append(list, history.FileChange{Path: path})
	}
	return list
}

// What is kept is bounded, fairly, and what is nearest to the top is kept.
func TestBound(t *testing.T) {
	var deep, other []string
	for i := range 5000 {
		deep = append(deep, fmt.Sprintf("/w/a/b/%04d", i))
		other = append(other, fmt.Sprintf("/w/z/%04d", i))
	}
	c := &history.Changes{
		Created: changed(slices.Concat(deep, []string{"/w/last"})...), Changed: changed("/w/c"), Deleted: changed(other...),
		With: slices.Repeat([]string{"id"}, 30),
	}
	c.Bound()
	if c.CreatedCount != 5001 || c.ChangedCount != 1 || c.DeletedCount != 5000 {
		t.Errorf("it counts %d, %d and %d", c.CreatedCount, c.ChangedCount, c.DeletedCount)
	}
	if len(c.Created) < 900 || len(c.Changed) != 1 || len(c.Deleted) < 900 || c.Validate() != nil {
		t.Errorf("it keeps %d, %d and %d, %v", len(c.Created), len(c.Changed), len(c.Deleted), c.Validate())
	}
	first, last := c.Created[0].Path, c.Created[len(c.Created)-1].Path
	if first != "/w/a/b/0000" || last != "/w/last" {
		t.Errorf("it keeps %s to %s, want what is nearest, in order", first, last)
	}
	before := *c
	c.Bound()
	if diff := cmp.Diff(&before, c); diff != "" {
		t.Errorf("again (-before +after):\n%s", diff)
	}

	long := &history.Changes{Created: changed(slices.Repeat([]string{"/" + strings.Repeat("x", 4000)}, 1000)...), Deleted: changed("/d")}
	long.Bound()
	size := 0
	for f := range long.All() {
		size += len(f.Path)
	}
	if size > history.MaxChangedBytes || size < history.MaxChangedBytes*9/10 || len(long.Deleted) != 1 || long.CreatedCount != 1000 {
		t.Errorf("it keeps %d bytes and %d deleted, and counts %d", size, len(long.Deleted), long.CreatedCount)
	}
}

func TestMatchChanges(t *testing.T) {
	op := &history.Operation{Changes: &history.Changes{Deleted: changed("/w/src/a")}}
	for path, want := range map[string]bool{"/w/src/a": true, "/w/src": true, "/": true, "/w/s": false, "/w/src/a/b": false} {
		if got := (&history.Filter{Path: path}).Match(op); got != want {
			t.Errorf("%s: got %v, want %v", path, got, want)
		}
	}
}
