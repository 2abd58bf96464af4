package owner_test

import (
	"errors"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/glassboxhq/glassbox/internal/owner"
	"github.com/glassboxhq/glassbox/internal/sockets"
	"github.com/glassboxhq/glassbox/sandbox"
)

// serve answers at the socket of a new state directory.
func serve(t *testing.T, handler http.HandlerFunc) (dir string, server *http.Server) {
	t.Helper()
	dir = t.TempDir()
	listener, err := sockets.Listen(owner.Socket(dir))
	if err != nil {
		t.Fatal(err)
	}
	server = &http.Server{Handler: handler, ReadHeaderTimeout: time.Second}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = server.Serve(listener) }()
	t.Cleanup(func() { server.Close(); <-ended })
	return dir, server
}

func TestAsk(t *testing.T) {
	dir, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != owner.PathState {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte(`{"pid": 7, "version": "1.2", "listen": "127.0.0.1:1"}`))
	})
	if got, err := owner.Ask(t.Context(), dir); err != nil || *got != (owner.State{PID: 7, Version: "1.2", Listen: "127.0.0.1:1"}) {
		t.Errorf("got %+v, %v", got, err)
	}
	if err := owner.Get(t.Context(), dir, "/other", nil); !errors.Is(err, sandbox.ErrUnavailable) {
		t.Errorf("a route that is not there: %v", err)
	}
}

func TestNobody(t *testing.T) {
	dir := t.TempDir()
	if _, err := owner.Ask(t.Context(), dir); !errors.Is(err, sandbox.ErrUnavailable) {
		t.Errorf("no socket: %v", err)
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: owner.Socket(dir)})
	if err != nil {
		t.Fatal(err)
	}
	listener.SetUnlinkOnClose(false)
	listener.Close()
	if _, err := owner.Ask(t.Context(), dir); !errors.Is(err, sandbox.ErrUnavailable) || !sockets.Refused(err) {
		t.Errorf("a socket that nobody listens at: %v", err)
	}
	if err := os.Remove(owner.Socket(dir)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(owner.Socket(dir), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := owner.Ask(t.Context(), dir); !errors.Is(err, sandbox.ErrUnauthorized) {
		t.Errorf("a file in its place: %v", err)
	}
}

// A lease ends with the owner.
func TestLease(t *testing.T) {
	dir, server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	lease, err := owner.Take(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { lease.Wait(); close(ended) }()
	select {
	case <-ended:
		t.Fatal("the lease ended before its owner")
	case <-time.After(50 * time.Millisecond):
	}
	server.Close()
	<-ended
	if err := lease.Close(); err != nil {
		t.Error(err)
	}
}
