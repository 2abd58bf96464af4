package recorded_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/coder/websocket"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/record"
	"github.com/glassboxhq/glassbox/sandbox"
	"github.com/glassboxhq/glassbox/sandbox/recorded"
	"github.com/glassboxhq/glassbox/sandbox/sandboxtest"
)

// way is a proxy to a recorder, below a path as a service has it. It counts
// what comes by itself, and the tunnels.
type way struct {
	*httptest.Server
	plain, tunnels atomic.Int64
}

func newWay(t *testing.T, target string, onTunnel http.HandlerFunc) *way {
	t.Helper()
	to, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
	w := &way{}
	w.Server = httptest.NewServer(http.StripPrefix("/v1/proxy/44780", http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path != wire.PathTunnel {
			w.plain.Add(1)
			proxy.ServeHTTP(rw, r)
			return
		}
		w.tunnels.Add(1)
		if onTunnel != nil {
			onTunnel(rw, r)
			return
		}
		proxy.ServeHTTP(rw, r)
	})))
	t.Cleanup(w.CloseClientConnections)
	return w
}

func (w *way) open(t *testing.T) *recorded.Session {
	t.Helper()
	s := recorded.New(w.URL+"/v1/proxy/44780", &recorded.Options{Token: token, Tunnel: true})
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestTunnelSession(t *testing.T) {
	sandboxtest.TestSession(t, func(t *testing.T) sandbox.Session { return newWay(t, newRecorder(t).URL, nil).open(t) })
}

// Small requests share one tunnel; what is large goes by itself.
func TestTunnel(t *testing.T) {
	t.Parallel()
	w := newWay(t, newRecorder(t).URL, nil)
	s := w.open(t)
	ctx := history.WithActor(t.Context(), history.Actor{ID: "研究员"})
	for range 20 {
		if res, err := s.Run(ctx, &sandbox.Command{Line: "cat", Stdin: strings.NewReader("by the tunnel")}); err != nil || string(res.Stdout) != "by the tunnel" {
			t.Fatalf("got %+v, %v", res, err)
		}
	}
	if _, err := s.Write(ctx, "small", strings.NewReader(strings.Repeat("x", wire.TunnelBytes)), nil); err != nil {
		t.Fatal(err)
	}
	if plain, tunnels := w.plain.Load(), w.tunnels.Load(); plain != 0 || tunnels != 1 {
		t.Errorf("got %d plain requests and %d tunnels, want one tunnel", plain, tunnels)
	}
	page, err := s.History().List(ctx, &history.Filter{Types: []string{history.CommandExecute}, Limit: 1})
	if err != nil || len(page.Operations) != 1 || page.Operations[0].Actor.ID != "研究员" {
		t.Errorf("got %+v, %v, want who acted", page, err)
	}
	large := bytes.Repeat([]byte("y"), wire.TunnelBytes+1)
	if _, err := s.Write(ctx, "/tmp/"+t.Name(), bytes.NewReader(large), nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Remove(context.Background(), "/tmp/"+t.Name(), nil) })
	if _, err := s.Write(ctx, "/tmp/"+t.Name(), struct{ *strings.Reader }{strings.NewReader(string(large))}, nil); err != nil {
		t.Fatal(err)
	}
	if got := readAll(t, s, "/tmp/"+t.Name()); !bytes.Equal(got, large) {
		t.Errorf("got %d bytes", len(got))
	}
	if plain := w.plain.Load(); plain != 3 {
		t.Errorf("got %d plain requests, want the two writes and the read", plain)
	}
	page, err = s.History().List(ctx, &history.Filter{Types: []string{history.FileRead}})
	if err != nil || len(page.Operations) != 1 || page.Operations[0].Status != sandbox.Succeeded {
		t.Errorf("got %+v, %v, want one read", page, err)
	}
}

