package server_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/internal/server"
	"github.com/glassboxhq/glassbox/sandbox"
)

// begin starts a command and returns the id of its operation.
func (r *room) begin(body string) string {
	r.s.t.Helper()
	a := r.ask("POST", r.base+"/commands", body)
	var made server.StartedCommand
	a.read(r.s.t, &made)
	if a.status != http.StatusCreated || !strings.HasSuffix(a.header.Get("Location"), "/commands/"+made.Operation) || made.StartedAt.IsZero() {
		r.s.t.Fatalf("%d %v %+v", a.status, a.header, made)
	}
	return made.Operation
}

// watched is what a stream told.
type watched struct {
	stdout, stderr string
	last           string // the last id
	end            *server.Ended
	problem        *server.Problem
}

// take adds an event. Each byte comes once, in its place.
func (w *watched) take(t *testing.T, e event) {
	t.Helper()
	if e.id != "" {
		w.last = e.id
	}
	switch e.name {
	case "output":
		var out server.Output
		if err := json.Unmarshal([]byte(e.data), &out); err != nil {
			t.Fatal(err)
		}
		to := &w.stdout
		if out.Stream == sandbox.Stderr {
			to = &w.stderr
		}
		if int(out.Offset) != len(*to) || out.Time.IsZero() {
			t.Fatalf("a piece of %s at %d after %d bytes", out.Stream, out.Offset, len(*to))
		}
		*to += string(out.Data)
	case "end":
		w.end = &server.Ended{}
		if err := json.Unmarshal([]byte(e.data), w.end); err != nil {
			t.Fatal(err)
		}
	case "problem":
		w.problem = &server.Problem{}
		if err := json.Unmarshal([]byte(e.data), w.problem); err != nil {
			t.Fatal(err)
		}
	}
}

func (r *room) watch(op, query string, headers ...string) *watched {
	r.s.t.Helper()
	w, events := &watched{}, r.follow(r.base+"/commands/"+op+"/stream"+query, headers...)
	for e := events.next(); e.name != ""; e = events.next() {
		w.take(r.s.t, e)
	}
	return w
}

func TestCommand(t *testing.T) {
	t.Parallel()
	r := start(t, nil).room()
	op := r.begin(`{"command":"printf 'out\\0\\377'; printf err >&2; echo $X; pwd; exit 3","env":{"X":"y"},"cwd":"/"}`)
	w := r.watch(op, "")
	if w.stdout != "out\x00\xffy\n/\n" || w.stderr != "err" || w.end == nil || w.end.ExitCode != 3 || w.end.Status != sandbox.Unsuccessful || w.end.StdoutBytes != 9 {
		t.Errorf("%+v %+v", w, w.end)
	}
	events := r.follow(r.base + "/commands/" + op + "/stream?stdout=4&stderr=3")
	if e := events.next(); e.id != "9-3" || !strings.Contains(e.data, `"offset":4,"data":"/3kKLwo="`) || events.next().name != "end" {
		t.Errorf("%+v", e)
	}
	if a := r.ask("GET", r.base+"/commands/"+op+"/stream", "", "Last-Event-ID: "+w.last); a.status != 204 {
		t.Errorf("after the end: %d %s", a.status, a.body)
	}
	done := r.history(history.CommandExecute)[0]
	if done.ID != op || done.Source != history.SourceConsole || done.Actor.Type != history.User || done.Actor.ID != "олена" {
		t.Errorf("%+v", done)
	}

	op = r.begin(`{"argv":["printf","%s","a b"]}`)
	if w := r.watch(op, ""); w.stdout != "a b" {
		t.Errorf("%+v", w)
	}
	mine := id.New()
	for range 2 { // the same id is one command
		if got := r.begin(fmt.Sprintf(`{"command":"echo x >> once","operation_id":%q}`, mine)); got != mine {
			t.Errorf("%s, want %s", got, mine)
		}
	}
	r.watch(mine, "")
	if got := mustRead(t, filepath.Join(r.dir, "once")); got != "x\n" {
		t.Errorf("%q", got)
	}
	for body, want := range map[string]int{
		`{}`: 400, `{"command":"x","argv":["x"]}`: 400, `{"argv":[""]}`: 400, `{"command":"a\u0000b"}`: 400, `{"command":"x","timeout_ms":-1}`: 422,
		`{"command":"x","operation_id":"x"}`: 422, `{"command":"x","cwd":"/none"}`: 400, `{"command":"x","env":{"a=b":"c"}}`: 400, `[]`: 422,
	} {
		if a := r.ask("POST", r.base+"/commands", body); a.status != want {
			t.Errorf("%s: %d %s", body, a.status, a.body)
		}
	}
	if w := r.watch(r.begin(`{"argv":["/none"]}`), ""); w.end.ExitCode != 127 {
		t.Errorf("no program: %+v", w.end)
	}
	none := r.base + "/commands/" + id.New()
	r.ask("GET", none+"/stream", "").want(t, "no command", 404, sandbox.CodeOperationNotFound)
	r.ask("POST", none+"/signal", `{"signal":"TERM"}`).want(t, "no command", 404, sandbox.CodeOperationNotFound)
	r.ask("POST", none+"/input", "x").want(t, "no command", 404, sandbox.CodeOperationNotFound)
	r.ask("DELETE", none, "").want(t, "no command", 404, sandbox.CodeOperationNotFound)
	r.ask("GET", r.base+"/commands/"+op+"/stream", "", "Last-Event-ID: -1-x").want(t, "no id", 400, sandbox.CodeInvalid)
	r.ask("GET", r.base+"/commands/"+op+"/stream?stdout=-1", "").want(t, "no place", 422, sandbox.CodeInvalid)
}

