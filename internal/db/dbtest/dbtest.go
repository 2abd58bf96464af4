// Package dbtest runs a test on every kind of database.
//
//	dbtest.Each(t, func(t *testing.T, d *db.DB) { … })
package dbtest

import (
	"context"
	"database/sql"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"

	"github.com/glassboxhq/glassbox/internal/db"
	"github.com/glassboxhq/glassbox/internal/id"
)

// variable names a PostgreSQL whose user may make schemas: scripts/test.sh
// starts one.
const variable = "GLASSBOX_TEST_POSTGRES"

// Each runs a test on an empty database of each kind.
func Each(t *testing.T, test func(t *testing.T, d *db.DB)) {
	t.Helper()
	EachAddress(t, func(t *testing.T, address string) { test(t, Open(t, address)) })
}

// EachAddress runs a test with the address of a database of each kind that
// has no tables yet.
func EachAddress(t *testing.T, test func(t *testing.T, address string)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, filepath.Join(t.TempDir(), "console.sqlite3"))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, schema(t))
	})
}

// Open opens a database that is closed when the test ends.
func Open(t *testing.T, address string) *db.DB {
	t.Helper()
	d, err := db.Open(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// schema makes a schema for one test, and returns a URL that leads into it.
func schema(t *testing.T) string {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		t.Skip("needs PostgreSQL: set " + variable + " to its URL, or run make test")
	}
	address, err := url.Parse(text)
	if err != nil {
		t.Fatal(variable + " is no URL")
	}
	name := "test_" + id.NewRandom()[:8]
	run(t, t.Context(), text, "create schema "+name)
	t.Cleanup(func() { run(t, context.WithoutCancel(t.Context()), text, "drop schema "+name+" cascade") })
	query := address.Query()
	query.Set("search_path", name)
	address.RawQuery = query.Encode()
	return address.String()
}

func run(t *testing.T, ctx context.Context, address, statement string) { //nolint:revive // the test comes first, as everywhere
	t.Helper()
	pool, err := sql.Open("pgx", address)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if _, err := pool.ExecContext(ctx, statement); err != nil {
		t.Error(err)
	}
}
