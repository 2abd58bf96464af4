package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/console/act"
	"github.com/glassboxhq/glassbox/internal/console/door"
	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/internal/server"
	"github.com/glassboxhq/glassbox/sandbox"
)

// terminal opens a terminal.
func (r *room) terminal(body string) string {
	r.s.t.Helper()
	a := r.ask("POST", r.base+"/terminals", body)
	var made server.StartedCommand
	a.read(r.s.t, &made)
	if a.status != http.StatusCreated {
		r.s.t.Fatalf("%d %s", a.status, a.body)
	}
	return made.Operation
}

// screen is a client of a terminal.
type screen struct {
	t      *testing.T
	conn   *websocket.Conn
	shown  string
	offset int64 // of what is shown
	lived  int   // bytes that had come when it was told that what comes is new
	frames []frame
	closed websocket.StatusCode
}

type frame struct {
	Type    string
	Offset  int64
	Writer  bool
	Code    int
	Status  sandbox.Status
	Problem server.Problem
}

func (r *room) dial(op, query string, headers ...string) (*screen, *http.Response, error) {
	h := http.Header{"Cookie": {r.cookie}, "Origin": {r.s.url}}
	for _, text := range headers {
		name, value, _ := strings.Cut(text, ": ")
		h.Set(name, value)
		if value == "" {
			h.Del(name)
		}
	}
	conn, resp, err := websocket.Dial(r.s.t.Context(), r.s.url+r.base+"/terminals/"+op+"/socket"+query, &websocket.DialOptions{HTTPHeader: h})
	if err != nil {
		return nil, resp, err
	}
	conn.SetReadLimit(16 << 20)
	r.s.t.Cleanup(func() { conn.CloseNow() })
	return &screen{t: r.s.t, conn: conn}, resp, nil
}

func (r *room) screen(op, query string) *screen {
	r.s.t.Helper()
	k, resp, err := r.dial(op, query)
	if err != nil {
		r.s.t.Fatalf("%v %v", err, resp)
	}
	return k
}

func (k *screen) send(kind websocket.MessageType, text string) {
	k.t.Helper()
	if err := k.conn.Write(k.t.Context(), kind, []byte(text)); err != nil {
		k.t.Fatal(err)
	}
}

func (k *screen) keys(text string) { k.t.Helper(); k.send(websocket.MessageBinary, text) }

// until reads on until something holds, or the socket is closed.
func (k *screen) until(what string, holds func() bool) {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(k.t.Context(), time.Minute)
	defer cancel()
	for !holds() {
		kind, data, err := k.conn.Read(ctx)
		if e, ok := errors.AsType[websocket.CloseError](err); ok {
			k.closed = e.Code
			if !holds() {
				k.t.Fatalf("closed before: %s: %v, shown %q, %+v", what, err, k.shown, k.frames)
			}
			return
		}
		if err != nil {
			k.t.Fatalf("%s: %v, shown %q, %+v", what, err, k.shown, k.frames)
		}
		if kind == websocket.MessageBinary {
			k.shown += string(data)
			continue
		}
		var f frame
		if err := json.Unmarshal(data, &f); err != nil {
			k.t.Fatal(err)
		}
		if f.Type == "live" {
			k.lived = len(k.shown)
			continue
		}
		if k.frames = append(k.frames, f); f.Type == "start" {
			k.offset = f.Offset
		}
	}
}

func (k *screen) shows(text string) {
	k.t.Helper()
	k.until("shows "+text, func() bool { return strings.Contains(k.shown, text) })
}

func (k *screen) told(kind string, writer bool) {
	k.t.Helper()
	k.until("is told "+kind, func() bool {
		n := len(k.frames)
		return n > 0 && k.frames[n-1].Type == kind && k.frames[n-1].Writer == writer
	})
}

