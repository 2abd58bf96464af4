package mirror

import (
	"context"
	"strings"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/db"
)

// Limits say how long and how much the mirror keeps. A zero field does not
// limit.
type Limits struct {
	Age          time.Duration     `json:"age,omitempty"`               // of operations, since they began
	BodyAge      time.Duration     `json:"body_age,omitempty"`          // of their output and diffs: what was done stays longer than what was printed
	Bytes        int64             `json:"bytes,omitempty"`             // of all histories of one connection
	Dies         bool              `json:"dies_with_sandbox,omitempty"` // a history goes when its sandbox does
	ByConnection map[string]Limits `json:"by_connection,omitempty"`     // other limits of a connection, instead of these
}

// Of returns the limits of a connection.
func (l *Limits) Of(connection string) Limits {
	if own, ok := l.ByConnection[connection]; ok {
		return own
	}
	return *l
}

// Pruned tells what a clean-up did.
type Pruned struct {
	Operations int64 // removed
	Bodies     int64 // of operations that stay
}

// pruneStep is how many operations one transaction removes, so that what is
// recorded meanwhile does not wait for long.
const pruneStep = 200

// Prune removes what the limits no longer keep: of each connection by age, and
// while it has too much first the oldest bodies, then the oldest operations.
// What still runs stays.
func (m *Mirror) Prune(ctx context.Context, limits *Limits) (*Pruned, error) {
	p := &pruning{m: m, done: &Pruned{}}
	connections, err := db.Collect(ctx, m.db, func(row db.Row) (id string, err error) { return id, row.Scan(&id) },
		`select distinct connection_id from mirror_histories`)
	if err != nil {
		return p.done, err
	}
	for _, connection := range connections {
		if p.limits = limits.Of(connection); p.limits.Dies {
			if err := p.bury(ctx, connection); err != nil {
				return p.done, err
			}
		}
		if p.scope, err = db.Collect(ctx, m.db, number, `select no from mirror_histories where connection_id = ?`, connection); err != nil {
			return p.done, err
		}
		if err := p.run(ctx); err != nil {
			return p.done, err
		}
	}
	return p.done, nil
}

// pruning is a clean-up of one connection.
type pruning struct {
	m      *Mirror
	limits Limits
	scope  []int64 // histories
	done   *Pruned
}

// bury drops the histories of sandboxes that are gone.
func (p *pruning) bury(ctx context.Context, connection string) error {
	list, err := p.m.Sandboxes(ctx, connection)
	for _, box := range list {
		if err == nil && !box.GoneAt.IsZero() {
			var n int64
			n, err = p.m.Drop(ctx, connection, box.ID)
			p.done.Operations += n
		}
	}
	return err
}

func (p *pruning) run(ctx context.Context) error {
	now := p.m.opts.Now()
	if age := p.limits.Age; age > 0 {
		if err := p.all(ctx, p.remove, `o.started_at < ?`, now.Add(-age).UnixMicro()); err != nil {
			return err
		}
	}
	if age := p.limits.BodyAge; age > 0 {
		if err := p.all(ctx, p.strip, withBody+` and o.started_at < ?`, now.Add(-age).UnixMicro()); err != nil {
			return err
		}
	}
	if p.limits.Bytes == 0 {
		return nil
	}
	for _, step := range []struct {
		do    func(context.Context, []*kept) error
		which string
	}{{p.strip, withBody}, {p.remove, `1 = 1`}} {
		if err := p.shrink(ctx, step.do, step.which); err != nil {
			return err
		}
	}
	return nil
}

// withBody picks operations that have something to lose.
const withBody = `o.bodies = 1 and (o.stdout_bytes + o.stderr_bytes > 0 or o.type like 'file.%')`

// shrink does something to the oldest operations until the connection has no
// more than it may.
func (p *pruning) shrink(ctx context.Context, do func(context.Context, []*kept) error, which string) error {
	for {
		size, err := p.size(ctx)
		if err != nil || size <= p.limits.Bytes {
			return err
		}
		list, err := p.oldest(ctx, which)
		if err != nil || len(list) == 0 {
			return err
		}
		over, n := size-p.limits.Bytes, 0
		for ; n < len(list) && over > 0; n++ {
			over -= list[n].size()
		}
		if err := do(ctx, list[:n]); err != nil {
			return err
		}
	}
}

