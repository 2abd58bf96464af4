package recorder_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/history/sqlite"
	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/internal/recorder"
	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/record"
	"github.com/glassboxhq/glassbox/sandbox"
	"github.com/glassboxhq/glassbox/sandbox/native"
	"github.com/glassboxhq/glassbox/sandbox/recorded"
)

const token = "a token for tests"

type setup struct {
	*httptest.Server
	store *sqlite.Store
}

func newServer(t *testing.T, opts recorder.Options) *setup {
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
	opts.Token = token
	s := &setup{httptest.NewServer(recorder.New(session, store, &opts)), store}
	t.Cleanup(func() {
		s.Close()
		if err := errors.Join(session.Close(context.Background()), store.Close()); err != nil {
			t.Error(err)
		}
	})
	return s
}

func (s *setup) session(t *testing.T) *recorded.Session {
	session := recorded.New(s.URL, &recorded.Options{Token: token})
	t.Cleanup(func() { _ = session.Close(context.Background()) })
	return session
}

// Every route but the ping wants the token.
func TestToken(t *testing.T) {
	s := newServer(t, recorder.Options{})
	for _, route := range []string{
		"GET /glassbox/v1/info", "POST /glassbox/v1/commands", "GET /glassbox/v1/commands/x", "DELETE /glassbox/v1/commands/x",
		"POST /glassbox/v1/commands/x/stdin", "POST /glassbox/v1/commands/x/signal", "GET /glassbox/v1/file", "PUT /glassbox/v1/file",
		"DELETE /glassbox/v1/file", "GET /glassbox/v1/list",
		"POST /glassbox/v1/file/append", "POST /glassbox/v1/file/edit", "GET /glassbox/v1/stat", "PUT /glassbox/v1/directory",
		"POST /glassbox/v1/move", "PUT /glassbox/v1/mode", "POST /glassbox/v1/glob", "POST /glassbox/v1/grep",
		"GET /glassbox/v1/tree", "PUT /glassbox/v1/tree", "GET /glassbox/v1/operations", "POST /glassbox/v1/operations",
		"GET /glassbox/v1/operations/x", "GET /glassbox/v1/operations/x/output", "GET /glassbox/v1/changes",
		"PUT /glassbox/v1/consumers/x", "POST /glassbox/v1/prune", "POST /glassbox/v1/ports/80", "GET /glassbox/v1/tunnel",
	} {
		for name, given := range map[string]string{"missing": "", "wrong": "a token for testS", "longer": token + "x"} {
			method, path, _ := strings.Cut(route, " ")
			req, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			if given != "" {
				req.Header.Set(wire.HeaderToken, given)
			}
			resp, err := http.DefaultTransport.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			if resp.StatusCode != http.StatusUnauthorized || strings.Contains(string(body), token) {
				t.Errorf("%s, token %s: got %d %s, want 401", route, name, resp.StatusCode, body)
			}
		}
	}
	if protocol, err := recorded.New(s.URL, nil).Ping(t.Context()); err != nil || protocol != wire.Protocol {
		t.Errorf("ping: got %d, %v, want %d", protocol, err, wire.Protocol)
	}
}

// A client that is lost can come back for a while; then the command is stopped.
func TestLostClient(t *testing.T) {
	s := newServer(t, recorder.Options{Abandoned: 200 * time.Millisecond})
	opID := id.New()
	body := strings.NewReader(`{"id":"` + opID + `","line":"echo here; sleep 60"}`)
	ctx, cut := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+wire.PathCommands, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set(wire.HeaderToken, token)
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	r := wire.NewReader(resp.Body)
	for range 2 { // that it starts, and what it prints
		if _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
	}
	cut()
	op := waitEnd(t, s.store, opID)
	if op.Status != sandbox.Cancelled || !strings.Contains(string(op.Result), "client was gone") {
		t.Errorf("got %s %s, want it stopped for want of a client", op.Status, op.Result)
	}
}

func waitEnd(t *testing.T, store history.Reader, opID string) *history.Operation {
	t.Helper()
	query := &history.ChangeQuery{Wait: 10 * time.Second}
	for {
		feed, err := store.Changes(t.Context(), query)
		if err != nil || len(feed.Changes) == 0 {
			t.Fatalf("operation %s did not end in time: %v", opID, err)
		}
		for _, c := range feed.Changes {
			if c.Operation == opID && c.Type == history.Completed {
				op, err := store.Get(t.Context(), opID)
				if err != nil {
					t.Fatal(err)
				}
				return op
			}
		}
		query.After = feed.Next
	}
}

