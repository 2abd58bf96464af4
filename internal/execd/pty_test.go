package execd_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/sandbox"
)

// terminal is a client of a pty, as execd's wire has it.
type terminal struct {
	t    *testing.T
	conn *websocket.Conn

	mode   string
	output []byte // what was shown since the start of the program
	begin  int64  // where in the output of the program that begins
	err    []byte // of pipes
	exit   *int
	errors []string
	pongs  int
	closed websocket.StatusCode
}

func (s *setup) openPTY(t *testing.T, body any) string {
	t.Helper()
	a := s.do(t, "POST /pty", body)
	var res struct {
		ID string `json:"session_id"`
	}
	if a.json(t, &res); a.status != http.StatusCreated || res.ID == "" {
		t.Fatalf("POST /pty: got %d %s", a.status, a.body)
	}
	return res.ID
}

func (s *setup) dial(t *testing.T, path string, headers ...string) (*websocket.Conn, *http.Response, error) {
	t.Helper()
	head := http.Header{}
	head.Set(wire.HeaderExecdToken, token)
	for i := 0; i < len(headers); i += 2 {
		head.Set(headers[i], headers[i+1])
	}
	return websocket.Dial(t.Context(), s.URL+path, &websocket.DialOptions{HTTPHeader: head})
}

func (s *setup) view(t *testing.T, path string) *terminal {
	t.Helper()
	conn, _, err := s.dial(t, path)
	if err != nil {
		t.Fatal(err)
	}
	conn.SetReadLimit(-1)
	t.Cleanup(func() { conn.CloseNow() })
	return &terminal{t: t, conn: conn, begin: -1, closed: -1}
}

// read takes the next message, and reports whether there was one.
func (c *terminal) read() bool {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), 30*time.Second)
	defer cancel()
	kind, data, err := c.conn.Read(ctx)
	if err != nil {
		c.closed = websocket.CloseStatus(err)
		return false
	}
	if kind == websocket.MessageText {
		c.text(data)
		return true
	}
	switch data[0] {
	case 1:
		c.begin, c.output = max(c.begin, 0), append(c.output, data[1:]...)
	case 2:
		c.err = append(c.err, data[1:]...)
	case 3:
		at := int64(binary.BigEndian.Uint64(data[1:]))
		if c.begin >= 0 && at != c.begin+int64(len(c.output)) {
			c.t.Errorf("a replay from %d on, after %d bytes from %d on", at, len(c.output), c.begin)
		}
		if c.begin < 0 {
			c.begin = at
		}
		c.output = append(c.output, data[9:]...)
	default:
		c.t.Errorf("a message that begins with %d", data[0])
	}
	return true
}

func (c *terminal) text(data []byte) {
	var f struct {
		Type, Mode, Error, Code string
		ExitCode                *int `json:"exit_code"`
	}
	if err := json.Unmarshal(data, &f); err != nil || !bytes.HasSuffix(data, []byte("\n")) {
		c.t.Errorf("%v in %q", err, data)
	}
	switch f.Type {
	case "connected":
		c.mode = f.Mode
	case "exit":
		c.exit = f.ExitCode
	case "error":
		c.errors = append(c.errors, f.Code)
	case "pong":
		c.pongs++
	default:
		c.t.Errorf("an unknown message: %s", data)
	}
}

// until reads until something is the case.
func (c *terminal) until(what string, done func() bool) {
	c.t.Helper()
	for !done() {
		if !c.read() {
			c.t.Fatalf("closed with %d before %s; shown: %q, errors %v", c.closed, what, c.output, c.errors)
		}
	}
}

func (c *terminal) shows(text string) {
	c.t.Helper()
	c.until("it showed "+text, func() bool { return bytes.Contains(c.output, []byte(text)) })
}

// end reads until the connection is closed.
func (c *terminal) end() {
	c.t.Helper()
	for c.read() {
	}
}

func (c *terminal) keys(text string) {
	c.t.Helper()
	if err := c.conn.Write(c.t.Context(), websocket.MessageBinary, append([]byte{0}, text...)); err != nil {
		c.t.Fatal(err)
	}
}

func (c *terminal) say(text string) {
	c.t.Helper()
	if err := c.conn.Write(c.t.Context(), websocket.MessageText, []byte(text)); err != nil {
		c.t.Fatal(err)
	}
}

