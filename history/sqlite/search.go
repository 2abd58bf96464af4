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
	step := *filter
	found := &history.Page{Operations: []*history.Operation{}}
	for {
		page, err := s.page(ctx, &step, searchStep)
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
			if len(found.Operations) == limit {
				found.More = true
				return found, nil
			}
			found.Operations = append(found.Operations, op)
		}
		if !page.More {
			return found, nil
		}
		last := page.Operations[len(page.Operations)-1].Seq
		if filter.Newest {
			step.Before = last
		} else {
			step.After = last
		}
	}
}

// matching tells which operations hold the text.
func (s *Store) matching(ctx context.Context, ops []*history.Operation, find *needle) (map[string]bool, error) {
	hits := map[string]bool{}
	var rest []any
	for _, op := range ops {
		switch {
		case find.inOperation(op):
			hits[op.ID] = true
		case op.Command == nil || op.Command.StdoutBytes+op.Command.StderrBytes > 0:
			rest = append(rest, op.ID)
		}
	}
	if len(rest) == 0 {
		return hits, nil
	}
	err := s.read(ctx, "search output", func(q *sql.Tx) error { return find.inOutput(ctx, q, rest, hits) })
	return hits, err
}

// inOutput looks through the output of operations and adds those that hold
// the text. A stream is one text, however its rows cut it.
func (n *needle) inOutput(ctx context.Context, q *sql.Tx, ids []any, hits map[string]bool) error {
	rows, err := q.QueryContext(ctx, `
		select event_id, stream, data, encoding, original_size from command_output_chunks
		where event_id in (?`+strings.Repeat(`, ?`, len(ids)-1)+`) order by event_id, stream, chunk_index`, ids...)
	if err != nil {
		return err
	}
	defer rows.Close()
	var last string
	var window []byte // the end of the stream before this row, folded, and the row
	for rows.Next() {
		var id, stream, encoding string
		var raw sql.RawBytes
		var size int64
		if err := rows.Scan(&id, &stream, &raw, &encoding, &size); err != nil {
			return err
		}
		if hits[id] {
			continue
		}
		plain, err := unpack(raw, encoding, size)
		if err != nil {
			return err
		}
		if id+stream != last {
			last, window = id+stream, window[:0]
		}
		keep := min(len(window), len(n.folded)-1)
		window = append(window[:copy(window, window[len(window)-keep:])], plain...)
		fold(window[keep:])
		if bytes.Contains(window, n.folded) {
			hits[id] = true
		}
	}
	return rows.Err()
}

// needle is a text that is looked for, without regard to ASCII case.
type needle struct{ folded []byte }

func newNeedle(text string) *needle {
	folded := []byte(text)
	fold(folded)
	return &needle{folded}
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
		n.inJSON(op.Request) || n.inJSON(op.Result)
}

// inJSON looks into the values of a document. Its keys are ours, so nobody
// looks for them.
func (n *needle) inJSON(doc json.RawMessage) bool {
	if len(doc) == 0 {
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
