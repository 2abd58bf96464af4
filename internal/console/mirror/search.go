package mirror

import (
	"context"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/db"
	"github.com/glassboxhq/glassbox/sandbox"
)

const (
	maxText  = overlap // bytes of a text that is looked for
	maxGrams = 24      // of it, by which the index is asked
	fewOps   = 2000    // are looked through without the index
	lookStep = 128
)

// finder looks for texts in operations, by the index where that helps.
type finder struct {
	m      *Mirror
	w      *where
	terms  []string // folded; an operation has all of them, in one part
	grams  []uint32
	newest bool
	bound  int64 // of documents, or without an index of operations; it is behind us
	ends   time.Time
}

// newFinder begins behind the operation of a number; 0: at the beginning.
func (m *Mirror) newFinder(ctx context.Context, w *where, terms []string, newest bool, behind int64) (*finder, error) {
	f := &finder{m: m, w: w, newest: newest, ends: time.Now().Add(m.opts.SearchTime)}
	set := gramSet{}
	for _, term := range terms {
		if len(term) > maxText || !utf8.ValidString(term) || strings.ContainsRune(term, utf8.RuneError) {
			return nil, sandbox.Invalid("text", "must be UTF-8, without U+FFFD, of at most 512 bytes")
		}
		f.terms = append(f.terms, fold(term))
		set.add(fold(term))
	}
	f.grams = set.list(maxGrams)
	if len(f.grams) > 0 && slices.ContainsFunc(w.terms, func(t string) bool { return strings.Contains(t, `o.history `) }) {
		var n int
		if err := m.db.QueryRow(ctx, `select count(*) from (select 1 from mirror_operations o where `+w.String()+` limit ?) few`,
			append(slices.Clone(w.args), fewOps+1)...).Scan(&n); err != nil {
			return nil, err
		}
		if n <= fewOps {
			f.grams = nil
		}
	}
	f.begin(behind)
	return f, nil
}

const lastNo = int64(1) << (62 - partBits)

func (f *finder) begin(behind int64) {
	if behind == 0 && f.newest {
		behind = lastNo
	}
	f.bound = behind
	if len(f.grams) > 0 {
		f.bound <<= partBits
		if !f.newest {
			f.bound |= maxParts - 1
		}
	}
}

// next returns the numbers of the documents, or without an index of the
// operations, that may have the texts.
func (f *finder) next(ctx context.Context) ([]int64, error) {
	column, from, args := `o.no`, `mirror_operations o where 1 = 1`, []any{}
	if len(f.grams) > 0 {
		match := `mirror_index match ?`
		if f.m.db.Kind() == "postgres" {
			match = `mirror_index.grams @> ?::integer[]`
		}
		// The index goes first: it has the fewest, and knows the order.
		column = `mirror_index.rowid`
		from = `mirror_index cross join mirror_operations o where o.no = (mirror_index.rowid >> ` + shift + `) and ` + match
		args = append(args, words(f.m.db, f.grams))
	}
	compare, order := ` > ?`, ` asc`
	if f.newest {
		compare, order = ` < ?`, ` desc`
	}
	args = append(append(append(args, f.w.args...), f.bound), lookStep)
	list, err := db.Collect(ctx, f.m.db, number, `select `+column+` from `+from+` and `+f.w.String()+` and `+column+compare+
		` order by `+column+order+` limit ?`, args...)
	if n := len(list); n > 0 {
		f.bound = list[n-1]
	}
	return list, err
}

const shift = `10` // partBits

// find calls each for what has all of the texts, until it says no; it returns
// the number of the last operation that was looked at, and whether that was the
// end.
func (f *finder) find(ctx context.Context, each func(*kept, []Snippet) bool) (last int64, end bool, err error) {
	hit := int64(-1)
	for {
		list, err := f.next(ctx)
		if err != nil || len(list) == 0 {
			return last, err == nil, err
		}
		ops, err := f.load(ctx, list)
		if err != nil {
			return last, false, err
		}
		for _, row := range list {
			no, from, to := row, int64(0), int64(maxParts)
			if len(f.grams) > 0 {
				no, from = row>>partBits, row&(maxParts-1)
				to = from + 1
			}
			if no == hit || ops[no] == nil {
				continue
			}
			if no != last && last != 0 && time.Now().After(f.ends) {
				return last, false, nil
			}
			snippets, err := f.look(ctx, ops[no], from, min(to, ops[no].parts()))
			if err != nil {
				return last, false, err
			}
			if len(snippets) > 0 {
				if hit = no; !each(ops[no], snippets) {
					return last, false, nil
				}
			}
			last = no
		}
	}
}

