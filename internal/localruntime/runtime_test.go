package localruntime_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/glassboxhq/glassbox/internal/localruntime"
	"github.com/glassboxhq/glassbox/internal/localruntime/egress"
	"github.com/glassboxhq/glassbox/internal/owner"
	"github.com/glassboxhq/glassbox/sandbox"
)

func TestDoctor(t *testing.T) {
	opts := options(t, t.TempDir())
	rt := startRuntime(t, opts) // the state folder is in use, which is no hindrance
	for _, c := range localruntime.Doctor(t.Context(), opts) {
		t.Logf("%+v", c)
		if !c.OK && c.Severity == "required" {
			t.Errorf("%+v", c)
		}
	}
	if list, err := rt.List(t.Context()); err != nil || len(list) > 0 {
		t.Errorf("the doctor left %v, %v", list, err)
	}
}

func TestRefusedSpecs(t *testing.T) {
	opts := options(t, t.TempDir())
	rt := startRuntime(t, opts)
	long := strings.Repeat("x", 64)
	for _, tt := range []struct {
		name string
		spec sandbox.Spec
		code sandbox.Code
		text string
	}{
		{"unknown image", sandbox.Spec{Image: "127.0.0.1:1/python:3.12"}, sandbox.CodeImageNotFound, `"127.0.0.1:1/python:3.12"`},
		{"here without leave", sandbox.Spec{Image: "here"}, sandbox.CodeIsolation, "without isolation"},
		{"name with a control", sandbox.Spec{Name: "a\nb"}, sandbox.CodeInvalid, "name"},
		{"name that is no text", sandbox.Spec{Name: "\xff"}, sandbox.CodeInvalid, "name"},
		{"long name", sandbox.Spec{Name: strings.Repeat("员", 129)}, sandbox.CodeInvalid, "128"},
		{"network", sandbox.Spec{Network: "bridge"}, sandbox.CodeInvalid, "none or proxy"},
		{"workdir", sandbox.Spec{Workdir: "work"}, sandbox.CodeInvalid, "absolute"},
		{"timeout", sandbox.Spec{Timeout: -1}, sandbox.CodeInvalid, "timeout"},
		{"memory", sandbox.Spec{Limits: map[string]string{"memory": "1.5G"}}, sandbox.CodeInvalid, "limits.memory"},
		{"little memory", sandbox.Spec{Limits: map[string]string{"memory": "1Mi"}}, sandbox.CodeInvalid, "at least 64Mi"},
		{"cpu", sandbox.Spec{Limits: map[string]string{"cpu": "much"}}, sandbox.CodeInvalid, "limits.cpu"},
		{"env", sandbox.Spec{Env: map[string]string{"A=B": "c"}}, sandbox.CodeInvalid, "env"},
		{"metadata value", sandbox.Spec{Metadata: map[string]string{"a": "b c"}}, sandbox.CodeInvalid, "metadata"},
		{"metadata value with a line end", sandbox.Spec{Metadata: map[string]string{"a": "b\n"}}, sandbox.CodeInvalid, "metadata"},
		{"long metadata value", sandbox.Spec{Metadata: map[string]string{"a": long}}, sandbox.CodeInvalid, "63"},
		{"metadata key", sandbox.Spec{Metadata: map[string]string{"-a": "b"}}, sandbox.CodeInvalid, "metadata"},
		{"metadata prefix", sandbox.Spec{Metadata: map[string]string{"A_b/c": "d"}}, sandbox.CodeInvalid, "prefix"},
		{"reserved prefix", sandbox.Spec{Metadata: map[string]string{"opensandbox.io/c": "d"}}, sandbox.CodeInvalid, "reserved"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := rt.Create(t.Context(), &tt.spec)
			if sandbox.CodeOf(err) != tt.code || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("%v (%s), want %s with %q", err, sandbox.CodeOf(err), tt.code, tt.text)
			}
		})
	}
	if _, err := rt.Get(t.Context(), "nothing"); !errors.Is(err, sandbox.ErrNotFound) {
		t.Errorf("get of an unknown id: %v", err)
	}
}

func TestWarnings(t *testing.T) {
	rt := startRuntime(t, options(t, t.TempDir()))
	info := create(t, rt, &sandbox.Spec{Limits: map[string]string{"gpu": "1"}, Entrypoint: []string{"python3", "server.py"}})
	text := strings.Join(info.Warnings, "\n")
	if len(info.Warnings) != 2 || !strings.Contains(text, `"gpu" is not held`) || !strings.Contains(text, "entrypoint") {
		t.Errorf("warnings: %v", info.Warnings)
	}
}

