package sqlite_test

import (
	"bytes"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/history/sqlite"
	"github.com/glassboxhq/glassbox/sandbox"
)

// clock is a clock that a test moves.
type clock struct{ now time.Time }

func newClock() *clock { return &clock{time.Now()} }

// at records an ended operation with some output.
func (c *clock) record(t *testing.T, s *sqlite.Store, output int) *history.Operation {
	t.Helper()
	op := benchOperation()
	op.StartedAt = c.now
	must(t, s.Begin(t.Context(), op))
	must(t, s.Finish(t.Context(), op.ID, &history.End{
		Status: sandbox.Succeeded, OutputComplete: true,
		Chunks: []sandbox.Chunk{{Stream: sandbox.Stdout, Time: c.now, Data: bytes.Repeat([]byte("x"), output)}},
	}))
	return op
}

func openClock(t *testing.T, c *clock, opts sqlite.Options) *sqlite.Store {
	t.Helper()
	opts.Now, opts.ManualCleanup = func() time.Time { return c.now }, true
	return open(t, filepath.Join(t.TempDir(), "history.sqlite3"), &opts)
}

func prune(t *testing.T, s *sqlite.Store) *history.Pruned {
	t.Helper()
	p, err := s.Prune(t.Context())
	must(t, err)
	return p
}

func kept(t *testing.T, s *sqlite.Store, ops ...*history.Operation) []bool {
	t.Helper()
	var found []bool
	for _, op := range ops {
		_, err := s.Get(t.Context(), op.ID)
		if err != nil && !errors.Is(err, sandbox.ErrNotFound) {
			t.Fatal(err)
		}
		found = append(found, err == nil)
	}
	return found
}

const day = 24 * time.Hour

// TestExpired never answers what is older than the retention, pruned or not.
func TestExpired(t *testing.T) {
	c := newClock()
	s := openClock(t, c, sqlite.Options{TTL: 2 * day})
	old := c.record(t, s, 10)
	running := mustBegin(t, s)
	c.now = c.now.Add(day)
	young := c.record(t, s, 10)
	c.now = c.now.Add(day + time.Hour)

	check := func(when string) {
		t.Helper()
		if got := kept(t, s, old, running, young); got[0] || !got[1] || !got[2] {
			t.Errorf("%s: Get finds old, running, young: %v", when, got)
		}
		if n := count(t, s); n != 2 {
			t.Errorf("%s: List gave %d operations, want 2", when, n)
		}
		if page, err := s.List(t.Context(), &history.Filter{Text: old.Command.Line}); err != nil || len(page.Operations) != 2 {
			t.Errorf("%s: search gave %+v, %v, want 2", when, page, err)
		}
		if _, err := s.Output(t.Context(), old.ID, sandbox.Stdout, 0, 1); !errors.Is(err, sandbox.ErrNotFound) {
			t.Errorf("%s: Output gave %v", when, err)
		}
		feed, err := s.Changes(t.Context(), &history.ChangeQuery{})
		must(t, err)
		if len(feed.Changes) != 4 || feed.Min != 4 || !feed.Reset {
			t.Errorf("%s: Changes gave %d changes, min %d, reset %v; want 4, 4, true", when, len(feed.Changes), feed.Min, feed.Reset)
		}
	}
	check("before the clean-up")
	if p := prune(t, s); p.Operations != 1 || p.Reason != "age" || p.Bytes <= 0 {
		t.Errorf("Prune gave %+v", p)
	}
	check("after the clean-up")
	if p := prune(t, s); p.Operations != 0 || p.Reason != "nothing to delete" {
		t.Errorf("a second Prune gave %+v", p)
	}
	for _, table := range []string{"command_executions", "history_events"} {
		var n int
		scanOne(t, s.Path(), `select count(*) from `+table, &n)
		if n != 2 {
			t.Errorf("%s holds %d rows, want 2", table, n)
		}
	}
	var at, result string
	scanOne(t, s.Path(), `select a.value, r.value from history_meta a, history_meta r
		where a.key = 'last_cleanup_at' and r.key = 'last_cleanup_result'`, &at, &result)
	if at != history.FormatTime(c.now) {
		t.Errorf("last_cleanup_at is %s, want %s; result %s", at, history.FormatTime(c.now), result)
	}
	var leases int
	scanOne(t, s.Path(), `select count(*) from history_leases`, &leases)
	if leases != 0 {
		t.Errorf("%d leases are left", leases)
	}
}