func TestPTY(t *testing.T) {
	t.Parallel()
	// A signal that is ignored here would be ignored there.
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, syscall.SIGINT)
	t.Cleanup(func() { signal.Stop(heard) })
	s := newServer(t)
	id := s.openPTY(t, map[string]any{"cwd": "made/here"})
	c := s.view(t, "/pty/"+id+"/ws")
	c.until("connected", func() bool { return c.mode != "" })
	c.keys("echo a''b; stty size; pwd\n")
	c.shows("ab\r\n")
	c.shows("24 80")
	c.shows("made/here\r\n")
	c.say(`{"type":"resize","cols":100,"rows":30}`)
	c.say(`{"type":"stdin","data":"stty size; tty\n"}`)
	c.shows("30 100")
	c.say(`not JSON`)
	c.say(`{"type":"nothing"}`)
	c.say(`{"type":"resize"}`)
	c.say(`{"type":"ping"}`)
	c.until("the pong", func() bool { return c.pongs > 0 })
	if want := []string{"INVALID_FRAME", "INVALID_REQUEST_BODY"}; !slices.Equal(c.errors, want) {
		t.Errorf("got errors %v, want %v", c.errors, want)
	}
	for i, interrupt := range []func(){
		func() { c.say(`{"type":"signal","signal":"SIGINT"}`) },
		func() { c.keys("\x03") },
	} { // an early signal would reach the shell at its prompt
		c.keys(fmt.Sprintf("bash -c 'trap \"echo caught $0; exit 3\" INT; echo waiting $0; sleep 600 & wait' %d; echo code $?\n", i))
		c.shows(fmt.Sprintf("waiting %d\r\n", i))
		interrupt()
		c.shows(fmt.Sprintf("caught %d\r\n", i))
		c.until("the code", func() bool { return bytes.Count(c.output, []byte("code 3\r\n")) > i })
	}
	c.keys("exit 7\n")
	c.end()
	if c.mode != "pty" || c.exit == nil || *c.exit != 7 || c.closed != websocket.StatusNormalClosure || c.begin != 0 {
		t.Errorf("got mode %q, exit %v, close %d, from %d on", c.mode, c.exit, c.closed, c.begin)
	}
	var st struct {
		Running bool
		Offset  int64 `json:"output_offset"`
	}
	if s.must(t, "GET /pty/"+id, nil).json(t, &st); st.Running || st.Offset != int64(len(c.output)) {
		t.Errorf("got %+v, want it ended after %d bytes", st, len(c.output))
	}
	op, err := s.store.Get(t.Context(), id)
	if err != nil || op.Type != history.TerminalSession || op.Source != history.SourceExecd || op.Command.StdoutBytes != st.Offset {
		t.Errorf("got %+v, %v, want a terminal of execd's with all it showed", op, err)
	}
	if ops := s.operations(t); len(ops) != 2 { // and the directory
		t.Errorf("got %d operations, want 2", len(ops))
	}
}

// A viewer that comes back is shown what it missed, also the end, and nothing
// runs twice.
func TestPTYComesBack(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	id := s.openPTY(t, map[string]any{"command": "echo run >>runs; echo first; read x; seq 20000; echo last"})
	c := s.view(t, "/pty/"+id+"/ws")
	c.shows("first\r\n")
	c.keys("\n")
	c.shows("1\r\n2\r\n")
	c.conn.CloseNow()
	var back *terminal
	eventually(t, "the place is free", func() bool {
		conn, _, err := s.dial(t, "/pty/"+id+"/ws?since="+strconv.Itoa(len(c.output)))
		if err == nil {
			conn.SetReadLimit(-1)
			back = &terminal{t: t, conn: conn, begin: -1, closed: -1}
		}
		return err == nil
	})
	back.end()
	all := string(c.output) + string(back.output)
	if !strings.HasPrefix(all, "first\r\n") || !strings.HasSuffix(all, "19999\r\n20000\r\nlast\r\n") || strings.Count(all, "\n") != 20003 {
		t.Errorf("lost or doubled: %d bytes, %.30q to %q", len(all), all, all[max(len(all)-30, 0):])
	}
	if back.exit == nil || *back.exit != 0 || back.closed != websocket.StatusNormalClosure {
		t.Errorf("got exit %v, close %d", back.exit, back.closed)
	}
	again := s.view(t, "/pty/"+id+"/ws")
	again.end()
	if string(again.output) != all || again.exit == nil {
		t.Errorf("after the end: %d bytes, want %d, and the exit", len(again.output), len(all))
	}
	if runs, err := os.ReadFile(filepath.Join(s.dir, "runs")); string(runs) != "run\n" {
		t.Errorf("it ran more than once: %q, %v", runs, err)
	}
}

func TestPTYTakeover(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	id := s.openPTY(t, nil)
	c := s.view(t, "/pty/"+id+"/ws")
	c.keys("echo fir''st\n")
	c.shows("first\r\n")
	if conn, res, err := s.dial(t, "/pty/"+id+"/ws"); err == nil || res == nil || res.StatusCode != http.StatusConflict {
		t.Errorf("a second viewer: got %t, %v, want a refusal", conn != nil, err)
	}
	second := s.view(t, "/pty/"+id+"/ws?takeover=1")
	second.shows("first\r\n")
	c.end()
	if c.closed != 4001 {
		t.Errorf("the first viewer was closed with %d, want 4001", c.closed)
	}
	second.keys("echo sec''ond\n")
	second.shows("second\r\n")
}

