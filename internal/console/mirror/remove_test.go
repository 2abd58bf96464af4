package mirror_test

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/console/mirror"
	"github.com/glassboxhq/glassbox/internal/db"
	"github.com/glassboxhq/glassbox/internal/db/dbtest"
	"github.com/glassboxhq/glassbox/sandbox"
)

// secret stands in all that an operation leaves.
const secret = "passwort-hunter22"

func secrets(seq int64) (*history.Operation, *mirror.Batch) {
	op := command(seq, "echo "+secret)
	op.Changes = &history.Changes{Created: []history.FileChange{{Path: "/workspace/" + secret}}}
	return op, &mirror.Batch{
		Operations: entries(op), Position: 2 * seq,
		Output:    []mirror.Piece{{Operation: op.ID, Stream: sandbox.Stdout, Data: []byte(strings.Repeat(secret+"\n", 50))}},
		Terminals: map[string][]history.TerminalEvent{op.ID: {{Typed: secret}}},
		Changes:   []*history.Change{{Seq: 2 * seq, ID: op.ID + ":created", Operation: op.ID, Type: history.Created, At: at(1)}},
	}
}

func TestErase(t *testing.T) {
	t.Parallel()
	dbtest.EachAddress(t, func(t *testing.T, address string) {
		ctx := t.Context()
		d := dbtest.Open(t, address)
		m := mirror.New(d, nil)
		h, other := begin(t, m, "box"), begin(t, m, "other")
		for seq := range int64(30) {
			_, b := secrets(seq + 1)
			store(t, m, h, b)
		}
		kept := command(1, "echo kept")
		store(t, m, other, &mirror.Batch{Operations: entries(kept)})
		if err := m.Index(ctx); err != nil {
			t.Fatal(err)
		}
		late := *h
		erased, err := m.Erase(ctx, "local", "box", history.Actor{ID: "李"})
		if err != nil {
			t.Fatal(err)
		}
		_, b := secrets(31)
		if err := m.Store(ctx, &late, b); !isCode(err, mirror.CodeErased) {
			t.Errorf("a batch that was on its way: %v", err)
		}
		h = begin(t, m, "box")
		_, b = secrets(7) // an operation that was there
		store(t, m, h, b)
		if err := m.Index(ctx); err != nil {
			t.Fatal(err)
		}
		page, err := m.Reader(h.No).List(ctx, nil)
		if err != nil || len(page.Operations) != 1 {
			t.Fatalf("%+v, %v", page, err)
		}
		if op := page.Operations[0]; op.ID != erased.ID || op.Type != mirror.HistoryErase || op.Actor.ID != "李" || op.Actor.Type != history.User ||
			string(op.Result) != `{"operations":30}` {
			t.Errorf("what is left: %+v", op)
		}
		if hits := every(t, m, &mirror.Query{Filter: history.Filter{Text: "hunter22"}}); len(hits) > 0 {
			t.Errorf("found: %+v", hits[0])
		}
		if hits := every(t, m, &mirror.Query{Filter: history.Filter{Text: "kept"}}); len(hits) != 1 {
			t.Errorf("the other's: %d", len(hits))
		}
		for _, table := range []string{"mirror_output", "mirror_terminals", "mirror_paths", "mirror_changes"} {
			var n int
			if err := d.QueryRow(ctx, `select count(*) from `+table).Scan(&n); err != nil || n != 0 {
				t.Errorf("%s has %d rows, %v", table, n, err)
			}
		}
		if d.Kind() == "sqlite" {
			wantNoBytes(t, address, secret)
		}
		next := command(31, "new")
		store(t, m, h, &mirror.Batch{Operations: entries(next)})
		if _, err := m.Reader(h.No).Get(ctx, next.ID); err != nil {
			t.Errorf("what was recorded later: %v", err)
		}
		if _, err := m.Erase(ctx, "local", "nobody", history.Actor{}); !isCode(err, mirror.CodeHistoryNotFound) {
			t.Errorf("unknown: %v", err)
		}
	})
}

func isCode(err error, code sandbox.Code) bool {
	e, ok := errors.AsType[*sandbox.Error](err)
	return ok && e.Code == code
}

// wantNoBytes looks into the files of a database.
func wantNoBytes(t *testing.T, path, word string) {
	t.Helper()
	for _, name := range []string{path, path + "-wal"} {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if at := bytes.Index(data, []byte(word)); at >= 0 {
			t.Errorf("%s still has it at %d", name, at)
		}
	}
}

func TestPrune(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ctx := t.Context()
		m := mirror.New(d, &mirror.Options{Now: func() time.Time { return at(1000) }})
		h := begin(t, m, "box")
		var ids []string
		for seq := range int64(600) {
			op, b := secrets(seq + 1)
			if seq == 3 {
				op.Status = sandbox.Started
			}
			ids = append(ids, op.ID)
			store(t, m, h, b)
		}
		prune := func(l mirror.Limits) *mirror.Pruned {
			t.Helper()
			done, err := m.Prune(ctx, &l)
			if err == nil {
				err = m.Index(ctx)
			}
			if err != nil {
				t.Fatal(err)
			}
			return done
		}
		if done := prune(mirror.Limits{Age: time.Hour, Bytes: 1 << 30}); *done != (mirror.Pruned{}) {
			t.Errorf("nothing to do: %+v", done)
		}
		own := map[string]mirror.Limits{"local": {BodyAge: 900 * time.Second}} // began at 1 to 600, now is 1000
		if done := prune(mirror.Limits{Age: time.Second, ByConnection: own}); done.Bodies != 98 || done.Operations != 0 {
			t.Errorf("bodies: %+v", done)
		}
		r := m.Reader(h.No)
		op, err := r.Get(ctx, ids[10])
		if err != nil || op.Command.Line != "echo "+secret || op.Command.Recording != sandbox.RecordedMetadata || op.Command.StdoutBytes != 0 {
			t.Errorf("without its body: %+v, %v", op, err)
		}
		if data, err := r.Output(ctx, ids[10], sandbox.Stdout, 0, 10); len(data) > 0 || err != nil {
			t.Errorf("its output: %q, %v", data, err)
		}
		if hits := every(t, m, &mirror.Query{Filter: history.Filter{Text: "hunter22", Limit: 1000}}); len(hits) != 600 {
			t.Errorf("found by its command: %d", len(hits))
		}
		if done := prune(mirror.Limits{Age: 800 * time.Second}); done.Operations != 198 { // but what runs
			t.Errorf("age: %+v", done)
		}
		done := prune(mirror.Limits{Bytes: 300_000})
		if done.Bodies == 0 || done.Operations == 0 {
			t.Errorf("size: %+v", done)
		}
		var size, docs, ops int
		if err := d.QueryRow(ctx, `select sum(bytes), count(*) from mirror_operations`).Scan(&size, &ops); err != nil || size > 300_000 || size < 250_000 {
			t.Errorf("%d bytes, %v", size, err)
		}
		if err := d.QueryRow(ctx, `select count(*) from mirror_index`).Scan(&docs); err != nil || docs != ops {
			t.Errorf("%d operations, %d documents, %v", ops, docs, err)
		}
		if _, err := r.Get(ctx, ids[3]); err != nil {
			t.Errorf("what runs: %v", err)
		}
	})
}
