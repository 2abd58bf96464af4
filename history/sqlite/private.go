package sqlite

import (
	"context"
	"database/sql"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"syscall"
	"time"

	"modernc.org/sqlite/vfs"
)

// copies are the folders in which private copies are made. A copy stands there
// only until it is open: then it has no name any more, and is gone with the
// process, however that ends.
const copies = "glassbox-history-"

// leftAfter is how old a folder must be to count as left behind: a younger one
// may not be locked yet.
const leftAfter = time.Minute

// private is a copy of a history, in a file without a name.
type private struct {
	file *os.File
	vfs  *vfs.FS
	name string // of the vfs
}

// newPrivate copies a history and its log, and makes one file of both.
func (s *Store) newPrivate() (*private, error) {
	sweep(os.TempDir())
	dir, err := os.MkdirTemp("", copies) // 0700
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	lock, err := lockFolder(dir)
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	name := filepath.Join(dir, path.Base(privateName))
	if err := copyHistory(name, s.path); err != nil {
		return nil, err
	}
	if _, err := inspect(name); err != nil {
		return nil, err
	}
	if err := s.settle(context.Background(), name); err != nil {
		return nil, err
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	p := &private{file: file}
	if p.name, p.vfs, err = vfs.New(single{file}); err != nil {
		_ = file.Close()
		return nil, err
	}
	return p, nil
}

// settle moves the log of a copy into its file, and ends the mode that needs
// files beside it.
func (s *Store) settle(ctx context.Context, name string) error {
	db, err := sql.Open("sqlite", s.dsn(name, "trusted_schema(0)", "cell_size_check(1)"))
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	if _, err := hasSchema(ctx, db, s.path); err != nil {
		return err
	}
	if err := checkPages(ctx, db, name); err != nil {
		return err
	}
	var mode string
	return db.QueryRowContext(ctx, `pragma journal_mode = delete`).Scan(&mode)
}

func (p *private) close() {
	_ = p.vfs.Close()
	_ = p.file.Close()
}

// lockFolder holds a folder, so that nobody sweeps it.
func lockFolder(dir string) (*os.File, error) {
	f, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// sweep removes what killed processes of this user have left of their copies.
func sweep(temp string) {
	found, _ := filepath.Glob(filepath.Join(temp, copies+"*")) // the pattern is sound
	for _, dir := range found {
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() || time.Since(info.ModTime()) < leftAfter {
			continue
		}
		if owner, ok := info.Sys().(*syscall.Stat_t); !ok || int(owner.Uid) != os.Geteuid() {
			continue
		}
		if lock, err := lockFolder(dir); err == nil {
			_ = os.RemoveAll(dir)
			_ = lock.Close()
		}
	}
}

// privateName is the name under which SQLite knows a copy.
const privateName = "/history.sqlite3"

// dsn names the copy. It cannot be written, and what SQLite has to sort it
// sorts in memory.
func (p *private) dsn(pragmas ...string) string {
	return dsn(privateName, "ro", p.name, append(pragmas, "temp_store(2)"))
}

// single is a file system that holds one open file.
type single struct{ file *os.File }

// Open implements fs.FS.
func (s single) Open(name string) (fs.File, error) {
	if path.Base(name) != path.Base(privateName) { // a journal or a log, which it has not
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	info, err := s.file.Stat()
	if err != nil {
		return nil, err
	}
	return &handle{io.NewSectionReader(s.file, 0, info.Size()), s.file}, nil
}

// handle is a place in the file.
type handle struct {
	*io.SectionReader
	file *os.File
}

// Stat implements fs.File.
func (h *handle) Stat() (fs.FileInfo, error) { return h.file.Stat() }

// Close implements fs.File. The file stays open for the others.
func (h *handle) Close() error { return nil }
