package mirror

import (
	"context"
	"time"

	"github.com/glassboxhq/glassbox/internal/db"
	"github.com/glassboxhq/glassbox/sandbox"
)

const (
	indexStep  = 100      // operations, of which one transaction has the grams
	indexGrams = 32 << 10 // in one transaction, for which what is recorded waits
	indexEvery = 5 * time.Second
)

// Run keeps the index of the search, until ctx ends. What is stored is found a
// moment later; output when its operation has ended.
func (m *Mirror) Run(ctx context.Context) error {
	retry := time.NewTicker(indexEvery) // also for what another server stored
	defer retry.Stop()
	for {
		if err := m.Index(ctx); err != nil && ctx.Err() == nil {
			m.opts.Logger.WarnContext(ctx, "what was stored is not in the index of the search yet", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-m.work:
		case <-retry.C:
		}
	}
}

// Index brings the index of the search up to date.
func (m *Mirror) Index(ctx context.Context) error {
	for after := int64(0); ; {
		list, err := db.Collect(ctx, m.db, scanKept, `select `+operationColumns+` from mirror_operations o
			where o.unindexed = 1 and o.no > ? order by o.no limit ?`, after, indexStep)
		if err != nil || len(list) == 0 {
			return err
		}
		if err := m.indexAll(ctx, list); err != nil {
			return err
		}
		after = list[len(list)-1].no
	}
}

// document is one row of the index.
type document struct {
	row   int64
	grams []uint32
	of    *kept // whose last document it is
}

func (m *Mirror) indexAll(ctx context.Context, list []*kept) error {
	var docs []document
	size := 0
	flush := func() error {
		err := m.writeIndex(ctx, docs)
		docs, size = docs[:0], 0
		return err
	}
	for _, k := range list {
		parts := k.parts()
		if k.Status == sandbox.Started { // its output comes when it is whole
			parts = 1
		}
		for part := range parts {
			set, err := m.gramsOf(ctx, k, part)
			if err != nil {
				return err
			}
			d := document{row: k.no<<partBits | part, grams: set.list(0)}
			if part == parts-1 {
				d.of = k
			}
			docs = append(docs, d)
			if size += len(d.grams); size > indexGrams {
				if err := flush(); err != nil {
					return err
				}
			}
		}
	}
	return flush()
}

func (m *Mirror) gramsOf(ctx context.Context, k *kept, part int64) (gramSet, error) {
	set := gramSet{}
	if part == 0 {
		for _, f := range k.fields() {
			set.add(fold(f.text))
		}
	}
	if k.Status == sandbox.Started {
		return set, nil
	}
	output, err := m.partOf(ctx, k, part)
	for _, f := range output {
		set.add(fold(f.text))
	}
	return set, err
}

// partOf reads a part of the output of an operation.
func (m *Mirror) partOf(ctx context.Context, k *kept, part int64) (list []field, err error) {
	if !k.bodies {
		return nil, nil
	}
	from := max(part*partSize-overlap, 0)
	for _, stream := range []struct {
		name sandbox.Stream
		size int64
	}{{sandbox.Stdout, k.stdout}, {sandbox.Stderr, k.stderr}} {
		if stream.size <= from {
			continue
		}
		data, err := m.output(ctx, k.no, stream.name, from, (part+1)*partSize-from)
		if err != nil {
			return nil, err
		}
		if text := string(data); !binary(text) {
			list = append(list, field{name: string(stream.name), text: text, offset: from})
		}
	}
	return list, nil
}

// writeIndex writes documents. An operation that has changed since it was read
// is indexed once more.
func (m *Mirror) writeIndex(ctx context.Context, docs []document) error {
	if len(docs) == 0 {
		return nil
	}
	statement := `insert or replace into mirror_index (rowid, grams) values (?, ?)`
	if m.db.Kind() == "postgres" {
		statement = `insert into mirror_index (rowid, grams) values (?, ?::integer[]) on conflict (rowid) do update set grams = excluded.grams`
	}
	return m.db.Tx(ctx, func(tx *db.Tx) error {
		for _, d := range docs {
			// It may have been removed meanwhile.
			n, err := db.Collect(ctx, tx, number, `select no from mirror_operations where no = ?`, d.row>>partBits)
			if err != nil {
				return err
			}
			if len(n) == 0 {
				continue
			}
			if _, err := tx.Exec(ctx, statement, d.row, words(m.db, d.grams)); err != nil {
				return err
			}
			if d.of == nil {
				continue
			}
			_, err = tx.Exec(ctx, `update mirror_operations set unindexed = 0
				where no = ? and change_seq = ? and status = ? and stdout_bytes = ? and stderr_bytes = ?`,
				d.of.no, d.of.changeSeq, string(d.of.Status), d.of.stdout, d.of.stderr)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// unindex removes the documents of operations, from a part on.
func unindex(ctx context.Context, tx *db.Tx, nos []int64, from int64) error {
	for _, no := range nos {
		if _, err := tx.Exec(ctx, `delete from mirror_index where rowid >= ? and rowid < ?`, no<<partBits|from, (no+1)<<partBits); err != nil {
			return err
		}
	}
	return nil
}