func TestImageAlias(t *testing.T) {
	opts := options(t, t.TempDir())
	opts.ImageAliases = map[string]string{"python:3.12": "host"}
	rt := startRuntime(t, opts)
	info := create(t, rt, &sandbox.Spec{Image: "python:3.12"})
	if info.Image != "python:3.12" || len(info.Warnings) != 1 || !strings.Contains(info.Warnings[0], `gives "host"`) {
		t.Errorf("image %q, warnings %q", info.Image, info.Warnings)
	}
	if out := run(t, rt, info.ID, "hostname"); out.stdout != "glassbox\n" {
		t.Errorf("%+v", out)
	}
	_, err := rt.Create(t.Context(), &sandbox.Spec{Image: "127.0.0.1:1/node:22"})
	if sandbox.CodeOf(err) != sandbox.CodeImageNotFound || !strings.Contains(err.Error(), `"127.0.0.1:1/node:22"`) || !strings.Contains(err.Error(), "--image-alias 127.0.0.1:1/node:22=host") {
		t.Errorf("%v", err)
	}
}

func TestRefusedAliases(t *testing.T) {
	for asked, image := range map[string]string{"host": "host", "here": "host", " ": "host", "python:3.12": "here", "*": "here"} {
		opts := options(t, t.TempDir())
		opts.ImageAliases = map[string]string{asked: image}
		if _, err := localruntime.New(opts); sandbox.CodeOf(err) != sandbox.CodeInvalid || !strings.Contains(err.Error(), "image_alias") {
			t.Errorf("%s=%s: %v", asked, image, err)
		}
	}
}

func TestFailedStartLeavesNothing(t *testing.T) {
	opts := options(t, t.TempDir())
	opts.Runsc = filepath.Join(t.TempDir(), "none")
	rt := startRuntime(t, opts)
	_, err := rt.Create(t.Context(), nil)
	if sandbox.CodeOf(err) != sandbox.CodeIsolation || !strings.Contains(err.Error(), "doctor") {
		t.Errorf("%v", err)
	}
	entries, err := os.ReadDir(filepath.Join(opts.StateDir, "sandboxes"))
	if err != nil || len(entries) > 0 {
		t.Errorf("left: %v %v", entries, err)
	}
	if list, err := rt.List(t.Context()); err != nil || len(list) > 0 {
		t.Errorf("listed: %v %v", list, err)
	}
}

func TestHistoryCap(t *testing.T) {
	opts := options(t, t.TempDir())
	opts.HistoryCap, opts.WatchEvery = 20<<20, 50*time.Millisecond
	rt := startRuntime(t, opts)
	info := create(t, rt, nil)
	// Into a folder that its owner may not look into.
	try(t.Context(), rt, info.ID, "mkdir /.agent-history/d && cd /.agent-history/d && chmod 0 . && head -c 50M /dev/zero > big; sleep 5")
	wantFailed(t, rt, info.ID, "history folder")
	eventually(t, "what filled it is gone", func() bool {
		_, err := os.Lstat(filepath.Join(opts.StateDir, "sandboxes", info.ID, "history", "d"))
		return err != nil
	})
}

func TestDiskLimit(t *testing.T) {
	rt := startRuntime(t, options(t, t.TempDir()))
	info := create(t, rt, &sandbox.Spec{Limits: map[string]string{"disk": "64Mi"}})
	if out := run(t, rt, info.ID, "head -c 200M /dev/zero > /tmp/big"); out.code == 0 || !strings.Contains(out.stderr, "No space") {
		t.Errorf("%+v", out)
	}
	if out := run(t, rt, info.ID, "rm /tmp/big; echo fine > /tmp/small; cat /tmp/small"); out.stdout != "fine\n" {
		t.Errorf("%+v", out)
	}
}