func TestCommandInput(t *testing.T) {
	t.Parallel()
	r := start(t, nil).room()
	op := r.begin(`{"command":"cat; echo end","stdin":true}`)
	input := r.base + "/commands/" + op + "/input"
	var taken server.Taken
	r.ask("POST", input, "one\x00\xff", "Content-Type: ").read(t, &taken)
	if taken.Offset != 5 {
		t.Errorf("%+v", taken)
	}
	for range 2 { // repeated, it is taken once
		r.ask("POST", input+"?offset=5", "two").read(t, &taken)
	}
	r.ask("POST", input, "three").read(t, &taken)
	r.ask("POST", input+"?offset=99", "x").want(t, "beyond", 400, sandbox.CodeInvalid)
	r.ask("POST", input+"?close=true", "").read(t, &taken)
	if w := r.watch(op, ""); w.stdout != "one\x00\xfftwothreeend\n" || taken.Offset != 13 {
		t.Errorf("%+v %+v", w, taken)
	}
	r.ask("POST", input, "late").want(t, "it has ended", 409, sandbox.CodeSandboxState)

	// Without stdin it reads nothing.
	if w := r.watch(r.begin(`{"command":"cat; echo end"}`), ""); w.stdout != "end\n" {
		t.Errorf("%+v", w)
	}

	op = r.begin(`{"command":"sleep 60"}`)
	r.ask("POST", r.base+"/commands/"+op+"/input", "x").want(t, "it reads nothing", 409, sandbox.CodeSandboxState)
	r.ask("DELETE", r.base+"/commands/"+op, "").want(t, "stop", 204, "")

	// Many who feed at once lose nothing.
	op = r.begin(`{"command":"wc -c","stdin":true}`)
	input = r.base + "/commands/" + op + "/input"
	all := make(chan answer)
	for range 16 {
		go func() { all <- r.ask("POST", input, strings.Repeat("x", 10_000)) }()
	}
	for range 16 {
		(<-all).want(t, "one of many", 200, "")
	}
	r.ask("POST", input+"?close=true", "")
	if w := r.watch(op, ""); strings.TrimSpace(w.stdout) != "160000" {
		t.Errorf("%+v", w)
	}
}

func TestCommandEnds(t *testing.T) {
	t.Parallel()
	r := start(t, nil).room()
	ready := func(op string) {
		r.eventually("it traps", func() bool {
			return strings.Contains(r.ask("GET", r.base+"/operations/"+op+"/output", "").body, "ready")
		})
	}
	op := r.begin(`{"command":"trap 'echo got; exit 7' USR1; echo ready; while :; do sleep 0.05; done","background":true}`)
	ready(op)
	var list server.Commands
	r.ask("GET", r.base+"/commands", "").read(t, &list)
	if len(list.Running) != 1 || list.Running[0].ID != op || len(list.Items) != 1 {
		t.Errorf("%+v", list)
	}
	r.ask("POST", r.base+"/commands/"+op+"/signal", `{"signal":"USR1"}`).want(t, "signal", 204, "")
	if w := r.watch(op, ""); w.stdout != "ready\ngot\n" || w.end.ExitCode != 7 {
		t.Errorf("%+v %+v", w, w.end)
	}
	r.ask("POST", r.base+"/commands/"+op+"/signal", `{"signal":"USR1"}`).want(t, "it has ended", 409, sandbox.CodeSandboxState)

	op = r.begin(`{"command":"echo ready; sleep 60"}`)
	ready(op)
	r.ask("POST", r.base+"/commands/"+op+"/signal", `{"signal":"NONE"}`).want(t, "no signal", 400, sandbox.CodeInvalid)
	r.ask("DELETE", r.base+"/commands/"+op, "").want(t, "stop", 204, "")
	if w := r.watch(op, ""); w.end.Status != sandbox.Cancelled {
		t.Errorf("%+v", w.end)
	}
	r.ask("DELETE", r.base+"/commands/"+op, "").want(t, "stop again", 204, "")
	if w := r.watch(r.begin(`{"command":"sleep 60","timeout_ms":50}`), ""); w.end.Status != sandbox.TimedOut {
		t.Errorf("%+v", w.end)
	}
}

