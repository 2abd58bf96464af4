package syncer_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/history/sqlite"
	"github.com/glassboxhq/glassbox/internal/console/mirror"
	"github.com/glassboxhq/glassbox/internal/db"
	"github.com/glassboxhq/glassbox/internal/db/dbtest"
	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/sandbox"
)

// work does some of everything, recorded.
func (b *box) work(t *testing.T, n int) {
	t.Helper()
	s := b.session(t)
	ctx := history.WithActor(t.Context(), history.Actor{ID: "coder", Run: "run-1"})
	for i := range n {
		if _, err := s.Run(ctx, &sandbox.Command{Line: fmt.Sprintf("echo 你好 %d; echo err >&2; touch made-%d; exit %d", i, i, i%3), Env: map[string]string{"X": "y"}}); err != nil {
			t.Error(err)
		}
	}
	if _, err := s.Run(ctx, &sandbox.Command{Line: `head -c 3000000 /dev/urandom`, MaxOutput: 10}); err != nil {
		t.Error(err)
	}
	if _, err := s.Run(ctx, &sandbox.Command{Line: "echo on a terminal; sleep 0.1; stty size", Terminal: &sandbox.TerminalSize{Columns: 80, Rows: 24}}); err != nil {
		t.Error(err)
	}
	if _, err := s.Write(ctx, "a<&>.txt", strings.NewReader("one\ntwo\n"), nil); err != nil {
		t.Error(err)
	}
	if _, err := s.Write(ctx, "a<&>.txt", strings.NewReader("one\n2\n"), nil); err != nil {
		t.Error(err)
	}
	if _, err := s.Read(ctx, "missing", nil); err == nil {
		t.Error("a file that is not there was read")
	}
}

// TestFollow compares what several writers recorded, before and while the
// syncer runs, with the mirror.
func TestFollow(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		boxes := newBoxes(t, 3)
		boxes[0].work(t, 5)
		s, m := start(t, newFleet(boxes...), d, nil)
		var writers sync.WaitGroup
		for _, b := range boxes {
			for range 3 {
				writers.Go(func() { b.work(t, 5) })
			}
		}
		writers.Wait()
		for _, b := range boxes {
			wantSame(t, s, m, "local", b)
			if len(read(t, newest(t, m, "local", b.id)).Terminals) == 0 {
				t.Error("no terminal was mirrored")
			}
		}
		eventually(t, "the sandboxes are told what is stored", func() bool {
			list, err := m.Histories(t.Context(), "local", boxes[0].id)
			if err != nil {
				t.Fatal(err)
			}
			return list[0].Acknowledged == list[0].Position
		})
		eventually(t, "a word of the output is found", func() bool {
			result, err := m.List(t.Context(), &mirror.Query{Filter: history.Filter{Text: "你好"}, Sandbox: boxes[1].id})
			if err != nil {
				t.Fatal(err)
			}
			return len(result.Hits) == 15
		})
		box, err := m.Sandbox(t.Context(), "local", boxes[0].id)
		if err != nil || box.Recording != mirror.Recorded || box.Problem != "" {
			t.Errorf("%+v, %v", box, err)
		}
	})
}

// A command is seen while it runs, soon after it begins.
func TestLive(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		b := newBoxes(t, 1)[0]
		b.run(t, "true")
		s, m := start(t, newFleet(b), d, &syncOptions{Wait: time.Minute})
		wantSame(t, s, m, "local", b)
		var slowest time.Duration
		for range 10 {
			after, err := m.LastEvent(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			session := b.session(t)
			go func() {
				if _, err := session.Run(t.Context(), &sandbox.Command{Line: "echo here; sleep 0.3"}); err != nil {
					t.Error(err)
				}
			}()
			for ended := false; !ended; {
				events, err := m.Events(t.Context(), after, 100, 10*time.Second)
				if err != nil || len(events) == 0 {
					t.Fatalf("no event: %v", err)
				}
				if d := time.Since(began); after < events[0].No && events[0].Change.Type == history.Created && d > slowest {
					slowest = d
				}
				after = events[len(events)-1].No
				for _, e := range events {
					ended = ended || e.Change.Type == history.Completed
				}
			}
		}
		t.Logf("slowest from the call to the event: %s", slowest)
	})
}

