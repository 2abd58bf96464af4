package mirror

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/db"
	"github.com/glassboxhq/glassbox/sandbox"
)

// Grouping is by what a summary groups operations.
type Grouping string

// The groupings.
const (
	ByRun    Grouping = "run" // of an actor; without one, by the source
	ByThread Grouping = "thread"
	ByActor  Grouping = "actor"
)

// Failures are the statuses that a summary counts as failed.
var Failures = []sandbox.Status{sandbox.Unsuccessful, sandbox.TimedOut, sandbox.Lost}

// Summary tells of many operations at once.
type Summary struct {
	Operations, Failed int64
	// From and To are the first beginning and the last end; zero: there are no
	// operations.
	From, To time.Time
	Bins     []Bin   // of equal spans of that time, those that hold something
	Groups   []Group // that were at work last stand first
	More     bool    // there are more groups
}

// Bin counts operations of a type that began in a part of the time.
type Bin struct {
	No                 int // from 0
	Type               string
	Operations, Failed int64
}

// Group counts operations that belong together.
type Group struct {
	History             int64 // 0: of several
	Connection, Sandbox string
	Actor               history.Actor
	Source              string // of operations without a run
	Operations, Failed  int64
	From, To            time.Time
}

// maxGroups bounds the groups of a summary.
const maxGroups = 1000

// Summarize counts what a query picks: over time, in so many bins, and in
// groups, if that is asked for. A text cannot be looked for.
func (m *Mirror) Summarize(ctx context.Context, q *Query, bins int, by Grouping) (*Summary, error) {
	if q.Text != "" {
		return nil, sandbox.Invalid("q", "cannot be given for a summary: it counts by filters only")
	}
	w := &where{}
	w.filter(&q.Filter)
	scope, err := m.scope(ctx, q)
	if err != nil {
		return nil, err
	}
	if scope != nil {
		w.histories(scope, ``)
	}
	s := &Summary{}
	if err := s.bounds(ctx, m.db, w); err != nil || s.Operations == 0 {
		return s, err
	}
	if err := s.spread(ctx, m.db, w, bins); err != nil || by == "" {
		return s, err
	}
	if err := s.group(ctx, m.db, w, by); err != nil {
		return nil, err
	}
	return s, m.nameGroups(ctx, s.Groups)
}

// lastOf is when an operation ended, or began. Clocks may have been set back.
const lastOf = `case when o.completed_at > o.started_at then o.completed_at else o.started_at end`

// failed is a column that counts failures.
var failed = func() string {
	texts := make([]string, len(Failures))
	for i, status := range Failures {
		texts[i] = `'` + string(status) + `'`
	}
	return `coalesce(sum(case when o.status in (` + strings.Join(texts, `, `) + `) then 1 else 0 end), 0)`
}()

func (s *Summary) bounds(ctx context.Context, d *db.DB, w *where) error {
	var from, to int64
	err := d.QueryRow(ctx, `select count(*), `+failed+`, coalesce(min(o.started_at), 0), coalesce(max(`+lastOf+`), 0)
		from mirror_operations o where `+w.String(), w.args...).Scan(&s.Operations, &s.Failed, &from, &to)
	if s.Operations > 0 {
		s.From, s.To = time.UnixMicro(from).UTC(), time.UnixMicro(to).UTC()
	}
	return err
}

func (s *Summary) spread(ctx context.Context, d *db.DB, w *where, bins int) error {
	span := s.To.Sub(s.From).Microseconds() + 1
	var err error
	s.Bins, err = db.Collect(ctx, d, func(r db.Row) (b Bin, err error) {
		return b, r.Scan(&b.No, &b.Type, &b.Operations, &b.Failed)
	}, fmt.Sprintf(`select (o.started_at - %d) * %d / %d, o.type, count(*), %s from mirror_operations o where %s group by 1, 2 order by 1, 2`,
		s.From.UnixMicro(), bins, span, failed, w), w.args...)
	return err
}

// Columns of a group: whose it is, by its grouping.
var groupColumns = map[Grouping]string{
	ByRun:    `o.history, o.actor_type, o.actor_id, '', o.run_id, case when o.run_id = '' then o.source else '' end`,
	ByThread: `0, '', '', o.thread_id, '', ''`,
	ByActor:  `0, o.actor_type, o.actor_id, '', '', ''`,
}

func (s *Summary) group(ctx context.Context, d *db.DB, w *where, by Grouping) error {
	columns, ok := groupColumns[by]
	if !ok {
		return sandbox.Invalid("group", "must be run, thread or actor")
	}
	list, err := db.Collect(ctx, d, func(r db.Row) (g Group, err error) {
		var from, to int64
		err = r.Scan(&g.History, &g.Actor.Type, &g.Actor.ID, &g.Actor.Thread, &g.Actor.Run, &g.Source, &g.Operations, &g.Failed, &from, &to)
		g.From, g.To = time.UnixMicro(from).UTC(), time.UnixMicro(to).UTC()
		return g, err
	}, `select `+columns+`, count(*), `+failed+`, min(o.started_at), max(`+lastOf+`) from mirror_operations o
		where `+w.String()+` group by 1, 2, 3, 4, 5, 6 order by 10 desc, 2, 3, 5, 4, 1 limit `+fmt.Sprint(maxGroups+1), w.args...)
	s.Groups, s.More = list[:min(len(list), maxGroups)], len(list) > maxGroups
	return err
}

// nameGroups tells of which sandbox each group is.
func (m *Mirror) nameGroups(ctx context.Context, groups []Group) error {
	var hits []*Hit
	for _, g := range groups {
		if g.History != 0 {
			hits = append(hits, &Hit{History: g.History})
		}
	}
	if err := m.name(ctx, hits); err != nil {
		return err
	}
	for i := range groups {
		at := slices.IndexFunc(hits, func(h *Hit) bool { return h.History == groups[i].History })
		if at >= 0 {
			groups[i].Connection, groups[i].Sandbox = hits[at].Connection, hits[at].Sandbox
		}
	}
	return nil
}
