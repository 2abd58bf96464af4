package mirror_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/console/mirror"
	"github.com/glassboxhq/glassbox/sandbox"
)

// pick returns one of several.
func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// varied makes operations that differ in all that a filter asks for.
func varied(r *rand.Rand, n int) []*history.Operation {
	var ops []*history.Operation
	for seq := range int64(n) {
		op := command(seq+1, pick(r, "pip install pandas", "echo 退款成功", "ls -la", "查询订单 --all", "grep Error x.log"))
		op.StartedAt = at(r.IntN(50))
		op.Status, op.Source = pick(r, sandbox.Succeeded, sandbox.Lost, sandbox.Started), pick(r, "sdk", "console")
		op.Actor.ID, op.Actor.Thread, op.Actor.Run = pick(r, "a", "b"), pick(r, "t1", "t2"), pick(r, "r1", "r2")
		op.Actor.Type, op.Actor.Correlation = pick(r, "agent", "user"), pick(r, "c1", "c2")
		exit := r.IntN(2)
		op.Command.ExitCode = &exit
		if r.IntN(3) == 0 {
			op.Type, op.Command = history.FileWrite, nil
			op.File = &history.File{Path: pick(r, "/workspace/a", "/workspace/a/b.txt", "/workspace/ab", "/文档/退款.md"), OldPath: pick(r, "", "/tmp/x")}
			op.Request = history.EncodeRequest(map[string]any{"path": op.File.Path})
		} else if r.IntN(3) == 0 {
			op.Changes = &history.Changes{Created: []history.FileChange{{Path: "/workspace/a/made"}}}
		}
		ops = append(ops, op)
	}
	return ops
}

func filters(r *rand.Rand) *history.Filter {
	f := &history.Filter{Newest: r.IntN(2) == 0, Limit: 1 + r.IntN(30)}
	one := 1
	for range 1 + r.IntN(3) {
		switch r.IntN(11) {
		case 0:
			f.Types = []string{history.FileWrite, "x"}
		case 1:
			f.Statuses = []sandbox.Status{sandbox.Lost, sandbox.Started}
		case 2:
			f.Sources = []string{"console"}
		case 3:
			f.ActorID, f.ActorType = "a", "agent"
		case 4:
			f.Thread = "t2"
		case 5:
			f.Run, f.Correlation = "r1", "c2"
		case 6:
			f.Since = at(20)
		case 7:
			f.Until = at(30)
		case 8:
			f.Path = pick(r, "/workspace/a", "/workspace/a/", "/", "/tmp/x", "/文档")
		case 9:
			f.ExitCode = &one
		case 10:
			f.Text = pick(r, "退款", "pandas", "INSTALL p", "error", "单", "la")
		}
	}
	return f
}

// TestFilters compares what is listed, page by page, with what the filter
// itself says of each operation.
func TestFilters(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, m *mirror.Mirror) {
		r := rand.New(rand.NewPCG(7, 7))
		h, other := begin(t, m, "box"), begin(t, m, "other")
		ops := varied(r, 300)
		store(t, m, h, &mirror.Batch{Operations: entries(ops...)})
		store(t, m, other, &mirror.Batch{Operations: entries(varied(r, 50)...)})
		if err := m.Index(t.Context()); err != nil {
			t.Fatal(err)
		}
		for n := range 150 {
			f := filters(r)
			var want []int64
			for _, op := range ops {
				if f.Match(op) {
					want = append(want, op.Seq)
				}
			}
			if f.Newest {
				slices.Reverse(want)
			}
			if diff := cmp.Diff(want, allOf(t, m.Reader(h.No), *f)); diff != "" {
				t.Errorf("%d: filter %+v (-want +got):\n%s", n, f, diff)
			}
			found := map[string]bool{}
			for _, hit := range every(t, m, &mirror.Query{Filter: *f, Sandbox: "box", Connection: "local"}) {
				found[hit.Operation.ID] = true
			}
			// Words of a text need not stand side by side.
			if len(found) != len(want) && f.Text != "INSTALL p" {
				t.Errorf("%d: filter %+v: %d in all histories, want %d", n, f, len(found), len(want))
			}
		}
	})
}

