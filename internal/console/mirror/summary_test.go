package mirror_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/console/mirror"
)

// TestSummarize compares with what is counted by hand.
func TestSummarize(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, m *mirror.Mirror) {
		r := rand.New(rand.NewPCG(3, 3))
		h, other := begin(t, m, "box"), begin(t, m, "other")
		ops := varied(r, 300)
		store(t, m, h, &mirror.Batch{Operations: entries(ops...)})
		store(t, m, other, &mirror.Batch{Operations: entries(varied(r, 50)...)})
		for n := range 100 {
			f := filters(r)
			f.Text = ""
			got, err := m.Summarize(t.Context(), &mirror.Query{Filter: *f, Connection: "local", Sandbox: "box"}, 10, mirror.ByRun)
			if err != nil {
				t.Fatal(err)
			}
			if diff := gocmp.Diff(count(ops, f, 10), got); diff != "" {
				t.Fatalf("%d: filter %+v (-want +got):\n%s", n, f, diff)
			}
		}
		all, err := m.Summarize(t.Context(), &mirror.Query{}, 10, mirror.ByActor)
		if err != nil || all.Operations != 350 || len(all.Groups) != 4 {
			t.Errorf("all: got %d operations in %d groups, %v, want 350 in 4", all.Operations, len(all.Groups), err)
		}
		if empty, err := m.Summarize(t.Context(), &mirror.Query{Sandbox: "none"}, 10, mirror.ByThread); err != nil || empty.Operations != 0 || !empty.From.IsZero() {
			t.Errorf("of nothing: got %+v, %v", empty, err)
		}
		if _, err := m.Summarize(t.Context(), &mirror.Query{Filter: history.Filter{Text: "x"}}, 10, ""); err == nil {
			t.Error("a text was passed over")
		}
	})
}

// count is the summary of operations, grouped by run.
func count(ops []*history.Operation, f *history.Filter, bins int64) *mirror.Summary {
	s := &mirror.Summary{}
	var picked []*history.Operation
	for _, op := range ops {
		if !f.Match(op) {
			continue
		}
		picked = append(picked, op)
		if s.From.IsZero() || op.StartedAt.Before(s.From) {
			s.From = op.StartedAt
		}
		if end := lastOf(op); end.After(s.To) {
			s.To = end
		}
	}
	cells, groups := map[string]*mirror.Bin{}, map[string]*mirror.Group{}
	for _, op := range picked {
		failed := int64(0)
		if slices.Contains(mirror.Failures, op.Status) {
			failed = 1
		}
		s.Operations, s.Failed = s.Operations+1, s.Failed+failed
		no := op.StartedAt.Sub(s.From).Microseconds() * bins / (s.To.Sub(s.From).Microseconds() + 1)
		cell := at1(cells, fmt.Sprint(no, op.Type), mirror.Bin{No: int(no), Type: op.Type})
		cell.Operations, cell.Failed = cell.Operations+1, cell.Failed+failed
		g := at1(groups, fmt.Sprint(op.Actor.Type, op.Actor.ID, op.Actor.Run), mirror.Group{
			History: 1, Connection: "local", Sandbox: "box", From: op.StartedAt, To: op.StartedAt,
			Actor: history.Actor{Type: op.Actor.Type, ID: op.Actor.ID, Run: op.Actor.Run},
		})
		g.Operations, g.Failed = g.Operations+1, g.Failed+failed
		if op.StartedAt.Before(g.From) {
			g.From = op.StartedAt
		}
		if end := lastOf(op); end.After(g.To) {
			g.To = end
		}
	}
	for _, b := range cells {
		s.Bins = append(s.Bins, *b)
	}
	slices.SortFunc(s.Bins, func(a, b mirror.Bin) int { return cmp.Or(cmp.Compare(a.No, b.No), cmp.Compare(a.Type, b.Type)) })
	for _, g := range groups {
		s.Groups = append(s.Groups, *g)
	}
	slices.SortFunc(s.Groups, byTime)
	return s
}

func lastOf(op *history.Operation) time.Time {
	if op.CompletedAt.After(op.StartedAt) {
		return op.CompletedAt
	}
	return op.StartedAt
}

func byTime(a, b mirror.Group) int {
	return cmp.Or(b.To.Compare(a.To), cmp.Compare(a.Actor.Type, b.Actor.Type), cmp.Compare(a.Actor.ID, b.Actor.ID), cmp.Compare(a.Actor.Run, b.Actor.Run))
}

func at1[T any](m map[string]*T, key string, first T) *T {
	if m[key] == nil {
		m[key] = &first
	}
	return m[key]
}
