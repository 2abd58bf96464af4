package recorded

import (
	"context"
	"errors"
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
	return t, nil
}

// tree is a tar as it comes. A proxy on the way may end an answer properly
// that broke off behind it, so its end mark is looked for.
type tree struct {
	s     *Session
	body  io.ReadCloser
	zeros int // at the end of what came
}

// tarEnd is how many zero bytes end a tar.
const tarEnd = 1024

// Read implements io.Reader.
func (t *tree) Read(p []byte) (int, error) {
	n, err := t.body.Read(p)
	i := n
	for i > 0 && p[i-1] == 0 && n-i < tarEnd {
		i--
	}
	if i > 0 && n-i < tarEnd {
		t.zeros = 0
	}
	t.zeros = min(t.zeros+n-i, tarEnd)
	if err == nil || errors.Is(err, io.EOF) && t.zeros == tarEnd {
		return n, err
	}
	cut := &sandbox.Error{
		Op: "download", Code: sandbox.CodeInterrupted, Sandbox: t.s.opts.Sandbox,
		Message: "the tar ended before its end; the history tells why, if the recorder knows",
	}
	if !errors.Is(err, io.EOF) {
		cut.Err = err
	}
	return n, cut
}

// Close implements io.Closer.
func (t *tree) Close() error { return t.body.Close() }
