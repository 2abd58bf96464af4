package sqlite_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/history/sqlite"
)

// many returns as much as is kept of one operation.
func many() *history.Changes {
	c := &history.Changes{}
	for i := range history.MaxChangedPaths {
		c.Deleted = append(c.Deleted, history.FileChange{Path: fmt.Sprintf("/workspace/%s/%d", strings.Repeat("x", 60), i)})
	}
	return c
}

// A page of operations that changed much is cut, and the next goes on there.
func TestPagesOfChanges(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "history.sqlite3"), nil)
	const n = 60
	for range n {
		op := mustBegin(t, s)
		mustFinish(t, s, op.ID)
		must(t, s.SetChanges(t.Context(), op.ID, many()))
	}
	for name, filter := range map[string]*history.Filter{
		"all": {Limit: n}, "path": {Limit: n, Path: "/workspace"}, "text": {Limit: n, Text: "xxx/1999"},
	} {
		pages, seen := 0, 0
		for more := true; more; pages++ {
			page, err := s.List(t.Context(), filter)
			if err != nil || len(page.Operations) == 0 {
				t.Fatalf("%s: got %+v, %v", name, page, err)
			}
			for _, op := range page.Operations {
				if op.Changes == nil || len(op.Changes.Deleted) != history.MaxChangedPaths {
					t.Fatalf("%s: operation %d tells %+v", name, op.Seq, op.Changes)
				}
			}
			seen, more = seen+len(page.Operations), page.More
			filter.After = page.Operations[len(page.Operations)-1].Seq
		}
		if seen != n || pages < 2 {
			t.Errorf("%s: got %d operations on %d pages, want %d on several", name, seen, pages, n)
		}
	}
}

// What was kept goes with its operation, whoever deletes that.
func TestChangesGoWithTheirOperation(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "history.sqlite3")
	h := newHelper(t, path)
	s := open(t, path, &sqlite.Options{SandboxID: "sandbox-1", InstanceID: "instance-1"})
	for range 2 {
		op := mustBegin(t, s)
		mustFinish(t, s, op.ID)
		must(t, s.SetChanges(t.Context(), op.ID, many()))
	}
	if got := h.must(t, "cleanup", "--ttl-days", "7", "--max-bytes", "4096", "--overflow-policy", "delete_oldest"); got["deleted_operations"] != 2.0 {
		t.Errorf("cleanup gave %v", got)
	}
	if n := countRows(t, path, "glassbox_changes"); n != 0 {
		t.Errorf("%d rows are left", n)
	}
}

// Another table by this name hides no operation.
func TestAnotherTableOfChanges(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.sqlite3")
	s := open(t, path, nil)
	mustFinish(t, s, mustBegin(t, s).ID)
	execOne(t, path, `create table glassbox_changes (x)`)
	for _, filter := range []*history.Filter{nil, {Path: "/f"}, {Text: "nowhere"}} {
		if _, err := s.List(t.Context(), filter); err != nil {
			t.Errorf("%+v: %v", filter, err)
		}
	}
	if n := count(t, s); n != 1 {
		t.Errorf("List gave %d operations", n)
	}
}

func countRows(t *testing.T, path, table string) (n int) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path)
	must(t, err)
	defer db.Close()
	must(t, db.QueryRowContext(t.Context(), `select count(*) from `+table).Scan(&n))
	return n
}