func (k *kept) size() int64 { return int64(k.weigh()) + k.stdout + k.stderr }

func (p *pruning) size(ctx context.Context) (size int64, err error) {
	w := &where{}
	w.histories(p.scope, ``)
	return size, p.m.db.QueryRow(ctx, `select coalesce(sum(o.bytes), 0) from mirror_operations o where `+w.String()).Scan(&size)
}

// all does something to every operation that ended and meets a condition.
func (p *pruning) all(ctx context.Context, do func(context.Context, []*kept) error, which string, args ...any) error {
	for {
		list, err := p.oldest(ctx, which, args...)
		if err != nil || len(list) == 0 {
			return err
		}
		if err := do(ctx, list); err != nil {
			return err
		}
	}
}

// oldest lists the oldest operations; the record of an erasure stays.
func (p *pruning) oldest(ctx context.Context, which string, args ...any) ([]*kept, error) {
	w := &where{}
	w.histories(p.scope, `+`)
	return db.Collect(ctx, p.m.db, scanKept, `select `+operationColumns+` from mirror_operations o
		where `+w.String()+` and o.status <> 'started' and o.type <> '`+HistoryErase+`' and `+which+` order by o.started_at, o.no limit ?`,
		append(args, pruneStep)...)
}

func (p *pruning) remove(ctx context.Context, list []*kept) error {
	err := p.m.tx(ctx, func(tx *db.Tx) error { return removeOperations(ctx, tx, list) })
	if err == nil {
		p.done.Operations += int64(len(list))
	}
	return err
}

func removeOperations(ctx context.Context, tx *db.Tx, list []*kept) error {
	nos := make([]int64, len(list))
	args := make([]any, len(list))
	for i, k := range list {
		nos[i], args[i] = k.no, k.no
	}
	if err := unindex(ctx, tx, nos, 0); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `delete from mirror_operations where no in (?`+strings.Repeat(`, ?`, len(args)-1)+`)`, args...)
	return err
}

// strip removes what operations printed and how they changed texts; who did
// what, when and to which file stays.
func (p *pruning) strip(ctx context.Context, list []*kept) error {
	err := p.m.tx(ctx, func(tx *db.Tx) error {
		for _, k := range list {
			if err := stripOperation(ctx, tx, k); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		p.done.Bodies += int64(len(list))
		p.m.changed()
	}
	return err
}

func stripOperation(ctx context.Context, tx *db.Tx, k *kept) error {
	for _, table := range []string{`mirror_output`, `mirror_terminals`} {
		if _, err := tx.Exec(ctx, `delete from `+table+` where op = ?`, k.no); err != nil {
			return err
		}
	}
	if k.File != nil && k.File.Diff != "" {
		k.File.Diff, k.File.DiffTruncated = "", true
	}
	if k.File != nil {
		k.Request, k.Result = withoutTexts(k.Request), withoutTexts(k.Result)
	}
	data, err := encodeBody(k.Operation)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `update mirror_operations set bodies = 0, stdout_bytes = 0, stderr_bytes = 0, body = ?, request = ?, result = ?, bytes = ?, unindexed = 1
		where no = ?`, data, orNull(k.Request), orNull(k.Result), int64(len(data)+len(k.Request)+len(k.Result)), k.no)
	if err != nil {
		return err
	}
	return unindex(ctx, tx, []int64{k.no}, 0)
}

// withoutTexts leaves out the contents of files, which other programs keep in
// the fields of a request and a result.
func withoutTexts(doc []byte) []byte {
	fields, ok := fieldsOf(doc)
	if !ok {
		return doc
	}
	cut := false
	for _, name := range []string{"content", "diff"} {
		if text, ok := fields[name].(string); ok && text != "" {
			delete(fields, name)
			fields[name+"_truncated"], cut = true, true
		}
	}
	if !cut {
		return doc
	}
	return history.Encode(fields)
}
