package glassbox_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestHostileRequests sends to a real server what no honest client sends. Each
// gets its refusal, and an honest request is answered in between.
func TestHostileRequests(t *testing.T) {
	s := needLocal(t)
	key, err := os.ReadFile(filepath.Join(s.state, "api_key"))
	if err != nil {
		t.Fatal(err)
	}
	head := func(method, path string, more ...string) string {
		return method + " " + path + " HTTP/1.1\r\nHost: localhost:7717\r\nOPEN-SANDBOX-API-KEY: " + strings.TrimSpace(string(key)) + "\r\nConnection: close\r\n" + strings.Join(more, "")
	}
	post := func(body string, more ...string) string {
		return head("POST", "/v1/sandboxes", append(more, "Content-Length: "+strconv.Itoa(len(body))+"\r\n\r\n"+body)...)
	}
	var bomb bytes.Buffer
	packed := gzip.NewWriter(&bomb)
	_, err = io.Copy(packed, io.LimitReader(zeros{}, 64<<20))
	if err := packed.Close(); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, request string
		status        []int // 0: the connection ends without an answer
	}{
		{"honest", head("GET", "/v1/sandboxes", "\r\n"), []int{200}},
		{"a name that was pointed here", strings.Replace(head("GET", "/v1/sandboxes", "\r\n"), "localhost:7717", "rebound.example:7717", 1), []int{403}},
		{"two names", head("GET", "/v1/sandboxes", "Host: rebound.example\r\n\r\n"), []int{400}},
		{"a name in the request line", strings.Replace(head("GET", "http://rebound.example/v1/sandboxes", "\r\n"), "localhost:7717", "localhost", 1), []int{403}},
		{"a page", head("GET", "/v1/sandboxes", "Origin: http://localhost:7717\r\n\r\n"), []int{403}},
		{"a page that asks before", head("OPTIONS", "/v1/sandboxes", "Origin: http://evil.example\r\nAccess-Control-Request-Method: POST\r\n\r\n"), []int{403}},
		{"a huge header", head("GET", "/v1/sandboxes", "X-Huge: "+strings.Repeat("x", 1<<20)+"\r\n\r\n"), []int{431}},
		{"many headers", head("GET", "/v1/sandboxes", strings.Repeat("X-Many: x\r\n", 1<<17)+"\r\n"), []int{431}},
		{"a huge path", head("GET", "/v1/sandboxes/"+strings.Repeat("x", 1<<20), "\r\n"), []int{431}},
		{"a huge body", post(`{"image":{"uri":"` + strings.Repeat("x", 2<<20) + `"}}`), []int{413}},
		{"a body that never ends", head("POST", "/v1/sandboxes", "Transfer-Encoding: chunked\r\n\r\n", strings.Repeat("fff0\r\n"+strings.Repeat("x", 0xfff0)+"\r\n", 40)), []int{413}},
		{"a body that is said to be huge", head("POST", "/v1/sandboxes", "Content-Length: 9223372036854775807\r\n\r\n", strings.Repeat("x", 1<<21)), []int{413}},
		{"a body that is packed", post(bomb.String(), "Content-Encoding: gzip\r\n"), []int{422}},
		{"deep JSON", post(strings.Repeat("[", 500_000)), []int{422}},
		{"two lengths", head("POST", "/v1/sandboxes", "Content-Length: 2\r\nContent-Length: 20\r\n\r\n{}"), []int{400}},
		{"a length and chunks", head("POST", "/v1/sandboxes", "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), []int{400, 422}},
		{"a path out", head("GET", "/v1/sandboxes/../../../etc/passwd", "\r\n"), []int{404}},
		{"a path out that is hidden", head("GET", "/v1/sandboxes/%2e%2e%2f%2e%2e%2fetc%2fpasswd", "\r\n"), []int{404}},
		{"a path out by the proxy", head("GET", "/v1/sandboxes/..%2f..%2f/proxy/44780/etc/passwd", "\r\n"), []int{404}},
		{"the state of the server", head("GET", "/glassbox/state", "\r\n"), []int{404}},
		{"its end", head("POST", "/glassbox/hand-over", "\r\n"), []int{404}},
		{"a header that is split", head("GET", "/v1/sandboxes", "X-A: b\r\n  c\r\n\r\n"), []int{200, 400}},
		{"no HTTP", "\x16\x03\x01\x02\x00\x01\r\n\r\n", []int{400}},
		{"a head that never ends", "GET /v1/sandboxes HTTP/1.1\r\nHost: localhost\r\nX-A: ", []int{0}}, // for 10 s
	} {
		t.Run(tt.name, func(t *testing.T) {
			status, text := rawRequest(t, tt.request)
			if !slices.Contains(tt.status, status) {
				t.Errorf("got %d %.300q, want one of %v", status, text, tt.status)
			}
			if strings.Contains(text, "root:") || strings.Contains(text, strings.TrimSpace(string(key))) {
				t.Errorf("it tells: %.300q", text)
			}
			if status, text := rawRequest(t, head("GET", "/v1/sandboxes", "\r\n")); status != http.StatusOK {
				t.Errorf("an honest request after it: %d %.300q", status, text)
			}
		})
	}
}

// zeros never end.
type zeros struct{}

// Read implements io.Reader.
func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// rawRequest sends bytes and returns what is answered: status 0 if nothing is.
func rawRequest(t *testing.T, request string) (status int, text string) {
	t.Helper()
	conn, err := net.Dial("tcp", "localhost:7717")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		_, _ = io.WriteString(conn, request) // a refusal may come before it is all sent
	}()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err == nil {
		var all []byte
		all, _ = io.ReadAll(resp.Body) // it may be cut
		_ = resp.Body.Close()
		status, text = resp.StatusCode, string(all)
	} else if e, ok := err.(net.Error); ok && e.Timeout() { //nolint:errorlint // the connection's own
		t.Fatal("no answer, and no end")
	}
	conn.Close()
	<-sent
	return status, text
}
