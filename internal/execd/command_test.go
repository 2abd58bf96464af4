package execd_test

import (
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/sandbox"
)

type fields = map[string]any

func TestCommand(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	if err := os.WriteFile(s.env, []byte("# ours\nKEPT='it is'\nOTHER=\"a\\\"b\"\nno variable\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	quickest := time.Hour
	for _, tt := range []struct {
		name        string
		req         fields
		out, errs   []string
		value       string // of the error; empty: none
		traceback   string
		undelivered bool
	}{
		{name: "lines", req: fields{"command": `printf 'a\n\nb\r\nc\rd'`}, out: []string{"a", "\n", "b", "c", "d"}},
		{name: "both streams", req: fields{"command": "echo out; echo err >&2"}, out: []string{"out"}, errs: []string{"err"}},
		{name: "no UTF-8", req: fields{"command": `printf 'x\377\000y\n'`}, out: []string{"x\ufffd\x00y"}},
		{name: "angle brackets", req: fields{"command": "echo '<b>&é'"}, out: []string{"<b>&é"}},
		{name: "nothing", req: fields{"command": "true"}},
		{name: "exit code", req: fields{"command": "exit 3"}, value: "3", traceback: "exit status 3"},
		{name: "signal", req: fields{"command": "kill -9 $$"}, value: "-1", traceback: "signal: killed"},
		{name: "timeout", req: fields{"command": "echo x; sleep 60", "timeout": 100}, out: []string{"x"}, value: "-1", traceback: "signal: killed"},
		{name: "cwd and envs", req: fields{"command": "pwd; echo $A", "cwd": "/usr", "envs": fields{"A": "b c"}}, out: []string{"/usr", "b c"}},
		{name: "home", req: fields{"command": "pwd", "cwd": "~"}, out: []string{s.dir}},
		{name: "argv", req: fields{"argv": []string{"printf", "%s|", "a b", "$X"}}, out: []string{"a b|$X|"}},
		{name: "no such program", req: fields{"argv": []string{"no-such-program"}}, errs: []string{"no-such-program: command not found"}, value: "127", traceback: "exit status 127"},
		{name: "kept variables", req: fields{"command": `echo "$KEPT $OTHER $EXECD_ENVS"`}, out: []string{`it is a"b ` + s.env}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			began := time.Now()
			a := s.must(t, "POST /command", tt.req)
			quickest = min(quickest, time.Since(began))
			list := a.events(t)
			first, last := list[0], list[len(list)-1]
			if first.Type != "init" || first.Text == "" || first.Text != a.header.Get(wire.HeaderID) {
				t.Errorf("the first event is %+v, want the id of the operation", first)
			}
			if diff := cmp.Diff(tt.out, texts(list, "stdout")) + cmp.Diff(tt.errs, texts(list, "stderr")); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
			switch {
			case tt.value == "" && last.Type != "execution_complete":
				t.Errorf("the last event is %+v, want the end", last)
			case tt.value != "" && (last.Error == nil || last.Error.Value != tt.value || last.Error.Traceback[0] != tt.traceback):
				t.Errorf("the last event is %+v, want an error of %s", last, tt.value)
			}
		})
	}
	if quickest > 900*time.Millisecond { // execd holds each answer for a second
		t.Errorf("every answer was held, the quickest for %v", quickest)
	}
}

// The history has the exact bytes, and who did it.
func TestRecorded(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	list := s.must(t, "POST /command", fields{"command": `printf 'x\377\n'`}, "User-Agent", "OpenSandbox-Python-SDK/0.1.16 (x)").events(t)
	op, err := s.store.Get(t.Context(), list[0].Text)
	if err != nil {
		t.Fatal(err)
	}
	if op.Source != history.SourceExecd || op.Actor.ID != "OpenSandbox-Python-SDK/0.1.16" || op.Actor.Type != history.Agent {
		t.Errorf("got %s of %+v, want execd of the client", op.Source, op.Actor)
	}
	data, err := s.store.Output(t.Context(), op.ID, sandbox.Stdout, 0, 100)
	if string(data) != "x\xff\n" || err != nil {
		t.Errorf("got %q, %v, want the bytes as they were", data, err)
	}
	list = s.must(t, "POST /command", fields{"command": "true"}, wire.HeaderAgentID, "researcher", wire.HeaderRun, "run%201", wire.HeaderSource, "sdk").events(t)
	if op, err = s.store.Get(t.Context(), list[0].Text); err != nil {
		t.Fatal(err)
	}
	if op.Source != history.SourceExecd || op.Actor.ID != "researcher" || op.Actor.Run != "run 1" {
		t.Errorf("got %s of %+v, want the actor of the headers, and the door", op.Source, op.Actor)
	}
}

func TestCommandRefused(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for _, tt := range []struct {
		name, route string
		body        any
		status      int
		code        string
	}{
		{"empty", "POST /command", fields{"command": ""}, 400, "INVALID_REQUEST_BODY"},
		{"both", "POST /command", fields{"command": "true", "argv": []string{"true"}}, 400, "INVALID_REQUEST_BODY"},
		{"no JSON", "POST /command", strings.NewReader("{"), 400, "INVALID_REQUEST_BODY"},
		{"negative timeout", "POST /command", fields{"command": "true", "timeout": -1}, 400, "INVALID_REQUEST_BODY"},
		{"huge timeout", "POST /command", fields{"command": "true", "timeout": 1 << 62}, 400, "INVALID_REQUEST_BODY"},
		{"no directory", "POST /command", fields{"command": "true", "cwd": "/no/such"}, 400, "INVALID_REQUEST_BODY"},
		{"gid alone", "POST /command", fields{"command": "true", "gid": 1}, 400, "INVALID_REQUEST_BODY"},
		{"bad variable", "POST /command", fields{"command": "true", "envs": fields{"A=B": "x"}}, 400, "INVALID_REQUEST_BODY"},
		{"status of none", "GET /command/status/nope", nil, 404, "COMMAND_NOT_FOUND"},
		{"logs of none", "GET /command/nope/logs", nil, 404, "COMMAND_NOT_FOUND"},
		{"bad cursor", "GET /command/nope/logs?cursor=x", nil, 400, "INVALID_REQUEST_BODY"},
		{"interrupt none", "DELETE /command?id=nope", nil, 404, "COMMAND_NOT_FOUND"},
		{"interrupt nothing", "DELETE /command", nil, 400, "INVALID_REQUEST_BODY"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := s.do(t, tt.route, tt.body)
			var got struct{ Code, Message string }
			a.json(t, &got)
			if a.status != tt.status || got.Code != tt.code || got.Message == "" {
				t.Errorf("got %d %s, want %d %s", a.status, a.body, tt.status, tt.code)
			}
		})
	}
	if a := s.do(t, "GET /nothing", nil); a.status != http.StatusNotFound || !strings.HasPrefix(string(a.body), "404 page not found") {
		t.Errorf("an unknown path: got %d %q", a.status, a.body)
	}
}

