package glassbox_test

import (
	"bufio"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/glassboxhq/glassbox"
	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/sandbox"
)

// through is the way to the real server through a proxy, which looks at each
// request and answers some of them itself.
func (r *remote) through(t *testing.T, look func(w http.ResponseWriter, req *http.Request, pass http.HandlerFunc)) *remote {
	t.Helper()
	to, err := url.Parse(r.url)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(to); p.Out.Host = p.In.Host }}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { look(w, req, proxy.ServeHTTP) }))
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	return &remote{server.URL, r.key}
}

// Where WebSockets are refused, all goes by plain requests.
func TestOpenSandboxNoTunnel(t *testing.T) {
	r := needOpenSandbox(t)
	var refused atomic.Int64
	way := r.through(t, func(w http.ResponseWriter, req *http.Request, pass http.HandlerFunc) {
		if strings.HasSuffix(req.URL.Path, wire.PathTunnel) {
			refused.Add(1)
			http.Error(w, "no upgrades here", http.StatusForbidden)
			return
		}
		pass(w, req)
	})
	box := way.create(t, nil)
	for _, on := range []*glassbox.Sandbox{box, r.connect(t, box.ID())} {
		ctx := glassbox.WithActor(t.Context(), glassbox.Actor{ID: "研究员", Thread: "线/1", Run: "r%2F"})
		if res, err := on.Run(ctx, "seq 1 200000 | tail -n 1", nil); err != nil || string(res.Stdout) != "200000\n" {
			t.Errorf("got %+v, %v", res, err)
		}
		if _, err := on.Write(ctx, "报告 a%2Fb.txt", strings.NewReader(strings.Repeat("字", 1<<20)), nil); err != nil {
			t.Error(err)
		}
		if content, err := on.ReadFile(ctx, "报告 a%2Fb.txt"); err != nil || len(content) != 3<<20 {
			t.Errorf("got %d bytes, %v", len(content), err)
		}
	}
	ops := list(t, box, &glassbox.Filter{ActorID: "研究员"})
	for _, op := range ops {
		if op.Actor.Thread != "线/1" || op.Actor.Run != "r%2F" {
			t.Errorf("got %+v, want the actor as it was told", op.Actor)
		}
	}
	if len(ops) != 6 || refused.Load() == 0 {
		t.Errorf("got %d operations, %d tunnels refused", len(ops), refused.Load())
	}
}

// A proxy that answers for the server, before or after it has worked: what is
// safe is tried again, and no command runs twice.
func TestOpenSandboxBadGateway(t *testing.T) {
	r := needOpenSandbox(t)
	for name, tunnel := range map[string]bool{"plain": false, "tunnel": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var n atomic.Int64
			way := r.through(t, func(w http.ResponseWriter, req *http.Request, pass http.HandlerFunc) {
				inside := strings.Contains(req.URL.Path, "/proxy/") && !strings.Contains(req.URL.Path, "/proxy/44772")
				switch k := n.Add(1); {
				case strings.HasSuffix(req.URL.Path, wire.PathTunnel) && !tunnel:
					w.WriteHeader(http.StatusBadGateway)
				case inside && k%5 == 0:
					w.WriteHeader(http.StatusBadGateway)
				case inside && k%7 == 0 && !strings.HasSuffix(req.URL.Path, wire.PathTunnel):
					pass(httptest.NewRecorder(), req) // it was done, and nobody is told
					w.WriteHeader(http.StatusGatewayTimeout)
				default:
					pass(w, req)
				}
			})
			box := way.create(t, nil)
			for i := range 20 {
				res, err := box.Run(t.Context(), fmt.Sprintf("echo %d | tee -a ran", i), nil)
				if err != nil || string(res.Stdout) != fmt.Sprintln(i) {
					t.Errorf("command %d: got %+v, %v", i, res, err)
				}
				if _, err := box.Write(t.Context(), "f", strings.NewReader(fmt.Sprint(i)), nil); err != nil {
					t.Errorf("write %d: %v", i, err)
				}
			}
			res, err := r.connect(t, box.ID()).Run(t.Context(), "wc -l <ran; sort -u ran | wc -l; cat f", nil)
			if err != nil || string(res.Stdout) != "20\n20\n19" {
				t.Errorf("got %q, %v, want each command run once", res.Stdout, err)
			}
		})
	}
}

