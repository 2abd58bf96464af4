package lifecycle_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestEndpoint(t *testing.T) {
	s := start(t, nil)
	id := s.create()
	host := strings.TrimPrefix(s.url, "http://")
	for _, tt := range []struct{ path, endpoint string }{
		{"/v1/sandboxes/" + id + "/endpoints/44772", host + "/v1/sandboxes/" + id + "/proxy/44772"},
		{"/sandboxes/" + id + "/endpoints/8080?use_server_proxy=true", host + "/sandboxes/" + id + "/proxy/8080"},
	} {
		want := map[string]any{
			"endpoint": tt.endpoint,
			"headers":  map[string]any{"X-EXECD-ACCESS-TOKEN": "execd-" + id, "X-Glassbox-Token": "token-" + id},
		}
		if a := s.ask("GET", tt.path, ""); a.status != 200 || cmp.Diff(a.field(t), any(want)) != "" {
			t.Errorf("%s: %d %s", tt.path, a.status, cmp.Diff(a.field(t), any(want)))
		}
	}
	for _, tt := range []struct {
		path   string
		status int
	}{
		{id + "/endpoints/0", 400},
		{id + "/endpoints/65536", 400},
		{id + "/endpoints/http", 422},
		{id + "/endpoints/80?expires=1", 400},
		{"none/endpoints/80", 404},
	} {
		if a := s.ask("GET", "/v1/sandboxes/"+tt.path, ""); a.status != tt.status {
			t.Errorf("%s: %d %s", tt.path, a.status, a.text)
		}
	}
}

func TestProxy(t *testing.T) {
	s := start(t, nil)
	id := s.create()
	other := s.create()
	const noKey = "OPEN-SANDBOX-API-KEY: "
	token, execd := "X-Glassbox-Token: token-"+id, "X-EXECD-ACCESS-TOKEN: execd-"+id
	for _, tt := range []struct {
		name, method, path, body string
		headers                  []string
		status                   int
		has                      string
	}{
		{"recorder by its token", "POST", "/44780/x", "b", []string{noKey, token}, 200, "POST /x host=127.0.0.1:44780 via=recorder body=b"},
		{"recorder by execd's token", "GET", "/44772/ping", "", []string{noKey, execd}, 200, "GET /ping host=127.0.0.1:44772 via=recorder"},
		{"recorder gets the token", "GET", "/44780", "", []string{token}, 200, "X-Glassbox-Token"},
		{"the key does not open the recorder", "GET", "/44780/x", "", nil, 401, "X-Glassbox-Token"},
		{"nor does the token of another", "GET", "/44772/x", "", []string{"X-Glassbox-Token: token-" + other}, 401, ""},
		{"nor does an empty one", "GET", "/44772/x", "", []string{"X-Glassbox-Token: "}, 401, ""},
		{"port by the key", "GET", "/8080/a/b?c=d&c=e", "", nil, 200, "GET /a/b?c=d&c=e host=127.0.0.1:8080 via= body="},
		{"port by the token", "GET", "/8080/", "", []string{noKey, token}, 200, "GET / host=127.0.0.1:8080"},
		{"port without anything", "GET", "/8080/", "", []string{noKey}, 401, ""},
		{"port with a wrong key", "GET", "/8080/", "", []string{"OPEN-SANDBOX-API-KEY: x"}, 401, ""},
		{"path as it came", "GET", "/8080/a%2Fb/%E4%B8%AD//c/../d?x=%20", "", nil, 200, "GET /a%2Fb/%E4%B8%AD//c/../d?x=%20 "},
		{"any method", "PURGE", "/8080/", "", nil, 200, "PURGE /"},
		{"body", "PUT", "/8080/", "some body", nil, 200, "body=some body"},
		{"closed port", "GET", "/9000/", "", nil, 502, "BACKEND_CONNECTION_FAILED"},
		{"no number", "GET", "/http/", "", nil, 422, ""},
		{"no port", "GET", "/0/", "", nil, 422, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := s.ask(tt.method, "/v1/sandboxes/"+id+"/proxy"+tt.path, tt.body, tt.headers...)
			if a.status != tt.status || !strings.Contains(a.text, tt.has) {
				t.Errorf("%d %s, want %d with %s", a.status, a.text, tt.status, tt.has)
			}
		})
	}
	a := s.ask("GET", "/v1/sandboxes/"+id+"/proxy/8080/", "", "Authorization: Bearer x", "Cookie: a=b", token, "X-Mine: 1")
	if !strings.Contains(a.text, "X-Mine") {
		t.Errorf("lost a header: %s", a.text)
	}
	for _, name := range []string{"Authorization", "Cookie", "Open-Sandbox-Api-Key", "X-Glassbox-Token"} {
		if strings.Contains(a.text, name) {
			t.Errorf("the sandbox was told %s: %s", name, a.text)
		}
	}
	a = s.ask("GET", "/v1/sandboxes/"+id+"/proxy/8080/redirect", "")
	if want := "/v1/sandboxes/" + id + "/proxy/8080/elsewhere?a=b"; a.status != 302 || a.header.Get("Location") != want {
		t.Errorf("redirect: %d %v", a.status, a.header)
	}
	if a := s.ask("GET", "/sandboxes/none/proxy/8080/", ""); a.status != 404 {
		t.Errorf("unknown sandbox: %d", a.status)
	}
	s.ask("POST", "/v1/sandboxes/"+id+"/pause", "")
	for _, port := range []string{"8080", "44780"} {
		a := s.ask("GET", "/v1/sandboxes/"+id+"/proxy/"+port+"/", "", token)
		if a.status != 409 || !strings.Contains(a.text, "paused") || a.field(t, "code") != "DOCKER::SANDBOX_NOT_RUNNING" {
			t.Errorf("paused, port %s: %d %s", port, a.status, a.text)
		}
	}
}