// A sandbox that is made later is found; one that has no recorder is listed.
func TestFind(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFleet()
		s, m := start(t, f, d, nil)
		plain := &box{id: id.New()}
		f.add("local", plain)
		eventually(t, "listed as not recorded", func() bool {
			box, err := m.Sandbox(t.Context(), "local", plain.id)
			return err == nil && box.Recording == mirror.NotRecorded && box.Problem == ""
		})
		b := newBoxes(t, 1)[0]
		b.work(t, 2)
		f.add("local", b)
		wantSame(t, s, m, "local", b)
		f.add("later", newBoxes(t, 1)...)
		f.mu.Lock()
		for _, other := range f.services["later"] {
			b = other
		}
		f.mu.Unlock()
		b.work(t, 1)
		eventually(t, "found on a new connection", func() bool { return newest(t, m, "later", b.id) != nil })
		wantSame(t, s, m, "later", b)
	})
}

// A sandbox that has died leaves its history whole.
func TestDeath(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		boxes := newBoxes(t, 3)
		kept, lost, early := boxes[0], boxes[1], boxes[2]
		early.work(t, 2)
		early.settle(t) // it dies with all told
		f := newFleet(kept, lost)
		f.remove(early, true) // before anybody followed it
		s, m := start(t, f, d, nil)
		kept.work(t, 2)
		lost.work(t, 2)
		lost.settle(t)
		wantSame(t, s, m, "local", kept)
		wantSame(t, s, m, "local", lost)
		running := &history.Operation{
			ID: id.New(), Type: history.CommandExecute, Status: sandbox.Started, Source: "sdk", StartedAt: time.Now().UTC(),
			Request: history.EncodeRequest(map[string]any{}), Command: &history.Command{Line: "sleep 99"},
		}
		if err := kept.store.Begin(t.Context(), running); err != nil {
			t.Fatal(err)
		}
		f.remove(kept, true)
		f.remove(lost, false)
		for _, b := range boxes {
			eventually(t, "the history ends of "+b.path, func() bool {
				list, err := m.Histories(t.Context(), "local", b.id)
				if err != nil {
					t.Fatal(err)
				}
				return len(list) == 1 && !list[0].EndedAt.IsZero()
			})
		}
		got := read(t, newest(t, m, "local", kept.id))
		last := got.Operations[len(got.Operations)-1]
		if last.ID != running.ID || last.Status != sandbox.Lost || !strings.Contains(string(last.Result), "ended while this ran") {
			t.Errorf("what ran: %+v", last)
		}
		for _, b := range []*box{lost, early} {
			if diff := difference(t, m, "local", b.id, b.store); diff != "" {
				t.Errorf("(-source +mirror):\n%s", diff)
			}
		}
		box, err := m.Sandbox(t.Context(), "local", lost.id)
		if err != nil || box.GoneAt.IsZero() {
			t.Errorf("%+v, %v", box, err)
		}
	})
}

// Where it is set, a history goes with its sandbox.
func TestDiesWithSandbox(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		boxes := newBoxes(t, 4)
		kept, lost, early, other := boxes[0], boxes[1], boxes[2], boxes[3]
		early.work(t, 1)
		f := newFleet(kept, lost)
		f.add("slow", other)
		f.remove(early, true)
		limits := &mirror.Limits{ByConnection: map[string]mirror.Limits{"local": {Dies: true}}}
		s, m := start(t, f, d, &syncOptions{Wait: 2 * time.Second, Limits: func(context.Context) (*mirror.Limits, error) { return limits, nil }})
		for name, b := range map[string]*box{"local": kept, "slow": other} {
			b.work(t, 2)
			wantSame(t, s, m, name, b)
		}
		lost.work(t, 1)
		wantSame(t, s, m, "local", lost)
		f.remove(kept, true)
		f.remove(lost, false)
		f.remove(other, false)
		eventually(t, "the other's history ends", func() bool {
			list, err := m.Histories(t.Context(), "slow", other.id)
			return err == nil && len(list) == 1 && !list[0].EndedAt.IsZero()
		})
		for _, b := range []*box{kept, lost, early} {
			eventually(t, "the history goes of "+b.path, func() bool {
				list, err := m.Histories(t.Context(), "local", b.id)
				if err != nil {
					t.Fatal(err)
				}
				_, err = m.Sandbox(t.Context(), "local", b.id)
				return len(list) == 0 && errors.Is(err, sandbox.ErrNotFound)
			})
		}
	})
}