func TestRetention(t *testing.T) {
	now := time.Now()
	opts := options(t, t.TempDir())
	opts.Now = func() time.Time { return now }
	rt := startRuntime(t, opts)
	gone, kept := create(t, rt, &sandbox.Spec{Name: "gone"}), create(t, rt, nil)
	run(t, rt, gone.ID, "echo hello")
	if err := rt.Delete(t.Context(), gone.ID); err != nil {
		t.Fatal(err)
	}
	histories, err := rt.Histories(t.Context())
	if err != nil || len(histories) != 2 {
		t.Fatalf("%v %v", err, histories)
	}
	for _, h := range histories {
		if h.Live != (h.ID == kept.ID) {
			t.Errorf("%+v", h)
		}
		if info, err := os.Lstat(filepath.Join(h.Dir, "history.sqlite3")); !h.Live && (err != nil || info.Size() == 0) {
			t.Errorf("no history of %s: %v", h.ID, err)
		}
	}
	now = now.Add(6 * 24 * time.Hour)
	if err := rt.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	if histories, err := rt.Histories(t.Context()); err != nil || len(histories) != 2 {
		t.Errorf("before the retention is over: %v %v", err, histories)
	}
	now = now.Add(2 * 24 * time.Hour)
	if err := rt.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	if histories, err := rt.Histories(t.Context()); err != nil || len(histories) != 1 || histories[0].ID != kept.ID {
		t.Errorf("after the retention: %v %v", err, histories)
	}
}

// TestStateSocket works with sandboxes as a second process of the user does.
func TestStateSocket(t *testing.T) {
	opts := options(t, t.TempDir())
	opts.Version = "9.9"
	rt := startRuntime(t, opts)
	rt.SetListen("127.0.0.1:7717")
	client := &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return owner.Dial(ctx, opts.StateDir)
		},
	}}
	defer client.CloseIdleConnections()
	ask := func(method, path, body string, headers http.Header) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, "http://localhost"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if headers != nil {
			req.Header = headers
		}
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(text)
	}
	var state owner.State
	_, text := ask("GET", "/glassbox/state", "", nil)
	if err := json.Unmarshal([]byte(text), &state); err != nil || state != (owner.State{PID: os.Getpid(), Version: "9.9", Listen: "127.0.0.1:7717"}) {
		t.Errorf("state: %v %s", err, text)
	}
	status, text := ask("POST", "/v1/sandboxes", `{"image":{"uri":"host"},"extensions":{"glassbox.name":"by socket"}}`, nil)
	var made struct{ ID string }
	if err := json.Unmarshal([]byte(text), &made); err != nil || status != 202 {
		t.Fatalf("create: %d %v %s", status, err, text)
	}
	if info, err := rt.Get(t.Context(), made.ID); err != nil || info.Name != "by socket" {
		t.Errorf("%v %+v", err, info)
	}
	var endpoint struct{ Headers map[string]string }
	_, text = ask("GET", "/v1/sandboxes/"+made.ID+"/endpoints/44780", "", nil)
	if err := json.Unmarshal([]byte(text), &endpoint); err != nil {
		t.Fatalf("%v %s", err, text)
	}
	headers := http.Header{}
	for name, value := range endpoint.Headers {
		headers.Set(name, value)
	}
	if status, text := ask("GET", "/v1/sandboxes/"+made.ID+"/proxy/44780/glassbox/v1/info", "", headers); status != 200 || !strings.Contains(text, made.ID) {
		t.Errorf("info of the recorder: %d %s", status, text)
	}
	execd := "/v1/sandboxes/" + made.ID + "/proxy/44772"
	if status, text := ask("POST", execd+"/command", `{"command":"echo $EXECD_ENVS; id -u"}`, headers); status != 200 ||
		!strings.Contains(text, `"text":"/opt/opensandbox/.env"`) || !strings.Contains(text, `"type":"execution_complete"`) {
		t.Errorf("a command over execd's wire: %d %s", status, text)
	}
	if status, text := ask("GET", execd+"/directories/list?path=/opt", "", headers); status != 200 || !strings.Contains(text, `"/opt/glassbox"`) {
		t.Errorf("a list over execd's wire: %d %s", status, text)
	}
	run(t, rt, made.ID, `cd /tmp && echo hi > f && (python3 -m http.server 8000 --bind 127.0.0.1 >/dev/null 2>&1 &)`)
	eventually(t, "the server inside answers through the proxy", func() bool {
		status, text := ask("GET", "/v1/sandboxes/"+made.ID+"/proxy/8000/f", "", nil)
		return status == 200 && text == "hi\n"
	})
	if status, text := ask("DELETE", "/v1/sandboxes/"+made.ID, "", nil); status != 204 {
		t.Errorf("delete: %d %s", status, text)
	}
}

