package native

import (
	"archive/tar"
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/glassboxhq/glassbox/sandbox"
)

// Download implements sandbox.Archiver. What a tar cannot hold or we may not
// read is left out and told by a global header at the end of the archive, as
// sandbox.TarSkipped describes.
func (s *Session) Download(ctx context.Context, name string, _ *sandbox.DownloadOptions) (io.ReadCloser, error) {
	const op = "download"
	full, err := s.resolve(name)
	if err != nil {
		return nil, err
	}
	var pack func(*packer) error
	dir, err := s.openTree(op, full)
	switch {
	case err == nil:
		pack = func(p *packer) error { defer dir.Close(); return p.tree(dir) }
	case errors.Is(err, sandbox.ErrNotDirectory):
		f, info, err := openRegular(op, unix.AT_FDCWD, full)
		if err != nil {
			return nil, err
		}
		pack = func(p *packer) error { defer f.Close(); return p.file(f, info, path.Base(full)) }
	default:
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	out, in := io.Pipe()
	d := &download{PipeReader: out, cancel: cancel}
	d.packing.Go(func() {
		p := newPacker(ctx, s, full, in)
		err := pack(p)
		if err == nil {
			err = p.finish()
		}
		if err != nil {
			err = fault(op, err)
		}
		_ = in.CloseWithError(err) // it never fails
	})
	return d, nil
}

// download is a tar as it is made.
type download struct {
	*io.PipeReader
	cancel  context.CancelFunc
	packing sync.WaitGroup
}

// Close ends the making of the tar, and waits for it.
func (d *download) Close() error {
	d.cancel()
	_ = d.PipeReader.Close() // it never fails
	d.packing.Wait()
	return nil
}

// packer writes a tar.
type packer struct {
	ctx     context.Context //nolint:containedctx // of the one act that packs
	s       *Session
	root    string
	out     *bufio.Writer
	tar     *tar.Writer
	links   map[inode]string // names of files that have more than one
	buf     []byte
	skipped int
	names   []string // of the first that were left out
}

type inode struct{ dev, ino uint64 }

const (
	packBuffer     = 256 << 10 // a file up to this size is read before its header is written
	maxLinks       = 1 << 20
	maxSkippedTold = 100
)

func newPacker(ctx context.Context, s *Session, root string, out io.Writer) *packer {
	p := &packer{ctx: ctx, s: s, root: root, out: bufio.NewWriterSize(out, packBuffer), links: map[inode]string{}, buf: make([]byte, packBuffer)}
	p.tar = tar.NewWriter(p.out)
	return p
}

func (p *packer) tree(dir *os.File) error {
	info, err := dir.Stat()
	if err != nil {
		return renamed(err, p.root)
	}
	if err := p.tar.WriteHeader(p.header(info, "./")); err != nil {
		return err
	}
	w := p.s.newWalker(p.ctx, p.root)
	w.visit = p.node
	// A directory that cannot be read is in the archive, empty; so it is told.
	if err := w.walk(dir, "", 0); err != nil {
		return err
	}
	if w.skipped > 0 {
		p.skip(strconv.Itoa(w.skipped) + " directories that cannot be read or lie too deep")
		p.skipped += w.skipped - 1
	}
	return nil
}

// node packs one thing of a tree.
func (p *packer) node(n *node) error {
	switch {
	case n.mode.IsRegular():
		f, info, err := regularAt("download", n.fd(), &shown{n.name, n.path()}, unix.O_RDONLY|unix.O_NOFOLLOW)
		switch {
		case errors.Is(err, sandbox.ErrNotFound):
			return nil // removed while we looked
		case err != nil:
			p.skip(n.rel)
			return nil
		}
		defer f.Close()
		return p.file(f, info, n.rel)
	case n.mode.IsDir(), n.mode&fs.ModeSymlink != 0:
		return p.plain(n)
	}
	p.skip(n.rel) // a socket, a FIFO or a device
	return nil
}

// plain packs a directory or a link, which are a header only.
func (p *packer) plain(n *node) error {
	info, err := os.Lstat("/proc/self/fd/" + strconv.Itoa(n.fd()) + "/" + n.name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return renamed(err, n.path())
	}
	switch {
	case info.IsDir():
		return p.tar.WriteHeader(p.header(info, n.rel+"/"))
	case info.Mode()&fs.ModeSymlink == 0:
		p.skip(n.rel) // it has become something else
		return nil
	}
	target := make([]byte, unix.PathMax)
	got, err := unix.Readlinkat(n.fd(), n.name, target)
	if err != nil {
		p.skip(n.rel)
		return nil
	}
	h := p.header(info, n.rel)
	h.Typeflag, h.Linkname, h.Size = tar.TypeSymlink, string(target[:got]), 0
	return p.tar.WriteHeader(h)
}

// header is the part of a header that all have.
func (p *packer) header(info fs.FileInfo, name string) *tar.Header {
	h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: info.Size(), Mode: int64(info.Mode().Perm()), ModTime: info.ModTime().Truncate(1e9)}
	if info.IsDir() {
		h.Typeflag, h.Size = tar.TypeDir, 0
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		h.Mode = int64(stat.Mode & 0o7777)
		h.Uid, h.Gid = int(stat.Uid), int(stat.Gid)
		h.Uname, h.Gname = p.s.owners.user(stat.Uid), p.s.owners.group(stat.Gid)
	}
	return h
}