// What hangs slows nobody.
func TestHanging(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		fast, slow := newBoxes(t, 3), newBoxes(t, 3)
		f := newFleet(fast...)
		f.add("slow", slow...)
		s, m := start(t, f, d, &syncOptions{Wait: time.Second, Request: 2 * time.Second, Retry: 50 * time.Millisecond})
		for _, b := range slow {
			b.work(t, 1)
			eventually(t, "it is followed", func() bool { return newest(t, m, "slow", b.id) != nil })
			wantSame(t, s, m, "slow", b)
		}
		f.mu.Lock()
		f.hanging["slow"] = true
		f.mu.Unlock()
		for _, b := range slow {
			b.CloseClientConnections()
			b.Config.SetKeepAlivesEnabled(false)
		}
		for _, b := range fast {
			b.work(t, 3)
			// Nothing bounds the other's silence but this.
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			err := s.CatchUp(ctx, "local", b.id)
			if cancel(); err != nil {
				t.Errorf("a fast one: %v", err)
			}
			wantSame(t, s, m, "local", b)
		}
		eventually(t, "it is told since when the other does not answer", func() bool {
			box, err := m.Sandbox(t.Context(), "slow", slow[0].id)
			if err != nil {
				t.Fatal(err)
			}
			return !box.FailingSince.IsZero() && box.Problem != ""
		})
		f.mu.Lock()
		f.hanging["slow"] = false
		f.mu.Unlock()
		slow[0].work(t, 2)
		wantSame(t, s, m, "slow", slow[0])
	})
}

// What its sandbox has no more, the mirror keeps.
func TestReplaced(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		damage  func(t *testing.T, b *box)
		further int // operations afterwards
	}{
		{"removed", func(t *testing.T, b *box) { removeHistory(t, b.path) }, 1},
		{"removed, and longer than before", func(t *testing.T, b *box) { removeHistory(t, b.path) }, 30},
		{"another", func(t *testing.T, b *box) {
			other := newBox(t, b.id, filepath.Join(t.TempDir(), "history.sqlite3"), nil)
			other.work(t, 10)
			if err := other.store.Close(); err != nil {
				t.Fatal(err)
			}
			data, err := os.ReadFile(other.path)
			if err != nil {
				t.Fatal(err)
			}
			removeHistory(t, b.path)
			if err := os.WriteFile(b.path, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				b := newBoxes(t, 1)[0]
				s, m := start(t, newFleet(b), d, nil)
				b.work(t, 2)
				wantSame(t, s, m, "local", b)
				before := read(t, newest(t, m, "local", b.id))
				tt.damage(t, b)
				for range tt.further {
					b.run(t, "echo after")
				}
				eventually(t, "the next generation", func() bool {
					list, err := m.Histories(t.Context(), "local", b.id)
					if err != nil {
						t.Fatal(err)
					}
					return len(list) == 2
				})
				wantSame(t, s, m, "local", b)
				list, err := m.Histories(t.Context(), "local", b.id)
				if err != nil || len(list) != 2 || list[1].EndedAt.IsZero() {
					t.Fatalf("%+v, %v", list, err)
				}
				old := read(t, m.Reader(list[1].No))
				if n := len(before.Operations); len(old.Operations) != n+1 || old.Operations[n-1].ID != before.Operations[n-1].ID || old.Operations[n].Type != history.HistoryGap {
					t.Errorf("of %d operations %d are kept", n, len(old.Operations))
				}
			})
		})
	}
}

// A history that was replaced while no syncer ran, and has gone beyond the place
// at which the last one stopped, is known by what it tells of that place.
func TestReplacedMeanwhile(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		b := newBoxes(t, 1)[0]
		m := mirror.New(d, nil)
		for range 3 {
			b.run(t, "echo before")
		}
		runOnce(t, b, m)
		before := read(t, newest(t, m, "local", b.id))
		removeHistory(t, b.path)
		for range 10 {
			b.run(t, "echo after")
		}
		s, _ := start(t, newFleet(b), d, nil)
		eventually(t, "the next generation", func() bool {
			list, err := m.Histories(t.Context(), "local", b.id)
			return err == nil && len(list) == 2
		})
		wantSame(t, s, m, "local", b)
		list, err := m.Histories(t.Context(), "local", b.id)
		if err != nil {
			t.Fatal(err)
		}
		old := read(t, m.Reader(list[1].No))
		if len(old.Operations) != len(before.Operations)+1 || len(gaps(old)) != 1 {
			t.Errorf("of %d operations %d are kept", len(before.Operations), len(old.Operations))
		}
	})
}

