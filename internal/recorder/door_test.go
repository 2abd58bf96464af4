package recorder_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/glassboxhq/glassbox/internal/execd"
	"github.com/glassboxhq/glassbox/internal/recorder"
	"github.com/glassboxhq/glassbox/internal/wire"
)

// The recorder's own port is reached over its wire, also by what HTTP/2 cannot
// carry, and leaves nothing behind.
func TestOwnPort(t *testing.T) {
	s := newServer(t, recorder.Options{Execd: &execd.Options{Token: "execd's own", Dir: t.TempDir()}})
	client := &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		return s.dialPort(t, wire.ExecdPort)
	}}}
	s.useTerminal(t, client) // opens the history
	idle := runtime.NumGoroutine()
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() { s.useTerminal(t, client) })
	}
	all.Wait()
	client.CloseIdleConnections()
	deadline := time.Now().Add(20 * time.Second)
	for runtime.NumGoroutine() > idle+3 {
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
		if time.Now().After(deadline) {
			stacks := make([]byte, 1<<20)
			t.Fatalf("%d goroutines, there were %d:\n%s", runtime.NumGoroutine(), idle, stacks[:runtime.Stack(stacks, true)])
		}
		<-time.After(10 * time.Millisecond)
	}
}

// useTerminal opens a terminal, and leaves it at its end.
func (s *setup) useTerminal(t *testing.T, client *http.Client) {
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	head := http.Header{}
	head.Set(wire.HeaderExecdToken, "execd's own")
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://recorder/pty", strings.NewReader(`{"command":"read x; echo got $x"}`))
	if err != nil {
		t.Error(err)
		return
	}
	req.Header = head
	res, err := client.Do(req)
	if err != nil {
		t.Error(err)
		return
	}
	var made struct {
		ID string `json:"session_id"`
	}
	err = json.NewDecoder(res.Body).Decode(&made)
	res.Body.Close()
	if err != nil {
		t.Error(err)
		return
	}
	conn, _, err := websocket.Dial(ctx, "http://recorder/pty/"+made.ID+"/ws", &websocket.DialOptions{HTTPClient: client, HTTPHeader: head})
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.CloseNow()
	if err := conn.Write(ctx, websocket.MessageBinary, []byte("\x00hello\n")); err != nil {
		t.Error(err)
	}
	var shown []byte
	for err == nil {
		var data []byte
		_, data, err = conn.Read(ctx)
		shown = append(shown, data...)
	}
	if websocket.CloseStatus(err) != websocket.StatusNormalClosure || !strings.Contains(string(shown), "got hello\r\n") {
		t.Errorf("got %q, %v", shown, err)
	}
}

// dialPort connects to a port by the recorder's wire.
func (s *setup) dialPort(t *testing.T, port int) (net.Conn, error) {
	near, far := net.Pipe()
	// Over HTTP/1.1 a body that has not ended is sent on while the answer comes.
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+wire.Path(wire.PathPort, strconv.Itoa(port)), far)
	if err != nil {
		return nil, err
	}
	req.Header.Set(wire.HeaderToken, token)
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	go func() {
		_, _ = io.Copy(far, res.Body)
		res.Body.Close()
		far.Close()
	}()
	return near, nil
}