// TestHere needs no gVisor.
func TestHere(t *testing.T) {
	state := t.TempDir()
	rt := startRuntime(t, &localruntime.Options{StateDir: state, Recorder: recorderBinary(t), Here: true})
	workdir := filepath.Join(t.TempDir(), "work")
	info := create(t, rt, &sandbox.Spec{Image: "here", Workdir: workdir, Env: map[string]string{"A": "b"}, Limits: map[string]string{"memory": "1Gi"}})
	if text := strings.Join(info.Warnings, "\n"); !strings.Contains(text, "no isolation") || !strings.Contains(text, "memory is not held") {
		t.Errorf("warnings: %v", info.Warnings)
	}
	if out := run(t, rt, info.ID, "echo $A > f; pwd; cat "+filepath.Join(workdir, "f")); out.stdout != workdir+"\nb\n" {
		t.Errorf("%+v", out)
	}
	if _, err := rt.Create(t.Context(), &sandbox.Spec{Image: "here", Workdir: workdir}); !errors.Is(err, sandbox.ErrState) {
		t.Errorf("a second one: %v", err)
	}
	if _, err := rt.Pause(t.Context(), info.ID); !errors.Is(err, sandbox.ErrUnsupported) {
		t.Errorf("pause: %v", err)
	}
	if _, err := rt.Create(t.Context(), nil); !errors.Is(err, sandbox.ErrUnsupported) {
		t.Errorf("an isolated one without runsc: %v", err)
	}
	if err := rt.Delete(t.Context(), info.ID); err != nil {
		t.Fatal(err)
	}
	if left := processes(t, state); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
	if text, err := os.ReadFile(filepath.Join(workdir, "f")); err != nil || string(text) != "b\n" {
		t.Errorf("the work is gone: %v %s", err, text)
	}
	again := create(t, rt, &sandbox.Spec{Image: "here", Workdir: workdir})
	run(t, rt, again.ID, "true")
}

// TestPip has a newcomer's words work in a new sandbox, as far as they need no
// network.
func TestPip(t *testing.T) {
	if out, err := host(t, "/usr/bin/python3 -c 'import venv, ensurepip'"); err != nil {
		t.Skipf("needs python3 with venv and ensurepip: %s", out)
	}
	rt := startRuntime(t, options(t, t.TempDir()))
	info := create(t, rt, &sandbox.Spec{Network: "none", Workdir: "/it's a work dir"})
	if out := run(t, rt, info.ID, "ls -A; command -v pip python3"); out.stdout != "/usr/local/bin/pip\n/usr/bin/python3\n" {
		t.Errorf("before: %+v", out)
	}
	// Two at once make one environment.
	out := run(t, rt, info.ID, `pip --version & pip3 --version; wait; ls -A; python3 -c 'import sys; print(sys.prefix)'; command -v pip`)
	const venv = "/it's a work dir/.venv"
	if out.code != 0 || strings.Count(out.stdout, " from "+venv+"/lib/") != 2 || !strings.HasSuffix(out.stdout, "\n.venv\n"+venv+"\n"+venv+"/bin/pip\n") {
		t.Errorf("%+v", out)
	}
}

// TestPublicNetwork installs a package in a new sandbox, where this machine can.
func TestPublicNetwork(t *testing.T) {
	const outside = `/usr/bin/python3 -m venv v && v/bin/pip install -q --disable-pip-version-check six && v/bin/python -c 'import six; print(six.__name__)'`
	if out, err := host(t, "cd "+t.TempDir()+" && "+outside); err != nil || out != "six" {
		t.Skipf("this machine cannot: %v %s", err, out)
	}
	opts := options(t, t.TempDir())
	events := make(chan egress.Event, 100)
	opts.OnConnect = func(e egress.Event) { events <- e }
	rt := startRuntime(t, opts)
	info := create(t, rt, nil)
	if out := run(t, rt, info.ID, `pip install six && python3 -c 'import six; print(six.__name__)'`); out.code != 0 || !strings.HasSuffix(out.stdout, "\nsix\n") {
		t.Fatalf("pip install: %+v", out)
	}
	if out := run(t, rt, info.ID, `pip download -q --no-deps six`); out.code != 0 { // the first may have been there
		t.Errorf("pip download: %+v", out)
	}
	if e := <-events; e.Sandbox != info.ID || e.Host == "" || e.Port == 0 || !e.Allowed {
		t.Errorf("%+v", e)
	}
}