// FB-135: a command path that hangs behind a health check that answers.
func TestOpenSandboxFB135Silent(t *testing.T) {
	t.Parallel()
	r := needOpenSandbox(t)
	silent := r.through(t, func(w http.ResponseWriter, req *http.Request, pass http.HandlerFunc) {
		if strings.HasSuffix(req.URL.Path, "/command") || strings.HasSuffix(req.URL.Path, wire.PathCommands) || strings.HasSuffix(req.URL.Path, wire.PathTunnel) {
			_, _ = io.Copy(io.Discard, req.Body) // else nobody sees that the client leaves
			<-req.Context().Done()
			return
		}
		pass(w, req)
	})
	box := r.create(t, nil)
	if _, err := box.Run(t.Context(), "true", nil); err != nil {
		t.Fatal(err)
	}
	hung, err := glassbox.Connect(t.Context(), silent.url, box.ID(), silent.options(nil))
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	_, err = hung.Run(t.Context(), "echo probe", &glassbox.Command{Timeout: time.Second})
	if took := time.Since(began); err == nil || took > 20*time.Second || !strings.Contains(err.Error(), "no answer") {
		t.Errorf("got %v after %v, want that nothing answers", err, took)
	}
	if res, err := box.Run(t.Context(), "echo others", nil); err != nil || string(res.Stdout) != "others\n" {
		t.Errorf("got %+v, %v, want others to go on", res, err)
	}
	if err := hung.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// stoppedClient is set for the process that is stopped while it reads: its
// sandbox and its command.
const stoppedClient = "GLASSBOX_TEST_STOPPED"

// TestOpenSandboxStoppedClient is that process, too.
func TestOpenSandboxStoppedClient(t *testing.T) {
	r := needOpenSandbox(t)
	if id, line, ok := strings.Cut(os.Getenv(stoppedClient), " "); ok {
		readSlowly(t, r, id, line)
		return
	}
	t.Parallel()
	box := r.create(t, nil)
	var all sync.WaitGroup
	for name, tt := range map[string]struct {
		megabytes int
		want      func(string) bool
	}{
		"what the spool holds": {40, func(got string) bool {
			sum := sha256.New()
			_, _ = io.Copy(sum, io.LimitReader(zeros{}, 40<<20))
			return got == fmt.Sprintf("%d %x\n", 40<<20, sum.Sum(nil))
		}},
		"more than that": {300, func(got string) bool {
			var at, from, to int64
			_, rest, _ := strings.Cut(got, "gone: ")
			_, err := fmt.Sscanf(got, "%d", &at)
			_, rest, ok := strings.Cut(rest, "bytes ")
			_, rangeErr := fmt.Sscanf(rest, "%d to %d", &from, &to)
			return ok && err == nil && rangeErr == nil && from == at && to > from
		}},
	} {
		all.Go(func() {
			line := fmt.Sprintf("head -c %dM /dev/zero", tt.megabytes)
			client := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestOpenSandboxStoppedClient$", "-test.v")
			client.Env = append(os.Environ(), stoppedClient+"="+box.ID()+" "+line)
			out, err := client.StdoutPipe()
			if err == nil {
				err = client.Start()
			}
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = client.Wait() }()
			lines := bufio.NewReader(out)
			for text := ""; !strings.Contains(text, "reading\n"); {
				if text, err = lines.ReadString('\n'); err != nil {
					t.Errorf("%s: %v", name, err)
					return
				}
			}
			_ = client.Process.Signal(syscall.SIGSTOP)
			<-time.After(time.Minute) // longer than anyone waits for it
			_ = client.Process.Signal(syscall.SIGCONT)
			rest, _ := io.ReadAll(lines)
			_, got, _ := strings.Cut(string(rest), "got ")
			got, _, _ = strings.Cut(got, "---")
			if !tt.want(got) {
				t.Errorf("%s: got %s", name, rest)
			}
		})
	}
	all.Wait()
	for _, op := range list(t, box, &glassbox.Filter{Types: []string{history.CommandExecute}}) {
		if op.Status != sandbox.Succeeded {
			t.Errorf("got %+v, want the command to have ended by itself", op)
		}
	}
}