// load reads the operations of rows.
func (f *finder) load(ctx context.Context, rows []int64) (map[int64]*kept, error) {
	var args []any
	before := int64(-1)
	for _, row := range rows {
		if len(f.grams) > 0 {
			row >>= partBits
		}
		if row != before {
			args = append(args, row)
		}
		before = row
	}
	list, err := db.Collect(ctx, f.m.db, scanKept, `select `+operationColumns+` from mirror_operations o
		where o.no in (?`+strings.Repeat(`, ?`, len(args)-1)+`)`, args...)
	ops := make(map[int64]*kept, len(list))
	for _, k := range list {
		ops[k.no] = k
	}
	return ops, err
}

// look returns where an operation has the texts: all of them in what stands
// beside its output and in one part of that. None: it has not.
func (f *finder) look(ctx context.Context, k *kept, from, to int64) ([]Snippet, error) {
	fields := k.fields()
	found, missing := snip(fields, f.terms)
	for part := from; part < to && len(missing) > 0; part++ {
		output, err := f.m.partOf(ctx, k, part)
		if err != nil {
			return nil, err
		}
		if more, rest := snip(output, missing); len(rest) == 0 {
			found, missing = append(found, more...), nil
		}
	}
	if len(missing) > 0 {
		return nil, nil
	}
	return found, nil
}

// search is List with a text.
func (r *Reader) search(ctx context.Context, w *where, filter *history.Filter, limit int) (*history.Page, error) {
	f, err := r.m.newFinder(ctx, w, []string{filter.Text}, filter.Newest, 0)
	if err != nil {
		return nil, err
	}
	f.ends = time.Now().Add(time.Hour) // the caller's ctx decides; a page has no place to go on from
	page, size := &history.Page{Operations: []*history.Operation{}}, 0
	_, _, err = f.find(ctx, func(k *kept, _ []Snippet) bool {
		if size += k.weigh(); len(page.Operations) == limit || size > maxAnswer && len(page.Operations) > 0 {
			page.More = true
			return false
		}
		page.Operations = append(page.Operations, k.Operation)
		return true
	})
	return page, err
}

// search is List with a text: words, each of which must be there, and "what
// stands in quotes", which is taken as it is.
func (m *Mirror) search(ctx context.Context, w *where, q *Query, limit int) (*Result, error) {
	var behind int64
	if q.Cursor != "" {
		if err := readCursor(q.Cursor, "n%d", &behind); err != nil {
			return nil, err
		}
	}
	terms := splitTerms(q.Text)
	if len(terms) == 0 {
		return nil, sandbox.Invalid("text", "must hold a word to look for")
	}
	f, err := m.newFinder(ctx, w, terms, true, behind)
	if err != nil {
		return nil, err
	}
	result, size := &Result{}, 0
	last, end, err := f.find(ctx, func(k *kept, snippets []Snippet) bool {
		if size += k.weigh(); len(result.Hits) == limit || size > maxAnswer && len(result.Hits) > 0 {
			return false
		}
		result.Hits = append(result.Hits, &Hit{Operation: k.Operation, History: k.history, Snippets: snippets})
		return true
	})
	if err != nil {
		return nil, err
	}
	if !end {
		result.Next, result.Incomplete = writeCursor("n%d", last), time.Now().After(f.ends)
	}
	return result, m.name(ctx, result.Hits)
}

// splitTerms cuts a text into words and quoted texts.
func splitTerms(text string) (terms []string) {
	for i, part := range strings.Split(text, `"`) {
		if i%2 == 1 && part != "" {
			terms = append(terms, part)
		} else if i%2 == 0 {
			terms = append(terms, strings.FieldsFunc(part, unicode.IsSpace)...)
		}
	}
	return terms
}
