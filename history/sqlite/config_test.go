package sqlite_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/history/sqlite"
	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/sandbox"
)

func TestConfig(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "history.sqlite3"), &sqlite.Options{Config: &history.Config{TTLDays: 3}})
	got, err := s.Config(t.Context()) // before there is a file
	if err != nil || got.Config.TTLDays != 3 || got.Revision != 0 {
		t.Errorf("got %+v, %v", got, err)
	}
	mustBegin(t, s)
	set, err := s.SetConfig(t.Context(), &history.ConfigChange{Changes: fields{"ttl_days": nil, "output_chunk_bytes": 4096}, By: "操作者"})
	if err != nil || set.Revision != 1 || set.Config.TTLDays >= 0 || set.UpdatedBy != "操作者" {
		t.Fatalf("got %+v, %v", set, err)
	}
	if now := s.Settings(); now.TTLDays >= 0 || now.OutputChunkBytes != 4096 {
		t.Errorf("it does not hold: %+v", now)
	}
	if got, err = s.Config(t.Context()); err != nil || !cmp.Equal(got.Config, set.Config) || got.Revision != 1 {
		t.Errorf("got %+v, %v, want %+v", got, err, set)
	}
	_, err = s.SetConfig(t.Context(), &history.ConfigChange{Changes: fields{"ttl_days": 1}})
	wantFault(t, "SetConfig with an old revision", err, sandbox.CodeHistoryConflict)
	_, err = s.SetConfig(t.Context(), &history.ConfigChange{Expected: 1, Changes: fields{"max_database_bytes": 16 << 20}})
	if sandbox.CodeOf(err) != sandbox.CodeHistoryConfig {
		t.Errorf("SetConfig with an output larger than the file gave %v", err)
	}
	if got, err = s.Config(t.Context()); err != nil || got.Revision != 1 {
		t.Errorf("a refused change left %+v, %v", got, err)
	}
}

