package mirror_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/console/mirror"
	"github.com/glassboxhq/glassbox/internal/db"
	"github.com/glassboxhq/glassbox/internal/db/dbtest"
	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/sandbox"
)

// each runs a test on an empty mirror on each kind of database.
func each(t *testing.T, test func(t *testing.T, m *mirror.Mirror)) {
	t.Helper()
	dbtest.Each(t, func(t *testing.T, d *db.DB) { test(t, mirror.New(d, nil)) })
}

func begin(t *testing.T, m *mirror.Mirror, sandboxID string) *mirror.History {
	t.Helper()
	h, err := m.History(t.Context(), "local", sandboxID, "")
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func store(t *testing.T, m *mirror.Mirror, h *mirror.History, b *mirror.Batch) {
	t.Helper()
	if err := m.Store(t.Context(), h, b); err != nil {
		t.Fatal(err)
	}
}

func at(seconds int) time.Time {
	return time.Date(2026, 11, 30, 12, 0, 0, 123456000, time.UTC).Add(time.Duration(seconds) * time.Second)
}

// command is a finished command.
func command(seq int64, line string) *history.Operation {
	exit := 0
	return &history.Operation{
		Seq: seq, ID: id.New(), Type: history.CommandExecute, Status: sandbox.Succeeded, Source: history.SourceSDK,
		Actor:     history.Actor{Type: history.Agent, ID: "coder", Thread: "t", Run: "r", Correlation: "c", TraceParent: "00-1-2-01"},
		StartedAt: at(int(seq)), CompletedAt: at(int(seq) + 1), Duration: time.Second + 7*time.Microsecond, DurationMS: 1000,
		Request: history.EncodeRequest(map[string]any{"command": line}), Result: json.RawMessage(`{"exit_code":0}`),
		Command: &history.Command{
			Line: line, Dir: "/workspace", Env: map[string]string{"A": "***"}, TimeoutMS: 5, ExitCode: &exit, OutputComplete: true,
			Recording: sandbox.RecordedWhole,
		},
	}
}

func entries(ops ...*history.Operation) (list []mirror.Entry) {
	for _, op := range ops {
		list = append(list, mirror.Entry{Operation: op, ChangeSeq: 2 * op.Seq})
	}
	return list
}

// kinds is an operation of each kind, and some that hostile writers make.
func kinds() []*history.Operation {
	size, zero := int64(5), int64(0)
	running := command(2, "sleep 9 <&1 && echo '你好'")
	running.Status, running.CompletedAt, running.Result, running.Command.ExitCode = sandbox.Started, time.Time{}, nil, nil
	running.Duration, running.DurationMS = 0, 0
	file := command(3, "")
	file.Type, file.Command = history.FileWrite, nil
	file.File = &history.File{
		Path: "/workspace/a\x00b/\u2028<é>.txt", OldPath: "/old", Change: "write", BeforeHash: "h0", AfterHash: "h1", BeforeSize: &zero, AfterSize: &size,
		Diff: "-a\n+b <&>\n", DiffTruncated: true,
	}
	file.Request = json.RawMessage(`{"path":"\u0000<x>","z":1.50}`)
	changed := command(4, "make")
	changed.Changes = &history.Changes{
		Created: []history.FileChange{{Path: "/workspace/new", Size: &size}}, Deleted: []history.FileChange{{Path: "/workspace/dir", Type: "directory"}},
		Changed:      []history.FileChange{{Path: "/workspace/c", Size: &size, PreviousSize: &zero, Attributes: true}},
		CreatedCount: 1, DeletedCount: 7, ChangedCount: 1, Incomplete: "too many", With: []string{"x"},
	}
	foreign := command(5, "ls")
	foreign.Foreign, foreign.Request, foreign.Result = true, nil, json.RawMessage(`{"unreadable":"x"}`)
	broken := &history.Operation{Seq: 6, ID: "not an id \x00", Type: "odd\x00", Status: sandbox.Lost}
	network := command(7, "")
	network.Type, network.Command, network.Source = history.NetworkConnect, nil, history.SourceProxy
	create := command(8, "")
	create.Type, create.Command, create.Actor = history.SandboxCreate, nil, history.Actor{Type: history.System, Source: "sdk"}
	return []*history.Operation{command(1, "true"), running, file, changed, foreign, broken, network, create}
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, m *mirror.Mirror) {
		h := begin(t, m, "box")
		want := kinds()
		for range 2 { // a batch that is repeated changes nothing
			store(t, m, h, &mirror.Batch{Operations: entries(want...), Position: 16})
		}
		r := m.Reader(h.No)
		page, err := r.List(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, page.Operations); diff != "" || page.More {
			t.Errorf("List (-want +got), more %v:\n%s", page.More, diff)
		}
		for _, op := range want {
			got, err := r.Get(t.Context(), op.ID)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(op, got); diff != "" {
				t.Errorf("Get (-want +got):\n%s", diff)
			}
			hit, err := m.Find(t.Context(), op.ID)
			if err != nil || hit.Sandbox != "box" || hit.Connection != "local" || hit.Generation != 1 {
				t.Errorf("Find: %+v, %v", hit, err)
			}
		}
		if _, err := r.Get(t.Context(), id.New()); !errors.Is(err, sandbox.ErrNotFound) {
			t.Errorf("unknown id: %v", err)
		}
	})
}