// Who asks right after the start is told; the logs are both streams in their
// order, by bytes.
func TestBackground(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	gate := s.dir + "/gate"
	line := `printf 'a\n'; sleep 0.05; printf 'b\377' >&2; until [ -e gate ]; do sleep 0.02; done; printf c; exit 4`
	list := s.must(t, "POST /command", fields{"command": line, "background": true}).events(t)
	if len(list) != 2 || list[1].Type != "execution_complete" {
		t.Fatalf("got %+v, want that it has started", list)
	}
	opID := list[0].Text
	var st struct {
		ID, Content string
		Running     bool
		ExitCode    *int       `json:"exit_code"`
		Finished    *time.Time `json:"finished_at"`
		Started     time.Time  `json:"started_at"`
	}
	s.must(t, "GET /command/status/"+opID, nil).json(t, &st)
	if !st.Running || st.ExitCode != nil || st.Content != line || st.ID != opID || st.Started.IsZero() {
		t.Errorf("got %+v, want it running", st)
	}
	var all string
	cursor := "0"
	for deadline := time.Now().Add(10 * time.Second); len(all) < 4 && time.Now().Before(deadline); {
		a := s.must(t, "GET /command/"+opID+"/logs?cursor="+cursor, nil)
		all, cursor = all+string(a.body), a.header.Get("EXECD-COMMANDS-TAIL-CURSOR")
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); st.Running && time.Now().Before(deadline); {
		s.must(t, "GET /command/status/"+opID, nil).json(t, &st)
	}
	a := s.must(t, "GET /command/"+opID+"/logs?cursor="+cursor, nil)
	if all += string(a.body); all != "a\nb\xffc" || a.header.Get("EXECD-COMMANDS-TAIL-CURSOR") != strconv.Itoa(len(all)) {
		t.Errorf("got the logs %q up to %s", all, a.header.Get("EXECD-COMMANDS-TAIL-CURSOR"))
	}
	if st.Running || st.ExitCode == nil || *st.ExitCode != 4 || st.Finished == nil {
		t.Errorf("got %+v, want the end", st)
	}
	if a := s.must(t, "GET /command/"+opID+"/logs?cursor=99", nil); len(a.body) != 0 || a.header.Get("EXECD-COMMANDS-TAIL-CURSOR") != "99" {
		t.Errorf("behind the end: got %q up to %s", a.body, a.header.Get("EXECD-COMMANDS-TAIL-CURSOR"))
	}
	if a := s.do(t, "DELETE /command?id="+opID, nil); a.status != http.StatusConflict {
		t.Errorf("interrupt of one that has ended: got %d %s", a.status, a.body)
	}
}