// runOnce runs a syncer until it has all of a box.
func runOnce(t *testing.T, b *box, m *mirror.Mirror) {
	t.Helper()
	stop, cancel := context.WithCancel(t.Context())
	s := newSyncer(newFleet(b), m)
	ended := make(chan error, 1)
	go func() { ended <- s.Run(stop) }()
	wantSame(t, s, m, "local", b)
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}

func removeHistory(t *testing.T, path string) {
	t.Helper()
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(path + suffix); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
}

// While the syncer reads, what it has not read is not deleted; what was deleted
// while none ran is a gap.
func TestRetention(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		var mu sync.Mutex
		now := time.Now()
		clock := func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
		b := newBox(t, id.New(), filepath.Join(t.TempDir(), "history.sqlite3"), &sqlite.Options{Now: clock})
		b.work(t, 3)
		for range 2 { // the second time there is nothing new
			runOnce(t, b, mirror.New(d, nil))
		}
		b.work(t, 4)
		mu.Lock()
		now = now.Add(60 * 24 * time.Hour) // no reader is active any more
		mu.Unlock()
		if _, err := b.store.Prune(t.Context()); err != nil {
			t.Fatal(err)
		}
		m := mirror.New(d, nil)
		had := len(read(t, newest(t, m, "local", b.id)).Operations)
		writeAt(t, b, clock())
		s, _ := start(t, newFleet(b), d, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := s.CatchUp(ctx, "local", b.id); err != nil {
			t.Fatal(err)
		}
		got := read(t, newest(t, m, "local", b.id))
		missing := gaps(got)
		if len(got.Operations) != had+2 || len(missing) != 1 || !strings.Contains(string(missing[0].Request), `"operations":9`) {
			t.Errorf("%d operations, had %d, gaps %+v", len(got.Operations), had, missing)
		}
		for i, op := range got.Operations[1:] {
			if op.Seq <= got.Operations[i].Seq {
				t.Errorf("number %d comes after %d", op.Seq, got.Operations[i].Seq)
			}
		}
		// From now on it protects.
		eventually(t, "the sandbox is told", func() bool {
			list, err := m.Histories(t.Context(), "local", b.id)
			return err == nil && list[0].Acknowledged == list[0].Position
		})
	})
}

func writeAt(t *testing.T, b *box, at time.Time) {
	t.Helper()
	op := &history.Operation{
		ID: id.New(), Type: history.SandboxRenew, Status: sandbox.Started, Source: "sdk", StartedAt: at.UTC(), Request: history.EncodeRequest(map[string]any{}),
	}
	if err := b.store.Begin(t.Context(), op); err != nil {
		t.Fatal(err)
	}
	if err := b.store.Finish(t.Context(), op.ID, &history.End{Status: sandbox.Succeeded, At: at.UTC(), OutputComplete: true}); err != nil {
		t.Fatal(err)
	}
}

// A history that is erased while its sandbox lives does not come back.
func TestErased(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		b := newBoxes(t, 1)[0]
		s, m := start(t, newFleet(b), d, nil)
		b.work(t, 3)
		wantSame(t, s, m, "local", b)
		if _, err := m.Erase(t.Context(), "local", b.id, history.Actor{ID: "李"}); err != nil {
			t.Fatal(err)
		}
		res := b.run(t, "echo later")
		if err := s.CatchUp(t.Context(), "local", b.id); err != nil {
			t.Fatal(err)
		}
		got := read(t, newest(t, m, "local", b.id))
		if len(got.Operations) != 2 || got.Operations[0].Type != mirror.HistoryErase || got.Operations[1].ID != res.OperationID {
			t.Errorf("%d operations are left", len(got.Operations))
		}
	})
}