func TestTerminal(t *testing.T) {
	t.Parallel()
	r := start(t, nil).room()
	op := r.terminal(`{"columns":91,"rows":17,"env":{"PS1":"$ ","X":"y"},"command":"bash --norc --noprofile -i"}`)
	k := r.screen(op, "")
	k.keys("echo a$X-$(stty size)\r")
	k.shows("ay-17 91")
	k.send(websocket.MessageText, `{"type":"resize","columns":120,"rows":40}`)
	k.keys("stty size\r")
	k.shows("40 120")

	// Another one watches; it may type when it takes the keyboard.
	other := r.screen(op, "")
	other.shows("40 120")
	other.keys("echo other\r")
	other.told("role", false)
	other.send(websocket.MessageText, `{"type":"role","writer":true}`)
	other.told("role", true)
	other.keys("echo o''ther\r")
	other.shows("other")
	k.shows("other")
	k.keys("x")
	k.told("role", false)
	k.send(websocket.MessageText, `{"type":"role","writer":true}`)
	k.told("role", true)

	// Ctrl-C, and a client that comes back.
	k.keys("sleep 60\r")
	k.shows("sleep 60")
	k.keys("\x03")
	k.keys("echo st''ill\r")
	k.shows("still")
	k.conn.CloseNow()
	seen := k.offset + int64(len(k.shown))
	again := r.screen(op, fmt.Sprint("?offset=", seen))
	again.send(websocket.MessageText, `{"type":"role","writer":true}`)
	again.keys("echo ag''ain\r")
	again.shows("again")
	if again.offset != seen || strings.Contains(again.shown, "still") {
		t.Errorf("at %d, want %d: %q", again.offset, seen, again.shown)
	}
	tail := r.screen(op, "?offset=-5")
	tail.until("the tail begins", func() bool { return len(tail.shown) >= 5 })
	var list server.Commands
	r.ask("GET", r.base+"/terminals", "").read(t, &list)
	if len(list.Running) != 1 || list.Running[0].ID != op {
		t.Errorf("%+v", list)
	}
	again.keys("exit 7\r")
	again.told("exit", false)
	again.until("it is closed", func() bool { return again.closed == websocket.StatusNormalClosure })
	if f := again.frames[len(again.frames)-1]; f.Code != 7 || f.Status != sandbox.Unsuccessful {
		t.Errorf("%+v", f)
	}
	after := r.screen(op, "")
	after.told("exit", false)
	if !strings.Contains(after.shown, "ay-17 91") || !strings.Contains(after.shown, "again") {
		t.Errorf("%q", after.shown)
	}
	if op := r.history(history.TerminalSession)[0]; op.Source != history.SourceConsole || op.Actor.ID != "олена" || !history.Final(op.Status) {
		t.Errorf("%+v", op)
	}
	acts, err := r.s.acts.List(t.Context(), &act.Query{Target: "local/" + r.box + "/" + op, Limit: 50})
	if err != nil || len(acts) < 5 || acts[0].Action != "terminal.use" || acts[0].Outcome != act.Done {
		t.Errorf("%d %+v, %v", len(acts), acts, err)
	}
}

// A socket acts, so that a cookie alone opens none, nor a foreign page.
// ended reads until the socket is closed, and returns why.
func (k *screen) ended() error {
	ctx, cancel := context.WithTimeout(k.t.Context(), time.Minute)
	defer cancel()
	for {
		if _, _, err := k.conn.Read(ctx); err != nil {
			return err
		}
	}
}