// TestFeedAfterEverythingIsGone keeps a reader that has read all from being
// reset, and resets one that has not.
func TestFeedAfterEverythingIsGone(t *testing.T) {
	c := newClock()
	s := openClock(t, c, sqlite.Options{})
	c.record(t, s, 0)
	c.now = c.now.Add(30 * day)
	prune(t, s)
	for after, reset := range map[int64]bool{2: false, 1: true, 0: true} {
		feed, err := s.Changes(t.Context(), &history.ChangeQuery{After: after})
		must(t, err)
		if feed.Reset != reset || feed.Next != 2 || len(feed.Changes) > 0 {
			t.Errorf("after %d Changes gave %+v, want reset %v and next 2", after, feed, reset)
		}
	}
	c.record(t, s, 0)
	if feed, err := s.Changes(t.Context(), &history.ChangeQuery{After: 2}); err != nil || feed.Reset || len(feed.Changes) != 2 {
		t.Errorf("Changes gave %+v, %v", feed, err)
	}
}

// TestPruneSize deletes the oldest first until the used pages fit, spares what
// runs, and uses the freed pages again.
func TestPruneSize(t *testing.T) {
	c := newClock()
	const limit = 2 << 20
	s := openClock(t, c, sqlite.Options{MaxDatabaseBytes: limit})
	running := mustBegin(t, s)
	var ops []*history.Operation
	for range 60 {
		ops = append(ops, c.record(t, s, 64<<10))
	}
	p := prune(t, s)
	if p.Reason != "size" || p.Bytes > limit || p.Bytes < limit/2 {
		t.Errorf("Prune gave %+v", p)
	}
	deleted := int(p.Operations)
	for i, found := range kept(t, s, ops...) {
		if found != (i >= deleted) {
			t.Fatalf("after %d deletions operation %d is kept: %v", deleted, i, found)
		}
	}
	if !kept(t, s, running)[0] {
		t.Error("the running operation was deleted")
	}
	must(t, s.Check(t.Context()))
}

// TestPruneSparesConsumers keeps what an active consumer has not read, up to
// twice the limit.
func TestPruneSparesConsumers(t *testing.T) {
	c := newClock()
	const limit = 1 << 20
	s := openClock(t, c, sqlite.Options{MaxDatabaseBytes: limit, TTL: 2 * day})
	var ops []*history.Operation
	for range 20 {
		ops = append(ops, c.record(t, s, 64<<10)) // three changes each
	}
	must(t, s.Acknowledge(t.Context(), "mirror", 9))
	must(t, s.Acknowledge(t.Context(), "mirror", 6)) // the larger stays
	must(t, s.Acknowledge(t.Context(), "reader", 1000))
	if p := prune(t, s); p.Operations != 3 {
		t.Errorf("Prune gave %+v, want 3 deleted operations", p)
	}
	if got := kept(t, s, ops[2], ops[3]); got[0] || !got[1] {
		t.Errorf("kept are the third and fourth: %v", got)
	}
	c.now = c.now.Add(3 * day)
	if p := prune(t, s); p.Operations != 0 {
		t.Errorf("by age Prune deleted what was not read: %+v", p)
	}
	if !kept(t, s, ops[3])[0] {
		t.Error("what a consumer has yet to read is not answered")
	}

	for range 20 {
		c.record(t, s, 64<<10)
	}
	if p := prune(t, s); p.Operations == 0 || p.Bytes > 2*limit || p.Bytes < limit {
		t.Errorf("above twice the limit Prune gave %+v", p)
	}
	c.now = c.now.Add(31 * day) // nobody has asked since
	if p := prune(t, s); p.Bytes > limit || kept(t, s, ops[19])[0] {
		t.Errorf("without an active consumer Prune gave %+v", p)
	}
}

// TestPruneLease leaves the clean-up to another process that is at it, and
// takes over when its time is over.
func TestPruneLease(t *testing.T) {
	c := newClock()
	s := openClock(t, c, sqlite.Options{})
	c.record(t, s, 0)
	execOne(t, s.Path(), `insert into history_leases (resource_key, owner_id, expires_at, updated_at) values ('history:cleanup', 'other', ?, ?)`,
		history.FormatTime(c.now.Add(5*time.Minute)), history.FormatTime(c.now))
	c.now = c.now.Add(time.Minute)
	if p := prune(t, s); p.Reason != "cleanup in progress" {
		t.Errorf("Prune gave %+v", p)
	}
	c.now = c.now.Add(5 * time.Minute)
	if p := prune(t, s); p.Reason != "nothing to delete" {
		t.Errorf("Prune gave %+v", p)
	}
}

// A consumer that has said nothing for long is none.
func TestConsumers(t *testing.T) {
	c := newClock()
	s := openClock(t, c, sqlite.Options{})
	if list, err := s.Consumers(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("before anything: got %v, %v", list, err)
	}
	must(t, s.Acknowledge(t.Context(), "gone", 7))
	c.now = c.now.Add(31 * day)
	must(t, s.Acknowledge(t.Context(), "mirror", 9))
	list, err := s.Consumers(t.Context())
	if err != nil || len(list) != 1 || list[0].ID != "mirror" || list[0].Acknowledged != 9 {
		t.Errorf("got %+v, %v, want the one that is active", list, err)
	}
}
