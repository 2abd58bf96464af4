package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

var (
	errNotRegular = errors.New("not a regular file")
	errTorn       = errors.New("not a whole SQLite file")
)

// misplaced is what stands in the place of a file or folder of a history.
type misplaced struct{ path, found, wanted string }

// Error implements error.
func (m *misplaced) Error() string {
	return fmt.Sprintf("%s is %s, not %s", m.path, m.found, m.wanted)
}

// Unwrap gives the kind.
func (m *misplaced) Unwrap() error { return errNotRegular }

func misplace(path string, info fs.FileInfo, wanted string) error {
	found := "a special file"
	switch info.Mode().Type() {
	case 0:
		found = "a file"
	case fs.ModeDir:
		found = "a folder"
	case fs.ModeSymlink:
		found = "a symbolic link"
	case fs.ModeNamedPipe:
		found = "a named pipe"
	case fs.ModeSocket:
		found = "a socket"
	case fs.ModeDevice, fs.ModeDevice | fs.ModeCharDevice:
		found = "a device"
	}
	return &misplaced{path, found, wanted}
}

// inspect looks at a file before SQLite does: a link, a device or a pipe in
// its place or beside it is refused, and what SQLite would take for an empty
// file though it is none.
//
// It never opens the file: when a process closes any descriptor of a file, it
// loses all its POSIX locks on it, those of SQLite's connections among them.
func inspect(path string) (fs.FileInfo, error) {
	const sector = 512 // the smallest page of SQLite
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, syscall.ENOTDIR):
		dir := filepath.Dir(path)
		if info, err := os.Stat(dir); err == nil {
			return nil, misplace(dir, info, "the folder of a history")
		}
		return nil, err
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, misplace(path, info, "the file of a history")
	}
	if err := inspectBeside(path); err != nil {
		return nil, err
	}
	if info.Size()%sector != 0 && !pending(path) {
		return nil, fmt.Errorf("%w: it ends in a page", errTorn)
	}
	return info, nil
}

// inspectBeside looks at what SQLite opens beside a file.
func inspectBeside(path string) error {
	for _, suffix := range []string{"-wal", "-shm", "-journal"} {
		if info, err := os.Lstat(path + suffix); err == nil && !info.Mode().IsRegular() {
			return misplace(path+suffix, info, "a part of a history")
		}
	}
	return nil
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
