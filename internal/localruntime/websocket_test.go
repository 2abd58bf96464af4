package localruntime_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/glassboxhq/glassbox/internal/localruntime"
	"github.com/glassboxhq/glassbox/internal/localruntime/lifecycle"
	"github.com/glassboxhq/glassbox/internal/wire"
)

// proxied is a sandbox as it is reached from outside, by the server's proxy.
type proxied struct {
	id, url string // of the server
	access  lifecycle.Access
}

func (p *proxied) path(port int, rest string) string {
	return p.url + "/v1/sandboxes/" + p.id + "/proxy/" + strconv.Itoa(port) + rest
}

func (p *proxied) dial(ctx context.Context, port int, rest string, headers ...string) (*websocket.Conn, *http.Response, error) {
	head := http.Header{}
	head.Set(wire.HeaderExecdToken, p.access.ExecdToken)
	for i := 0; i < len(headers); i += 2 {
		head.Set(headers[i], headers[i+1])
	}
	opts := &websocket.DialOptions{HTTPHeader: head, Subprotocols: []string{"two"}, Host: head.Get("Host")}
	conn, res, err := websocket.Dial(ctx, p.path(port, rest), opts)
	if err == nil {
		conn.SetReadLimit(-1)
	}
	return conn, res, err
}

// serveSandbox makes a sandbox in which wsecho listens at port 9000.
func serveSandbox(t *testing.T, rt *localruntime.Runtime) *proxied {
	t.Helper()
	server := httptest.NewServer(lifecycle.New(rt, &lifecycle.Options{APIKey: "key"}))
	t.Cleanup(server.Close)
	p := &proxied{id: create(t, rt, nil).ID, url: server.URL}
	var err error
	if p.access, err = rt.Access(t.Context(), p.id); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "wsecho")
	build := exec.Command("go", "build", "-o", program, "./testdata/wsecho")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	content, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	put, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://recorder"+wire.PathFile+"?path=wsecho&mode=755", bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	put.Header.Set(wire.HeaderToken, p.access.Token)
	res, err := rt.Conn(p.id).RoundTrip(put)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	run(t, rt, p.id, "./wsecho >log 2>&1 & true")
	eventually(t, "the server in the sandbox answers", func() bool {
		conn, err := rt.DialPort(t.Context(), p.id, 9000)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	return p
}

// echo sends a message and wants it back.
func echo(ctx context.Context, conn *websocket.Conn, kind websocket.MessageType, data []byte) error {
	sent := make(chan error, 1)
	go func() { sent <- conn.Write(ctx, kind, data) }()
	gotKind, got, err := conn.Read(ctx)
	if err := errors.Join(err, <-sent); err != nil {
		return err
	}
	if gotKind != kind || !bytes.Equal(got, data) {
		return fmt.Errorf("%d bytes came back as %d", len(data), len(got))
	}
	return nil
}

func TestWebSocket(t *testing.T) {
	rt := startRuntime(t, options(t, t.TempDir()))
	p := serveSandbox(t, rt)
	other, err := rt.Access(t.Context(), create(t, rt, nil).ID)
	if err != nil {
		t.Fatal(err)
	}
	idle := runtime.NumGoroutine()

	t.Run("messages of any size", func(t *testing.T) {
		for _, rest := range []struct {
			port int
			path string
		}{{9000, "/echo"}, {44772, "/proxy/9000/echo"}} { // straight, and by execd
			conn, res, err := p.dial(t.Context(), rest.port, rest.path)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.CloseNow()
			if res.Header.Get("Sec-WebSocket-Protocol") != "two" {
				t.Errorf("the subprotocol is lost: %v", res.Header)
			}
			for _, size := range []int{0, 1, 125, 126, 65536, 16 << 20} {
				if err := echo(t.Context(), conn, websocket.MessageBinary, bytes.Repeat([]byte{7}, size)); err != nil {
					t.Fatalf("%d bytes at %s: %v", size, rest.path, err)
				}
			}
			if err := echo(t.Context(), conn, websocket.MessageText, []byte("研究")); err != nil {
				t.Error(err)
			}
			if err := conn.Close(websocket.StatusNormalClosure, ""); err != nil {
				t.Errorf("close: %v", err)
			}
		}
	})
	t.Run("the server's close", func(t *testing.T) {
		conn, _, err := p.dial(t.Context(), 9000, "/echo")
		if err != nil {
			t.Fatal(err)
		}
		defer conn.CloseNow()
		if err := conn.Write(t.Context(), websocket.MessageText, []byte("close 4007 a reason")); err != nil {
			t.Fatal(err)
		}
		_, _, err = conn.Read(t.Context())
		if closed, ok := errors.AsType[websocket.CloseError](err); !ok || closed.Code != 4007 || closed.Reason != "a reason" {
			t.Errorf("got %v, want the code and the reason", err)
		}
	})
	t.Run("the client's close", func(t *testing.T) {
		conn, _, err := p.dial(t.Context(), 9000, "/echo")
		if err != nil {
			t.Fatal(err)
		}
		if err := conn.Close(4321, "over"); err != nil {
			t.Error(err)
		}
		eventually(t, "the program was told", func() bool {
			return strings.Contains(run(t, rt, p.id, "cat log").stdout, "client closed with 4321")
		})
	})
	t.Run("half of a connection", func(t *testing.T) {
		conn, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: count\r\nOPEN-SANDBOX-API-KEY: key\r\n\r\n",
			strings.TrimPrefix(p.path(9000, "/count"), p.url))
		answer := bufio.NewReader(conn)
		if res, err := http.ReadResponse(answer, nil); err != nil || res.StatusCode != http.StatusSwitchingProtocols {
			t.Fatalf("%v %+v", err, res)
		}
		if _, err := conn.Write(make([]byte, 1_000_000)); err != nil {
			t.Fatal(err)
		}
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if rest, err := io.ReadAll(answer); err != nil || string(rest) != "1000000\n" {
			t.Errorf("after our half was closed: %q, %v", rest, err)
		}
	})
	t.Run("a hundred at once", func(t *testing.T) {
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() {
				port, path := 9000, "/echo"
				if i%2 == 0 {
					port, path = 44772, "/proxy/9000/echo"
				}
				conn, _, err := p.dial(t.Context(), port, path)
				if err != nil {
					t.Errorf("%d: %v", i, err)
					return
				}
				defer conn.CloseNow() // some are closed in order, some break off
				for n := range 5 {
					if err := echo(t.Context(), conn, websocket.MessageBinary, bytes.Repeat([]byte{byte(i)}, 1000*(n+1))); err != nil {
						t.Errorf("%d: %v", i, err)
						return
					}
				}
				if i%3 == 0 {
					_ = conn.Close(websocket.StatusGoingAway, "")
				}
			})
		}
		all.Wait()
	})
	t.Run("a terminal", func(t *testing.T) { watchTerminal(t, p) })
	t.Run("doors", func(t *testing.T) {
		for _, tt := range []struct {
			name    string
			port    int
			path    string
			headers []string
			status  int
		}{
			{"a port without a token", 9000, "/echo", []string{wire.HeaderExecdToken, ""}, 401},
			{"execd without a token", 44772, "/proxy/9000/echo", []string{wire.HeaderExecdToken, ""}, 401},
			{"execd by a wrong one", 44772, "/proxy/9000/echo", []string{wire.HeaderExecdToken, "x"}, 401},
			{"execd by another sandbox's", 44772, "/proxy/9000/echo", []string{wire.HeaderExecdToken, other.ExecdToken}, 401},
			{"execd by the key", 44772, "/proxy/9000/echo", []string{wire.HeaderExecdToken, "", "OPEN-SANDBOX-API-KEY", "key"}, 401},
			{"execd by the recorder's token alone", 44772, "/proxy/9000/echo", []string{wire.HeaderExecdToken, "", wire.HeaderToken, p.access.Token}, 401},
			{"a page in a browser", 9000, "/echo", []string{"Origin", "http://localhost"}, 403},
			{"a foreign name", 9000, "/echo", []string{"Host", "elsewhere.example"}, 403},
			{"nothing listens", 9001, "/echo", nil, 502},
			{"no terminal", 44772, "/pty/none/ws", nil, 404},
		} {
			conn, res, err := p.dial(t.Context(), tt.port, tt.path, tt.headers...)
			if err == nil || res == nil || res.StatusCode != tt.status {
				t.Errorf("%s: got %t, %v, want %d", tt.name, conn != nil, err, tt.status)
			}
		}
	})
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	eventually(t, "no goroutine is left", func() bool { return runtime.NumGoroutine() <= idle+3 })
}

