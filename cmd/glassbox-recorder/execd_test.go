package main

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/glassboxhq/glassbox/internal/wire"
)

// It must not be taken for a recorder: what is put beside it is to find a
// stranger.
func TestExecd(t *testing.T) {
	for _, tt := range []struct {
		name, set, sent string
		status          int
	}{
		{"open", "", "", http.StatusOK},
		{"token", "a token", "a token", http.StatusOK},
		{"wrong token", "a token", "another", http.StatusUnauthorized},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv(envExecdToken, tt.set)
			url := "http://" + startExecd(t)
			for route, want := range map[string]string{"GET /ping": "", "POST /command": `"text":"hello"`} {
				status, header, body := ask(t, url, route, tt.sent)
				if status != tt.status || header.Get(wire.HeaderRecorder) != "" {
					t.Errorf("%s: got %d with %v, want %d from no recorder", route, status, header, tt.status)
				}
				if tt.status == http.StatusOK && !strings.Contains(body, want) {
					t.Errorf("%s: got %q, want %s in it", route, body, want)
				}
			}
			if status, _, _ := ask(t, url, "GET "+wire.PathInfo, tt.sent); status == http.StatusOK {
				t.Error("our own wire is spoken too")
			}
		})
	}
}

// startExecd serves until the test ends, and returns the address.
func startExecd(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- serveExecd(ctx, address, slog.New(slog.DiscardHandler)) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("it ended with %v", err)
		}
	})
	for deadline := time.Now().Add(20 * time.Second); ; {
		if conn, err := net.Dial("tcp", address); err == nil {
			conn.Close()
			return address
		}
		if time.Now().After(deadline) {
			t.Fatal("it does not listen")
		}
	}
}

func ask(t *testing.T, url, route, token string) (status int, header http.Header, body string) {
	t.Helper()
	method, path, _ := strings.Cut(route, " ")
	req, err := http.NewRequestWithContext(t.Context(), method, url+path, strings.NewReader(`{"command":"echo hello"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set(wire.HeaderExecdToken, token)
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(text)
}
