package recorded

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/glassboxhq/glassbox/internal/id"
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
	var f *file
	err = s.again(ctx, func(ctx context.Context) (err error) {
		f, err = s.openFile(ctx, &request{op: "read file", method: http.MethodGet, path: wire.PathFile, query: query, id: opID})
		return err
	})
	if err != nil {
		return nil, err
	}
	if f.info != nil {
		f.want = max(f.info.Size-opts.Offset, 0)
		if opts.Length > 0 {
			f.want = min(f.want, opts.Length)
		}
	}
	return f, nil
}

// openFile waits for an answer to begin as long as for any; how long it then
// takes is up to ctx.
func (s *Session) openFile(ctx context.Context, r *request) (*file, error) {
	reading, cut := context.WithCancel(ctx)
	limit := time.AfterFunc(s.opts.RequestTimeout, cut)
	resp, err := s.send(reading, r) //nolint:bodyclose // the caller of Read closes it
	switch {
	case err == nil && limit.Stop():
	case ctx.Err() == nil && reading.Err() != nil:
		cut()
		return nil, &sandbox.Error{
			Op: r.op, Code: sandbox.CodeTimeout, Sandbox: s.opts.Sandbox,
			Message: "no answer from the recorder within " + s.opts.RequestTimeout.String(),
		}
	default:
		cut()
		return nil, err
	}
	f := &file{body: &cutting{resp.Body, cut}, s: s}
	if text, err := url.PathUnescape(resp.Header.Get(wire.HeaderFile)); err == nil && text != "" {
		var info sandbox.FileInfo
		if json.Unmarshal([]byte(text), &info) == nil {
			f.info = &info
		}
	}
	return f, nil
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
	put := &request{op: "write file", method: http.MethodPut, path: wire.PathFile, query: query, id: opID, body: content, size: -1}
	seeker, ok := content.(io.Seeker)
	if !ok {
		return s.put(ctx, put)
	}
	start, err := seeker.Seek(0, io.SeekCurrent)
	if err != nil {
		return s.put(ctx, put)
	}
	if b, ok := content.(*bytes.Reader); ok {
		put.size = int64(b.Len())
	}
	var info *sandbox.FileInfo
	err = s.again(ctx, func(ctx context.Context) error {
		if _, err := seeker.Seek(start, io.SeekStart); err != nil {
			return &sandbox.Error{Op: put.op, Code: sandbox.CodeInternal, Message: "read the content again", Err: err}
		}
		info, err = s.put(ctx, put)
		if opts.ID == "" && ctx.Err() == nil && errors.Is(err, sandbox.ErrCancelled) {
			// The recorder saw the last try cut before its end. That operation is
			// over; this is another.
			put.id = id.New()
			if _, err := seeker.Seek(start, io.SeekStart); err != nil {
				return err
			}
			info, err = s.put(ctx, put)
		}
		return err
	})
	return info, err
}

func (s *Session) put(ctx context.Context, r *request) (*sandbox.FileInfo, error) {
	mine := *r
	mine.body = struct{ io.Reader }{r.body} // the transport would close what is not ours
	resp, err := s.send(ctx, &mine)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var info sandbox.FileInfo
	if err := decodeInto(resp.Body, &info); err != nil {
		return nil, s.unreachable(ctx, r.op, err)
	}
	return &info, nil
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