func TestSocketIsGuarded(t *testing.T) {
	t.Parallel()
	r := start(t, nil).room()
	op := r.terminal(`{"columns":80,"rows":24,"command":"cat"}`)
	admin := r.s.user("adm", door.Admin)
	var token server.NewToken
	admin.ask("POST", "/api/v1/tokens", `{"name":"t","scopes":["sandboxes:write"],"expires_in_seconds":3600}`).read(t, &token)
	var weak server.NewToken
	admin.ask("POST", "/api/v1/tokens", `{"name":"t","scopes":["sandboxes:read","history:read"],"expires_in_seconds":3600}`).read(t, &weak)
	viewer := r.s.user("view", door.Viewer)
	for _, tt := range []struct {
		name    string
		headers []string
		status  int
	}{
		{"own page", nil, 101},
		{"own page, told by the browser", []string{"Origin: ", "Sec-Fetch-Site: same-origin"}, 101},
		{"a token", []string{"Origin: ", "Cookie: ", "Authorization: Bearer " + token.Secret}, 101},
		{"a token without the scope", []string{"Origin: ", "Cookie: ", "Authorization: Bearer " + weak.Secret}, 403},
		{"nobody", []string{"Cookie: "}, 401},
		{"a viewer", []string{"Cookie: " + viewer.cookie}, 403},
		{"no origin", []string{"Origin: "}, 403},
		{"another origin", []string{"Origin: http://evil.example"}, 403},
		{"another port", []string{"Origin: http://127.0.0.1:1"}, 403},
		{"null", []string{"Origin: null"}, 403},
		{"another site", []string{"Sec-Fetch-Site: cross-site"}, 403},
		{"same site only", []string{"Origin: ", "Sec-Fetch-Site: same-site"}, 403},
		{"rebound", []string{"Host: evil.example"}, 403},
	} {
		host := ""
		headers := tt.headers
		if name, ok := strings.CutPrefix(strings.Join(headers, ""), "Host: "); ok {
			host, headers = name, nil
		}
		resp := r.handshake(op, host, headers...)
		if resp != tt.status {
			t.Errorf("%s: %d, want %d", tt.name, resp, tt.status)
		}
	}
	if a := r.ask("GET", r.base+"/terminals/"+op+"/socket", ""); a.status != 426 {
		t.Errorf("no socket: %d %s", a.status, a.body)
	}
	if _, resp, err := r.dial(id.New(), ""); err == nil || resp.StatusCode != 404 {
		t.Errorf("no terminal: %v", err)
	}
	for _, text := range []string{"x", "{}", `{"type":"resize"}`, `{"type":"resize","columns":99999,"rows":1}`, `{"type":"exit"}`} {
		k := r.screen(op, "")
		k.send(websocket.MessageText, text)
		if err := k.ended(); websocket.CloseStatus(err) != websocket.StatusPolicyViolation {
			t.Errorf("%.40q: %v", text, err)
		}
	}
	// One that is too large is not read to its end, which resets the connection.
	k := r.screen(op, "")
	if err := k.conn.Write(t.Context(), websocket.MessageText, bytes.Repeat([]byte("x"), 100_000)); err == nil {
		if err := k.ended(); errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("too large: %v", err)
		}
	}
	r.ask("POST", r.base+"/terminals", `{"columns":0,"rows":24}`).want(t, "no size", 422, sandbox.CodeInvalid)
	r.ask("DELETE", r.base+"/terminals/"+op, "").want(t, "close", 204, "")
	k = r.screen(op, "")
	k.told("exit", false)
}

// handshake asks for a socket, and returns the status.
func (r *room) handshake(op, host string, headers ...string) int {
	r.s.t.Helper()
	h := http.Header{"Cookie": {r.cookie}, "Origin": {r.s.url}}
	for _, text := range headers {
		name, value, _ := strings.Cut(text, ": ")
		if h.Set(name, value); value == "" {
			h.Del(name)
		}
	}
	conn, resp, err := websocket.Dial(r.s.t.Context(), r.s.url+r.base+"/terminals/"+op+"/socket", &websocket.DialOptions{HTTPHeader: h, Host: host})
	if err == nil {
		conn.CloseNow()
	}
	if resp == nil {
		r.s.t.Fatal(err)
	}
	return resp.StatusCode
}

