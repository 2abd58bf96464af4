package recorder

import (
	"context"
	"net/http"
	"os"

	"github.com/coder/websocket"

	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/sandbox"
)

// tunnel turns the request into a WebSocket, and serves our wire within it as
// HTTP/2: a proxy on the way carries many requests as one, and costs each of
// them little.
func (s *Server) tunnel(w http.ResponseWriter, r *http.Request) error {
	ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		return nil //nolint:nilerr // Accept has answered
	}
	// The request's own context ends with this call, whose connection it is.
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	defer cancel()
	serveConn(ctx, websocket.NetConn(ctx, ws, websocket.MessageBinary), http.HandlerFunc(s.tunnelled), wire.TunnelStreams)
	return nil
}

// tunnelled answers a request within a tunnel. The content of a large file
// would delay the others: the client is told to fetch it by itself.
func (s *Server) tunnelled(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet && r.URL.Path == wire.PathFile && s.large(r) {
		w.WriteHeader(http.StatusMisdirectedRequest)
		return
	}
	s.ServeHTTP(w, r)
}

// large reports whether a read will bring more than a tunnel is for.
func (s *Server) large(r *http.Request) bool {
	length, err := number(r, "length", 0)
	if err != nil || length > 0 && length <= wire.TunnelBytes {
		return false // it is refused, or small
	}
	info, err := os.Stat(sandbox.Resolve(s.opts.Workdir, r.URL.Query().Get("path")))
	return err == nil && info.Mode().IsRegular() && info.Size() > wire.TunnelBytes
}