// TestStreamIsCut cuts a stream after each of its first bytes, as they come
// over the wire, and takes it up again by what had arrived whole.
func TestStreamIsCut(t *testing.T) {
	t.Parallel()
	r := start(t, nil).room()
	op := r.begin(`{"command":"for i in 1 2 3; do printf 'о%s\\377\\n\\0' $i; printf \"e$i\\r\\n\" >&2; sleep 0.01; done"}`)
	whole := r.watch(op, "")
	if whole.stdout != "о1\xff\n\x00о2\xff\n\x00о3\xff\n\x00" || whole.stderr != "e1\r\ne2\r\ne3\r\n" {
		t.Fatalf("%+v", whole)
	}
	raw := r.wire(op, "", -1)
	if strings.Count(raw, "event: output") < 2 || !strings.Contains(raw, "event: end") {
		t.Fatalf("%s", raw)
	}
	step := max(len(raw)/400, 1)
	for cut := 0; cut < len(raw); cut += step {
		w := &watched{}
		for tries, at := 0, cut; w.end == nil; tries, at = tries+1, -1 {
			if tries == 2 {
				t.Fatalf("cut after %d bytes, it does not end: %+v", cut, w)
			}
			events := &stream{t: t, scanner: bufio.NewScanner(strings.NewReader(r.wire(op, w.last, at)))}
			for e := events.next(); e.name != ""; e = events.next() {
				w.take(t, e)
			}
		}
		if w.stdout != whole.stdout || w.stderr != whole.stderr {
			t.Fatalf("cut after %d bytes: %q %q", cut, w.stdout, w.stderr)
		}
	}
}

// wire reads at most so many bytes of a stream, and cuts the connection then.
// -1: to its end.
func (r *room) wire(op, last string, most int) string {
	r.s.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(r.s.url, "http://"))
	if err != nil {
		r.s.t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	head := ""
	if last != "" {
		head = "Last-Event-ID: " + last + "\r\n"
	}
	fmt.Fprintf(conn, "GET %s/commands/%s/stream HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nCookie: %s\r\n%s\r\n", r.base, op, r.cookie, head)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		r.s.t.Fatal(err)
	}
	defer resp.Body.Close()
	var text strings.Builder
	buf := make([]byte, 1)
	for most < 0 || text.Len() < most {
		n, err := resp.Body.Read(buf)
		text.Write(buf[:n])
		if err != nil {
			break
		}
	}
	return text.String()
}

// A command that prints without end is watched by many, one of whom does not
// read, and each gets the same.
func TestManyWatch(t *testing.T) {
	t.Parallel()
	r := start(t, nil).room()
	op := r.begin(`{"command":"seq 200000","background":true}`)
	all := make(chan *watched)
	for range 4 {
		go func() { all <- r.watch(op, "") }()
	}
	for range 4 {
		w := <-all
		if w.end == nil || int64(len(w.stdout)) != w.end.StdoutBytes || !strings.HasSuffix(w.stdout, "\n199999\n200000\n") {
			t.Errorf("%d bytes, %+v", len(w.stdout), w.end)
		}
	}
}

// Who is signed out sees nothing more of a command that goes on.
func TestWatcherIsSignedOut(t *testing.T) {
	t.Parallel()
	r := start(t, nil).room()
	op := r.begin(`{"command":"while :; do echo x; sleep 0.05; done","background":true}`)
	events := r.follow(r.base + "/commands/" + op + "/stream")
	if e := events.next(); e.name != "output" {
		t.Errorf("%+v", e)
	}
	again := r.s.signIn("олена")
	r.ask("POST", "/api/v1/auth/sign-out", "").want(t, "sign out", 204, "")
	last := event{}
	for e := events.next(); e.name != ""; e = events.next() {
		last = e
	}
	if last.name != "problem" || !strings.Contains(last.data, "sign_in_needed") || !strings.HasSuffix(last.id, "-end") {
		t.Errorf("%+v", last)
	}
	again.ask("DELETE", r.base+"/commands/"+op, "").want(t, "stop", 204, "")
}

// A command that nobody watches is stopped after a while, but not one in the
// background.
func TestNobodyWatches(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.rt.abandoned = 300 * time.Millisecond
	r := s.room()
	watched := r.begin(`{"command":"sleep 60"}`)
	events := r.follow(r.base + "/commands/" + watched + "/stream")
	background := r.begin(`{"command":"sleep 60","background":true}`)
	left := r.begin(`{"command":"sleep 60"}`)
	status := func(op string) sandbox.Status {
		var got history.Operation
		r.ask("GET", r.base+"/operations/"+op, "").read(t, &got)
		return got.Status
	}
	r.eventually("it is stopped", func() bool { return status(left) == sandbox.Cancelled })
	if status(watched) != sandbox.Started || status(background) != sandbox.Started {
		t.Errorf("watched: %s, in the background: %s", status(watched), status(background))
	}
	events.close()
	r.eventually("the other is stopped, too", func() bool { return status(watched) == sandbox.Cancelled })
	r.ask("DELETE", r.base+"/commands/"+background, "").want(t, "stop", 204, "")
}
