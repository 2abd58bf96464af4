package mirror_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/console/mirror"
	"github.com/glassboxhq/glassbox/internal/db"
	"github.com/glassboxhq/glassbox/sandbox"
)

// BenchmarkIndex measures how fast output goes into the index of the search.
func BenchmarkIndex(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	var log strings.Builder
	for log.Len() < 1<<20 {
		fmt.Fprintf(&log, "2026-11-30T12:%02d:%02d INFO request %d from 10.0.%d.%d took %d ms 成功\n", r.IntN(60), r.IntN(60), r.IntN(1e6), r.IntN(256), r.IntN(256), r.IntN(1000))
	}
	random := make([]byte, 1<<20)
	for i := range random {
		random[i] = byte(r.Uint32())
	}
	for name, data := range map[string][]byte{"log": []byte(log.String()), "random": random} {
		b.Run(name, func(b *testing.B) {
			d, err := db.Open(b.Context(), b.TempDir()+"/console.sqlite3")
			if err != nil {
				b.Fatal(err)
			}
			defer d.Close()
			m := mirror.New(d, nil)
			h, err := m.History(b.Context(), "local", "box", "")
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(data)))
			seq := int64(0)
			for b.Loop() {
				seq++
				op := command(seq, "run")
				err := m.Store(b.Context(), h, &mirror.Batch{Operations: entries(op), Output: []mirror.Piece{{Operation: op.ID, Stream: sandbox.Stdout, Data: data}}})
				if err == nil {
					err = m.Index(b.Context())
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

var benchOperations = flag.Int("operations", 20_000, "operations in the mirror of BenchmarkReads")

// BenchmarkReads measures lists and searches in a mirror of -operations
// operations of 20 sandboxes: on SQLite, or in the database that
// GLASSBOX_BENCH_DATABASE names, which it fills.
func BenchmarkReads(b *testing.B) {
	address := os.Getenv("GLASSBOX_BENCH_DATABASE")
	if address == "" {
		address = b.TempDir() + "/console.sqlite3"
	}
	d, err := db.Open(b.Context(), address)
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	m := mirror.New(d, nil)
	fill(b, m, *benchOperations)
	for _, bench := range []struct {
		name  string
		query func(r *rand.Rand) *mirror.Query
	}{
		{"list/newest", func(*rand.Rand) *mirror.Query { return &mirror.Query{} }},
		{"list/failed", func(*rand.Rand) *mirror.Query {
			return &mirror.Query{Filter: history.Filter{Statuses: []sandbox.Status{sandbox.Unsuccessful}}}
		}},
		{"list/sandbox", func(r *rand.Rand) *mirror.Query { return &mirror.Query{Sandbox: fmt.Sprint("box-", r.IntN(20))} }},
		{"list/path", func(r *rand.Rand) *mirror.Query {
			return &mirror.Query{Filter: history.Filter{Path: fmt.Sprint("/workspace/dir-", r.IntN(1000))}}
		}},
		{"search/two characters", func(*rand.Rand) *mirror.Query { return text("退款") }},
		{"search/rare two characters", func(*rand.Rand) *mirror.Query { return text("鲸鱼") }},
		{"search/absent two characters", func(*rand.Rand) *mirror.Query { return text("鱼鲸") }},
		{"search/word of all", func(*rand.Rand) *mirror.Query { return text("python3") }},
		{"search/number", func(r *rand.Rand) *mirror.Query { return text(fmt.Sprint("order-", r.IntN(*benchOperations))) }},
		{"search/two words", func(r *rand.Rand) *mirror.Query { return text(fmt.Sprintf("step 退款 %d", r.IntN(*benchOperations))) }},
		{"search/word and sandbox", func(r *rand.Rand) *mirror.Query {
			q := text("退款")
			q.Sandbox = fmt.Sprint("box-", r.IntN(20))
			return q
		}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			r := rand.New(rand.NewPCG(3, 3))
			var took []time.Duration
			for b.Loop() {
				began := time.Now()
				q := bench.query(r)
				q.Limit = 50
				if _, err := m.List(b.Context(), q); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)*95/100].Microseconds())/1000, "P95-ms")
		})
	}
}

func text(t string) *mirror.Query { return &mirror.Query{Filter: history.Filter{Text: t}} }

func fill(b *testing.B, m *mirror.Mirror, n int) {
	b.Helper()
	if last, err := m.LastEvent(b.Context()); err != nil || last > 0 {
		b.Logf("the database is used as it is: %v", err)
		return
	}
	r := rand.New(rand.NewPCG(2, 2))
	var histories []*mirror.History
	for i := range 20 {
		h, err := m.History(b.Context(), "local", fmt.Sprint("box-", i), "")
		if err != nil {
			b.Fatal(err)
		}
		histories = append(histories, h)
	}
	began, stored := time.Now(), time.Duration(0)
	const batch = 100
	for at := 0; at < n; at += batch {
		h := histories[at/batch%len(histories)]
		part := &mirror.Batch{Position: h.Position + 2*batch}
		for i := range int64(batch) {
			op := command(h.LastSeq+i+1, fmt.Sprintf("python3 run.py --step order-%d", r.IntN(n)))
			op.StartedAt = newYear.Add(time.Duration(at)*time.Second + time.Duration(i)*time.Millisecond)
			out := fmt.Sprintf("step %d: %s\n", r.IntN(n), []string{"订单退款成功", "done", "库存不足", "loading model weights"}[r.IntN(4)])
			if r.IntN(20) == 0 {
				op.Status = sandbox.Unsuccessful
			}
			if r.IntN(10) == 0 {
				op.Changes = &history.Changes{Created: []history.FileChange{{Path: fmt.Sprintf("/workspace/dir-%d/x", r.IntN(1000))}}, CreatedCount: 1}
			}
			if r.IntN(n/3+1) == 0 {
				out += "鲸鱼"
			}
			op.Command.StdoutBytes = int64(len(out))
			part.Operations = append(part.Operations, mirror.Entry{Operation: op, ChangeSeq: part.Position})
			part.Output = append(part.Output, mirror.Piece{Operation: op.ID, Stream: sandbox.Stdout, Data: []byte(out)})
			seq := h.Position + 2*i
			part.Changes = append(part.Changes,
				&history.Change{Seq: seq + 1, ID: op.ID + ":created", Operation: op.ID, Type: history.Created, At: op.StartedAt},
				&history.Change{Seq: seq + 2, ID: op.ID + ":completed", Operation: op.ID, Type: history.Completed, At: op.StartedAt})
		}
		one := time.Now()
		if err := m.Store(b.Context(), h, part); err != nil {
			b.Fatal(err)
		}
		stored += time.Since(one)
		if err := m.Index(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	b.Logf("%d operations in %s: stored %.0f a second, with the index %.0f", n, time.Since(began).Round(time.Second),
		float64(n)/stored.Seconds(), float64(n)/time.Since(began).Seconds())
}

var newYear = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
