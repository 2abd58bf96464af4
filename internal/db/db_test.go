package db_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/glassboxhq/glassbox/internal/db"
	"github.com/glassboxhq/glassbox/internal/db/dbtest"
)

const addUser = `insert into users (id, name, name_key, role, created_at, updated_at) values (?, ?, ?, 'viewer', ?, ?)`

func add(ctx context.Context, to interface {
	Exec(ctx context.Context, query string, args ...any) (int64, error)
}, id, name string,
) error {
	now := db.At(time.UnixMicro(1_790_000_000_123_456))
	_, err := to.Exec(ctx, addUser, id, name, name, now, now)
	return err
}

func TestRows(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ctx := t.Context()
		if err := add(ctx, d, "1", "研究员 ' or 1=1"); err != nil {
			t.Fatal(err)
		}
		err := add(ctx, d, "2", "研究员 ' or 1=1")
		if !d.Exists(err) {
			t.Errorf("the same name twice: %v", err)
		}
		if d.Exists(nil) || d.Exists(errors.New("x")) {
			t.Error("any error is one of a unique value")
		}
		var name string
		var at db.Time
		if err := d.QueryRow(ctx, `select name, created_at from users where id = ?`, "1").Scan(&name, &at); err != nil {
			t.Fatal(err)
		}
		if name != "研究员 ' or 1=1" || at.UnixMicro() != 1_790_000_000_123_456 {
			t.Errorf("%q %v", name, at)
		}
		if err := d.QueryRow(ctx, `select name from users where id = ?`, "3").Scan(&name); !errors.Is(err, sql.ErrNoRows) {
			t.Errorf("no row: %v", err)
		}
		if n, err := d.Exec(ctx, `delete from users where id in (?, ?)`, "1", "3"); n != 1 || err != nil {
			t.Errorf("deleted %d, %v", n, err)
		}
	})
}

func TestTransactions(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ctx := t.Context()
		fault := errors.New("fault")
		err := d.Tx(ctx, func(tx *db.Tx) error {
			if err := add(ctx, tx, "1", "a"); err != nil {
				return err
			}
			return fault
		})
		if !errors.Is(err, fault) {
			t.Fatal(err)
		}
		var writers sync.WaitGroup
		for i := range 20 { // at once, with readers between
			writers.Go(func() {
				err := d.Tx(ctx, func(tx *db.Tx) error { return add(ctx, tx, string(rune('a'+i)), string(rune('a'+i))) })
				if err != nil {
					t.Error(err)
				}
				if _, err := count(ctx, d); err != nil {
					t.Error(err)
				}
			})
		}
		writers.Wait()
		if n, err := count(ctx, d); n != 20 || err != nil {
			t.Errorf("%d rows, %v", n, err)
		}
	})
}

func count(ctx context.Context, d *db.DB) (n int, err error) {
	return n, d.QueryRow(ctx, `select count(*) from users`).Scan(&n)
}

// A database that an older version has filled keeps what it holds.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	dbtest.EachAddress(t, func(t *testing.T, address string) {
		ctx := t.Context()
		old, err := db.OpenVersion(ctx, address, 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := add(ctx, old, "1", "kept"); err != nil {
			t.Fatal(err)
		}
		if _, err := old.Exec(ctx, `insert into tokens values ('t', 'h', '1', 'ci', 'sandboxes:read', 1, null, 2)`); err != nil {
			t.Fatal(err)
		}
		if _, err := old.Exec(ctx, `select 1 from connections`); err == nil {
			t.Fatal("the old version is the new one")
		}
		if err := old.Close(); err != nil {
			t.Fatal(err)
		}
		d := dbtest.Open(t, address)
		var name, token string
		if err := d.QueryRow(ctx, `select u.name, t.name from users u join tokens t on t.user_id = u.id`).Scan(&name, &token); err != nil {
			t.Fatal(err)
		}
		if name != "kept" || token != "ci" {
			t.Errorf("%q %q", name, token)
		}
		var n int
		if err := d.QueryRow(ctx, `select count(*) from connections`).Scan(&n); err != nil {
			t.Error(err)
		}
	})
}

func TestNewerTables(t *testing.T) {
	t.Parallel()
	dbtest.EachAddress(t, func(t *testing.T, address string) {
		d := dbtest.Open(t, address)
		if _, err := d.Exec(t.Context(), `insert into goose_db_version (version_id, is_applied) values (999, ?)`, true); err != nil {
			t.Fatal(err)
		}
		_, err := db.Open(t.Context(), address)
		if err == nil || !strings.Contains(err.Error(), "newer") {
			t.Errorf("tables of a newer version: %v", err)
		}
	})
}

// Several servers begin at once.
func TestTogether(t *testing.T) {
	t.Parallel()
	dbtest.EachAddress(t, func(t *testing.T, address string) {
		if !strings.HasPrefix(address, "postgres") {
			t.Skip("an SQLite file belongs to one server, the owner of the state folder")
		}
		var servers sync.WaitGroup
		for range 4 {
			servers.Go(func() {
				d, err := db.Open(t.Context(), address)
				if err != nil {
					t.Error(err)
					return
				}
				d.Close()
			})
		}
		servers.Wait()
	})
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ address, want string }{
		{"mysql://x/y", "begins with postgres://"},
		{"postgres://u:hunter22@%zz/", "the URL cannot be read"},
	} {
		_, err := db.Open(t.Context(), tt.address)
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hunter22") {
			t.Errorf("%s: %v", tt.address, err)
		}
	}
	if _, err := db.Open(t.Context(), "postgres://u:hunter22@127.0.0.1:1/x?sslmode=disable"); err == nil || strings.Contains(err.Error(), "hunter22") {
		t.Errorf("nobody listens: %v", err)
	}
}

func TestFileMode(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/deep/console #1?.sqlite3"
	dbtest.Open(t, path)
	for _, name := range []string{path, path + "-wal"} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", name, info.Mode())
		}
	}
}