func allOf(t *testing.T, r *mirror.Reader, f history.Filter) (seqs []int64) {
	t.Helper()
	for {
		page, err := r.List(t.Context(), &f)
		if err != nil {
			t.Fatal(err)
		}
		for _, op := range page.Operations {
			seqs = append(seqs, op.Seq)
		}
		if !page.More {
			return seqs
		}
		if f.Newest {
			f.Before = seqs[len(seqs)-1]
		} else {
			f.After = seqs[len(seqs)-1]
		}
	}
}

// every reads all pages, and fails when an operation comes twice.
func every(t *testing.T, m *mirror.Mirror, q *mirror.Query) (hits []*mirror.Hit) {
	t.Helper()
	seen := map[string]bool{}
	for {
		result, err := m.List(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, hit := range result.Hits {
			if key := fmt.Sprint(hit.History, hit.Operation.ID); seen[key] {
				t.Fatalf("%s came twice", key)
			} else {
				seen[key] = true
			}
		}
		hits = append(hits, result.Hits...)
		if result.Next == "" {
			return hits
		}
		q.Cursor = result.Next
	}
}

// many is enough that the index is asked, not every operation.
const many = 2500

// TestSearch looks for words in everything, with the index.
func TestSearch(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, m *mirror.Mirror) {
		h := begin(t, m, "box")
		var ops []*history.Operation
		for seq := range int64(many) {
			ops = append(ops, command(seq+1, fmt.Sprintf("python3 run.py --step %d", seq)))
		}
		needle, write, big, running := command(many+1, "echo '订单退款 成功' | tee /tmp/Ausgabe"), command(many+2, ""), command(many+3, "make"), command(many+4, "tail -f")
		noise := command(many+5, "gzip -c")
		write.Type, write.Command = history.FileWrite, nil
		write.File = &history.File{Path: "/workspace/报告/q3.md", Diff: "-旧\n+新 Ünïcode ÄRGER\n"}
		running.Status = sandbox.Started
		ops = append(ops, needle, write, big, running, noise)
		long := []byte(strings.Repeat("x", partSize-4) + "库存不足 across the border" + strings.Repeat("y\n", partSize) + "at the very end: kaputt")
		store(t, m, h, &mirror.Batch{Operations: entries(ops...), Output: []mirror.Piece{
			{Operation: big.ID, Stream: sandbox.Stdout, Data: long},
			{Operation: big.ID, Stream: sandbox.Stderr, Data: []byte("\xff\xfe\x1b[31mwarnung 编码\x1b[0m\x00")},
			{Operation: running.ID, Stream: sandbox.Stdout, Data: []byte("not yet")},
			{Operation: noise.ID, Stream: sandbox.Stdout, Data: []byte("buried" + strings.Repeat("\xf7gibber\x8b\xff\xfe\xbf\x81", partSize/12+1) + "and then: clearly")},
			{Operation: noise.ID, Stream: sandbox.Stderr, Data: []byte("\xcd\xcb\xbf\xee\xb3\xc9\xb9\xa6 gbkword")},
		}})
		if err := m.Index(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, tt := range []struct {
			text, field string
			want        *history.Operation
		}{
			{"退款", "command", needle},
			{"款 成", "", nil}, // two words: 款 and 成 stand in it
			{`"款 成"`, "", nil},
			{"订单退款", "command", needle},
			{"AUSGABE", "command", needle},
			{"tmp/Aus echo", "command", needle},
			{"报告", "path", write},
			{"ünïcode", "diff", write},
			{"Ärger", "diff", write},
			{"库存", "stdout", big},
			{"库存不足 across", "stdout", big},
			{`"across the border"`, "stdout", big},
			{"kaputt", "stdout", big},
			{"编码", "stderr", big},
			{"[31mwarnung", "stderr", big},
			{"clearly", "stdout", noise},
			{"gbkword", "stderr", noise},
			{"buried", "none", nil}, // in bytes that are no text
			{"款退", "none", nil},
			{"kaputter", "none", nil},
			{"no\x00such", "none", nil},
		} {
			hits := every(t, m, &mirror.Query{Filter: history.Filter{Text: tt.text, Limit: 3}})
			if tt.want == nil {
				if tt.field == "none" && len(hits) > 0 {
					t.Errorf("%q: %d hits", tt.text, len(hits))
				}
				continue
			}
			if len(hits) != 1 || hits[0].Operation.ID != tt.want.ID {
				t.Errorf("%q: %d hits", tt.text, len(hits))
				continue
			}
			s := hits[0].Snippets[0]
			if s.Field != tt.field || strings.ContainsFunc(s.Text, func(r rune) bool { return r < ' ' }) || s.End <= s.Start || s.End > len(s.Text) {
				t.Errorf("%q: snippet %+v", tt.text, s)
			}
		}
		border := every(t, m, &mirror.Query{Filter: history.Filter{Text: "across"}})[0].Snippets[0]
		if border.Offset != int64(partSize-4+len("库存不足 ")) || border.Text[border.Start:border.End] != "across" {
			t.Errorf("%+v", border)
		}
		if hits := every(t, m, &mirror.Query{Filter: history.Filter{Text: "python3 step", Limit: 500}}); len(hits) != many {
			t.Errorf("a word of all: %d hits", len(hits))
		}
		// Too short for the index.
		if hits := every(t, m, &mirror.Query{Filter: history.Filter{Text: "款", Limit: 500}}); len(hits) != 1 {
			t.Errorf("one character: %d hits", len(hits))
		}
		if hits := every(t, m, &mirror.Query{Filter: history.Filter{Text: "退款", Statuses: []sandbox.Status{sandbox.Lost}}}); len(hits) != 0 {
			t.Errorf("with a filter: %d hits", len(hits))
		}
		for _, bad := range []string{" ", `""`, strings.Repeat("x", 513)} {
			if _, err := m.List(t.Context(), &mirror.Query{Filter: history.Filter{Text: bad}}); err == nil {
				t.Errorf("%.10q was looked for", bad)
			}
		}
		if _, err := m.List(t.Context(), &mirror.Query{Cursor: "x"}); err == nil {
			t.Error("any cursor is taken")
		}
	})
}

