package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

var (
	errNotRegular = errors.New("not a regular file")
	errTorn       = errors.New("not a whole SQLite file")
)

// inspect looks at a file before SQLite does: a link, a device or a pipe in
// its place is refused, and what SQLite would take for an empty file though
// it is none. It returns the file's size.
//
// It never opens the file: when a process closes any descriptor of a file, it
// loses all its POSIX locks on it, those of SQLite's connections among them.
func inspect(path string) (int64, error) {
	const sector = 512 // the smallest page of SQLite
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return 0, err
	case !info.Mode().IsRegular():
		return 0, &fs.PathError{Op: "open", Path: path, Err: errNotRegular}
	case info.Size()%sector != 0 && !pending(path):
		return 0, fmt.Errorf("%w: it ends in a page", errTorn)
	}
	return info.Size(), nil
}

// checkPages refuses a file that ends in a page, which SQLite would fill up
// with zeros.
func checkPages(ctx context.Context, q querier, path string) error {
	var page int64
	if err := q.QueryRowContext(ctx, `select page_size from pragma_page_size`).Scan(&page); err != nil {
		return err
	}
	info, err := os.Lstat(path)
	if err == nil && info.Size()%page != 0 && !pending(path) {
		err = fmt.Errorf("%w: it ends in a page", errTorn)
	}
	return err
}

// pending reports whether a log or journal is beside the file, from which
// SQLite completes it.
func pending(path string) bool {
	for _, suffix := range []string{"-wal", "-journal"} {
		if info, err := os.Lstat(path + suffix); err == nil && info.Size() > 0 {
			return true
		}
	}
	return false
}