func TestConfigSync(t *testing.T) {
	for _, tt := range []struct {
		sync           history.ConfigSync
		days, revision int64
		code           sandbox.Code
	}{
		{history.InitializeOrAdopt, 3, 0, ""},
		{history.RequireMatch, 0, 0, sandbox.CodeHistoryConflict},
		{history.Overwrite, 5, 1, ""},
	} {
		t.Run(string(tt.sync), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "history.sqlite3")
			first := open(t, path, &sqlite.Options{Config: &history.Config{TTLDays: 3}})
			mustBegin(t, first)
			must(t, first.Close())
			s, err := sqlite.Open(path, &sqlite.Options{Config: &history.Config{TTLDays: 5, Sync: tt.sync}})
			if tt.code != "" {
				wantFault(t, "Open", err, tt.code)
				same := open(t, path, &sqlite.Options{Config: &history.Config{TTLDays: 3, Sync: tt.sync}})
				mustBegin(t, same)
				return
			}
			must(t, err)
			defer s.Close()
			mustBegin(t, s)
			got, err := s.Config(t.Context())
			if err != nil || got.Config.TTLDays != tt.days || got.Revision != tt.revision || s.Settings().TTLDays != tt.days {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

// TestConfigWithPython shares a configuration with the Python package, both
// ways.
func TestConfigWithPython(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "history.sqlite3")
	h := newHelper(t, path)
	s := open(t, path, &sqlite.Options{SandboxID: "sandbox-1", InstanceID: "instance-1", Config: &history.Config{TTLDays: 3}})
	mustBegin(t, s)

	theirs := h.must(t, "config-get")
	text, err := json.Marshal((&history.Config{TTLDays: 3}).Values())
	must(t, err)
	var ours fields
	must(t, json.Unmarshal(text, &ours))
	if diff := cmp.Diff(ours, theirs["config"]); diff != "" || theirs["revision"] != 0.0 || theirs["version"] != 1.0 {
		t.Errorf("config-get gave %v (-want +got):\n%s", theirs, diff)
	}
	// Their own model takes what we wrote.
	h.model(t, text)

	change := fields{"changes": fields{"ttl_days": 2, "overflow_policy": "fail_operation"}, "updated_by": "python"}
	_, err = h.withFile(dir, "--config-file", change, "config-set", "--expected-revision", "0")
	must(t, err)
	got, err := s.Config(t.Context())
	if err != nil || got.Revision != 1 || got.UpdatedBy != "python" || got.Config.TTLDays != 2 || got.Config.OverflowPolicy != history.FailOperation {
		t.Errorf("got %+v, %v", got, err)
	}
	if s.Settings().TTLDays != 2 {
		t.Error("what the helper set does not hold")
	}
	_, err = s.SetConfig(t.Context(), &history.ConfigChange{Changes: fields{"compression": "zlib"}, Expected: 1, By: "go"})
	must(t, err)
	if _, err := h.withFile(dir, "--config-file", change, "config-set", "--expected-revision", "1"); err == nil {
		t.Error("the helper set over our change")
	}
	theirs = h.must(t, "config-get")
	if config := theirs["config"].(fields); theirs["revision"] != 2.0 || theirs["updated_by"] != "go" || config["compression"] != "zlib" || config["ttl_days"] != 2.0 {
		t.Errorf("config-get gave %v", theirs)
	}
	op := mustBegin(t, s)
	want := strings.Repeat("packed 输出\n", 10_000)
	must(t, s.Append(t.Context(), op.ID, []sandbox.Chunk{{Stream: sandbox.Stdout, Time: time.Now(), Data: []byte(want)}}))
	rows := h.must(t, "get-output", "--event-id", op.ID, "--stream", "stdout")["chunks"].([]any)
	if row := rows[0].(fields); row["encoding"] != "zlib" || row["original_size"] != 16384.0 {
		t.Errorf("get-output gave %v, want a packed row", row)
	}
}

// model lets the package's own type read a configuration.
func (h *helper) model(t *testing.T, config []byte) {
	t.Helper()
	out, err := pythonCommand(h.python, `
import json, sys
from agent_sandbox_backends.history.config import HistoryConfig
given = json.loads(sys.argv[1])
read = HistoryConfig.model_validate_json(sys.argv[1]).persisted_values()
assert read == given, read`, string(config)).CombinedOutput()
	if err != nil {
		t.Errorf("the package's own type refuses it: %v\n%s", err, out)
	}
}

// TestPackedRows keeps output packed, and answers it as it was.
func TestPackedRows(t *testing.T) {
	for _, how := range []history.Compression{history.Gzip, history.Zlib} {
		s := open(t, filepath.Join(t.TempDir(), "history.sqlite3"), &sqlite.Options{Config: &history.Config{Compression: how, OutputChunkBytes: 64 << 10}})
		op := mustBegin(t, s)
		want := bytes.Repeat([]byte("a line that packs well\n"), 10_000)
		must(t, s.Append(t.Context(), op.ID, []sandbox.Chunk{{Stream: sandbox.Stdout, Time: time.Now(), Data: want}}))
		for _, offset := range []int64{0, 1, 65535, 65536, 200_000, int64(len(want)) - 1} {
			got, err := s.Output(t.Context(), op.ID, sandbox.Stdout, offset, 1<<20)
			if err != nil || !bytes.Equal(got, want[offset:]) {
				t.Errorf("%s at %d: got %d bytes, %v", how, offset, len(got), err)
			}
		}
		found, err := s.Get(t.Context(), op.ID)
		if err != nil || found.Command.StdoutBytes != int64(len(want)) {
			t.Errorf("%s: got %+v, %v", how, found.Command, err)
		}
		var stored int
		scanOne(t, s.Path(), `select sum(length(data)) from command_output_chunks`, &stored)
		if stored > len(want)/10 {
			t.Errorf("%s: %d bytes became %d", how, len(want), stored)
		}
		page, err := s.List(t.Context(), &history.Filter{Text: "packs WELL\na line"})
		if err != nil || len(page.Operations) != 1 {
			t.Errorf("%s: search gave %+v, %v", how, page, err)
		}
		_, err = s.SetConfig(t.Context(), &history.ConfigChange{Changes: fields{"compression": "identity"}})
		must(t, err)
		if got, err := s.Output(t.Context(), op.ID, sandbox.Stdout, 70_000, 5); err != nil || !bytes.Equal(got, want[70_000:70_005]) {
			t.Errorf("%s, turned off again: got %q, %v", how, got, err)
		}
	}
}

func TestLease(t *testing.T) {
	c := newClock()
	s := openClock(t, c, sqlite.Options{})
	take := func(owner string, want bool) {
		t.Helper()
		if held, err := s.AcquireLease(t.Context(), "k", owner, time.Minute); err != nil || held != want {
			t.Errorf("AcquireLease by %s gave %v, %v", owner, held, err)
		}
	}
	renew := func(owner string, want bool) {
		t.Helper()
		if held, err := s.RenewLease(t.Context(), "k", owner, time.Minute); err != nil || held != want {
			t.Errorf("RenewLease by %s gave %v, %v", owner, held, err)
		}
	}
	take("a", true)
	take("b", false)
	take("a", true)
	renew("b", false)
	c.now = c.now.Add(30 * time.Second)
	renew("a", true)
	c.now = c.now.Add(45 * time.Second)
	take("b", false)
	c.now = c.now.Add(15 * time.Second)
	renew("a", false) // its time is over
	take("b", true)
	must(t, s.ReleaseLease(t.Context(), "k", "a")) // not its own
	take("a", false)
	must(t, s.ReleaseLease(t.Context(), "k", "b"))
	take("a", true)
	for _, bad := range [][2]string{{"", "a"}, {"k", ""}, {strings.Repeat("k", 257), "a"}} {
		if _, err := s.AcquireLease(t.Context(), bad[0], bad[1], time.Minute); !errors.Is(err, sandbox.ErrInvalid) {
			t.Errorf("%.10q, %q: got %v", bad[0], bad[1], err)
		}
	}
	if _, err := s.AcquireLease(t.Context(), "k", "a", 0); !errors.Is(err, sandbox.ErrInvalid) {
		t.Errorf("no life: got %v", err)
	}
}

// TestLeaseWithPython respects the helper's leases, and the helper ours.
func TestLeaseWithPython(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.sqlite3")
	h := newHelper(t, path)
	s := open(t, path, nil)
	mustBegin(t, s)
	lease := []string{"--resource-key", "k", "--owner-id", "python", "--ttl-ms", "60000"}
	if held, err := s.AcquireLease(t.Context(), "k", "go", time.Minute); err != nil || !held {
		t.Fatal(held, err)
	}
	if got := h.must(t, append([]string{"lease-acquire"}, lease...)...); got["acquired"] != false || got["owner_id"] != "go" {
		t.Errorf("lease-acquire gave %v", got)
	}
	must(t, s.ReleaseLease(t.Context(), "k", "go"))
	if got := h.must(t, append([]string{"lease-acquire"}, lease...)...); got["acquired"] != true {
		t.Errorf("lease-acquire gave %v", got)
	}
	if held, err := s.AcquireLease(t.Context(), "k", "go", time.Minute); err != nil || held {
		t.Errorf("AcquireLease gave %v, %v", held, err)
	}
}

// TestOverflow refuses what there is no room for, by either policy, until
// there is, and always records that something is missing.
func TestOverflow(t *testing.T) {
	for policy, want := range map[history.OverflowPolicy]error{history.StopRecording: history.ErrStopped, history.FailOperation: history.ErrFull} {
		t.Run(string(policy), func(t *testing.T) {
			c := newClock()
			s := openClock(t, c, sqlite.Options{MaxDatabaseBytes: 1 << 20, Config: &history.Config{OverflowPolicy: policy}})
			first := c.record(t, s, 0)
			for range 14 {
				c.record(t, s, 50<<10)
			}
			c.record(t, s, 400<<10) // begun below the limit
			refused := benchOperation()
			err := s.Begin(t.Context(), refused)
			if !errors.Is(err, want) || !errors.Is(err, sandbox.ErrHistory) || sandbox.CodeOf(err) != sandbox.CodeHistoryExhausted {
				t.Fatalf("Begin gave %v", err)
			}
			if err := s.Begin(t.Context(), first); !errors.Is(err, sandbox.ErrExists) {
				t.Errorf("Begin of what is there gave %v", err)
			}
			gap := benchOperation()
			gap.Type, gap.Command = history.HistoryGap, nil
			must(t, s.Begin(t.Context(), gap))
			if p := prune(t, s); p.Operations != 0 || !strings.Contains(p.Reason, "its policy "+string(policy)+" deletes nothing") {
				t.Errorf("Prune deleted what the policy keeps, or does not say why not: %+v", p)
			}
			c.now = c.now.Add(8 * day)
			if p := prune(t, s); p.Operations != 16 || p.Reason != "age" {
				t.Errorf("Prune gave %+v", p)
			}
			must(t, s.Begin(t.Context(), refused))
		})
	}
}

// TestGapOfUnread records that operations went before they were read.
func TestGapOfUnread(t *testing.T) {
	c := newClock()
	s := openClock(t, c, sqlite.Options{MaxDatabaseBytes: 1 << 20})
	for range 60 {
		c.record(t, s, 64<<10)
	}
	must(t, s.Acknowledge(t.Context(), "behind", 30)) // ten operations
	must(t, s.Acknowledge(t.Context(), "ahead", 90))
	p := prune(t, s)
	page, err := s.List(t.Context(), &history.Filter{Types: []string{history.HistoryGap}})
	if err != nil || len(page.Operations) != 1 {
		t.Fatalf("List gave %+v, %v", page, err)
	}
	gap := page.Operations[0]
	want := fmt.Sprintf(`{"consumers":["behind"],"operations":%d,"reason":`, p.Operations-10)
	if gap.Status != sandbox.Succeeded || !strings.HasPrefix(string(gap.Result), want) || p.Operations < 20 {
		t.Errorf("the gap is %s %s, want %s after %+v", gap.Status, gap.Result, want, p)
	}
	feed, err := s.Changes(t.Context(), &history.ChangeQuery{After: 30})
	if err != nil || !feed.Reset {
		t.Errorf("Changes gave %+v, %v, want a reset", feed, err)
	}
	if p := prune(t, s); p.Operations != 0 {
		t.Errorf("a second Prune gave %+v", p)
	}
}

// TestCleansUpByItself begins a clean-up when it opens a history, every so
// many operations, and before a read when the last is long ago.
func TestCleansUpByItself(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.sqlite3")
	c := newClock()
	now := make(chan time.Time, 1)
	now <- c.now
	opts := &sqlite.Options{
		TTL: day, MaxDatabaseBytes: 1 << 20, Config: &history.Config{CleanupIntervalOperations: 20},
		Now: func() time.Time { at := <-now; now <- at; return at },
	}
	later := func(by time.Duration) { <-now; c.now = c.now.Add(by); now <- c.now }
	s := open(t, path, opts)
	for range 40 {
		c.record(t, s, 64<<10)
	}
	eventually(t, "the oldest go by their number", func() bool {
		var n int
		scanOne(t, path, `select count(*) from history_events`, &n)
		return n < 30
	})
	later(2 * day)
	if n := count(t, s); n != 0 {
		t.Errorf("List gave %d operations that have expired", n)
	}
	empty := func() bool {
		var n int
		scanOne(t, path, `select count(*) from history_events`, &n)
		return n == 0
	}
	eventually(t, "what has expired goes with a read", empty)
	c.record(t, s, 0)
	must(t, s.Close())
	later(30 * time.Minute) // the last clean-up is not an hour ago
	opts.TTL = time.Minute
	s = open(t, path, opts)
	op := mustBegin(t, s)
	eventually(t, "what has expired goes when it is opened", func() bool {
		var n int
		scanOne(t, path, `select count(*) from history_events`, &n)
		return n == 1
	})
	if got := kept(t, s, op); !got[0] {
		t.Error("what runs is gone")
	}
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for late := time.Now().Add(20 * time.Second); !is(); <-tick.C {
		if time.Now().After(late) {
			t.Fatalf("not in time: %s", what)
		}
	}
}

// TestRetentionBesidePython records 10 000 operations at a small cap while the
// Python package's own clean-up runs beside ours: nothing goes that a consumer
// has not acknowledged, and the file stays under twice the cap.
func TestRetentionBesidePython(t *testing.T) {
	limit, total := int64(2<<20), 10_000
	if testing.Short() {
		limit, total = 1<<20, 1_500
	}
	path := filepath.Join(t.TempDir(), "history.sqlite3")
	h := newHelper(t, path)
	s := open(t, path, &sqlite.Options{MaxDatabaseBytes: limit})
	must(t, s.Acknowledge(t.Context(), "mirror", 0))

	stop := make(chan struct{})
	cleaned := make(chan error, 1)
	go func() {
		deleted := 0.0
		for {
			select {
			case <-stop:
				t.Logf("the helper deleted %v operations", deleted)
				cleaned <- nil
				return
			default:
			}
			got, err := h.call("cleanup", "--ttl-days", "7", "--max-bytes", fmt.Sprint(limit), "--overflow-policy", "delete_oldest")
			if err != nil {
				cleaned <- err
				return
			}
			if n, ok := got["deleted_operations"].(float64); ok {
				deleted += n
			}
		}
	}()
	written := make(chan error, 1)
	credit := make(chan struct{}, 500) // the reader is never further behind
	go func() { written <- writeMany(t, s, total, credit) }()
	read, largest := readAll(t, s, total, credit)
	must(t, <-written)
	close(stop)
	must(t, <-cleaned)
	if read != total {
		t.Errorf("the consumer read %d operations, want %d", read, total)
	}
	if largest >= 2*limit {
		t.Errorf("the file grew to %d bytes, at a cap of %d", largest, limit)
	}
	var n int
	scanOne(t, path, `select count(*) from history_events`, &n)
	if p := prune(t, s); p.Bytes > limit || n == total {
		t.Errorf("Prune gave %+v with %d operations kept before", p, n)
	}
	gaps, err := s.List(t.Context(), &history.Filter{Types: []string{history.HistoryGap}})
	if err != nil || len(gaps.Operations) > 0 {
		t.Errorf("List of gaps gave %+v, %v", gaps, err)
	}
	must(t, s.Check(t.Context()))
	t.Logf("%d kept, the file had at most %d bytes", n, largest)
}

func writeMany(t *testing.T, s *sqlite.Store, total int, credit chan<- struct{}) error {
	for range total {
		credit <- struct{}{}
		op := benchOperation()
		op.ID = id.New()
		if err := s.Begin(t.Context(), op); err != nil {
			return err
		}
		if err := s.Finish(t.Context(), op.ID, &history.End{Status: sandbox.Succeeded, OutputComplete: true}); err != nil {
			return err
		}
	}
	return nil
}

// readAll follows the feed, looks at each operation that has ended, and
// acknowledges.
func readAll(t *testing.T, s *sqlite.Store, total int, credit <-chan struct{}) (read int, largest int64) {
	t.Helper()
	query := &history.ChangeQuery{Wait: 10 * time.Second, Limit: 200}
	for read < total {
		feed, err := s.Changes(t.Context(), query)
		must(t, err)
		if feed.Reset || len(feed.Changes) == 0 {
			t.Fatalf("after %d operations the feed is %+v", read, feed)
		}
		for _, c := range feed.Changes {
			if c.Type != history.Completed {
				continue
			}
			if _, err := s.Get(t.Context(), c.Operation); err != nil {
				t.Fatalf("what was not acknowledged is gone: %v", err)
			}
			read++
			<-credit
		}
		query.After = feed.Next
		must(t, s.Acknowledge(t.Context(), "mirror", feed.Next))
		largest = max(largest, fileSize(t, s.Path()))
	}
	return read, largest
}

func fileSize(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	must(t, err)
	return info.Size()
}

// A few large operations must not wait for the hundredth.
func TestCleansUpByBytes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.sqlite3")
	c := newClock()
	const limit = 4 << 20
	now := c.now
	s := open(t, path, &sqlite.Options{MaxDatabaseBytes: limit, Now: func() time.Time { return now }})
	for i := range 60 {
		c.record(t, s, 512<<10)
		eventually(t, "the file stays under twice the limit", func() bool {
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			return i < 8 || info.Size() < 2*limit
		})
	}
}