// A viewer that reads nothing holds nothing up, and is let go of.
func TestPTYSlowViewer(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	id := s.openPTY(t, map[string]any{"command": "head -c 150000000 /dev/zero | tr '\\0' x; echo; echo done >ended"})
	c := s.view(t, "/pty/"+id+"/ws")
	eventually(t, "the program has ended", func() bool {
		_, err := os.Stat(filepath.Join(s.dir, "ended"))
		return err == nil
	})
	again := s.view(t, "/pty/"+id+"/ws?takeover=1")
	again.end()
	if again.exit == nil || !bytes.HasSuffix(again.output, []byte("x\r\n")) || len(again.output) != 1<<20 {
		t.Errorf("who comes back sees %d bytes, exit %v", len(again.output), again.exit)
	}
	c.conn.CloseNow()
}

func TestPipes(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	id := s.openPTY(t, map[string]any{"command": "read a; echo out $a; echo err >&2; echo more; test -t 0 && echo terminal; exit 4"})
	c := s.view(t, "/pty/"+id+"/ws?pty=0")
	c.say(`{"type":"resize","cols":1,"rows":1}`)
	c.keys("word\n")
	c.end()
	if c.mode != "pipe" || string(c.output) != "out word\nmore\n" || string(c.err) != "err\n" || c.exit == nil || *c.exit != 4 || len(c.errors) > 0 {
		t.Errorf("got mode %q, %q, %q, exit %v, errors %v", c.mode, c.output, c.err, c.exit, c.errors)
	}
	again := s.view(t, "/pty/"+id+"/ws")
	again.end()
	if got := string(again.output); len(got) != len("out word\nmore\nerr\n") || again.mode != "pipe" || again.begin != 0 {
		t.Errorf("the replay of pipes: got %q from %d on", got, again.begin)
	}
	if op, err := s.store.Get(t.Context(), id); err != nil || op.Type != history.CommandExecute || op.Status != sandbox.Unsuccessful {
		t.Errorf("got %+v, %v", op, err)
	}
}

func TestClosePTY(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	id := s.openPTY(t, map[string]any{"command": "echo up; sleep 600"})
	c := s.view(t, "/pty/"+id+"/ws")
	c.shows("up\r\n")
	s.must(t, "DELETE /pty/"+id, nil)
	c.end()
	if c.exit == nil || *c.exit == 0 || c.closed != websocket.StatusNormalClosure {
		t.Errorf("got exit %v, close %d", c.exit, c.closed)
	}
	for _, route := range []string{"GET /pty/" + id, "DELETE /pty/" + id} {
		if a := s.do(t, route, nil); a.status != http.StatusNotFound || !bytes.Contains(a.body, []byte("CONTEXT_NOT_FOUND")) {
			t.Errorf("%s: got %d %s", route, a.status, a.body)
		}
	}
	if op, err := s.store.Get(t.Context(), id); err != nil || op.Status != sandbox.Cancelled {
		t.Errorf("got %+v, %v, want it cancelled", op, err)
	}
}

func TestPTYRefused(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	id := s.openPTY(t, nil)
	for _, tt := range []struct {
		name, path string
		headers    []string
		status     int
	}{
		{"no such terminal", "/pty/none/ws", nil, 404},
		{"a bad place", "/pty/" + id + "/ws?since=-1", nil, 400},
		{"no token", "/pty/" + id + "/ws", []string{wire.HeaderExecdToken, ""}, 401},
		{"a wrong token", "/pty/" + id + "/ws", []string{wire.HeaderExecdToken, "x"}, 401},
		{"a page of another origin", "/pty/" + id + "/ws", []string{"Origin", "http://elsewhere.example"}, 403},
	} {
		if conn, res, err := s.dial(t, tt.path, tt.headers...); err == nil || res == nil || res.StatusCode != tt.status {
			t.Errorf("%s: got %t, %v, want %d", tt.name, conn != nil, err, tt.status)
		}
	}
	if a := s.do(t, "GET /pty/"+id+"/ws", nil); a.status != 400 {
		t.Errorf("no WebSocket: got %d %s", a.status, a.body)
	}
	if a := s.do(t, "POST /pty", map[string]any{"command": "a\x00"}); a.status != 400 {
		t.Errorf("a command that cannot be: got %d %s", a.status, a.body)
	}
	for range 127 {
		s.openPTY(t, nil)
	}
	if a := s.do(t, "POST /pty", nil); a.status != 503 {
		t.Errorf("too many terminals: got %d %s", a.status, a.body)
	}
}

// eventually waits until something is the case.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); !is(); {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
		select {
		case <-t.Context().Done():
			t.Fatal(what)
		case <-time.After(10 * time.Millisecond):
		}
	}
}
