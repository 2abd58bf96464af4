package native

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/glassboxhq/glassbox/sandbox"
)

// removeTree removes what stands at a place with all that it holds. It stays
// below open directories, whatever links lie in them.
func (p *place) removeTree(ctx context.Context, op string) error {
	if err := remove(ctx, p.fd(), &shown{p.name, p.path}, 0); err != nil {
		return fault(op, err)
	}
	return nil
}

// refills is how often a directory is emptied again that somebody fills
// meanwhile.
const refills = 10

func remove(ctx context.Context, dir int, at *shown, depth int) error {
	if ctx.Err() != nil {
		return sandbox.FromContext(ctx, "remove")
	}
	err := unix.Unlinkat(dir, at.name, 0)
	if !errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.EPERM) {
		return unlessGone(err, at)
	}
	for range refills {
		err = unix.Unlinkat(dir, at.name, unix.AT_REMOVEDIR)
		if errors.Is(err, unix.ENOTDIR) {
			err = unix.EPERM // it was no directory, and may not be removed
		}
		if !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.EEXIST) {
			return unlessGone(err, at)
		}
		if err := empty(ctx, dir, at, depth); err != nil {
			return err
		}
	}
	return unlessGone(unix.Unlinkat(dir, at.name, unix.AT_REMOVEDIR), at)
}

func unlessGone(err error, at *shown) error {
	if err == nil || errors.Is(err, unix.ENOENT) {
		return nil
	}
	return &fs.PathError{Op: "remove", Path: at.path, Err: err}
}

// empty removes all that a directory holds.
func empty(ctx context.Context, dir int, at *shown, depth int) error {
	if depth >= maxDepth {
		return removeDeep(dir, at)
	}
	f, err := openDirAt(dir, at.name)
	if err != nil {
		return unlessGone(err, at)
	}
	defer f.Close()
	var names []string
	for err == nil {
		var part []string
		part, err = f.Readdirnames(walkBatch)
		names = append(names, part...)
	}
	if !errors.Is(err, io.EOF) {
		return renamed(err, at.path)
	}
	for _, name := range names {
		if err := remove(ctx, int(f.Fd()), &shown{name, at.path + "/" + name}, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// removeDeep removes a tree that is too deep to keep all its directories open.
func removeDeep(dir int, at *shown) error {
	root, err := os.OpenRoot("/proc/self/fd/" + strconv.Itoa(dir))
	if err != nil {
		return renamed(err, at.path)
	}
	defer root.Close()
	return renamed(root.RemoveAll(at.name), at.path)
}
