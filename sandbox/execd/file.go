package execd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/glassboxhq/glassbox/sandbox"
)

func (s *Session) resolve(name string) string {
	if s.opts.Workdir == "" {
		return name
	}
	return sandbox.Resolve(s.opts.Workdir, name)
}

// checkPath refuses what execd would take for another path: it puts the
// values of variables into it.
func (s *Session) checkPath(op, name string) (string, error) {
	switch {
	case name == "":
		return "", s.fault(op, sandbox.Invalid("path", "must not be empty"))
	case strings.ContainsRune(name, 0):
		return "", s.fault(op, sandbox.Invalid("path", "must not contain NUL bytes"))
	}
	full := s.resolve(name)
	if strings.ContainsRune(full, '$') || strings.HasPrefix(full, "~") {
		return "", s.fault(op, &sandbox.Error{Code: sandbox.CodeUnsupported, Field: "path", Message: "execd cannot be told a name with $ or ~ in it"})
	}
	return full, nil
}

// info is a file as execd tells it.
type info struct {
	Path     string    `json:"path"`
	Type     string    `json:"type"` // missing in older execds
	Size     int64     `json:"size"`
	Modified time.Time `json:"modified_at"`
	Owner    string    `json:"owner"`
	Group    string    `json:"group"`
	Mode     int       `json:"mode"` // octal digits, as if they were decimal
}

func (f *info) file() *sandbox.FileInfo {
	bits, _ := strconv.ParseUint(strconv.Itoa(f.Mode), 8, 32) // wrong ones are none
	mode := fs.FileMode(bits) & fs.ModePerm
	switch f.Type {
	case "directory":
		mode |= fs.ModeDir
	case "symlink":
		mode |= fs.ModeSymlink
	case "other":
		mode |= fs.ModeIrregular
	}
	return &sandbox.FileInfo{Path: f.Path, Mode: mode, Size: f.Size, Modified: f.Modified, Owner: f.Owner, Group: f.Group}
}

func (s *Session) stat(ctx context.Context, op, full string) (*sandbox.FileInfo, error) {
	var found map[string]*info
	err := s.ask(ctx, &request{op: op, method: http.MethodGet, path: "/files/info", query: url.Values{"path": {full}}}, &found)
	if err != nil {
		return nil, err
	}
	if found[full] == nil {
		return nil, s.fault(op, &sandbox.Error{Code: sandbox.CodeProvider, Message: "execd described another file than it was asked for"})
	}
	return found[full].file(), nil
}

// Read implements sandbox.Session. It looks at the file before: execd answers
// with no end to who reads a directory, and whoever breaks off a read ends
// commands that run.
func (s *Session) Read(ctx context.Context, name string, opts *sandbox.ReadOptions) (io.ReadCloser, error) {
	const op = "read file"
	if opts == nil {
		opts = &sandbox.ReadOptions{}
	}
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	if opts.Line != 0 || opts.Lines != 0 {
		return nil, s.fault(op, &sandbox.Error{Code: sandbox.CodeUnsupported, Message: "reading lines needs a recorder in the sandbox"})
	}
	full, err := s.checkPath(op, name)
	if err != nil {
		return nil, err
	}
	about, err := s.stat(ctx, op, full)
	switch {
	case err != nil:
		return nil, err
	case about.Mode.IsDir():
		return nil, s.fault(op, &sandbox.Error{Code: sandbox.CodeIsDirectory})
	case about.Mode&fs.ModeIrregular != 0:
		return nil, s.fault(op, &sandbox.Error{Code: sandbox.CodePermission, Message: "it is no regular file"})
	}
	return s.download(ctx, about, full, opts)
}

func (s *Session) download(ctx context.Context, about *sandbox.FileInfo, full string, opts *sandbox.ReadOptions) (io.ReadCloser, error) {
	want := max(about.Size-opts.Offset, 0)
	if opts.Length > 0 {
		want = min(want, opts.Length)
	}
	r := &request{op: "read file", method: http.MethodGet, path: "/files/download", query: url.Values{"path": {full}}}
	switch {
	case want == 0 && about.Mode.IsRegular():
		return &content{s: s, info: about, body: http.NoBody}, nil
	case opts.Offset > 0 || opts.Length > 0:
		r.header = http.Header{"Range": {fmt.Sprintf("bytes=%d-%d", opts.Offset, opts.Offset+want-1)}}
	}
	resp, err := s.send(ctx, r) //nolint:bodyclose // content closes it
	if err != nil {
		return nil, err
	}
	if !about.Mode.IsRegular() { // the size is the link's
		want = max(resp.ContentLength, 0)
	}
	return &content{s: s, info: about, body: resp.Body, want: want}, nil
}

// content is a file as it comes. A proxy on the way may end an answer properly
// that broke off behind it, so the bytes are counted.
type content struct {
	s         *Session
	info      *sandbox.FileInfo
	body      io.ReadCloser
	got, want int64 // want: at least
}

// Info implements sandbox.Described.
func (c *content) Info() *sandbox.FileInfo { return c.info }

// Read implements io.Reader.
func (c *content) Read(p []byte) (int, error) {
	n, err := c.body.Read(p)
	c.got += int64(n)
	if err == nil || errors.Is(err, io.EOF) && c.got >= c.want {
		return n, err
	}
	return n, c.s.fault("read file", &sandbox.Error{
		Code: sandbox.CodeInterrupted, Message: fmt.Sprintf("the content ended after %d bytes, before its end", c.got),
	})
}

// maxDrain is what is read of a content that is closed before its end: execd
// ends commands that run when a connection breaks that it writes to.
const maxDrain = 64 << 20

// Close implements io.Closer.
func (c *content) Close() error {
	_, _ = io.CopyN(io.Discard, c.body, maxDrain)
	return c.body.Close()
}

// List implements sandbox.Session.
func (s *Session) List(ctx context.Context, name string) ([]*sandbox.FileInfo, error) {
	const op = "list directory"
	full, err := s.checkPath(op, name)
	if err != nil {
		return nil, err
	}
	var list []*info
	err = s.ask(ctx, &request{op: op, method: http.MethodGet, path: "/directories/list", query: url.Values{"path": {full}, "depth": {"1"}}}, &list)
	if err != nil {
		return nil, err
	}
	files := make([]*sandbox.FileInfo, 0, len(list))
	for _, f := range list {
		if f != nil {
			files = append(files, f.file())
		}
	}
	return files, nil
}

// Remove implements sandbox.Session.
func (s *Session) Remove(ctx context.Context, name string, opts *sandbox.RemoveOptions) error {
	const op = "remove"
	full, err := s.checkPath(op, name)
	if err != nil {
		return err
	}
	if clean := path.Clean(full); clean == "/" || clean == "." || clean == path.Clean(s.opts.Workdir) {
		return s.fault(op, &sandbox.Error{Code: sandbox.CodePathNotAllowed, Message: "the root and the working directory are not removed"})
	}
	about, err := s.stat(ctx, op, full)
	if err != nil {
		return err
	}
	r := &request{op: op, method: http.MethodDelete, path: "/files", query: url.Values{"path": {full}}}
	if about.Mode.IsDir() {
		if opts == nil || !opts.Recursive {
			list, err := s.List(ctx, full)
			if err != nil {
				return err
			}
			if len(list) > 0 {
				return s.fault(op, &sandbox.Error{Code: sandbox.CodeNotEmpty})
			}
		}
		r.path = "/directories"
	}
	return s.ask(ctx, r, nil)
}
