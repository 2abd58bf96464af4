package recorded

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/sandbox"
)

// Read implements sandbox.Session.
func (s *Session) Read(ctx context.Context, name string, opts *sandbox.ReadOptions) (io.ReadCloser, error) {
	if opts == nil {
		opts = &sandbox.ReadOptions{}
	}
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	opID, err := operationID(opts.ID)
	if err != nil {
		return nil, err
	}
	query := offsetQuery(map[string]int64{"offset": opts.Offset, "length": opts.Length, "line": opts.Line, "lines": opts.Lines})
	query.Set("path", name)
	var f *file
	err = s.again(ctx, func(ctx context.Context) (err error) {
		f, err = s.openFile(ctx, &request{op: "read file", method: http.MethodGet, path: wire.PathFile, query: query, id: opID})
		return err
	})
	if err != nil {
		return nil, err
	}
	if f.info != nil && f.want < 0 && opts.Line == 0 && opts.Lines == 0 {
		f.want = max(f.info.Size-opts.Offset, 0)
		if opts.Length > 0 {
			f.want = min(f.want, opts.Length)
		}
	}
	return f, nil
}

// openFile asks for the content of a file.
func (s *Session) openFile(ctx context.Context, r *request) (*file, error) {
	resp, body, err := s.openBody(ctx, r) //nolint:bodyclose // body closes it
	if err != nil {
		return nil, err
	}
	f := &file{body: body, s: s, info: wire.ReadFile(resp.Header), want: -1}
	if n, err := strconv.ParseInt(resp.Header.Get(wire.HeaderLength), 10, 64); err == nil && n >= 0 {
		f.want = n
	}
	return f, nil
}

// openBody waits for an answer to begin as long as for any; how long it then
// takes is up to ctx.
func (s *Session) openBody(ctx context.Context, r *request) (*http.Response, io.ReadCloser, error) {
	reading, cut := context.WithCancel(ctx)
	limit := time.AfterFunc(s.opts.RequestTimeout, cut)
	resp, err := s.send(reading, r)
	switch {
	case err == nil && limit.Stop():
	case ctx.Err() == nil && reading.Err() != nil:
		cut()
		return nil, nil, &sandbox.Error{
			Op: r.op, Code: sandbox.CodeTimeout, Sandbox: s.opts.Sandbox,
			Message: "no answer from the recorder within " + s.opts.RequestTimeout.String(),
		}
	default:
		cut()
		return nil, nil, err
	}
	return resp, &cutting{resp.Body, cut}, nil
}

// file is the content of a file as it comes. A proxy on the way may end an
// answer properly that broke off behind it, so the bytes are counted.
type file struct {
	s    *Session
	body io.ReadCloser
	info *sandbox.FileInfo
	got  int64
	want int64 // at least
}

// Info implements sandbox.Described.
func (f *file) Info() *sandbox.FileInfo { return f.info }

// Read implements io.Reader.
func (f *file) Read(p []byte) (int, error) {
	n, err := f.body.Read(p)
	f.got += int64(n)
	if err == nil || errors.Is(err, io.EOF) && f.got >= f.want {
		return n, err
	}
	cut := &sandbox.Error{
		Op: "read file", Code: sandbox.CodeInterrupted, Sandbox: f.s.opts.Sandbox,
		Message: fmt.Sprintf("the content ended after %d bytes, before its end", f.got),
	}
	if !errors.Is(err, io.EOF) {
		cut.Err = err
	}
	return n, cut
}

// Close implements io.Closer.
func (f *file) Close() error { return f.body.Close() }

// Write implements sandbox.Session. It is repeated after a fault only where
// the content can be read again.
func (s *Session) Write(ctx context.Context, name string, content io.Reader, opts *sandbox.WriteOptions) (*sandbox.FileInfo, error) {
	return s.bring(ctx, &request{op: "write file", method: http.MethodPut, path: wire.PathFile}, name, content, opts)
}

// bring sends content for a file.
func (s *Session) bring(ctx context.Context, r *request, name string, content io.Reader, opts *sandbox.WriteOptions) (*sandbox.FileInfo, error) {
	if opts == nil {
		opts = &sandbox.WriteOptions{}
	}
	var err error
	if r.id, err = operationID(opts.ID); err != nil {
		return nil, err
	}
	r.query, r.size = url.Values{"path": {name}}, -1
	if opts.Mode != 0 {
		r.query.Set("mode", fmt.Sprintf("%o", uint32(opts.Mode)))
	}
	if opts.IfHash != "" {
		r.query.Set("if_hash", opts.IfHash)
	}
	var f wire.File
	if err := s.carry(ctx, r, content, &carried{given: opts.ID != "", into: &f}); err != nil {
		return nil, err
	}
	return f.Info(), nil
}

// List implements sandbox.Session.
func (s *Session) List(ctx context.Context, name string) ([]*sandbox.FileInfo, error) {
	var list []*wire.File
	err := s.get(ctx, "list directory", wire.PathList, url.Values{"path": {name}}, &list)
	return wire.Infos(list), err
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

// maxAnswer bounds what is taken into memory of an answer: who answers in a
// sandbox may have been put there by the agent.
const maxAnswer = 32 << 20

var errEndless = &sandbox.Error{Code: sandbox.CodeTooLarge, Message: "the answer is longer than any may be"}

func decodeInto(r io.Reader, to any) error {
	limited := &io.LimitedReader{R: r, N: maxAnswer}
	if err := json.NewDecoder(limited).Decode(to); err != nil {
		if limited.N <= 0 {
			return errEndless
		}
		return err
	}
	_, _ = io.Copy(io.Discard, r) // lets the connection be used again
	return nil
}