func readAll(t *testing.T, s sandbox.Session, name string) []byte {
	t.Helper()
	f, err := s.Read(t.Context(), name, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var b bytes.Buffer
	if _, err := b.ReadFrom(f); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Where no tunnel is let through, requests go by themselves, and the service
// is not asked for one again and again.
func TestTunnelRefused(t *testing.T) {
	t.Parallel()
	for name, refuse := range map[string]http.HandlerFunc{
		"status": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusNotImplemented) },
		// As OpenSandbox's proxy tells that the port behind it refused.
		"yes and close": func(w http.ResponseWriter, r *http.Request) {
			if c, err := websocket.Accept(w, r, nil); err == nil {
				_ = c.Close(websocket.StatusPolicyViolation, "")
			}
		},
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://192.0.2.1/", http.StatusFound)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWay(t, newRecorder(t).URL, refuse)
			s := w.open(t)
			for range 5 {
				if res, err := s.Run(t.Context(), &sandbox.Command{Line: "echo ran"}); err != nil || string(res.Stdout) != "ran\n" {
					t.Fatalf("got %+v, %v", res, err)
				}
			}
			if plain, tunnels := w.plain.Load(), w.tunnels.Load(); plain != 5 || tunnels != 1 {
				t.Errorf("got %d plain requests and %d tries of a tunnel", plain, tunnels)
			}
		})
	}
}

// More streams than a tunnel carries do not wait for each other.
func TestTunnelFull(t *testing.T) {
	t.Parallel()
	w := newWay(t, newRecorderWith(t, &record.Options{Concurrency: &sandbox.Concurrency{Commands: 256}}).URL, nil)
	s := w.open(t)
	const many = wire.TunnelStreams + 16
	var group sync.WaitGroup
	for i := range many {
		// Each waits for the file that is made when all of them run.
		line := fmt.Sprintf("touch ready-%d; until [ -e go ]; do sleep 0.02; done", i)
		group.Go(func() {
			if res, err := s.Run(t.Context(), &sandbox.Command{Line: line}); err != nil || res.ExitCode != 0 {
				t.Errorf("got %+v, %v", res, err)
			}
		})
	}
	line := fmt.Sprintf(`until [ "$(ls ready-* 2>/dev/null | wc -l)" = %d ]; do sleep 0.02; done; touch go`, many)
	if _, err := s.Run(t.Context(), &sandbox.Command{Line: line}); err != nil {
		t.Error(err)
	}
	group.Wait()
}

// Wherever a tunnel is cut, nothing is lost, nothing doubled, and nothing run
// twice.
func TestTunnelCut(t *testing.T) {
	t.Parallel()
	rec := newRecorderWith(t, &record.Options{Concurrency: &sandbox.Concurrency{Commands: 16}})
	roll := dice(t)
	const lines = 20_000
	var want bytes.Buffer
	for i := range lines {
		fmt.Fprintln(&want, i+1)
	}
	cut := newCutter(t, rec.URL, func() int64 { return 100_000 + roll(200_000) }, always(-1))
	s := recorded.New("http://"+cut.Addr().String(), &recorded.Options{Token: token, Tunnel: true})
	defer s.Close(t.Context())
	var group sync.WaitGroup
	for i := range 10 {
		group.Go(func() {
			cmd := &sandbox.Command{Line: fmt.Sprintf("echo x >>runs-%d; seq 1 %d", i, lines), MaxOutput: 1 << 20}
			res, err := s.Run(t.Context(), cmd)
			if err != nil {
				t.Errorf("command %d: %v", i, err)
			} else if !bytes.Equal(res.Stdout, want.Bytes()) {
				t.Errorf("command %d: got %d bytes, want %d; it %s: %s", i, len(res.Stdout), want.Len(), res.Status, res.Reason)
			}
		})
	}
	group.Wait()
	if cut.cuts.Load() == 0 {
		t.Error("nothing was cut")
	}
	direct := recorded.New(rec.URL, &recorded.Options{Token: token})
	defer direct.Close(t.Context())
	res, err := direct.Run(t.Context(), &sandbox.Command{Line: "cat runs-* | wc -l | tr -d ' '"})
	if err != nil || string(res.Stdout) != "10\n" {
		t.Errorf("got %q, %v, want each command run once", res.Stdout, err)
	}
}
