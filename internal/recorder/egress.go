package recorder

import (
	"context"
	"io"
	"log/slog"
	"net"
	"sync"
)

// Egress offers a proxy of the host on a port of the sandbox's loopback: each
// connection to it is carried to the host's socket as it is.
func Egress(ctx context.Context, listener net.Listener, socket string, logger *slog.Logger) error {
	stop := context.AfterFunc(ctx, func() { listener.Close() })
	defer stop()
	var conns sync.WaitGroup
	defer conns.Wait()
	for {
		conn, err := listener.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return err
		}
		conns.Go(func() {
			host, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
			if err != nil {
				logger.WarnContext(ctx, "the host's proxy does not answer", "error", err)
				conn.Close()
				return
			}
			join(ctx, conn, host)
		})
	}
}

// join carries bytes both ways until both sides have ended.
func join(ctx context.Context, a, b net.Conn) {
	stop := context.AfterFunc(ctx, func() { a.Close(); b.Close() })
	defer stop()
	var ways sync.WaitGroup
	for _, way := range [][2]net.Conn{{a, b}, {b, a}} {
		ways.Go(func() {
			_, _ = io.Copy(way[0], way[1])
			if half, ok := way[0].(interface{ CloseWrite() error }); ok {
				_ = half.CloseWrite()
			}
		})
	}
	ways.Wait()
	a.Close()
	b.Close()
}
