package recorder

import (
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"

	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/sandbox"
)

// dialPort joins the request to a TCP connection to a port of the sandbox's
// loopback: the body goes in, what comes out is the answer. The recorder's own
// ports are this recorder, whether or not it listens there.
func (s *Server) dialPort(w http.ResponseWriter, r *http.Request) error {
	port, err := strconv.ParseUint(r.PathValue("port"), 10, 16)
	if err != nil || port == 0 {
		return sandbox.Invalid("port", "must be a number from 1 to 65535")
	}
	var serving sync.WaitGroup
	defer serving.Wait()
	conn, err := s.connect(r.Context(), int(port), &serving)
	if err != nil {
		return err
	}
	defer conn.Close()
	stop := context.AfterFunc(r.Context(), func() { conn.Close() })
	defer stop()

	control := http.NewResponseController(w)
	_ = control.EnableFullDuplex() // HTTP/2 needs no asking
	w.WriteHeader(http.StatusOK)
	if err := control.Flush(); err != nil {
		return nil
	}
	var in sync.WaitGroup
	in.Go(func() {
		_, _ = io.Copy(conn, r.Body) // its end is the client's
		if half, ok := conn.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
	})
	_, _ = io.Copy(&flushing{w, control}, conn)
	conn.Close()
	_ = r.Body.Close() // lets the copy above end
	in.Wait()
	return nil
}

func (s *Server) connect(ctx context.Context, port int, serving *sync.WaitGroup) (net.Conn, error) {
	if port == wire.ExecdPort || port == wire.DefaultPort {
		return s.ownDoor(ctx, serving)
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return nil, &sandbox.Error{Op: "connect to port " + strconv.Itoa(port), Code: sandbox.CodeUnavailable, Message: "nothing in the sandbox listens there"}
	}
	return conn, nil
}

type flushing struct {
	io.Writer
	control *http.ResponseController
}

func (f *flushing) Write(p []byte) (int, error) {
	n, err := f.Writer.Write(p)
	if err == nil {
		err = f.control.Flush()
	}
	return n, err
}