// Whoever loses the right to be there is told, and the terminal goes on.
func TestSocketOfSignedOut(t *testing.T) {
	t.Parallel()
	r := start(t, nil).room()
	op := r.terminal(`{"columns":80,"rows":24,"command":"cat"}`)
	k := r.screen(op, "")
	k.keys("here\r")
	k.shows("here\r\nhere")
	r.ask("POST", "/api/v1/auth/sign-out", "").want(t, "sign out", 204, "")
	k.told("problem", false)
	if f := k.frames[len(k.frames)-1]; f.Problem.Code != "sign_in_needed" {
		t.Errorf("%+v", f)
	}
	k.until("it is closed", func() bool { return k.closed == websocket.StatusPolicyViolation })
	r.client = r.s.signIn("олена")
	again := r.screen(op, "")
	again.shows("here\r\nhere")
	again.keys("more\r")
	again.shows("more\r\nmore")
}

// A program that does not read what is typed holds nobody up who goes.
func TestTerminalDoesNotRead(t *testing.T) {
	t.Parallel()
	r := start(t, nil).room()
	op := r.terminal(`{"columns":80,"rows":24,"command":"stty raw -echo; echo ready; sleep 60"}`)
	k := r.screen(op, "")
	k.shows("ready")
	for range 70 {
		k.keys(strings.Repeat("x", 4096))
	}
	k.conn.CloseNow()
	r.ask("DELETE", r.base+"/terminals/"+op, "").want(t, "close", 204, "")
}

// TestTerminalWindow: a client that shows slowly is sent no more than it can
// take, and all of it in the end.
func TestTerminalWindow(t *testing.T) {
	t.Parallel()
	r := start(t, nil).room()
	op := r.terminal(`{"columns":80,"rows":24,"command":"stty raw -echo; head -c 1000000 /dev/zero | tr '\\0' x; cat"}`)
	k := r.screen(op, "?window=65536")
	k.until("is full", func() bool { return len(k.shown) > 65536 })
	k.keys("end")
	k.told("role", true)
	if n := len(k.shown); n > 600_000 {
		t.Errorf("%d bytes were sent at once, with a window of 65536", n)
	}
	for !strings.HasSuffix(k.shown, "end") {
		have := len(k.shown)
		k.send(websocket.MessageText, fmt.Sprintf(`{"type":"shown","offset":%d}`, k.offset+int64(have)))
		k.until("goes on", func() bool { return len(k.shown) > have })
	}
	if want := strings.Repeat("x", 1_000_000) + "end"; k.shown != want {
		t.Errorf("%d bytes were shown, want %d", len(k.shown), len(want))
	}
	again := r.screen(op, "?offset=-7")
	k.keys("!")
	again.shows("end!")
	if again.lived != len("xxxxend") {
		t.Errorf("after %d bytes it was told that what comes is new, want 7", again.lived)
	}
}

// FB-087: a token as a subprotocol opens nothing, and is not echoed.
func TestFB087TokenAsSubprotocol(t *testing.T) {
	t.Parallel()
	r := start(t, nil).room()
	op := r.terminal(`{"columns":80,"rows":24,"command":"cat"}`)
	const token = "gbt_abcdefghijklmnopqrstuvwxyz" //nolint:gosec // nobody's
	_, resp, err := r.dial(op, "", "Cookie: ", "Sec-Websocket-Protocol: bearer, "+token)
	if err == nil || resp == nil || resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a cookie: got %v, %v, want 401", resp, err)
	}
	k, resp, err := r.dial(op, "", "Sec-Websocket-Protocol: "+token)
	if err != nil {
		t.Fatal(err)
	}
	if got := resp.Header.Get("Sec-Websocket-Protocol"); got != "" {
		t.Errorf("the answer selects %q, want none", got)
	}
	k.keys("plain\r")
	k.shows("plain")
	if strings.Contains(k.shown, token) {
		t.Error("the token is shown")
	}
}