// What was read earlier does not overwrite what was read later.
func TestLateState(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, m *mirror.Mirror) {
		h := begin(t, m, "box")
		op := command(1, "true")
		started := *op
		started.Status = sandbox.Started
		store(t, m, h, &mirror.Batch{Operations: []mirror.Entry{{Operation: op, ChangeSeq: 2}}})
		store(t, m, h, &mirror.Batch{Operations: []mirror.Entry{{Operation: &started, ChangeSeq: 1}}})
		got, err := m.Reader(h.No).Get(t.Context(), op.ID)
		if err != nil || got.Status != sandbox.Succeeded {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

func TestOutput(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, m *mirror.Mirror) {
		h := begin(t, m, "box")
		op := command(1, "seq")
		var whole []byte
		for i := range 40_000 {
			whole = fmt.Appendf(whole, "%d\xff\x00\n", i)
		}
		piece := func(from, to int) mirror.Piece {
			return mirror.Piece{Operation: op.ID, Stream: sandbox.Stdout, Offset: int64(from), Data: whole[from:to]}
		}
		store(t, m, h, &mirror.Batch{Operations: entries(op), Output: []mirror.Piece{piece(0, 10), piece(10, 100_000)}})
		store(t, m, h, &mirror.Batch{Output: []mirror.Piece{piece(5, 90_000), piece(99_000, len(whole))}}) // repeated, overlapping
		r := m.Reader(h.No)
		for _, span := range [][2]int64{{0, 1 << 30}, {0, 0}, {3, 1}, {9, 2}, {65_535, 2}, {99_999, 70_000}, {int64(len(whole)), 5}, {1 << 40, 5}} {
			got, err := r.Output(t.Context(), op.ID, sandbox.Stdout, span[0], span[1])
			from := min(span[0], int64(len(whole)))
			want := whole[from:min(from+span[1], int64(len(whole)))]
			if err != nil || string(got) != string(want) {
				t.Errorf("%v: %d bytes, want %d, %v", span, len(got), len(want), err)
			}
		}
		hole := mirror.Piece{Operation: op.ID, Stream: sandbox.Stderr, Offset: 1, Data: []byte("x")}
		if err := m.Store(t.Context(), h, &mirror.Batch{Output: []mirror.Piece{hole}}); err == nil {
			t.Error("output with a hole was taken")
		}
	})
}

func TestFeed(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, m *mirror.Mirror) {
		h := begin(t, m, "box")
		r := m.Reader(h.No)
		op := command(1, "true")
		woken := make(chan *history.Feed)
		go func() {
			feed, err := r.Changes(t.Context(), &history.ChangeQuery{Wait: time.Minute})
			if err != nil {
				t.Error(err)
			}
			woken <- feed
		}()
		changes := []*history.Change{
			{Seq: 4, ID: op.ID + ":created", Operation: op.ID, Type: history.Created, At: at(1)},
			{Seq: 5, ID: op.ID + ":completed", Operation: op.ID, Type: history.Completed, At: at(2)},
		}
		b := &mirror.Batch{Operations: entries(op), Changes: changes, Position: 5}
		store(t, m, h, b)
		store(t, m, h, b)
		feed := <-woken
		if diff := cmp.Diff(&history.Feed{Changes: changes, Next: 5, Min: 4, Max: 5}, feed); diff != "" {
			t.Errorf("feed (-want +got):\n%s", diff)
		}
		for after, reset := range map[int64]bool{0: false, 1: true, 3: false, 4: false, 5: false, 6: true} {
			feed, err := r.Changes(t.Context(), &history.ChangeQuery{After: after})
			if err != nil || feed.Reset != reset {
				t.Errorf("after %d: %+v, %v", after, feed, err)
			}
		}
		events, err := m.Events(t.Context(), 0, 10, 0)
		if err != nil || len(events) != 2 || events[1].Sandbox != "box" || !cmp.Equal(events[1].Change, changes[1]) {
			t.Errorf("%+v, %v", events, err)
		}
		if last, err := m.LastEvent(t.Context()); err != nil || last != events[1].No {
			t.Errorf("last event %d, %v", last, err)
		}
	})
}

