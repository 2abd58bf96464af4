package sqlite

import (
	"context"
	"database/sql"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/sandbox"
)

// The sizes of a page.
const (
	defaultLimit = 100
	maxLimit     = 1000
)

// List implements [history.Reader]. A page may be shorter than asked for when
// its operations are large.
func (s *Store) List(ctx context.Context, filter *history.Filter) (*history.Page, error) {
	if filter == nil {
		filter = &history.Filter{}
	}
	limit, err := pageSize(filter.Limit)
	if err != nil {
		return nil, err
	}
	if filter.Text != "" {
		return s.search(ctx, filter, limit)
	}
	return s.page(ctx, filter, limit, s.countOutputs)
}

func pageSize(n int) (int, error) {
	switch {
	case n == 0:
		return defaultLimit, nil
	case n < 0 || n > maxLimit:
		return 0, sandbox.Invalid("limit", "must be between 1 and 1000, or 0 for 100")
	}
	return n, nil
}

// completer fills in what an operation's own rows do not tell.
type completer func(context.Context, *sql.Tx, []*history.Operation) error

// page reads one page, without regard to the text of the filter.
func (s *Store) page(ctx context.Context, filter *history.Filter, limit int, complete completer) (*history.Page, error) {
	order := "asc"
	if filter.Newest {
		order = "desc"
	}
	page := &history.Page{Operations: []*history.Operation{}}
	err := s.read(ctx, "list operations", func(q *sql.Tx) error {
		*page = history.Page{Operations: []*history.Operation{}}
		changes, err := hasChanges(ctx, q)
		if err != nil {
			return err
		}
		w := s.where(filter, changes)
		ops, more, err := queryOperations(ctx, q, pageQuery(w, order), append(w.args, limit+1))
		if err != nil || len(ops) == 0 {
			return err
		}
		n, err := readChanges(ctx, q, ops[:min(len(ops), limit)])
		if err != nil {
			return err
		}
		page.More = more || len(ops) > n
		page.Operations = ops[:n]
		return complete(ctx, q, page.Operations)
	})
	if err != nil {
		return nil, err
	}
	return page, nil
}

func pageQuery(w *where, order string) string {
	// The inner query finds and sorts numbers only, most often in an index;
	// rows are read for the page alone.
	return `where e.seq in (
			select e.seq from history_events e
			left join command_executions c on c.event_id = e.event_id
			left join file_operations f on f.event_id = e.event_id
			where ` + strings.Join(w.terms, " and ") + ` order by e.seq ` + order + ` limit ?)
		order by e.seq ` + order
}

// where collects the conditions of a query.
type where struct {
	terms []string
	args  []any
}

func (w *where) add(term string, args ...any) {
	w.terms = append(w.terms, term)
	w.args = append(w.args, args...)
}

func (w *where) equal(column, value string) {
	if value != "" {
		w.add(column+` = ?`, value)
	}
}

func (w *where) in(column string, values []string) {
	if len(values) == 0 {
		return
	}
	args := make([]any, len(values))
	for i, value := range values {
		args[i] = value
	}
	w.add(column+` in (?`+strings.Repeat(`, ?`, len(values)-1)+`)`, args...)
}

// occurred is the time of the beginning in six digits: other programs leave
// zeros out, and such a text would sort behind its second.
const occurred = `(case when length(e.occurred_at) = 20 then substr(e.occurred_at, 1, 19) || '.000000Z' else e.occurred_at end)`

// where makes the conditions of a filter. changes tells that the history knows
// what commands did to files.
func (s *Store) where(f *history.Filter, changes bool) *where {
	w := &where{}
	alive, args := s.alive()
	w.add(alive, args...)
	if s.opts.ReadOnly { // it may have other numbers, by which no paging would end
		w.add(`typeof(e.seq) = 'integer'`)
	}
	w.in(`e.operation_type`, f.Types)
	statuses := make([]string, len(f.Statuses))
	for i, status := range f.Statuses {
		statuses[i] = string(status)
	}
	w.in(`e.status`, statuses)
	w.in(`e.source`, f.Sources)
	w.equal(`e.actor_type`, f.ActorType)
	w.equal(`e.actor_id`, f.ActorID)
	w.equal(`e.thread_id`, f.Thread)
	w.equal(`e.run_id`, f.Run)
	w.equal(`e.correlation_id`, f.Correlation)
	w.time(`>=`, f.Since)
	w.time(`<`, f.Until)
	if f.Path != "" {
		w.path(path.Clean(f.Path), changes)
	}
	if f.ExitCode != nil {
		w.add(`c.exit_code = ?`, *f.ExitCode)
	}
	if f.After > 0 {
		w.add(`e.seq > ?`, f.After)
	}
	if f.Before > 0 {
		w.add(`e.seq < ?`, f.Before)
	}
	return w
}

func (w *where) time(operator string, at time.Time) {
	if !at.IsZero() {
		w.add(occurred+` `+operator+` ?`, history.FormatTime(at))
	}
}

// path picks a file or what lies below a directory, by its present or former
// name, and commands that changed such a file. Names are compared as bytes: '0'
// is the byte after '/'.
func (w *where) path(name string, changes bool) {
	term, args := `(f.path = ? or f.path >= ? and f.path < ? or f.old_path = ? or f.old_path >= ? and f.old_path < ?)`,
		slices.Repeat([]any{name, name + "/", name + "0"}, 2)
	if name == "/" {
		term, args = `f.path >= '/' and f.path < '0'`, nil
	}
	if changes {
		changed, more := changedPath(name)
		term, args = `(`+term+` or `+changed+`)`, append(args, more...)
	}
	w.add(term, args...)
}
