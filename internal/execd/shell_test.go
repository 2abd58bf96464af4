package execd_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/glassboxhq/glassbox/internal/wire"
)

func (s *setup) shell(t *testing.T, body any) string {
	t.Helper()
	var opened struct {
		ID string `json:"session_id"`
	}
	s.must(t, "POST /session", body).json(t, &opened)
	return opened.ID
}

func TestShell(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	name := s.shell(t, fields{"cwd": "~/work dir"})
	for _, step := range []struct {
		command    string
		cwd        string
		out, errs  []string
		terminated string // the last event, or the value of its error
	}{
		{command: "pwd; export Q='5\n6'; f() { echo \"f $1\"; }; cd /usr", out: []string{s.dir + "/work dir"}},
		{command: `echo "$Q"; pwd; f x; echo; echo e >&2`, out: []string{"5", "6", "/usr", "f x", "\n"}, errs: []string{"e"}},
		{command: "export Q=7; cd /; exit 3", terminated: "3"}, // and still keeps what it did
		{command: `echo "$Q"; pwd; echo __EXIT_CODE__:0; false`, out: []string{"7", "/", "__EXIT_CODE__:0"}, terminated: "1"},
		{command: "pwd", cwd: "/usr/bin", out: []string{"/usr/bin"}},
		{command: "pwd", cwd: "../lib", out: []string{"/usr/lib"}},
		{command: `bash -c 'echo "[$BASH_ENV$GLASSBOX_SHELL]"'`, out: []string{"[]"}},
	} {
		list := s.must(t, "POST /session/"+name+"/run", fields{"command": step.command, "cwd": step.cwd}).events(t)
		last := list[len(list)-1]
		if list[0].Type != "init" || list[0].Text != name {
			t.Errorf("%q begins with %+v, want the shell's id", step.command, list[0])
		}
		if diff := cmp.Diff(step.out, texts(list, "stdout")) + cmp.Diff(step.errs, texts(list, "stderr")); diff != "" {
			t.Errorf("%q (-want +got):\n%s", step.command, diff)
		}
		if step.terminated == "" && last.Type != "execution_complete" || step.terminated != "" && (last.Error == nil || last.Error.Value != step.terminated) {
			t.Errorf("%q ends with %+v, want %q", step.command, last, step.terminated)
		}
	}
	ops := s.operations(t)
	if got := ops[len(ops)-1].Command; got == nil || !strings.HasPrefix(got.Line, "bash -c") {
		t.Errorf("recorded is %+v, want the command as it was given", got)
	}
	if got := ops[len(ops)-1].Command; got != nil && got.Dir != "/usr/lib" {
		t.Errorf("recorded is %s, want where it ran", got.Dir)
	}
	if a := s.do(t, "POST /session/"+name+"/run", fields{"command": "true", "cwd": "/none"}); a.status != http.StatusBadRequest {
		t.Errorf("no such directory: got %d %s", a.status, a.body)
	}
	s.must(t, "DELETE /session/"+name, nil)
	for route, body := range map[string]any{"DELETE /session/" + name: nil, "POST /session/" + name + "/run": fields{"command": "true"}} {
		if a := s.do(t, route, body); a.status != http.StatusNotFound {
			t.Errorf("%s: got %d %s, want 404", route, a.status, a.body)
		}
	}
}

// A shell that lost its files begins anew.
func TestShellSwept(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	name := s.shell(t, nil)
	run := func(line string) []string {
		return texts(s.must(t, "POST /session/"+name+"/run", fields{"command": line}).events(t), "stdout")
	}
	run("export A=1")
	left, err := filepath.Glob(s.tmp + "/*")
	if err != nil || len(left) != 1 {
		t.Fatalf("got %v, %v, want the files of one shell", left, err)
	}
	if err := os.RemoveAll(left[0]); err != nil {
		t.Fatal(err)
	}
	if got := run(`echo "[$A]"; export A=2`); !cmp.Equal(got, []string{"[]"}) {
		t.Errorf("got %q", got)
	}
	if got := run(`echo "[$A]"`); !cmp.Equal(got, []string{"[2]"}) {
		t.Errorf("got %q", got)
	}
	s.must(t, "DELETE /session/"+name, nil)
	if left, err := os.ReadDir(s.tmp); err != nil || len(left) != 0 {
		t.Errorf("a closed shell left %v, %v", left, err)
	}
}

// Each process carries the operation that it belongs to, not that of the run before.
func TestShellOperation(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	name := s.shell(t, nil)
	for range 2 {
		a := s.must(t, "POST /session/"+name+"/run", fields{"command": "echo $GLASSBOX_OPERATION"})
		if got := texts(a.events(t), "stdout"); len(got) != 1 || got[0] != a.header.Get(wire.HeaderID) {
			t.Errorf("got %v, want %s", got, a.header.Get(wire.HeaderID))
		}
	}
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	var m map[string]float64
	s.must(t, "GET /metrics", nil).json(t, &m)
	if m["cpu_count"] < 1 || m["mem_total_mib"] <= 0 || m["mem_used_mib"] <= 0 || m["mem_used_mib"] > m["mem_total_mib"] || m["timestamp"] == 0 {
		t.Errorf("got %v", m)
	}
	if used, ok := m["cpu_used_pct"]; !ok || used < 0 || used > 100 {
		t.Errorf("got %v per cent of the processors", used)
	}
}

func TestProxy(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	inner := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(wire.HeaderExecdToken) != "" {
			t.Error("the token was passed on")
		}
		w.Header().Set("X-Seen", r.Method+" "+r.RequestURI)
		w.WriteHeader(http.StatusTeapot)
	}))
	defer inner.Close()
	to, err := url.Parse(inner.URL)
	if err != nil {
		t.Fatal(err)
	}
	for _, prefix := range []string{"/proxy/", "/proxy/44772/proxy/"} {
		a := s.do(t, "PUT "+prefix+to.Port()+"/a//b%2Fc?x=1;y", nil)
		if got := a.header.Get("X-Seen"); a.status != http.StatusTeapot || got != "PUT /a//b%2Fc?x=1;y" {
			t.Errorf("by %s: got %d, %q", prefix, a.status, got)
		}
	}
	inner.Close()
	if a := s.do(t, "GET /proxy/"+to.Port()+"/", nil); a.status != http.StatusBadGateway {
		t.Errorf("nobody listens: got %d", a.status)
	}
	for _, port := range []string{"0", "65536", "x", "-1"} {
		if a := s.do(t, "GET /proxy/"+port+"/", nil); a.status != http.StatusBadRequest {
			t.Errorf("port %s: got %d", port, a.status)
		}
	}
	if _, err := os.Stat(s.env); err == nil {
		t.Error("a file of variables was made")
	}
}
