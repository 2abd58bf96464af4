package mirror

import (
	"path"
	"slices"
	"strings"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/sandbox"
)

func pageSize(n int) (int, error) {
	switch {
	case n == 0:
		return defaultLimit, nil
	case n < 0 || n > maxLimit:
		return 0, sandbox.Invalid("limit", "must be between 1 and 1000, or 0 for 100")
	}
	return n, nil
}

// where collects the conditions of a query on operations o.
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
		w.add(column+` = ?`, plain(value))
	}
}

func (w *where) in(column string, values []string) {
	if len(values) == 0 {
		return
	}
	args := make([]any, len(values))
	for i, value := range values {
		args[i] = plain(value)
	}
	w.add(column+` in (?`+strings.Repeat(`, ?`, len(values)-1)+`)`, args...)
}

func (w *where) String() string {
	if len(w.terms) == 0 {
		return `1 = 1`
	}
	return strings.Join(w.terms, " and ")
}

// filter adds all of a filter but its text and its cursors.
func (w *where) filter(f *history.Filter) {
	statuses := make([]string, len(f.Statuses))
	for i, status := range f.Statuses {
		statuses[i] = string(status)
	}
	w.in(`o.type`, f.Types)
	w.in(`o.status`, statuses)
	w.in(`o.source`, f.Sources)
	w.equal(`o.actor_type`, f.ActorType)
	w.equal(`o.actor_id`, f.ActorID)
	w.equal(`o.thread_id`, f.Thread)
	w.equal(`o.run_id`, f.Run)
	w.equal(`o.correlation_id`, f.Correlation)
	if !f.Since.IsZero() {
		w.add(`o.started_at >= ?`, f.Since.UnixMicro())
	}
	if !f.Until.IsZero() {
		w.add(`o.started_at < ?`, f.Until.UnixMicro())
	}
	if f.ExitCode != nil {
		w.add(`o.exit_code = ?`, int64(*f.ExitCode))
	}
	if f.Path != "" {
		w.path(path.Clean(f.Path))
	}
}

// path picks a file or what lies below a directory. Names are compared as
// bytes: '0' is the byte after '/'.
func (w *where) path(name string) {
	name = plain(name)
	if name == "/" {
		w.add(`o.no in (select op from mirror_paths where path >= '/' and path < '0')`)
		return
	}
	w.add(`o.no in (select op from mirror_paths where path = ? or path >= ? and path < ?)`, name, name+"/", name+"0")
}

// clone is a copy that may get other conditions.
func (w *where) clone() *where { return &where{slices.Clone(w.terms), slices.Clone(w.args)} }
