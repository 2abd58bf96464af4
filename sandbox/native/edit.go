package native

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/glassboxhq/glassbox/sandbox"
)

// defaultEditBytes bounds a file that is edited, which is taken into memory.
const defaultEditBytes = 64 << 20

// editTries is how often an edit that asked for no version is made again when
// another writer came between.
const editTries = 10

// Edit implements sandbox.Editor. What is written replaces the very version
// that was read, or nothing is.
func (s *Session) Edit(ctx context.Context, name string, edit *sandbox.Edit) (*sandbox.Edited, error) {
	const op = "edit file"
	if err := edit.Validate(); err != nil {
		return nil, err
	}
	p, err := s.locate(op, name, false)
	if err != nil {
		return nil, err
	}
	defer p.close()
	for try := 0; ; try++ {
		done, err := s.editOnce(ctx, p, edit)
		again := edit.IfHash == "" && sandbox.CodeOf(err) == sandbox.CodeModified && try < editTries
		if err == nil || !again || ctx.Err() != nil {
			return done, err
		}
	}
}

func (s *Session) editOnce(ctx context.Context, p *place, edit *sandbox.Edit) (*sandbox.Edited, error) {
	const op = "edit file"
	text, old, err := p.load(ctx, op, edit.MaxBytes)
	if err != nil {
		return nil, err
	}
	if err := old.check(op, p.path, edit.IfHash); err != nil {
		return nil, err
	}
	changed, places, wrong := substitute(text, edit)
	if wrong != nil && wrong.Code == sandbox.CodeNoMatch && edit.MayMiss {
		info, err := s.statAt(p.fd(), p.name, path.Dir(p.path))
		if err != nil {
			return nil, fault(op, err)
		}
		info.SHA256, info.Previous, info.OldSize = old.hash, old.hash, old.size
		return &sandbox.Edited{FileInfo: *info}, nil
	}
	if wrong != nil {
		wrong.Op, wrong.Message = op, p.path+": "+wrong.Message
		return nil, wrong
	}
	info, err := s.replace(p, bytes.NewReader(changed), old, &sandbox.WriteOptions{IfHash: old.hash})
	if err != nil {
		return nil, fault(op, err)
	}
	return &sandbox.Edited{FileInfo: *info, Replaced: places}, nil
}

// load takes a file into memory.
func (p *place) load(ctx context.Context, op string, limit int64) ([]byte, *version, error) {
	if limit == 0 {
		limit = defaultEditBytes
	}
	old := &version{}
	if err := unix.Fstatat(p.fd(), p.name, &old.stat, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return nil, nil, pathFault(op, p.path, err)
	}
	if old.stat.Mode&unix.S_IFMT == unix.S_IFLNK {
		return nil, nil, notAllowed(op, p.path, "is a symbolic link; name what it points to")
	}
	f, _, err := p.open(op, unix.O_RDONLY)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	// What is read is the version of the open file, whatever stands there now.
	if err := unix.Fstat(int(f.Fd()), &old.stat); err != nil {
		return nil, nil, pathFault(op, p.path, err)
	}
	text, err := io.ReadAll(io.LimitReader(reading(ctx, f), limit+1))
	if err != nil {
		return nil, nil, fault(op, err)
	}
	if int64(len(text)) > limit {
		return nil, nil, &sandbox.Error{Op: op, Code: sandbox.CodeTooLarge, Message: fmt.Sprintf("%s is larger than %d bytes, the limit of an edit; use a command such as sed", p.path, limit)}
	}
	sum := sha256.Sum256(text)
	old.exists, old.size, old.hash = true, int64(len(text)), hex.EncodeToString(sum[:])
	_, _ = old.prefix.Write(text) // it only keeps
	return text, old, nil
}