// TestUpgrade carries a connection that is HTTP no more, as a WebSocket is.
func TestUpgrade(t *testing.T) {
	s := start(t, nil)
	s.fake.server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, buf, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		fmt.Fprintf(buf, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: %s\r\nConnection: Upgrade\r\n\r\n", r.Header.Get("Upgrade"))
		buf.Flush()
		line, _ := buf.ReadString('\n')
		io.WriteString(conn, strings.ToUpper(line))
	})
	id := s.create()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET /v1/sandboxes/%s/proxy/8080/ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nX-Glassbox-Token: token-%s\r\n\r\n", id, id)
	answer := bufio.NewReader(conn)
	res, err := http.ReadResponse(answer, nil)
	if err != nil || res.StatusCode != 101 || res.Header.Get("Upgrade") != "websocket" {
		t.Fatalf("%v %+v", err, res)
	}
	io.WriteString(conn, "hello\n")
	if line, err := answer.ReadString('\n'); line != "HELLO\n" {
		t.Errorf("%v %q", err, line)
	}
}

// TestNextRequestAfterEarlyAnswer sends the end of a body that was answered
// early together with the next request.
func TestNextRequestAfterEarlyAnswer(t *testing.T) {
	s := start(t, nil)
	s.fake.server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/early" {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			io.WriteString(conn, "HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
			io.Copy(io.Discard, conn)
			return
		}
		n, _ := io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, n)
	})
	id := s.create()
	for _, size := range []int{1000, 300_000} {
		for _, port := range []string{"8080", "44780"} {
			conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
			head := func(path string) string {
				return fmt.Sprintf("POST /v1/sandboxes/%s/proxy/%s%s HTTP/1.1\r\nHost: %s\r\nX-Glassbox-Token: token-%s\r\nContent-Length: %d\r\n\r\n",
					id, port, path, strings.TrimPrefix(s.url, "http://"), id, size)
			}
			body := strings.Repeat("x", size)
			io.WriteString(conn, head("/early")+body[:size-900])
			time.AfterFunc(50*time.Millisecond, func() { io.WriteString(conn, body[size-900:]+head("/next")+body[:100]) })
			time.AfterFunc(100*time.Millisecond, func() { io.WriteString(conn, body[100:]) })
			answers := bufio.NewReader(conn)
			first, err := http.ReadResponse(answers, nil)
			if err != nil || first.StatusCode != http.StatusRequestEntityTooLarge {
				t.Fatalf("%d bytes to port %s: %v, %+v", size, port, err, first)
			}
			if _, err := io.Copy(io.Discard, first.Body); err != nil && !first.Close {
				t.Fatal(err)
			}
			if first.Close {
				continue // a client sends the next request elsewhere
			}
			next, err := http.ReadResponse(answers, nil)
			if err != nil || next.StatusCode != http.StatusOK {
				t.Fatalf("%d bytes to port %s, then: %v, %+v", size, port, err, next)
			}
			if text, err := io.ReadAll(next.Body); err != nil || string(text) != strconv.Itoa(size) {
				t.Errorf("%v %q, want all %d bytes", err, text, size)
			}
		}
	}
}

// TestStream reads each piece of an answer when it is sent, while the body of
// the request still goes in.
func TestStream(t *testing.T) {
	s := start(t, nil)
	s.fake.server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		control.EnableFullDuplex()
		io.WriteString(w, "ready\n")
		control.Flush()
		for lines := bufio.NewScanner(r.Body); lines.Scan(); control.Flush() {
			fmt.Fprintf(w, "got %s\n", lines.Text())
		}
	})
	id := s.create()
	body, send := io.Pipe()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/v1/sandboxes/"+id+"/proxy/8080/", body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Glassbox-Token", "token-"+id)
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	answer := bufio.NewReader(res.Body)
	for i, want := range []string{"ready\n", "got 1\n", "got 2\n"} {
		if line, err := answer.ReadString('\n'); line != want {
			t.Fatalf("%v %q, want %q", err, line, want)
		}
		fmt.Fprintf(send, "%d\n", i+1)
	}
	send.Close()
	if rest, err := io.ReadAll(answer); string(rest) != "got 3\n" {
		t.Errorf("%v %q", err, rest)
	}
}