const partSize = 64 << 10

// A search that takes too long answers with what it has and where to go on.
func TestSearchTime(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, m *mirror.Mirror) {
		h := begin(t, m, "box")
		var ops []*history.Operation
		for seq := range int64(300) {
			ops = append(ops, command(seq+1, fmt.Sprintf("step %d", seq)))
		}
		store(t, m, h, &mirror.Batch{Operations: entries(ops...)})
		m.SetSearchTime(time.Nanosecond)
		result, err := m.List(t.Context(), &mirror.Query{Filter: history.Filter{Text: "ep"}})
		if err != nil || !result.Incomplete || result.Next == "" {
			t.Fatalf("%+v, %v", result, err)
		}
		if hits := every(t, m, &mirror.Query{Filter: history.Filter{Text: "ep"}}); len(hits) != 300 {
			t.Errorf("%d hits", len(hits))
		}
	})
}

func FuzzFind(f *testing.F) {
	f.Add("订单退款 Ok", 3, 6)
	f.Add("aB\xff你c", 0, 4)
	f.Fuzz(func(t *testing.T, text string, from, length int) {
		from = min(max(from, 0), len(text))
		part := text[from:min(from+max(length, 0), len(text))]
		if utf8.ValidString(part) && !mirror.GramsWithin(part, text) {
			t.Errorf("%q is in %q, but not all of its grams", part, text)
		}
		if folded := mirror.Fold(text); len(folded) != len(text) {
			t.Errorf("%q folds to %q", text, folded)
		}
	})
}
