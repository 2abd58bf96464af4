package mirror

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/db"
	"github.com/glassboxhq/glassbox/sandbox"
)

// List implements history.Reader.
func (r *Reader) List(ctx context.Context, filter *history.Filter) (*history.Page, error) {
	if filter == nil {
		filter = &history.Filter{}
	}
	limit, err := pageSize(filter.Limit)
	if err != nil {
		return nil, err
	}
	w := &where{}
	w.add(`o.history = ?`, r.history)
	w.filter(filter)
	if filter.After > 0 {
		w.add(`o.seq > ?`, filter.After)
	}
	if filter.Before > 0 {
		w.add(`o.seq < ?`, filter.Before)
	}
	if filter.Text != "" {
		return r.search(ctx, w, filter, limit)
	}
	order := `asc`
	if filter.Newest {
		order = `desc`
	}
	list, err := db.Collect(ctx, r.m.db, scanKept, `select `+operationColumns+` from mirror_operations o
		where `+w.String()+` order by o.seq `+order+`, o.no limit ?`, append(w.args, limit+1)...)
	if err != nil {
		return nil, err
	}
	page := &history.Page{Operations: []*history.Operation{}}
	n := fits(list, limit)
	for _, k := range list[:n] {
		page.Operations = append(page.Operations, k.Operation)
	}
	page.More = len(list) > n
	return page, nil
}

// fits returns how many operations one answer holds.
func fits(list []*kept, limit int) int {
	size := 0
	for i, k := range list[:min(len(list), limit)] {
		if size += k.weigh(); size > maxAnswer && i > 0 {
			return i
		}
	}
	return min(len(list), limit)
}

// weigh is about the size of an operation in an answer.
func (k *kept) weigh() int {
	n := 512 + len(k.Request) + len(k.Result)
	if k.Command != nil {
		n += len(k.Command.Line)
	}
	if k.File != nil {
		n += len(k.File.Diff)
	}
	if k.Changes != nil {
		for change := range k.Changes.All() {
			n += 64 + len(change.Path)
		}
	}
	return n
}

// Query picks operations of all histories. Of its filter, After, Before and
// Newest do not count: the newest stand first, and Cursor goes on.
type Query struct {
	history.Filter
	Connection string
	Sandbox    string
	Cursor     string // Next of the page before
}

// Hit is an operation that was found.
type Hit struct {
	Connection string
	Sandbox    string
	History    int64
	Generation int64
	Operation  *history.Operation
	Snippets   []Snippet // where a text was looked for
}

// Result is a page of hits.
type Result struct {
	Hits []*Hit
	// Next is the cursor of the next page; empty: there is none.
	Next string
	// Incomplete: the time was over before the page was full.
	Incomplete bool
}

// List finds operations in all histories. Those begun last stand first; where a
// text is looked for, those mirrored last.
func (m *Mirror) List(ctx context.Context, q *Query) (*Result, error) {
	limit, err := pageSize(q.Limit)
	if err != nil {
		return nil, err
	}
	w := &where{}
	w.filter(&q.Filter)
	scope, err := m.scope(ctx, q)
	if err != nil {
		return nil, err
	}
	if q.Text != "" {
		if scope != nil {
			w.histories(scope, ``)
		}
		return m.search(ctx, w, q, limit)
	}
	list, err := m.newest(ctx, w, q.Cursor, scope, limit+1)
	if err != nil {
		return nil, err
	}
	n := fits(list, limit)
	result := &Result{}
	if len(list) > n {
		result.Next = writeCursor("t%d.%d", startOf(list[n-1].Operation), list[n-1].no)
	}
	for _, k := range list[:n] {
		result.Hits = append(result.Hits, &Hit{Operation: k.Operation, History: k.history})
	}
	return result, m.name(ctx, result.Hits)
}

