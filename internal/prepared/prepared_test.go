package prepared_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/glassboxhq/glassbox/internal/prepared"
)

func open(t *testing.T) *sql.DB {
	t.Helper()
	db, err := prepared.Open("file:" + filepath.Join(t.TempDir(), "db") + "?_pragma=journal_mode(wal)&_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := db.Exec(`create table t (a integer, b text); insert into t values (1, 'one'), (2, 'two')`); err != nil {
		t.Fatal(err)
	}
	return db
}

func ask(t *testing.T, db interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}, query string, args ...any,
) string {
	t.Helper()
	var got string
	if err := db.QueryRowContext(t.Context(), query, args...).Scan(&got); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return got
}

func TestAgain(t *testing.T) {
	t.Parallel()
	db := open(t)
	for range 3 {
		for arg, want := range map[int]string{1: "one", 2: "two"} {
			if got := ask(t, db, `select b from t where a = ?`, arg); got != want {
				t.Errorf("%d: got %q, want %q", arg, got, want)
			}
		}
	}
}

// The same query may be asked again while its rows are read, in a transaction
// on one connection.
func TestNested(t *testing.T) {
	t.Parallel()
	db := open(t)
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	const query = `select a from t where a >= ? order by a`
	outer, err := tx.Query(query, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer outer.Close()
	var got []string
	for outer.Next() {
		var a int
		if err := outer.Scan(&a); err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprint(a, ask(t, tx, query, a)))
	}
	if err := outer.Err(); err != nil || fmt.Sprint(got) != "[11 22]" {
		t.Errorf("got %v, %v", got, err)
	}
}

// A statement follows the table that it was read for.
func TestTableChanges(t *testing.T) {
	t.Parallel()
	db := open(t)
	const query = `select b from t where a = ?`
	ask(t, db, query, 1)
	if _, err := db.Exec(`alter table t rename to old; create table t (b text, a integer); insert into t values ('new', 1)`); err != nil {
		t.Fatal(err)
	}
	if got := ask(t, db, query, 1); got != "new" {
		t.Errorf("got %q, want what is in the new table", got)
	}
}

// An error, an end of the caller's patience and rows that are not read to
// their end leave a statement that works.
func TestAfterTrouble(t *testing.T) {
	t.Parallel()
	db := open(t)
	db.SetMaxOpenConns(1)
	if _, err := db.Exec(`create unique index u on t (a)`); err != nil {
		t.Fatal(err)
	}
	const insert = `insert into t values (?, ?)`
	if _, err := db.Exec(insert, 1, "again"); err == nil {
		t.Error("a second row with the same value was taken")
	}
	if _, err := db.Exec(insert, 3, "three"); err != nil {
		t.Error(err)
	}
	const numbers = `with recursive n(i) as (select ? union all select i + 1 from n) select i from n limit 10000000`
	ctx, cancel := context.WithCancel(t.Context())
	var one int
	for range 2 {
		if err := db.QueryRowContext(ctx, numbers, 1).Scan(&one); err != nil || one != 1 {
			t.Fatalf("got %d, %v", one, err)
		}
	}
	cancel()
	if err := db.QueryRowContext(ctx, numbers, 1).Scan(&one); err == nil {
		t.Error("asked after the end of the context")
	}
	if got := ask(t, db, numbers, 7); got != "7" {
		t.Errorf("got %q, want 7", got)
	}
}

func TestMany(t *testing.T) {
	t.Parallel()
	db := open(t)
	db.SetMaxOpenConns(4)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for n := range 300 {
				var got int
				query := fmt.Sprintf(`select a + %d from t where a = ?`, (n+i)%200)
				if err := db.QueryRow(query, 1).Scan(&got); err != nil || got != 1+(n+i)%200 {
					t.Errorf("%s: got %d, %v", query, got, err)
				}
			}
		})
	}
	all.Wait()
}

// What the driver does with its own connections works with ours.
func TestLimit(t *testing.T) {
	t.Parallel()
	c, err := open(t).Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := sqlite.Limit(c, lib.SQLITE_LIMIT_LENGTH, 1000); err != nil {
		t.Error(err)
	}
	if _, err := c.ExecContext(t.Context(), `insert into t values (3, zeroblob(?))`, 2000); err == nil {
		t.Error("the limit does not hold")
	}
}