// watchTerminal works on a terminal in the sandbox, over execd's wire.
func watchTerminal(t *testing.T, p *proxied) {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.path(44772, "/pty"), strings.NewReader(`{"cwd":"/tmp"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set(wire.HeaderExecdToken, p.access.ExecdToken)
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(res.Body)
	res.Body.Close()
	_, name, ok := strings.Cut(strings.TrimSpace(string(text)), `"session_id":"`)
	if err != nil || !ok || res.StatusCode != http.StatusCreated {
		t.Fatalf("%d %s, %v", res.StatusCode, text, err)
	}
	name = strings.TrimRight(name, `"}`)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	conn, _, err := p.dial(ctx, 44772, "/pty/"+name+"/ws")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()
	if err := conn.Write(ctx, websocket.MessageBinary, []byte("\x00echo in''side $PWD; exit 5\n")); err != nil {
		t.Fatal(err)
	}
	var shown []byte
	for {
		_, data, err := conn.Read(ctx)
		if err != nil {
			if !bytes.Contains(shown, []byte("inside /tmp\r\n")) || !bytes.Contains(shown, []byte(`"exit_code":5`)) || websocket.CloseStatus(err) != websocket.StatusNormalClosure {
				t.Errorf("got %q, then %v", shown, err)
			}
			return
		}
		shown = append(shown, data...)
	}
}
