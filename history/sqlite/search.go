package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/glassboxhq/glassbox/history"
)

// searchStep is how many operations are read at once when a text is looked
// for. Each step is a transaction of its own, so that a long search keeps no
// old state of the file alive.
const searchStep = 256

// search looks for a text in operations and their output, page by page.
func (s *Store) search(ctx context.Context, filter *history.Filter, limit int) (*history.Page, error) {
	find := newNeedle(filter.Text)
	step := paging{*filter}
	found := &history.Page{Operations: []*history.Operation{}}
	size := 0
	for {
		page, err := s.page(ctx, &step.Filter, searchStep, nothing)
		if err != nil {
			return nil, err
		}
		hits, err := s.matching(ctx, page.Operations, find)
		if err != nil {
			return nil, err
		}
		for _, op := range page.Operations {
			if !hits[op.ID] {
				continue
			}
			if size += weigh(op); len(found.Operations) == limit || size > maxAnswer && len(found.Operations) > 0 {
				found.More = true
				break
			}
			found.Operations = append(found.Operations, op)
		}
		if found.More || !page.More || !step.advance(page.Operations) {
			return found, s.read(ctx, "list operations", func(q *sql.Tx) error { return s.countOutputs(ctx, q, found.Operations) })
		}
	}
}

// paging is a filter that goes from page to page.
type paging struct{ history.Filter }

// advance goes on behind a page, unless its rows have no numbers.
func (p *paging) advance(page []*history.Operation) bool {
	from := &p.After
	if p.Newest {
		from = &p.Before
	}
	last := page[len(page)-1].Seq
	if last == *from {
		return false
	}
	*from = last
	return true
}

func nothing(context.Context, *sql.Tx, []*history.Operation) error { return nil }

// matching tells which operations hold the text.
func (s *Store) matching(ctx context.Context, ops []*history.Operation, find *needle) (map[string]bool, error) {
	hits := map[string]bool{}
	var rest []string
	for _, op := range ops {
		if find.inOperation(op) {
			hits[op.ID] = true
		} else {
			rest = append(rest, op.ID)
		}
	}
	if len(rest) == 0 {
		return hits, nil
	}
	scan := &outputScan{s: s, find: find, hits: hits}
	slices.Sort(rest)
	return hits, scan.run(ctx, rest)
}

// scanStep is how many rows of output one transaction reads.
const scanStep = 512

// outputScan looks through output. A stream is one text, however its rows cut
// it and however the scan is cut into transactions.
type outputScan struct {
	s    *Store
	find *needle
	hits map[string]bool

	id string // where the scan is
	spot
	window []byte // the end of the stream before the next row, folded
}

// spot is a row of an operation's output.
type spot struct {
	stream string
	index  int64
}

// run looks through the output of operations, whose ids are sorted, and adds
// those that hold the text to the hits.
func (o *outputScan) run(ctx context.Context, ids []string) error {
	for len(ids) > 0 {
		full, err := o.step(ctx, `event_id in (?`+strings.Repeat(`, ?`, len(ids)-1)+`)`, anys(ids))
		if err != nil || !full {
			return err
		}
		here := o.id
		for last := (spot{}); full && o.id == here && !o.hits[here] && o.spot != last; { // rows without numbers have no end
			last = o.spot
			full, err = o.step(ctx, `event_id = ? and (stream, chunk_index) > (?, ?)`, []any{o.id, o.stream, o.index})
			if err != nil {
				return err
			}
		}
		next, found := slices.BinarySearch(ids, here)
		if found {
			next++
		}
		ids = ids[max(next, 1):]
	}
	return nil
}

func anys(list []string) []any {
	args := make([]any, len(list))
	for i, item := range list {
		args[i] = item
	}
	return args
}

// step reads the next rows in a transaction of its own; full tells that there
// may be more.
func (o *outputScan) step(ctx context.Context, condition string, args []any) (full bool, err error) {
	err = o.s.read(ctx, "search output", func(q *sql.Tx) error {
		rows, err := q.QueryContext(ctx, `
			select event_id, stream, chunk_index, data, encoding, original_size from command_output_chunks
			where `+condition+` order by event_id, stream, chunk_index limit ?`, append(args, scanStep)...)
		if err != nil {
			return err
		}
		defer rows.Close()
		n := 0
		for ; rows.Next(); n++ {
			if err := o.row(rows); err != nil {
				return err
			}
		}
		full = n == scanStep
		return rows.Err()
	})
	return full, err
}

func (o *outputScan) row(rows *sql.Rows) error {
	var id, stream, encoding anyText
	var raw sql.RawBytes
	var index, size anyNumber
	if err := rows.Scan(&id, &stream, &index, &raw, &encoding, &size); err != nil {
		return err
	}
	if id.text != o.id || stream.text != o.stream {
		o.id, o.stream, o.window = id.text, stream.text, o.window[:0]
	}
	o.index = index.n
	if o.hits[o.id] {
		return nil
	}
	plain, err := unpack(raw, encoding.text, size.n)
	if err != nil { // a row that cannot be read holds no text
		o.window = o.window[:0]
		return nil //nolint:nilerr // the others are looked through
	}
	keep := min(len(o.window), len(o.find.folded)-1)
	o.window = append(o.window[:copy(o.window, o.window[len(o.window)-keep:])], plain...)
	fold(o.window[keep:])
	if bytes.Contains(o.window, o.find.folded) {
		o.hits[o.id] = true
	}
	return nil
}

// needle is a text that is looked for, without regard to ASCII case.
type needle struct {
	folded  []byte
	escaped bool // JSON may hold it in another form
}

func newNeedle(text string) *needle {
	folded := []byte(text)
	fold(folded)
	special := func(r rune) bool { return r < ' ' || strings.ContainsRune("\"\\/<>&\u007f\u2028\u2029\uFFFD", r) }
	return &needle{folded: folded, escaped: strings.ContainsFunc(text, special)}
}

// fold puts ASCII letters into lower case.
func fold(b []byte) {
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
}

func (n *needle) in(s string) bool {
	if len(s) < len(n.folded) {
		return false
	}
	b := []byte(s)
	fold(b)
	return bytes.Contains(b, n.folded)
}

func (n *needle) inOperation(op *history.Operation) bool {
	return op.Command != nil && (n.in(op.Command.Line) || n.in(op.Command.Dir)) ||
		op.File != nil && (n.in(op.File.Path) || n.in(op.File.OldPath) || n.in(op.File.Diff)) ||
		n.inJSON(op.Request) || n.inJSON(op.Result) || n.inChanges(op.Changes)
}

func (n *needle) inChanges(c *history.Changes) bool {
	if c == nil {
		return false
	}
	for change := range c.All() {
		if n.in(change.Path) {
			return true
		}
	}
	return false
}

// inJSON looks into the values of a document. Its keys are ours, so nobody
// looks for them.
func (n *needle) inJSON(doc json.RawMessage) bool {
	if len(doc) == 0 || !n.escaped && !bytes.Contains(doc, []byte(`\u`)) && !n.in(string(doc)) {
		return false
	}
	dec := json.NewDecoder(bytes.NewReader(doc))
	dec.UseNumber()
	var value any
	return dec.Decode(&value) == nil && n.inValue(value)
}

func (n *needle) inValue(value any) bool {
	switch v := value.(type) {
	case string:
		return n.in(v)
	case json.Number:
		return n.in(v.String())
	case []any:
		return slices.ContainsFunc(v, n.inValue)
	case map[string]any:
		return slices.ContainsFunc(slices.Collect(maps.Values(v)), n.inValue)
	}
	return false
}
