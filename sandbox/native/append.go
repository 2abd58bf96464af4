package native

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/glassboxhq/glassbox/sandbox"
)

// gathered is content that has come whole: in memory, or in a file without a
// name beside the one that it is meant for.
type gathered struct {
	head []byte
	file *os.File // the rest; nil: there is none
}

// gatherBytes is what of it stays in memory.
const gatherBytes = 1 << 20

func gather(p *place, content io.Reader) (*gathered, error) {
	g := &gathered{}
	var err error
	if g.head, err = io.ReadAll(io.LimitReader(content, gatherBytes)); err != nil || len(g.head) < gatherBytes {
		return g, err
	}
	f, err := createTemp(p.fd(), p.path)
	if err != nil {
		return nil, &fs.PathError{Op: "create", Path: p.path, Err: err}
	}
	defer f.release()
	g.file = f.File
	err = unix.Unlinkat(p.fd(), f.name, 0)
	if err == nil {
		_, err = io.Copy(g.file, content)
	}
	if err != nil {
		g.close()
		return nil, err
	}
	return g, nil
}

func (g *gathered) close() {
	if g.file != nil {
		_ = g.file.Close() // it has no name, and is not needed any more
	}
}

// reader reads it from its beginning.
func (g *gathered) reader() io.Reader {
	if g.file == nil {
		return bytes.NewReader(g.head)
	}
	return io.MultiReader(bytes.NewReader(g.head), io.NewSectionReader(g.file, 0, 1<<62))
}

// tail is a file that is open for its end, and what is to be added.
type tail struct {
	f    *os.File
	more *gathered
}

// maxHashed bounds the file whose hash is told though nobody asked for it: to
// add a line to a large log must not cost reading it.
const maxHashed = 64 << 20

// extend adds to the end of a file. Where that fails half way, what was added
// is taken off again.
func (s *Session) extend(ctx context.Context, p *place, t *tail, opts *sandbox.WriteOptions) (*sandbox.FileInfo, error) {
	const op = "append to file"
	old := &version{exists: true}
	if err := unix.Fstat(int(t.f.Fd()), &old.stat); err != nil {
		return nil, pathFault(op, p.path, err)
	}
	old.size = old.stat.Size
	sum, now := sha256.New(), prefix{}
	hashed := opts.IfHash != "" || old.size <= maxHashed
	if hashed {
		also := io.MultiWriter(sum, &old.prefix, &now)
		if _, err := io.Copy(also, reading(ctx, io.NewSectionReader(t.f, 0, old.size))); err != nil {
			return nil, err
		}
		old.hash = hex.EncodeToString(sum.Sum(nil))
	}
	if err := old.check(op, p.path, opts.IfHash); err != nil {
		return nil, err
	}
	n, err := io.Copy(io.MultiWriter(t.f, sum, &now), t.more.reader())
	if err != nil {
		// Another program may have added something of its own: that stays.
		if info, ferr := t.f.Stat(); ferr == nil && info.Size() <= old.size+n {
			err = errors.Join(err, t.f.Truncate(old.size))
		}
		return nil, err
	}
	info, err := t.f.Stat()
	if err != nil {
		return nil, err
	}
	result := s.describe(p.path, info)
	result.OldSize = old.size
	if hashed && info.Size() == old.size+n { // else another has added to it meanwhile
		result.SHA256, result.Previous = hex.EncodeToString(sum.Sum(nil)), old.hash
		s.tell(result, old, &now)
	} else {
		result.DiffTruncated = true
	}
	return result, nil
}

// open opens what stands at a place if it is a regular file. A link is not
// followed.
func (p *place) open(op string, flags int) (*os.File, fs.FileInfo, error) {
	return regularAt(op, p.fd(), &shown{p.name, p.path}, flags|unix.O_NOFOLLOW)
}
