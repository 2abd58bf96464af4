package recorded

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/sandbox"
)

// Download implements sandbox.Archiver.
func (s *Session) Download(ctx context.Context, name string, opts *sandbox.DownloadOptions) (io.ReadCloser, error) {
	if opts == nil {
		opts = &sandbox.DownloadOptions{}
	}
	opID, err := operationID(opts.ID)
	if err != nil {
		return nil, err
	}
	r := &request{op: "download", method: http.MethodGet, path: wire.PathTree, query: url.Values{"path": {name}}, id: opID}
	t := &tree{s: s}
	err = s.again(ctx, func(ctx context.Context) (err error) {
		_, t.body, err = s.openBody(ctx, r) //nolint:bodyclose // the caller of Download closes it
		return err
	})
	if err != nil {
		return nil, err
	}
	t.ahead = bufio.NewReaderSize(t.body, 256<<10)
	return t, nil
}

// tree is a tar as it comes. A proxy on the way may end an answer properly
// that broke off behind it, so its end is held back and looked at.
type tree struct {
	s     *Session
	body  io.ReadCloser
	ahead *bufio.Reader
	n     int64 // bytes of the tar
}

// Read implements io.Reader.
func (t *tree) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if _, err := t.ahead.Peek(wire.TreeEndBytes + 1); err != nil {
		return 0, t.end(err)
	}
	n, err := t.ahead.Read(p[:min(len(p), t.ahead.Buffered()-wire.TreeEndBytes)])
	t.n += int64(n)
	return n, err
}

// end tells a tar that is whole from one that was cut.
func (t *tree) end(err error) error {
	last, _ := t.ahead.Peek(wire.TreeEndBytes) // err has told
	if errors.Is(err, io.EOF) && bytes.Equal(last, wire.TreeEnd(t.n)) {
		return io.EOF
	}
	cut := &sandbox.Error{
		Op: "download", Code: sandbox.CodeInterrupted, Sandbox: t.s.opts.Sandbox,
		Message: fmt.Sprintf("the tar ended after %d bytes, before its end; the operation in the history tells why, if the recorder knows", t.n),
	}
	if !errors.Is(err, io.EOF) {
		cut.Err = err
	}
	return cut
}

// Close implements io.Closer.
func (t *tree) Close() error { return t.body.Close() }