func readSlowly(t *testing.T, r *remote, id, line string) {
	t.Helper()
	p, err := r.connect(t, id).Start(t.Context(), line, nil)
	if err != nil {
		t.Fatal(err)
	}
	sum, n := sha256.New(), 0
	for told := false; ; {
		c, err := p.Next(t.Context())
		if n += len(c.Data); n > 0 && !told {
			fmt.Fprintln(os.Stdout, "reading")
			told = true
			<-time.After(100 * time.Millisecond) // until it is stopped
		}
		sum.Write(c.Data)
		switch {
		case errors.Is(err, io.EOF):
			fmt.Fprintf(os.Stdout, "got %d %x\n", n, sum.Sum(nil))
			return
		case errors.Is(err, glassbox.ErrOutputGone):
			fmt.Fprintf(os.Stdout, "got %d gone: %v\n", n, err)
			return
		case err != nil:
			fmt.Fprintf(os.Stdout, "got %v\n", err)
			return
		}
	}
}

// slowly gives a little now and then.
type slowly struct {
	pieces int
	wait   time.Duration
}

// Read implements io.Reader.
func (s *slowly) Read(p []byte) (int, error) {
	if s.pieces == 0 {
		return 0, io.EOF
	}
	<-time.After(s.wait)
	s.pieces--
	return copy(p, "piece\n"), nil
}

// The time for a request is not that for a command, a stream or a transfer.
func TestOpenSandboxRequestTimeout(t *testing.T) {
	t.Parallel()
	const limit = 2 * time.Second
	box := needOpenSandbox(t).create(t, &glassbox.Options{RequestTimeout: limit})
	var all sync.WaitGroup
	all.Go(func() {
		if res, err := box.Run(t.Context(), "sleep 3; echo done", nil); err != nil || string(res.Stdout) != "done\n" {
			t.Errorf("command: got %+v, %v", res, err)
		}
	})
	all.Go(func() {
		if _, err := box.Write(t.Context(), "slow", &slowly{12, limit / 8}, nil); err != nil {
			t.Errorf("transfer in: %v", err)
		}
	})
	all.Go(func() {
		if _, err := box.Run(t.Context(), "head -c 32M /dev/zero >big", nil); err != nil {
			t.Error(err)
		}
		f, err := box.Read(t.Context(), "big", nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer f.Close()
		n := int64(0)
		for range 8 {
			<-time.After(limit / 5)
			k, err := io.CopyN(io.Discard, f, 4<<20)
			if n += k; err != nil {
				t.Errorf("transfer out: %v", err)
			}
		}
		if n != 32<<20 {
			t.Errorf("transfer out: %d bytes", n)
		}
	})
	all.Wait()
}

// FB-131: a way that cuts what is silent for ten seconds does not end a
// terminal that nobody types on.
func TestOpenSandboxFB131Idle(t *testing.T) {
	t.Parallel()
	r := needOpenSandbox(t)
	way := &remote{"http://" + newIdleCut(t, strings.TrimPrefix(r.url, "http://"), 10*time.Second), r.key}
	p, err := way.create(t, nil).Start(t.Context(), "cat", &glassbox.Command{Terminal: &glassbox.TerminalSize{Columns: 80, Rows: 24}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	<-time.After(25 * time.Second) // nothing is said meanwhile
	if _, err := io.WriteString(p.Stdin(), "typed after a while\n"); err != nil {
		t.Fatal(err)
	}
	var shown strings.Builder
	for strings.Count(shown.String(), "typed after a while") < 2 { // what was typed, and what cat makes of it
		c, err := p.Next(t.Context())
		if err != nil {
			t.Fatalf("%v, after %q", err, shown.String())
		}
		shown.Write(c.Data)
	}
}

// newIdleCut returns the address of a way that cuts connections on which
// nothing has come for a while.
func newIdleCut(t *testing.T, target string, idle time.Duration) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var conns sync.WaitGroup
	t.Cleanup(func() { l.Close(); conns.Wait() })
	conns.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", target)
			if err != nil {
				client.Close()
				continue
			}
			cut := time.AfterFunc(idle, func() { client.Close(); server.Close() })
			for _, ends := range [][2]net.Conn{{client, server}, {server, client}} {
				conns.Go(func() {
					defer client.Close()
					defer server.Close()
					buffer := make([]byte, 32<<10)
					for {
						n, err := ends[1].Read(buffer)
						if err != nil {
							return
						}
						cut.Reset(idle)
						if _, err := ends[0].Write(buffer[:n]); err != nil {
							return
						}
					}
				})
			}
		}
	})
	return l.Addr().String()
}
