package sqlite_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/history/sqlite"
	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/sandbox"
)

// BenchmarkBegin records one operation after the other, each durable before
// the next.
func BenchmarkBegin(b *testing.B) {
	s := openBench(b)
	for b.Loop() {
		if err := s.Begin(b.Context(), benchOperation()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkBareBegin commits the same rows without the store.
func BenchmarkBareBegin(b *testing.B) {
	bare := newBare(b)
	for b.Loop() {
		bare.begin(b, benchOperation())
	}
}

// BenchmarkBeginRatio does both in turn, so that the same moment of the
// machine weighs on both, and reports medians.
func BenchmarkBeginRatio(b *testing.B) {
	s, bare := openBench(b), newBare(b)
	var ours, theirs []time.Duration
	for b.Loop() {
		begun := time.Now()
		if err := s.Begin(b.Context(), benchOperation()); err != nil {
			b.Fatal(err)
		}
		between := time.Now()
		bare.begin(b, benchOperation())
		ours, theirs = append(ours, between.Sub(begun)), append(theirs, time.Since(between))
	}
	slices.Sort(ours)
	slices.Sort(theirs)
	p50, bare50 := ours[len(ours)/2], theirs[len(theirs)/2]
	b.ReportMetric(float64(p50.Microseconds()), "store-µs")
	b.ReportMetric(float64(bare50.Microseconds()), "bare-µs")
	b.ReportMetric(float64(p50)/float64(bare50), "ratio")
}

// BenchmarkBatched records whole operations (begin, one append, end) by many
// callers at once.
func BenchmarkBatched(b *testing.B) {
	s := openBench(b)
	b.SetParallelism(64)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			op := benchOperation()
			if err := s.Begin(b.Context(), op); err != nil {
				b.Error(err)
			}
			if err := s.Append(b.Context(), op.ID, benchChunk(0)); err != nil {
				b.Error(err)
			}
			if err := s.Finish(b.Context(), op.ID, &history.End{Status: sandbox.Succeeded, OutputComplete: true}); err != nil {
				b.Error(err)
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "operations/s")
	b.ReportMetric(3*float64(b.N)/b.Elapsed().Seconds(), "records/s")
}

// BenchmarkBatchedImport adds operations that have ended, by many callers.
func BenchmarkBatchedImport(b *testing.B) {
	s := openBench(b)
	b.SetParallelism(64)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			op := benchOperation()
			op.Status = sandbox.Succeeded
			if err := s.Import(b.Context(), op); err != nil {
				b.Error(err)
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "operations/s")
}

// BenchmarkBatchedAppend appends to many operations at once.
func BenchmarkBatchedAppend(b *testing.B) {
	s := openBench(b)
	var n atomic.Int64
	b.SetParallelism(64)
	b.RunParallel(func(pb *testing.PB) {
		op := benchOperation()
		if err := s.Begin(b.Context(), op); err != nil {
			b.Error(err)
		}
		offset := int64(0)
		for pb.Next() {
			if err := s.Append(b.Context(), op.ID, benchChunk(offset)); err != nil {
				b.Error(err)
			}
			offset += int64(len(benchText))
			n.Add(1)
		}
	})
	b.ReportMetric(float64(n.Load())/b.Elapsed().Seconds(), "appends/s")
}

func openBench(b *testing.B) *sqlite.Store {
	s, err := sqlite.Open(filepath.Join(b.TempDir(), "history.sqlite3"), nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	// The first record makes the file.
	if err := s.Begin(b.Context(), benchOperation()); err != nil {
		b.Fatal(err)
	}
	return s
}

const benchText = "a line of output, as a build prints it\n"

func benchChunk(offset int64) []sandbox.Chunk {
	return []sandbox.Chunk{{Stream: sandbox.Stdout, Offset: offset, Time: time.Now(), Data: []byte(benchText)}}
}

func benchOperation() *history.Operation {
	const line = "sh -c true"
	return &history.Operation{
		ID: id.New(), Type: history.CommandExecute, Source: history.SourceSDK, StartedAt: time.Now(),
		Actor: history.Actor{
			Type: history.Agent, ID: "coder", Thread: "thread-1", Run: "run-1",
			Correlation: "01a22841-75d1-7ac2-8893-7a5a34ae46b4",
		},
		Request: history.EncodeRequest(map[string]any{"command": line, "cwd": "/workspace", "timeout_seconds": nil}),
		Command: &history.Command{Line: line, Dir: "/workspace"},
	}
}

// bare is a connection with prepared statements and nothing around it.
type bare struct {
	conn *sql.Conn
	stmt map[string]*sql.Stmt
}

func newBare(tb testing.TB) *bare {
	name := filepath.Join(tb.TempDir(), "history.sqlite3")
	db, err := sql.Open("sqlite", "file:"+name+"?_pragma=busy_timeout(5000)&_pragma=journal_mode(wal)&_pragma=synchronous(normal)&_pragma=foreign_keys(1)")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { db.Close() })
	conn, err := db.Conn(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { conn.Close() })
	if _, err := conn.ExecContext(tb.Context(), sqlite.Schema); err != nil {
		tb.Fatal(err)
	}
	return &bare{conn: conn, stmt: map[string]*sql.Stmt{}}
}

func (c *bare) exec(tb testing.TB, query string, args ...any) {
	st := c.stmt[query]
	if st == nil {
		var err error
		if st, err = c.conn.PrepareContext(context.Background(), query); err != nil {
			tb.Fatal(err)
		}
		c.stmt[query] = st
	}
	if _, err := st.ExecContext(context.Background(), args...); err != nil {
		tb.Fatal(fmt.Errorf("%s: %w", query, err))
	}
}

func (c *bare) begin(tb testing.TB, op *history.Operation) {
	at := history.FormatTime(op.StartedAt)
	c.exec(tb, `begin immediate`)
	c.exec(tb, `insert into history_events (event_id, provider_key, sandbox_id, sandbox_instance_id, source, actor_type,
			actor_id, thread_id, run_id, correlation_id, operation_type, status, occurred_at, request_json)
		values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'started', ?, ?)`,
		op.ID, sqlite.DefaultProviderKey, sqlite.DefaultSandboxID, "legacy-d1d3ac53d8f0a8ed51a8bf86dd6e1f5a", op.Source,
		op.Actor.Type, op.Actor.ID, op.Actor.Thread, op.Actor.Run, op.Actor.Correlation, op.Type, at, string(op.Request))
	c.exec(tb, `insert into command_executions (event_id, command, cwd) values (?, ?, ?)`, op.ID, op.Command.Line, op.Command.Dir)
	c.exec(tb, `insert into history_changes (change_id, event_id, change_type, changed_at) values (?, ?, 'created', ?)`,
		op.ID+":created", op.ID, at)
	c.exec(tb, `commit`)
}

// BenchmarkRead reads from a history of many operations: the newest page, a
// page of a filter, and a text that is nowhere.
func BenchmarkRead(b *testing.B) {
	s := openBench(b)
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			for range benchOperations / 16 {
				op := benchOperation()
				if err := s.Begin(b.Context(), op); err != nil {
					b.Error(err)
				}
				end := &history.End{Status: sandbox.Succeeded, Chunks: benchChunk(0)}
				if err := s.Finish(b.Context(), op.ID, end); err != nil {
					b.Error(err)
				}
			}
		})
	}
	group.Wait()
	for _, bb := range []struct {
		name   string
		filter history.Filter
	}{
		{"Newest", history.Filter{Newest: true}},
		{"Status", history.Filter{Statuses: []sandbox.Status{sandbox.Succeeded}, Types: []string{history.CommandExecute}, Newest: true}},
		{"Rare", history.Filter{Statuses: []sandbox.Status{sandbox.Unsuccessful}}},
		{"Text", history.Filter{Text: "错误"}},
	} {
		b.Run(bb.name, func(b *testing.B) {
			for b.Loop() {
				if _, err := s.List(b.Context(), &bb.filter); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

const benchOperations = 32_000
