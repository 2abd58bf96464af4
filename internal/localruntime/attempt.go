package localruntime

import (
	"io"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
)

// RoundTrip sends a request to the recorder. A request of which nothing was
// sent yet, because the recorder had just gone, is sent on the next connection.
func (c *control) RoundTrip(req *http.Request) (*http.Response, error) {
	for {
		cc, err := c.conn(req.Context())
		if err != nil {
			if req.Body != nil {
				req.Body.Close()
			}
			return nil, err
		}
		res, sent, err := attempt(cc, req)
		if err == nil || sent {
			return res, err
		}
		c.remove(cc)
	}
}

// attempt sends a request on one connection. When that fails before the
// request's first byte was written, sent is false and its body is untouched.
func attempt(cc *http.ClientConn, req *http.Request) (res *http.Response, sent bool, err error) {
	var wrote atomic.Bool
	ctx := httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{WroteHeaders: func() { wrote.Store(true) }})
	try := req.WithContext(ctx)
	if req.Body == nil || req.Body == http.NoBody {
		res, err = cc.RoundTrip(try)
		return res, wrote.Load() || req.Context().Err() != nil, err
	}
	body := &keptBody{body: req.Body}
	try.Body = body
	res, err = cc.RoundTrip(try)
	sent = err == nil || wrote.Load() || req.Context().Err() != nil
	if !sent {
		return nil, false, err
	}
	return res, true, body.release(err)
}

// keptBody holds the closing of a request's body back until it is known
// whether the request will be sent again.
type keptBody struct {
	mu       sync.Mutex
	body     io.ReadCloser
	closed   bool // by the transport
	released bool
}

func (k *keptBody) Read(p []byte) (int, error) { return k.body.Read(p) }

func (k *keptBody) Close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closed = true
	if k.released {
		return k.body.Close()
	}
	return nil
}

// release lets the body be closed, and does what was held back. It returns err.
func (k *keptBody) release(err error) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.released = true
	if k.closed {
		k.body.Close()
	}
	return err
}
