package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/glassboxhq/glassbox"
	"github.com/glassboxhq/glassbox/sandbox"
)

// out copies out of the sandbox.
func (c *copying) out(ctx context.Context, from, to spot) error {
	info, dir, err := c.remote(ctx, from.path)
	if err != nil {
		return err
	}
	if info == nil {
		return noSuch(from)
	}
	if to.path == "-" {
		return c.toStdout(ctx, from, dir)
	}
	target, err := c.target(from, to, info)
	if err != nil {
		return err
	}
	if !dir {
		return c.fetchFile(ctx, from.path, target)
	}
	archive, err := c.box.Download(ctx, from.path, nil)
	if err != nil {
		return err
	}
	defer archive.Close()
	if err := os.MkdirAll(target, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(target)
	if err != nil {
		return err
	}
	defer root.Close()
	return (&unpacking{copying: c, root: root}).run(&counted{archive, &c.moved})
}

// target is where on this machine a source goes.
func (c *copying) target(from, to spot, info *glassbox.FileInfo) (string, error) {
	there, err := os.Stat(to.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if !strings.HasSuffix(to.path, "/") || from.content() {
			return to.path, nil
		}
	case err != nil:
		return "", err
	case !there.IsDir():
		if info.Mode.IsDir() {
			return "", fmt.Errorf("%s is a file, and %s is a folder", plain(to.path), plain(from.path))
		}
		return to.path, nil
	case from.content():
		return to.path, nil
	}
	name := path.Base(info.Path)
	if name == "/" || !filepath.IsLocal(name) {
		return "", usage("the source has no name of its own: end it in /. to copy what it holds")
	}
	return filepath.Join(to.path, name), nil
}

func (c *copying) toStdout(ctx context.Context, from spot, dir bool) error {
	var content io.ReadCloser
	var err error
	switch {
	case c.tar:
		content, err = c.box.Download(ctx, from.path, nil)
	case dir:
		return usage("%s is a folder: give --tar to write it as an archive", plain(from.path))
	default:
		content, err = c.box.Read(ctx, from.path, nil)
	}
	if err != nil {
		return err
	}
	defer content.Close()
	c.done.Bytes, err = io.Copy(c.app.out, &counted{content, &c.moved})
	return err
}

// fetchFile writes beside the target, which it then replaces. A device or a pipe
// is written to, and a link leads to what is meant, as with cp.
func (c *copying) fetchFile(ctx context.Context, name, target string) error {
	content, err := c.box.Read(ctx, name, nil)
	if err != nil {
		return err
	}
	defer content.Close()
	if there, err := os.Stat(target); err == nil && !there.Mode().IsRegular() {
		return c.pour(content, target)
	}
	if real, err := filepath.EvalSymlinks(target); err == nil {
		target = real
	}
	mode, modified := fs.FileMode(0o644), time.Time{}
	if d, ok := content.(sandbox.Described); ok && d.Info() != nil {
		mode, modified = ownMode(d.Info().Mode), d.Info().Modified
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(target), sandbox.TempPrefix+"*")
	if err != nil {
		return err
	}
	c.done.Bytes, err = io.Copy(f, &counted{content, &c.moved})
	err = errors.Join(err, f.Chmod(mode), f.Close())
	if err == nil && !modified.IsZero() {
		err = os.Chtimes(f.Name(), time.Time{}, modified)
	}
	if err == nil {
		err = os.Rename(f.Name(), target)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // the error at hand is the one to tell
		return err
	}
	c.done.Files = 1
	return nil
}

// pour writes into what is there.
func (c *copying) pour(content io.Reader, target string) error {
	f, err := os.OpenFile(target, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	c.done.Bytes, err = io.Copy(f, &counted{content, &c.moved})
	if err = errors.Join(err, f.Close()); err == nil {
		c.done.Files = 1
	}
	return err
}

// ownMode is the mode on this machine of what a sandbox made: others must not
// be able to change it, nor does it run with anyone else's rights.
func ownMode(mode fs.FileMode) fs.FileMode { return mode.Perm() &^ 0o022 }