// substitute replaces the text, in the file's own line ends.
func substitute(text []byte, edit *sandbox.Edit) ([]byte, int, *sandbox.Error) {
	old, now := []byte(edit.Old), []byte(edit.New)
	crlf := bytes.Count(text, []byte("\r\n"))
	pure := crlf > 0 && crlf == bytes.Count(text, []byte("\n"))
	if pure || crlf > 0 && !bytes.Contains(text, old) {
		old, now = withCRLF(edit.Old), withCRLF(edit.New)
	}
	first := bytes.Index(text, old)
	if first < 0 {
		return nil, 0, &sandbox.Error{Code: sandbox.CodeNoMatch, Message: "old is not in the file (0 places); read it again and copy the text exactly, with its spaces"}
	}
	if bytes.Equal(old, now) {
		return nil, 0, sandbox.Invalid("new", "is the same as old but for its line ends, which the file keeps")
	}
	if edit.All {
		return bytes.ReplaceAll(text, old, now), bytes.Count(text, old), nil
	}
	if places := overlapping(text[first:], old); places > 1 {
		return nil, 0, &sandbox.Error{Code: sandbox.CodeAmbiguous, Message: fmt.Sprintf("old is in the file %d times; give more of what is around it, or ask for all", places)}
	}
	changed := make([]byte, 0, len(text)-len(old)+len(now))
	changed = append(changed, text[:first]...)
	changed = append(changed, now...)
	return append(changed, text[first+len(old):]...), 1, nil
}

// overlapping counts places, those too that share bytes: of "aa" in "aaa"
// nobody can say which is meant.
func overlapping(text, old []byte) (places int) {
	for {
		at := bytes.Index(text, old)
		if at < 0 {
			return places
		}
		places++
		text = text[at+1:]
	}
}

// withCRLF gives every bare line end a carriage return.
func withCRLF(s string) []byte {
	return []byte(strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\n", "\r\n"))
}

// Append implements sandbox.Editor. The content is gathered first, so that a
// slow or broken one holds nobody up and leaves nothing in the file.
func (s *Session) Append(ctx context.Context, name string, content io.Reader, opts *sandbox.WriteOptions) (*sandbox.FileInfo, error) {
	const op = "append to file"
	if opts == nil {
		opts = &sandbox.WriteOptions{}
	}
	if err := checkWrite(name, opts); err != nil {
		return nil, err
	}
	p, err := s.locate(op, name, true)
	if err != nil {
		return nil, err
	}
	defer p.close()
	more, err := gather(p, reading(ctx, content))
	if err != nil {
		return nil, fault(op, err)
	}
	defer more.close()
	for {
		info, err := s.appendOnce(ctx, p, more, opts)
		if errors.Is(err, unix.EEXIST) && opts.IfHash == "" && ctx.Err() == nil {
			continue // another made it first
		}
		if err != nil {
			return nil, fault(op, err)
		}
		return info, nil
	}
}

func (s *Session) appendOnce(ctx context.Context, p *place, more *gathered, opts *sandbox.WriteOptions) (*sandbox.FileInfo, error) {
	const op = "append to file"
	s.appending.Lock() // whoever appends sees the end that the last one left
	defer s.appending.Unlock()
	var stat unix.Stat_t
	err := unix.Fstatat(p.fd(), p.name, &stat, unix.AT_SYMLINK_NOFOLLOW)
	switch {
	case errors.Is(err, unix.ENOENT):
		absent := &version{}
		if err := absent.check(op, p.path, opts.IfHash); err != nil {
			return nil, err
		}
		return s.replace(p, more.reader(), absent, &sandbox.WriteOptions{Mode: opts.Mode, IfHash: sandbox.Absent})
	case err != nil:
		return nil, pathFault(op, p.path, err)
	case stat.Mode&unix.S_IFMT == unix.S_IFLNK:
		return nil, notAllowed(op, p.path, "is a symbolic link; name what it points to")
	}
	f, _, err := p.open(op, unix.O_RDWR|unix.O_APPEND)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return s.extend(ctx, p, &tail{f: f, more: more}, opts)
}
