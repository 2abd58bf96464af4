package recorded_test

import (
	"encoding/json"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/sandbox"
	"github.com/glassboxhq/glassbox/sandbox/recorded"
)

// stub is a recorder that misbehaves as its handler says, and counts what it
// is asked.
type stub struct {
	*httptest.Server

	mu    sync.Mutex
	asked []string // method and path
	ids   map[string]bool
	conns int
}

func newStub(t *testing.T, handle http.HandlerFunc) *stub {
	t.Helper()
	s := &stub{ids: map[string]bool{}}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.asked = append(s.asked, r.Method+" "+r.URL.Path)
		if id := r.Header.Get(wire.HeaderID); id != "" {
			s.ids[id] = true
		}
		s.mu.Unlock()
		handle(w, r)
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			s.mu.Lock()
			s.conns++
			s.mu.Unlock()
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	return s
}

// session is closed with the test.
func (s *stub) session(t *testing.T, opts *recorded.Options) *recorded.Session {
	t.Helper()
	mine := recorded.Options{}
	if opts != nil {
		mine = *opts
	}
	mine.Token = token
	session := recorded.New(s.URL, &mine)
	t.Cleanup(func() { _ = session.Close(t.Context()) })
	return session
}

// count tells how often a request came whose method and path begin so.
func (s *stub) count(prefix string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, a := range s.asked {
		if strings.HasPrefix(a, prefix) {
			n++
		}
	}
	return n
}

// operations are the ids that came.
func (s *stub) operations() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.ids))
}

func (s *stub) connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conns
}

const posts = "POST " + wire.PathCommands

// send writes frames, and hands them to the network.
func send(w http.ResponseWriter, frames ...[]byte) {
	for _, f := range frames {
		_, _ = w.Write(f)
	}
	_ = http.NewResponseController(w).Flush()
}

func startFrame() []byte {
	payload, err := json.Marshal(wire.Start{ID: "x", StartedAt: time.Unix(1, 0)})
	if err != nil {
		panic(err)
	}
	return wire.AppendFrame(nil, wire.FrameStart, payload)
}

func output(offset int64, text string) []byte {
	return wire.AppendChunk(nil, sandbox.Chunk{Stream: sandbox.Stdout, Offset: offset, Time: time.Unix(1, 0), Data: []byte(text)})
}

func exitFrame(code int) []byte {
	return wire.AppendFrame(nil, wire.FrameExit, wire.EncodeResult(&sandbox.Result{
		OperationID: "x", Status: sandbox.Succeeded, ExitCode: code, StartedAt: time.Unix(1, 0),
	}))
}

func notFound(w http.ResponseWriter) {
	wire.WriteError(w, &sandbox.Error{Code: sandbox.CodeOperationNotFound, Message: "no command runs under this id"})
}

// hold answers nothing until the client goes, or the test ends.
func hold(t *testing.T, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // else the server does not see the client go
	select {
	case <-r.Context().Done():
	case <-t.Context().Done():
	}
}

// hijack takes the connection from the server; reset says how it is closed.
func hijack(t *testing.T, w http.ResponseWriter) *net.TCPConn {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		t.Error(err)
		panic(http.ErrAbortHandler)
	}
	return conn.(*net.TCPConn)
}

func reset(conn *net.TCPConn) {
	_ = conn.SetLinger(0)
	_ = conn.Close()
}

// settled waits for the goroutines to be as few as before, for five seconds.
func settled(t *testing.T, before int) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	late := time.After(5 * time.Second)
	for runtime.NumGoroutine() > before {
		select {
		case <-tick.C:
		case <-late:
			stacks := make([]byte, 1<<20)
			t.Errorf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, stacks[:runtime.Stack(stacks, true)])
			return
		}
	}
}
