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

// A request of a client whose owner has ended waits for the next one; who asks
// whether there is one does not.
func TestNextOwner(t *testing.T) {
	dir := t.TempDir()
	client := &http.Client{Transport: owner.Transport(dir)}
	t.Cleanup(client.CloseIdleConnections)
	answer := make(chan error, 1)
	go func() {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/", http.NoBody)
		if err == nil {
			var resp *http.Response
			if resp, err = client.Do(req); err == nil {
				err = resp.Body.Close()
			}
		}
		answer <- err
	}()
	began := time.Now()
	if _, err := owner.Ask(t.Context(), dir); !errors.Is(err, sandbox.ErrUnavailable) || time.Since(began) > time.Second {
		t.Errorf("asked: %v after %v, want it told at once", err, time.Since(began))
	}
	select {
	case err := <-answer:
		t.Fatalf("the request did not wait: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	listener, err := sockets.Listen(owner.Socket(dir))
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.NotFoundHandler(), ReadHeaderTimeout: time.Second}
	go func() { _ = server.Serve(listener) }()
	defer server.Close()
	if err := <-answer; err != nil {
		t.Errorf("got %v, want the answer of the next owner", err)
	}
}

// Nobody comes: what could be sent again is an error that says so.
func TestNoNextOwner(t *testing.T) {
	t.Parallel()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := owner.Transport(t.TempDir()).RoundTrip(req)
	if err == nil {
		resp.Body.Close()
	}
	e, ok := errors.AsType[*sandbox.Error](err)
	if !ok || !e.Retryable || !errors.Is(err, sandbox.ErrUnavailable) {
		t.Errorf("got %v, want it unavailable, and to be tried again", err)
	}
}

func TestHandOver(t *testing.T) {
	for status, want := range map[int]struct{ makesWay, fails bool }{
		http.StatusAccepted: {makesWay: true}, http.StatusConflict: {}, http.StatusNotFound: {}, http.StatusForbidden: {fails: true},
	} {
		dir, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost && r.URL.Path == owner.PathHandOver {
				w.WriteHeader(status)
			}
		})
		makesWay, err := owner.HandOver(t.Context(), dir)
		if makesWay != want.makesWay || (err != nil) != want.fails {
			t.Errorf("%d: got %v, %v", status, makesWay, err)
		}
	}
}