// A history that its sandbox no longer has is kept beside the next one.
func TestReplace(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, m *mirror.Mirror) {
		ctx := t.Context()
		h := begin(t, m, "box")
		running := command(1, "sleep 9")
		running.Status, running.Command.ExitCode = sandbox.Started, nil
		store(t, m, h, &mirror.Batch{Operations: entries(running), Position: 1})
		next, err := m.Replace(ctx, h, "", "the history was replaced")
		if err != nil {
			t.Fatal(err)
		}
		if again, err := m.Replace(ctx, h, "", "the history was replaced"); err != nil || again.No != next.No {
			t.Errorf("replaced twice: %+v, %v", again, err)
		}
		store(t, m, next, &mirror.Batch{Operations: entries(command(1, "new")), Position: 1})
		old, err := m.Reader(h.No).List(ctx, nil)
		if err != nil || len(old.Operations) != 2 {
			t.Fatalf("%+v, %v", old, err)
		}
		if op := old.Operations[0]; op.Status != sandbox.Lost || op.Command.Recording != sandbox.RecordedPart {
			t.Errorf("what ran: %+v", op)
		}
		if op := old.Operations[1]; op.Type != history.HistoryGap || op.Seq != 2 {
			t.Errorf("gap: %+v", op)
		}
		list, err := m.Histories(ctx, "local", "box")
		if err != nil || len(list) != 2 || list[0].No != next.No || list[1].EndedWhy == "" {
			t.Errorf("%+v, %v", list, err)
		}
		other, err := m.History(ctx, "local", "box", "instance-2")
		if err != nil || other.No != next.No { // its instance becomes known
			t.Errorf("%+v, %v", other, err)
		}
		third, err := m.History(ctx, "local", "box", "instance-3")
		if err != nil || third.Generation != 3 {
			t.Errorf("another container: %+v, %v", third, err)
		}
	})
}

func TestSandboxes(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, m *mirror.Mirror) {
		ctx := t.Context()
		info := &sandbox.Info{ID: "box", Name: "研究\x00", State: sandbox.Running, Metadata: map[string]string{"a": "b"}, CreatedAt: at(1)}
		for range 2 {
			if err := m.See(ctx, "local", info, time.Time{}); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			if err := m.SetRecording(ctx, "local", "box", mirror.Recorded, errors.New("does not answer")); err != nil {
				t.Fatal(err)
			}
		}
		box, err := m.Sandbox(ctx, "local", "box")
		if err != nil || box.Name != "研究\uFFFD" || box.Metadata["a"] != "b" || box.Recording != mirror.Recorded || box.FailingSince.IsZero() || !box.GoneAt.IsZero() {
			t.Errorf("%+v, %v", box, err)
		}
		if err := m.SetRecording(ctx, "local", "box", mirror.Recorded, nil); err != nil {
			t.Fatal(err)
		}
		if err := m.Gone(ctx, "local", "box"); err != nil {
			t.Fatal(err)
		}
		list, err := m.Sandboxes(ctx, "")
		if err != nil || len(list) != 1 || list[0].GoneAt.IsZero() || !list[0].FailingSince.IsZero() || list[0].State != sandbox.Terminated {
			t.Errorf("%+v, %v", list, err)
		}
		if _, err := m.Sandbox(ctx, "local", "other"); !errors.Is(err, sandbox.ErrNotFound) {
			t.Errorf("unknown: %v", err)
		}
	})
}