// newest lists operations in the order of their beginning. Of a few histories
// each is read by itself, in that order; of many, all are.
func (m *Mirror) newest(ctx context.Context, w *where, cursor string, scope []int64, limit int) ([]*kept, error) {
	if cursor != "" {
		var at, no int64
		if err := readCursor(cursor, "t%d.%d", &at, &no); err != nil {
			return nil, err
		}
		w.add(`(o.started_at, o.no) < (?, ?)`, at, no)
	}
	read := func(w *where) ([]*kept, error) {
		return db.Collect(ctx, m.db, scanKept, `select `+operationColumns+` from mirror_operations o
			where `+w.String()+` order by o.started_at desc, o.no desc limit ?`, append(w.args, limit)...)
	}
	const few = 8
	if scope == nil || len(scope) > few {
		if scope != nil {
			w.histories(scope, `+`)
		}
		return read(w)
	}
	var list []*kept
	for _, no := range scope {
		one := w.clone()
		one.add(`o.history = ?`, no)
		part, err := read(one)
		if err != nil {
			return nil, err
		}
		list = append(list, part...)
	}
	slices.SortFunc(list, func(a, b *kept) int {
		return cmp.Or(cmp.Compare(startOf(b.Operation), startOf(a.Operation)), cmp.Compare(b.no, a.no))
	})
	return list[:min(len(list), limit)], nil
}

// scope is the histories of a connection or a sandbox; nil: all.
func (m *Mirror) scope(ctx context.Context, q *Query) ([]int64, error) {
	if q.Connection == "" && q.Sandbox == "" {
		return nil, nil
	}
	nos, err := db.Collect(ctx, m.db, number, `select no from mirror_histories where (connection_id = ? or ? = '') and (sandbox_id = ? or ? = '')`,
		q.Connection, q.Connection, q.Sandbox, q.Sandbox)
	if nos == nil {
		nos = []int64{}
	}
	return nos, err
}

// histories restricts a query to some histories. plus keeps the database from
// going by their index, where another one has the order that is asked for.
func (w *where) histories(nos []int64, plus string) {
	if len(nos) == 0 {
		w.add(`1 = 0`)
		return
	}
	texts := make([]string, len(nos)) // numbers of our own, of which there may be more than arguments
	for i, no := range nos {
		texts[i] = fmt.Sprint(no)
	}
	w.add(plus + `o.history in (` + strings.Join(texts, ",") + `)`)
}

// name fills in whose history each hit is of.
func (m *Mirror) name(ctx context.Context, hits []*Hit) error {
	if len(hits) == 0 {
		return nil
	}
	nos := map[int64]bool{}
	w := &where{}
	for _, hit := range hits {
		if !nos[hit.History] {
			nos[hit.History] = true
			w.args = append(w.args, hit.History)
		}
	}
	list, err := db.Collect(ctx, m.db, scanHistory, `select `+historyColumns+` from mirror_histories
		where no in (?`+strings.Repeat(`, ?`, len(w.args)-1)+`)`, w.args...)
	if err != nil {
		return err
	}
	for _, h := range list {
		for _, hit := range hits {
			if hit.History == h.No {
				hit.Connection, hit.Sandbox, hit.Generation = h.Connection, h.Sandbox, h.Generation
			}
		}
	}
	return nil
}

// Find returns an operation by its id, from whichever history has it; of
// several the newest.
func (m *Mirror) Find(ctx context.Context, id string) (*Hit, error) {
	list, err := db.Collect(ctx, m.db, scanKept, `select `+operationColumns+` from mirror_operations o where o.id = ? order by o.no desc limit 1`, plain(id))
	if err == nil && len(list) == 0 {
		err = &sandbox.Error{Op: "find operation", Code: sandbox.CodeOperationNotFound, Message: "no mirrored history holds " + id}
	}
	if err != nil {
		return nil, err
	}
	hit := &Hit{Operation: list[0].Operation, History: list[0].history}
	return hit, m.name(ctx, []*Hit{hit})
}

func writeCursor(format string, values ...any) string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, format, values...))
}

func readCursor(cursor, format string, values ...any) error {
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	if err == nil {
		_, err = fmt.Sscanf(string(text), format, values...)
	}
	if err != nil {
		return sandbox.Invalid("cursor", "must be the next of a page of the same query")
	}
	return nil
}
