package recorded

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/sandbox"
)

// Read implements sandbox.Session.
func (s *Session) Read(ctx context.Context, name string, opts *sandbox.ReadOptions) (io.ReadCloser, error) {
	if opts == nil {
		opts = &sandbox.ReadOptions{}
	}
	if opts.Offset < 0 || opts.Length < 0 {
		return nil, sandbox.Invalid("range", "offset and length must not be negative")
	}
	opID, err := operationID(opts.ID)
	if err != nil {
		return nil, err
	}
	query := offsetQuery(map[string]int64{"offset": opts.Offset, "length": opts.Length})
	query.Set("path", name)
	var resp *http.Response
	err = s.again(ctx, func(ctx context.Context) (err error) {
		resp, err = s.send(ctx, &request{op: "read file", method: http.MethodGet, path: wire.PathFile, query: query, id: opID}) //nolint:bodyclose // the caller of Read closes it
		return err
	})
	if err != nil {
		return nil, err
	}
	f := &file{ReadCloser: resp.Body}
	if text, err := url.PathUnescape(resp.Header.Get(wire.HeaderFile)); err == nil && text != "" {
		var info sandbox.FileInfo
		if json.Unmarshal([]byte(text), &info) == nil {
			f.info = &info
		}
	}
	return f, nil
}

type file struct {
	io.ReadCloser
	info *sandbox.FileInfo
}

// Info implements sandbox.Described.
func (f *file) Info() *sandbox.FileInfo { return f.info }

// Write implements sandbox.Session. It is repeated after a fault only where
// the content can be read again.
func (s *Session) Write(ctx context.Context, name string, content io.Reader, opts *sandbox.WriteOptions) (*sandbox.FileInfo, error) {
	if opts == nil {
		opts = &sandbox.WriteOptions{}
	}
	opID, err := operationID(opts.ID)
	if err != nil {
		return nil, err
	}
	query := url.Values{"path": {name}}
	if opts.Mode != 0 {
		query.Set("mode", fmt.Sprintf("%o", uint32(opts.Mode)))
	}
	if opts.IfHash != "" {
		query.Set("if_hash", opts.IfHash)
	}
	put := func(ctx context.Context, body io.Reader, size int64) (*sandbox.FileInfo, error) {
		resp, err := s.send(ctx, &request{
			op: "write file", method: http.MethodPut, path: wire.PathFile, query: query, id: opID, body: body, size: size,
		})
		if err != nil {
			return nil, err
		}
		defer resp.Body.Close()
		var info sandbox.FileInfo
		if err := decodeInto(resp.Body, &info); err != nil {
			return nil, s.unreachable(ctx, "write file", err)
		}
		return &info, nil
	}
	seeker, ok := content.(io.Seeker)
	if !ok {
		return put(ctx, content, -1)
	}
	start, err := seeker.Seek(0, io.SeekCurrent)
	if err != nil {
		return put(ctx, content, -1)
	}
	size := int64(-1)
	if b, ok := content.(*bytes.Reader); ok {
		size = int64(b.Len())
	}
	var info *sandbox.FileInfo
	err = s.again(ctx, func(ctx context.Context) error {
		if _, err := seeker.Seek(start, io.SeekStart); err != nil {
			return &sandbox.Error{Op: "write file", Code: sandbox.CodeInternal, Message: "read the content again", Err: err}
		}
		// Not more than a Reader, or the transport would close what is not ours.
		info, err = put(ctx, struct{ io.Reader }{content}, size)
		return err
	})
	return info, err
}

// List implements sandbox.Session.
func (s *Session) List(ctx context.Context, name string) ([]*sandbox.FileInfo, error) {
	var list []*sandbox.FileInfo
	err := s.get(ctx, "list directory", wire.PathList, url.Values{"path": {name}}, &list)
	return list, err
}

// Remove implements sandbox.Session.
func (s *Session) Remove(ctx context.Context, name string, opts *sandbox.RemoveOptions) error {
	if opts == nil {
		opts = &sandbox.RemoveOptions{}
	}
	opID, err := operationID(opts.ID)
	if err != nil {
		return err
	}
	query := url.Values{"path": {name}}
	if opts.Recursive {
		query.Set("recursive", "1")
	}
	return s.again(ctx, func(ctx context.Context) error {
		return s.once(ctx, &request{op: "remove", method: http.MethodDelete, path: wire.PathFile, query: query, id: opID}, nil)
	})
}

func decodeInto(r io.Reader, to any) error {
	if err := json.NewDecoder(r).Decode(to); err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, r) // lets the connection be used again
	return nil
}
