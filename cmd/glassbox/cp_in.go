package main

import (
	"archive/tar"
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/glassboxhq/glassbox"
)

// in copies into the sandbox.
func (c *copying) in(ctx context.Context, from, to spot) error {
	switch {
	case from.path == "-" && c.tar:
		return c.upload(ctx, to.path, c.app.in)
	case from.path == "-":
		return c.fromStdin(ctx, to.path)
	}
	info, err := os.Stat(from.path)
	if err != nil {
		return err
	}
	there, dir, err := c.remote(ctx, to.path)
	if err != nil {
		return err
	}
	target := to.path
	if (dir || strings.HasSuffix(to.path, "/")) && !from.content() {
		full, err := filepath.Abs(from.path)
		if err != nil {
			return err
		}
		target = under(to.path, full)
	}
	switch {
	case info.IsDir() && there != nil && !dir:
		return fmt.Errorf("%s is a file in the sandbox, and %s is a folder", plain(to.path), plain(from.path))
	case info.IsDir():
		return c.uploadTree(ctx, from.path, target)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is neither a file nor a folder; give its content as -", plain(from.path))
	}
	return c.sendFile(ctx, from.path, target, info.Mode().Perm())
}

func (c *copying) fromStdin(ctx context.Context, target string) error {
	_, dir, err := c.remote(ctx, target)
	if err == nil && (dir || strings.HasSuffix(target, "/")) {
		err = usage("standard input has no name: give that of the file, or --tar if it is an archive")
	}
	if err != nil {
		return err
	}
	return c.write(ctx, target, c.app.in, 0)
}

func (c *copying) sendFile(ctx context.Context, name, target string, mode fs.FileMode) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	return c.write(ctx, target, f, mode)
}

func (c *copying) write(ctx context.Context, name string, content io.Reader, mode fs.FileMode) error {
	from := io.Reader(&counted{content, &c.moved})
	if seeker, ok := content.(*os.File); ok && mode != 0 {
		from = &again{counted{content, &c.moved}, seeker} // what was cut can be sent again
	}
	info, err := c.box.Write(ctx, name, from, &glassbox.WriteOptions{Mode: mode})
	if err != nil {
		return err
	}
	c.done.Files, c.done.Bytes = 1, info.Size
	return nil
}

// again is counted content that can be read once more.
type again struct {
	counted
	io.Seeker
}

func (c *copying) upload(ctx context.Context, target string, archive io.Reader) error {
	done, err := c.box.Upload(ctx, target, archive, &glassbox.UploadOptions{MaxFiles: c.maxFiles, MaxBytes: c.maxBytes})
	if done != nil {
		c.done.Files, c.done.Directories, c.done.Links, c.done.Bytes = done.Files, done.Directories, done.Links, done.Bytes
	}
	return err
}

// uploadTree packs a folder while it is sent.
func (c *copying) uploadTree(ctx context.Context, folder, target string) error {
	r, w := io.Pipe()
	packed := make(chan error, 1)
	go func() {
		err := c.pack(ctx, folder, w)
		_ = w.CloseWithError(err) // it never fails
		packed <- err
	}()
	err := c.upload(ctx, target, r)
	_ = r.CloseWithError(errStopped)
	if perr := <-packed; perr != nil && !errors.Is(perr, errStopped) {
		return perr // it is why the other end failed
	}
	return err
}

var errStopped = errors.New("the upload has ended")

// pack writes a folder of this machine as a tar.
func (c *copying) pack(ctx context.Context, folder string, to io.Writer) error {
	buffered := bufio.NewWriterSize(to, 256<<10)
	w := tar.NewWriter(buffered)
	root, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return err
	}
	err = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		rel, err := filepath.Rel(root, name)
		if err != nil || rel == "." {
			return err
		}
		return c.packOne(w, name, filepath.ToSlash(rel), d)
	})
	return errors.Join(err, func() error {
		if err != nil {
			return nil // without its end mark nobody takes it for whole
		}
		return errors.Join(w.Close(), buffered.Flush())
	}())
}

func (c *copying) packOne(w *tar.Writer, name, rel string, d fs.DirEntry) error {
	info, err := d.Info()
	if errors.Is(err, fs.ErrNotExist) {
		return nil // removed while we looked
	}
	if err != nil {
		return err
	}
	h := &tar.Header{Name: rel, Mode: int64(info.Mode().Perm()), ModTime: info.ModTime().Truncate(1e9)}
	switch {
	case info.IsDir():
		h.Typeflag, h.Name = tar.TypeDir, rel+"/"
	case info.Mode()&fs.ModeSymlink != 0:
		h.Typeflag = tar.TypeSymlink
		if h.Linkname, err = os.Readlink(name); err != nil {
			return err
		}
	case info.Mode().IsRegular():
		return c.packFile(w, h, name)
	default:
		c.leaveOut(name, "is a socket, a FIFO or a device")
		return nil
	}
	return w.WriteHeader(h)
}

func (c *copying) packFile(w *tar.Writer, h *tar.Header, name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	h.Typeflag, h.Size = tar.TypeReg, info.Size()
	if err := w.WriteHeader(h); err != nil {
		return err
	}
	n, err := io.Copy(w, &counted{io.LimitReader(f, h.Size), &c.moved})
	if err == nil && n < h.Size {
		return fmt.Errorf("%s became shorter while it was read; copy it again", plain(name))
	}
	return err
}