// A request for input that is repeated is taken once.
func TestInputOffsets(t *testing.T) {
	s := newServer(t, recorder.Options{})
	session := s.session(t)
	p, err := session.Start(t.Context(), &sandbox.Command{Line: "cat", StdinPipe: true})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for _, part := range []struct {
		query, body string
		want        int
	}{
		{"offset=0", "abc", http.StatusOK},
		{"offset=0", "abc", http.StatusOK},
		{"offset=1", "bcd", http.StatusOK},
		{"offset=9", "x", http.StatusBadRequest},
		{"offset=4&close=1", "", http.StatusOK},
	} {
		url := s.URL + wire.Path(wire.PathStdin, p.ID()) + "?" + part.query
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(part.body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set(wire.HeaderToken, token)
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != part.want {
			t.Errorf("%s: got %d, want %d", part.query, resp.StatusCode, part.want)
		}
	}
	var out bytes.Buffer
	for {
		c, err := p.Next(t.Context())
		if err != nil {
			break
		}
		out.Write(c.Data)
	}
	if out.String() != "abcd" {
		t.Errorf("got %q, want abcd", out.String())
	}
}

func TestHistoryRoutes(t *testing.T) {
	session := newServer(t, recorder.Options{}).session(t)
	ctx := history.WithActor(t.Context(), history.Actor{ID: "研究员", Run: "r"})
	res, err := session.Run(ctx, &sandbox.Command{Line: "printf 0123456789; exit 2"})
	if err != nil {
		t.Fatal(err)
	}
	h := session.History()
	op, err := h.Get(ctx, res.OperationID)
	if err != nil || op.Actor.ID != "研究员" || op.Status != sandbox.Unsuccessful || op.Duration <= 0 {
		t.Errorf("got %+v, %v", op, err)
	}
	if out, err := h.Output(ctx, res.OperationID, sandbox.Stdout, 3, 4); err != nil || string(out) != "3456" {
		t.Errorf("got %q, %v, want 3456", out, err)
	}
	two := 2
	page, err := h.List(ctx, &history.Filter{ActorID: "研究员", ExitCode: &two, Text: "456789"})
	if err != nil || len(page.Operations) != 1 {
		t.Errorf("got %+v, %v, want the one operation", page, err)
	}
	feed, err := h.Changes(ctx, &history.ChangeQuery{})
	if err != nil || len(feed.Changes) < 2 {
		t.Errorf("got %+v, %v, want changes", feed, err)
	}
	if err := h.Acknowledge(ctx, "a consumer", feed.Next); err != nil {
		t.Error(err)
	}
	if list, err := h.Consumers(ctx); err != nil || len(list) != 1 || list[0].ID != "a consumer" || list[0].Acknowledged != feed.Next || list[0].UpdatedAt.IsZero() {
		t.Errorf("got %+v, %v, want the consumer", list, err)
	}
	if _, err := h.Prune(ctx); err != nil {
		t.Error(err)
	}
	if _, err := h.Get(ctx, id.New()); !errors.Is(err, sandbox.ErrNotFound) {
		t.Errorf("got %v, want not found", err)
	}
	err = h.Import(ctx, &history.Operation{ID: id.New(), Type: "x", Status: sandbox.Started})
	if !errors.Is(err, sandbox.ErrInvalid) {
		t.Errorf("import of what has not ended: got %v, want it refused", err)
	}
}

func TestPort(t *testing.T) {
	s := newServer(t, recorder.Options{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(c, c); c.Close() }()
		}
	}()
	post := func(port string) *http.Response {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+wire.Path(wire.PathPort, port), strings.NewReader("ping"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set(wire.HeaderToken, token)
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	resp := post(port)
	defer resp.Body.Close()
	if got, err := io.ReadAll(resp.Body); err != nil || string(got) != "ping" {
		t.Errorf("got %q, %v, want the echo", got, err)
	}
	for _, port := range []string{"1", "0", "99999", "x"} {
		resp := post(port)
		resp.Body.Close()
		if resp.StatusCode/100 == 2 {
			t.Errorf("port %s: got %d, want it refused", port, resp.StatusCode)
		}
	}
}

// What a dead recorder left is told and ended.
func TestTakeOver(t *testing.T) {
	dir := t.TempDir()
	store, err := sqlite.Open(filepath.Join(dir, "history.sqlite3"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	inner, err := native.New(&native.Options{Workdir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := recorder.TakeOver(t.Context(), store, dir, native.OperationVariable); err != nil {
		t.Fatal(err)
	}
	// A command and its grandchild, in a session of its own, lose their recorder.
	op := &history.Operation{
		ID: id.New(), Type: history.CommandExecute, Status: sandbox.Started, StartedAt: time.Now(),
		Request: history.EncodeRequest(map[string]any{}), Command: &history.Command{Line: "sleep", Recording: sandbox.RecordedWhole},
	}
	if err := store.Begin(t.Context(), op); err != nil {
		t.Fatal(err)
	}
	p, err := inner.Start(t.Context(), &sandbox.Command{ID: op.ID, Line: "setsid sleep 98.7 & echo $!; sleep 98.7", Detached: true})
	if err != nil {
		t.Fatal(err)
	}
	c, err := p.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	grandchild, err := strconv.Atoi(strings.TrimSpace(string(c.Data)))
	if err != nil {
		t.Fatal(err)
	}
	release, err := recorder.TakeOver(t.Context(), store, dir, native.OperationVariable)
	if err != nil {
		t.Fatal(err)
	}
	if res, err := p.Wait(t.Context()); err != nil || res.Signal != "KILL" {
		t.Errorf("got %+v, %v, want the command killed", res, err)
	}
	deadline := time.Now().Add(10 * time.Second)
	for { // it was sent KILL, and is gone as soon as it is scheduled
		text, err := os.ReadFile("/proc/" + strconv.Itoa(grandchild) + "/stat")
		if err != nil || strings.Contains(string(text), ") Z ") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the grandchild lives: %s", text)
		}
	}
	if got, err := store.Get(t.Context(), op.ID); err != nil || got.Status != sandbox.Lost {
		t.Errorf("got %+v, %v, want unknown", got, err)
	}
	page, err := store.List(t.Context(), &history.Filter{Types: []string{history.RecorderRestart}})
	if err != nil || len(page.Operations) != 1 || !strings.Contains(string(page.Operations[0].Result), `"interrupted_operations":1`) {
		t.Errorf("got %+v, %v, want the restart recorded", page, err)
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	if _, err := recorder.TakeOver(t.Context(), store, dir, native.OperationVariable); err != nil {
		t.Fatal(err)
	}
	if page, err := store.List(t.Context(), &history.Filter{Types: []string{history.RecorderRestart}}); err != nil || len(page.Operations) != 1 {
		t.Errorf("after a clean end: got %d restarts, %v, want no more", len(page.Operations), err)
	}
}

// A recorder that dials is served whenever the host listens again.
func TestDial(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s.sock")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "here") })
	go func() { ended <- recorder.Dial(ctx, socket, handler, slog.New(slog.DiscardHandler)) }()
	for range 3 {
		l, err := net.Listen("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		protocols := new(http.Protocols)
		protocols.SetUnencryptedHTTP2(true)
		transport := &http.Transport{Protocols: protocols, DialContext: func(context.Context, string, string) (net.Conn, error) { return conn, nil }}
		resp, err := (&http.Client{Transport: transport}).Get("http://recorder/")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if string(body) != "here" || err != nil {
			t.Errorf("got %q, %v, want an answer", body, err)
		}
		conn.Close()
		l.Close()
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the end of the context", err)
	}
}

// A client that stops sending in the middle of a file gives its place away.
func TestIdleClient(t *testing.T) {
	s := newServer(t, recorder.Options{Idle: 100 * time.Millisecond})
	body, more := io.Pipe()
	defer more.Close()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, s.URL+wire.PathFile+"?path=slow", body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set(wire.HeaderToken, token)
	go func() { _, _ = more.Write([]byte("half")) }()
	began := time.Now()
	if resp, err := s.Client().Do(req); err == nil {
		resp.Body.Close()
		if resp.StatusCode/100 == 2 {
			t.Errorf("half a file was taken: %s", resp.Status)
		}
	}
	if _, err := s.session(t).Write(t.Context(), "slow", strings.NewReader("x"), nil); err != nil {
		t.Errorf("the next client: %v", err)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("took %v", took)
	}
}

// request makes a plain request with the token, and returns the answer whole.
func (s *setup) request(t *testing.T, route string, body io.Reader) (status int, text string, err error) {
	t.Helper()
	method, path, _ := strings.Cut(route, " ")
	req, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set(wire.HeaderToken, token)
	resp, err := s.Client().Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(all), err
}

// Numbers as large as can be are answered: with nothing, or with what is wrong.
func TestHugeNumbers(t *testing.T) {
	s := newServer(t, recorder.Options{})
	session := s.session(t)
	if _, err := session.Write(t.Context(), "f", strings.NewReader("a\nb\n"), nil); err != nil {
		t.Fatal(err)
	}
	res, err := session.Run(t.Context(), &sandbox.Command{Line: "echo out"})
	if err != nil {
		t.Fatal(err)
	}
	running, err := session.Start(t.Context(), &sandbox.Command{Line: "cat", StdinPipe: true})
	if err != nil {
		t.Fatal(err)
	}
	defer running.Close()
	const api = "/glassbox/v1"
	for _, n := range []string{"9223372036854775807", "9223372036854775806", "9007199254740993", "9223372036854775808", "-1", "-9223372036854775808", "1e3", "0x7f"} {
		for _, route := range []string{
			"GET /file?path=f&offset=", "GET /file?path=f&length=", "GET /file?path=f&offset=1&length=", "GET /file?path=f&line=", "GET /file?path=f&line=2&lines=",
			"GET /operations/" + res.OperationID + "/output?stream=stdout&offset=", "GET /operations/" + res.OperationID + "/output?stream=stdout&offset=1&length=",
			"GET /operations?limit=", "GET /operations?after=", "GET /operations?before=", "GET /operations?exit_code=", "GET /changes?after=", "GET /changes?limit=",
			"GET /commands/" + res.OperationID + "?stdout=", "GET /commands/" + res.OperationID + "?stderr=",
			"POST /commands/" + running.ID() + "/stdin?offset=", "POST /commands/" + running.ID() + "/terminal?columns=",
			"PUT /consumers/x?seq=", "PUT /tree?path=d&max_files=", "PUT /tree?path=d&max_bytes=", "POST /file/edit?path=f&max_bytes=", "POST /ports/", "PUT /mode?path=f&mode=",
		} {
			method, path, _ := strings.Cut(route, " ")
			status, text, err := s.request(t, method+" "+api+path+n, strings.NewReader("{}"))
			if err != nil || status >= http.StatusInternalServerError || status >= 400 && !strings.Contains(text, `"message":"`) {
				t.Errorf("%s%s: got %d %.200s, %v", route, n, status, text, err)
			}
		}
	}
	status, text, err := s.request(t, "GET "+api+"/file?path=f&offset=9223372036854775807", nil)
	if err != nil || status != http.StatusBadRequest || !strings.Contains(text, "offset") {
		t.Errorf("got %d %s, %v, want the offset refused", status, text, err)
	}
}

// What cannot be read is told: it does not look like a connection that was cut.
func TestUnreadable(t *testing.T) {
	s := newServer(t, recorder.Options{})
	status, text, err := s.request(t, "GET /glassbox/v1/file?path=/proc/self/mem", nil)
	if err != nil || status/100 == 2 || !strings.Contains(text, "/proc/self/mem: input/output error") {
		t.Errorf("got %d %q, %v, want it told", status, text, err)
	}
}

// FB-127: a mode is octal, however many digits it has, and what is none is
// refused.
func TestFB127Modes(t *testing.T) {
	s := newServer(t, recorder.Options{})
	session := s.session(t)
	for mode, want := range map[string]fs.FileMode{
		"755": 0o755, "0755": 0o755, "0": bad, "644": 0o644, "": 0o644, "999": bad, "-1": bad, "4755": bad, "rwx": bad, "493": bad, "0o755": bad, "1e3": bad, "77777777777": bad,
	} {
		_ = session.Remove(t.Context(), "f", nil) // of the one before
		status, text, err := s.request(t, "PUT /glassbox/v1/file?path=f&mode="+mode, strings.NewReader("x"))
		if want == bad {
			if err != nil || status != http.StatusBadRequest || !strings.Contains(text, "octal") {
				t.Errorf("%q: got %d %s, %v, want it refused", mode, status, text, err)
			}
			continue
		}
		info, statErr := session.Stat(t.Context(), "f")
		if err != nil || status != http.StatusOK || statErr != nil || info.Mode.Perm() != want {
			t.Errorf("%q: got %d, %+v, %v %v, want %v", mode, status, info, err, statErr, want)
		}
	}
}

// bad is no mode.
const bad = fs.FileMode(1) << 31