// file packs an open file. A small one is read first, so that one which is
// written meanwhile has the size that its header says.
func (p *packer) file(f *os.File, info fs.FileInfo, name string) error {
	h := p.header(info, name)
	if first := p.link(info, name); first != "" {
		h.Typeflag, h.Linkname, h.Size = tar.TypeLink, first, 0
		return p.tar.WriteHeader(h)
	}
	if h.Size < packBuffer {
		n, err := io.ReadFull(f, p.buf)
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			h.Size = int64(n)
			if err := p.tar.WriteHeader(h); err != nil {
				return err
			}
			_, err := p.tar.Write(p.buf[:n])
			return err
		case err != nil:
			p.skip(name)
			return nil
		}
		if _, err := f.Seek(0, io.SeekStart); err != nil { // it has grown
			return renamed(err, path.Join(p.root, name))
		}
	}
	if err := p.tar.WriteHeader(h); err != nil {
		return err
	}
	n, err := io.CopyBuffer(struct{ io.Writer }{p.tar}, reading(p.ctx, io.LimitReader(f, h.Size)), p.buf)
	if err == nil && n < h.Size {
		return &sandbox.Error{
			Op: "download", Code: sandbox.CodeModified,
			Message: fmt.Sprintf("%s became shorter while it was read: it has %d of %d bytes", path.Join(p.root, name), n, h.Size),
		}
	}
	return err
}

// link returns the name under which a file is in the archive already.
func (p *packer) link(info fs.FileInfo, name string) string {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || stat.Nlink < 2 {
		return ""
	}
	id := inode{stat.Dev, stat.Ino}
	if first, ok := p.links[id]; ok {
		return first
	}
	if len(p.links) < maxLinks {
		p.links[id] = name
	}
	return ""
}

func (p *packer) skip(name string) {
	p.skipped++
	if len(p.names) < maxSkippedTold {
		p.names = append(p.names, strings.ReplaceAll(name, "\n", "?"))
	}
}

// finish ends the archive.
func (p *packer) finish() error {
	if p.skipped > 0 {
		err := p.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{
			sandbox.TarSkipped: strconv.Itoa(p.skipped), sandbox.TarSkippedNames: strings.Join(p.names, "\n"),
		}})
		if err != nil {
			return err
		}
	}
	return errors.Join(p.tar.Close(), p.out.Flush())
}