// A foreground command has a status and logs as well.
func TestForegroundStatus(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	opID := s.must(t, "POST /command", fields{"command": "echo a; echo b >&2; exit 2"}).events(t)[0].Text
	var st struct {
		Running  bool
		ExitCode *int `json:"exit_code"`
		Error    string
	}
	s.must(t, "GET /command/status/"+opID, nil).json(t, &st)
	if st.Running || st.ExitCode == nil || *st.ExitCode != 2 || st.Error != "exit status 2" {
		t.Errorf("got %+v, want the end", st)
	}
	if a := s.must(t, "GET /command/"+opID+"/logs?cursor=1", nil); string(a.body) != "\nb\n" || a.header.Get("EXECD-COMMANDS-TAIL-CURSOR") != "4" {
		t.Errorf("got the logs %q", a.body)
	}
}

func TestInterrupt(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	opID := s.must(t, "POST /command", fields{"command": "sleep 60", "background": true}).events(t)[0].Text
	s.must(t, "DELETE /command?id="+opID, nil)
	var st struct {
		Running  bool
		ExitCode int `json:"exit_code"`
		Error    string
	}
	s.must(t, "GET /command/status/"+opID, nil).json(t, &st)
	if st.Running || st.ExitCode != -1 || st.Error != "signal: terminated" {
		t.Errorf("got %+v, want it ended by TERM", st)
	}
	if op, err := s.store.Get(t.Context(), opID); err != nil || op.Status != sandbox.Cancelled {
		t.Errorf("got %v, %v, want it recorded as cancelled", op.Status, err)
	}
}

func TestUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root may run as another user")
	}
	s := newServer(t)
	for _, tt := range []struct {
		name string
		user fields
		want string // user, group, groups, and whose the history's process is
	}{
		{"unknown", fields{"uid": 54321}, "54321 54321 54321"},
		{"with a group", fields{"uid": 54321, "gid": 54322}, "54321 54322 54322"},
		{"known", fields{"uid": 1}, "1 1 1"}, // daemon
		{"root", fields{"uid": 0, "gid": 7}, "0 7 7"},
	} {
		req := fields{"command": "echo $(id -u) $(id -g) $(id -G)", "cwd": "/"}
		maps.Copy(req, tt.user)
		if got := texts(s.must(t, "POST /command", req).events(t), "stdout"); !slices.Equal(got, []string{tt.want}) {
			t.Errorf("%s: got %v, want %s", tt.name, got, tt.want)
		}
	}
	ops := s.operations(t)
	if line := ops[1].Command.Line; line != "echo $(id -u) $(id -g) $(id -G)" || !strings.Contains(string(ops[1].Request), `"user":{"uid":54321,"gid":54322}`) {
		t.Errorf("recorded as %q, %s", line, ops[1].Request)
	}
	long := "id -u #" + strings.Repeat("x", 200_000) // which is run from a file
	if got := texts(s.must(t, "POST /command", fields{"command": long, "uid": 1, "cwd": "/"}).events(t), "stdout"); !slices.Equal(got, []string{"1"}) {
		t.Errorf("a long line: got %v", got)
	}
}

// Nobody is let in without the token, wherever he goes.
func TestToken(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for _, route := range []string{
		"POST /command", "DELETE /command", "GET /command/status/x", "GET /command/x/logs", "POST /session", "POST /session/x/run",
		"DELETE /session/x", "GET /files/info", "GET /files/search", "GET /files/download", "POST /files/upload", "POST /files/replace",
		"POST /files/permissions", "POST /files/mv", "DELETE /files", "GET /directories/list", "POST /directories", "DELETE /directories",
		"GET /metrics", "GET /metrics/watch", "POST /code", "GET /proxy/80/", "GET /proxy/44772/files/info", "GET /nothing", "POST /v1/isolated/session",
	} {
		for _, given := range []string{"", token + "x", token[1:]} {
			a := s.do(t, route, fields{}, wire.HeaderExecdToken, given)
			var got struct{ Error string }
			a.json(t, &got)
			if a.status != http.StatusUnauthorized || got.Error != "Unauthorized: invalid or missing header X-EXECD-ACCESS-TOKEN" {
				t.Errorf("%s with %q: got %d %s", route, given, a.status, a.body)
			}
		}
	}
	if ops := s.operations(t); len(ops) != 0 {
		t.Errorf("strangers left %d operations", len(ops))
	}
}
