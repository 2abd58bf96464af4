package db

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"strings"
	"testing/fstest"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

// migrations are numbered files that never change once they were released.
//
//go:embed migrations/*.sql
var migrations embed.FS

// migrate brings the tables to a version; 0: the newest. Several servers may
// begin at the same time.
func (d *DB) migrate(ctx context.Context, version int64) error {
	files, err := d.dialect.render(migrations)
	if err != nil {
		return err
	}
	opts := []goose.ProviderOption{goose.WithDisableGlobalRegistry(true)}
	if d.dialect == postgresDialect {
		locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 120)) // seconds, times
		if err != nil {
			return err
		}
		opts = append(opts, goose.WithSessionLocker(locker))
	}
	p, err := goose.NewProvider(d.dialect.goose, d.write, files, opts...)
	if err != nil {
		return err
	}
	sources := p.ListSources()
	newest := sources[len(sources)-1].Version
	if version == 0 {
		version = newest
	}
	has, err := p.GetDBVersion(ctx)
	if err != nil {
		return err
	}
	if has > newest {
		return fmt.Errorf("its tables have version %d and this program knows %d: it was used by a newer one; update this program, or restore a backup", has, newest)
	}
	_, err = p.UpTo(ctx, version)
	return err
}

// render fills the words of a dialect into the migrations.
func (d *dialect) render(from fs.FS) (fs.FS, error) {
	files := fstest.MapFS{}
	err := fs.WalkDir(from, "migrations", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(from, path)
		if err != nil {
			return err
		}
		for name, word := range d.words {
			text = []byte(strings.ReplaceAll(string(text), "{{"+name+"}}", word))
		}
		files[strings.TrimPrefix(path, "migrations/")] = &fstest.MapFile{Data: text}
		return nil
	})
	return files, err
}
