package recorder_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/glassboxhq/glassbox/history/sqlite"
	"github.com/glassboxhq/glassbox/internal/execd"
	"github.com/glassboxhq/glassbox/internal/recorder"
	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/record"
	"github.com/glassboxhq/glassbox/sandbox/native"
)

const execdToken = "execd's own"

// serveDoor serves a recorder as a door of its own, and returns its address.
func serveDoor(t *testing.T, idle time.Duration) string {
	t.Helper()
	inner, err := native.New(&native.Options{Workdir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	store, err := sqlite.Open(filepath.Join(t.TempDir(), "history.sqlite3"), nil)
	if err != nil {
		t.Fatal(err)
	}
	session := record.New(inner, store, nil)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	server := recorder.New(session, store, &recorder.Options{Token: token, Execd: &execd.Options{Token: execdToken, Idle: idle, Dir: t.TempDir()}})
	go func() { ended <- recorder.Serve(ctx, listener, server) }()
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-ended, session.Close(context.Background()), store.Close()); err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}

// say sends what is no whole request, and returns what is answered until the
// other side closes, which it has to within a time.
func say(t *testing.T, address, text string, within time.Duration) string {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(within)); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.WriteString(conn, text) }() // it may be closed before it is all sent
	answer, err := io.ReadAll(conn)
	if errors.Is(err, context.DeadlineExceeded) || err != nil && strings.Contains(err.Error(), "timeout") {
		t.Fatalf("the connection is open after %s; answered: %.200q", within, answer)
	}
	return string(answer)
}

// Who sends slowly, or without end, holds nothing for long.
func TestStrangers(t *testing.T) {
	t.Parallel()
	address := serveDoor(t, 300*time.Millisecond)
	const head = "POST /command HTTP/1.1\r\nHost: x\r\n"
	withToken := head + wire.HeaderExecdToken + ": " + execdToken + "\r\n"
	form := strings.Replace(withToken, "/command", "/files/upload", 1) + "Content-Type: multipart/form-data; boundary=b\r\n"
	for _, tt := range []struct {
		name, text string
		within     time.Duration
		begins     string
	}{
		{"half a header", head, 30 * time.Second, ""},
		{"nothing at all", "", 30 * time.Second, ""},
		{"a header without end", head + "X: " + strings.Repeat("x", 1<<20), 30 * time.Second, "HTTP/1.1 431 "},
		{"many headers", head + strings.Repeat("X: "+strings.Repeat("y", 1000)+"\r\n", 1000) + "\r\n", 30 * time.Second, "HTTP/1.1 431 "},
		{"no token, and a body that does not come", head + "Content-Length: 1000\r\n\r\n", 30 * time.Second, "HTTP/1.1 401 "},
		{"our wire, no token, and a body that does not come", strings.Replace(head, "/command", wire.PathCommands, 1) + "Content-Length: 1000\r\n\r\n", 30 * time.Second, "HTTP/1.1 401 "},
		{"a body that stops", withToken + "Content-Length: 1000\r\n\r\n{\"command\":", 30 * time.Second, "HTTP/1.1 400 "},
		{"a form that stops", form + "Content-Length: 1000\r\n\r\n--b\r\n", 30 * time.Second, "HTTP/1.1 400 "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := say(t, address, tt.text, tt.within); !strings.HasPrefix(got, tt.begins) {
				t.Errorf("answered %.200q, want %q", got, tt.begins)
			}
		})
	}
}

// A body that is packed is not unpacked, and neither is what a program answers.
func TestNothingIsUnpacked(t *testing.T) {
	t.Parallel()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write([]byte(`{"command":"echo unpacked"}`))
	z.Close()
	program := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(packed.Bytes())
	}))
	defer program.Close()
	address := serveDoor(t, 0)
	ask := func(method, path string) (int, []byte) {
		req, err := http.NewRequestWithContext(t.Context(), method, "http://"+address+path, bytes.NewReader(packed.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set(wire.HeaderExecdToken, execdToken)
		req.Header.Set("Content-Encoding", "gzip")
		req.Header.Set("Accept-Encoding", "gzip")
		res, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, text
	}
	if status, text := ask("POST", "/command"); status != http.StatusBadRequest || bytes.Contains(text, []byte("unpacked")) {
		t.Errorf("a packed request: got %d %s", status, text)
	}
	_, port, _ := net.SplitHostPort(program.Listener.Addr().String())
	if status, text := ask("GET", "/proxy/"+port+"/"); status != http.StatusOK || !bytes.Equal(text, packed.Bytes()) {
		t.Errorf("a packed answer: got %d %q", status, text)
	}
}

// A body that is too long is refused before it has come, with its reason.
func TestLongBody(t *testing.T) {
	t.Parallel()
	address := serveDoor(t, 0)
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(60 * time.Second))
	const size = 1 << 40
	fmt.Fprintf(conn, "POST /command HTTP/1.1\r\nHost: x\r\n%s: %s\r\nContent-Length: %d\r\n\r\n{\"command\":\"", wire.HeaderExecdToken, execdToken, size)
	sent := make(chan int64, 1)
	go func() {
		n, _ := io.Copy(conn, io.LimitReader(endless{}, size)) // until it is refused
		sent <- n
	}()
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || res.StatusCode != http.StatusRequestEntityTooLarge {
		t.Fatalf("got %+v, %v, want 413", res, err)
	}
	conn.Close()
	if n := <-sent; n > 200<<20 {
		t.Errorf("%d bytes were taken of a body that is too long", n)
	}
}

// endless is a text without end.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}
