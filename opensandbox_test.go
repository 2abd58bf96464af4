package glassbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/glassboxhq/glassbox"
	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/sandbox"
	"github.com/glassboxhq/glassbox/sandbox/opensandbox"
	"github.com/glassboxhq/glassbox/sandbox/recorded"
	"github.com/glassboxhq/glassbox/sandbox/sandboxtest"
)

// remote is the real server that `make test-opensandbox` starts.
type remote struct{ url, key string }

func needOpenSandbox(t *testing.T) *remote {
	t.Helper()
	r := &remote{os.Getenv("GLASSBOX_OPENSANDBOX"), os.Getenv("GLASSBOX_OPENSANDBOX_KEY")}
	if r.url == "" {
		t.Skip("runs in make test-opensandbox")
	}
	return r
}

func (r *remote) options(o *glassbox.Options) *glassbox.Options {
	mine := glassbox.Options{}
	if o != nil {
		mine = *o
	}
	mine.APIKey = glassbox.Secret(r.key)
	return &mine
}

// create makes a sandbox that ends with the test.
func (r *remote) create(t *testing.T, o *glassbox.Options) *glassbox.Sandbox {
	t.Helper()
	box, err := glassbox.Create(t.Context(), r.url, r.options(o))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := box.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return box
}

// bare makes a sandbox that nobody has put anything into.
func (r *remote) bare(t *testing.T) (id string) {
	t.Helper()
	p, err := opensandbox.New(r.url, &opensandbox.Options{Key: opensandbox.Secret(r.key)})
	if err != nil {
		t.Fatal(err)
	}
	info, err := p.Create(t.Context(), &sandbox.Spec{Image: "python:3.12"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(p.Delete(context.Background(), info.ID), p.Close()); err != nil {
			t.Error(err)
		}
	})
	return info.ID
}

// connect opens a sandbox; one that was just made answers in a moment.
func (r *remote) connect(t *testing.T, id string) *glassbox.Sandbox {
	t.Helper()
	box, err := glassbox.Connect(t.Context(), r.url, id, r.options(nil))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = box.Close(context.Background()) })
	return box
}

func recorderOf(t *testing.T, box *glassbox.Sandbox) *wire.Info {
	t.Helper()
	info, err := box.Session().(*recorded.Session).Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return info
}

func TestOpenSandboxSession(t *testing.T) {
	t.Parallel()
	r := needOpenSandbox(t)
	sandboxtest.TestSession(t, func(t *testing.T) sandbox.Session { return r.create(t, nil).Session() })
}

// FB-071: whatever is done with a sandbox from outside, again and again, it
// goes on, and its history tells of it.
func TestOpenSandboxFB071Changes(t *testing.T) {
	t.Parallel()
	r := needOpenSandbox(t)
	box := r.create(t, &glassbox.Options{TTL: time.Hour})
	if _, err := box.Write(t.Context(), "f", strings.NewReader("kept"), nil); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if err := box.Pause(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := box.Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
		if content, err := box.ReadFile(t.Context(), "f"); err != nil || string(content) != "kept" {
			t.Fatalf("got %q, %v", content, err)
		}
	}
	label := "blue"
	if info, err := box.SetMetadata(t.Context(), map[string]*string{"team": &label}); err != nil || info.Metadata["team"] != label {
		t.Errorf("got %+v, %v", info, err)
	}
	if err := box.Renew(t.Context(), 3*time.Hour); err != nil {
		t.Error(err)
	}
	if info, err := glassbox.Get(t.Context(), r.url, box.ID(), r.options(nil)); err != nil || time.Until(info.ExpiresAt) < 2*time.Hour {
		t.Errorf("got %+v, %v, want three hours", info, err)
	}
	taken, err := box.TakeSnapshot(t.Context(), "with f")
	if err != nil {
		t.Fatal(err)
	}
	from := r.create(t, &glassbox.Options{Snapshot: taken.ID, Name: "另一个"})
	if content, err := from.ReadFile(t.Context(), "/workspace/f"); err != nil || string(content) != "kept" {
		t.Errorf("from the snapshot: got %q, %v", content, err)
	}
	if info, err := glassbox.Get(t.Context(), r.url, from.ID(), r.options(nil)); err != nil || info.Name != "另一个" {
		t.Errorf("got %+v, %v, want its own name", info, err)
	}
	counts := map[string]int{}
	for _, op := range list(t, box, nil) {
		counts[op.Type]++
	}
	if diff := cmp.Diff(map[string]int{
		"sandbox.create": 1, "file.write": 1, "file.read": 5, "sandbox.pause": 5, "sandbox.resume": 5, "sandbox.metadata": 1, "sandbox.renew": 1, "sandbox.snapshot": 1,
	}, counts); diff != "" {
		t.Error(diff)
	}
	if err := errors.Join(box.Pause(t.Context()), box.Pause(t.Context())); !errors.Is(err, glassbox.ErrState) {
		t.Errorf("paused twice: got %v, want that it is so already", err)
	}
	if err := errors.Join(box.Resume(t.Context()), box.Resume(t.Context())); !errors.Is(err, glassbox.ErrState) {
		t.Errorf("resumed twice: got %v, want that it is so already", err)
	}
}

func TestOpenSandboxCreate(t *testing.T) {
	began := time.Now()
	box := needOpenSandbox(t).create(t, &glassbox.Options{Name: "研究员的工作区 42", Env: map[string]string{"FOO": "bar"}})
	t.Logf("created in %v", time.Since(began))
	ctx := glassbox.WithActor(t.Context(), glassbox.Actor{ID: "研究员", Thread: "t", Run: "r"})
	res, err := box.Run(ctx, `pwd; echo "$FOO"; python3 -c 'print(6 * 7)'`, nil)
	if err != nil || string(res.Stdout) != "/workspace\nbar\n42\n" || res.Recording != sandbox.RecordedWhole {
		t.Errorf("got %+v, %v, want it recorded", res, err)
	}
	ops := list(t, box, nil)
	if len(ops) != 2 || ops[1].Actor.ID != "研究员" {
		t.Errorf("got %+v, want the creation and the command of 研究员", ops)
	}
	elsewhere := needOpenSandbox(t).create(t, &glassbox.Options{Workdir: "/srv/深/my work"})
	if _, err := elsewhere.Write(t.Context(), "f", strings.NewReader("x"), nil); err != nil {
		t.Error(err)
	}
	if res, err := elsewhere.Run(t.Context(), "pwd; ls", nil); err != nil || string(res.Stdout) != "/srv/深/my work\nf\n" {
		t.Errorf("got %+v, %v, want the working directory made and used", res, err)
	}
}

// What is put into a sandbox is found again, however many come at once, and
// brought again when it has died.
func TestOpenSandboxInstall(t *testing.T) {
	t.Parallel()
	r := needOpenSandbox(t)
	id := r.bare(t)
	var group sync.WaitGroup
	boxes := make([]*glassbox.Sandbox, 3)
	for i := range boxes {
		group.Go(func() {
			box, err := glassbox.Connect(t.Context(), r.url, id, r.options(nil))
			if err != nil {
				t.Errorf("connect %d: %v", i, err)
				return
			}
			boxes[i] = box
			if res, err := box.Run(t.Context(), "echo ran", nil); err != nil || string(res.Stdout) != "ran\n" {
				t.Errorf("run %d: got %+v, %v", i, res, err)
			}
		})
	}
	group.Wait()
	if t.Failed() {
		return
	}
	first := recorderOf(t, boxes[0])
	for _, box := range boxes {
		if info := recorderOf(t, box); info.PID != first.PID || info.SandboxID != id {
			t.Errorf("got %+v, want the one recorder %+v", info, first)
		}
		if err := box.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	box := r.connect(t, id)
	if info := recorderOf(t, box); info.PID != first.PID {
		t.Errorf("got %+v, want the recorder that was there", info)
	}
	// As when the sandbox runs out of memory.
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second) // nobody is there who would bring it again
	defer cancel()
	_, err := box.Run(ctx, `for p in /proc/[0-9]*; do case $(readlink $p/exe) in /.agent-history/bin/*) kill -9 ${p#/proc/};; esac; done`, nil)
	if err == nil {
		t.Error("the recorder was to die of the command")
	}
	again := r.connect(t, id)
	if info := recorderOf(t, again); info.PID == first.PID {
		t.Errorf("got %+v, want another recorder", info)
	}
	if ops := list(t, again, &glassbox.Filter{Types: []string{history.CommandExecute}}); len(ops) != 4 || ops[3].Status != sandbox.Lost {
		t.Errorf("got %+v, want the commands, and the last one's end unknown", ops)
	}
	if ops := list(t, again, &glassbox.Filter{Types: []string{history.RecorderRestart}}); len(ops) != 1 {
		t.Errorf("got %+v, want the restart told", ops)
	}
}

// Not every image lets itself be worked in.
func TestOpenSandboxImages(t *testing.T) {
	t.Parallel()
	r := needOpenSandbox(t)
	t.Run("ordinary user", func(t *testing.T) {
		box := r.create(t, &glassbox.Options{Image: "glassbox-odd:user"})
		res, err := box.Run(t.Context(), "id -un; pwd; ls -A", nil)
		if err != nil || !strings.HasPrefix(string(res.Stdout), "agent\n/home/agent\n") || !strings.Contains(string(res.Stdout), ".agent-history") || res.Recording != sandbox.RecordedWhole {
			t.Errorf("got %+v, %v, want it recorded at home", res, err)
		}
		again := r.connect(t, box.ID())
		if was, is := recorderOf(t, box), recorderOf(t, again); was.PID != is.PID {
			t.Errorf("got %+v, want the recorder that is there, %+v", is, was)
		}
	})
	t.Run("nowhere", func(t *testing.T) {
		box, err := glassbox.Create(t.Context(), r.url, r.options(&glassbox.Options{Image: "glassbox-odd:nowhere"}))
		if !errors.Is(err, sandbox.ErrUnsupported) || !strings.Contains(err.Error(), "no place for it: /.agent-history cannot be made, /proc/.agent-history cannot be made") {
			t.Errorf("got %v, %v, want both places named", box, err)
		}
	})
}

// Neither the key of the service nor the recorder's token is anywhere in a
// sandbox but where it must be, nor in what is told.
func TestOpenSandboxSecrets(t *testing.T) {
	r := needOpenSandbox(t)
	box := r.create(t, nil)
	door, err := box.Run(t.Context(), `sed 's/.*"token":"\([^"]*\)".*/\1/' /.agent-history/recorder.json | cut -c 1-8`, nil)
	if err != nil || len(strings.TrimSpace(string(door.Stdout))) != 8 {
		t.Fatalf("got %+v, %v, want the beginning of the token", door, err)
	}
	for name, secret := range map[string]string{"key": r.key, "token": strings.TrimSpace(string(door.Stdout))} {
		half := len(secret) / 2 // so that who looks does not find himself
		look := fmt.Sprintf(`a=%s b=%s; grep -als "$a$b" /proc/[0-9]*/cmdline /proc/[0-9]*/environ; grep -rals "$a$b" /tmp /var/log /workspace /opt; echo looked`, secret[:half], secret[half:])
		if res, err := box.Run(t.Context(), look, nil); err != nil || string(res.Stdout) != "looked\n" {
			t.Errorf("the %s is in %s, %v", name, res.Stdout, err)
		}
		logs, err := exec.Command("docker", "logs", "sandbox-"+box.ID()).CombinedOutput()
		if err != nil || strings.Contains(string(logs), secret) {
			t.Errorf("the %s is in the log of the container, %v", name, err)
		}
	}
	ops, err := json.Marshal(list(t, box, nil))
	if err != nil || strings.Contains(string(ops), r.key) {
		t.Errorf("the key is in the history, %v", err)
	}
	wrong := r.options(nil)
	wrong.APIKey = "planted-wrong-key"
	_, err = glassbox.Create(t.Context(), r.url, wrong)
	if !errors.Is(err, sandbox.ErrUnauthorized) || strings.Contains(fmt.Sprintf("%v %+v %#v", err, wrong, wrong), "planted") {
		t.Errorf("got %v, want it refused without the key told", err)
	}
}

// What was put in is taken out again; the sandbox goes on.
func TestOpenSandboxUninstall(t *testing.T) {
	r := needOpenSandbox(t)
	id := r.bare(t)
	look := func() string {
		t.Helper()
		out, err := exec.Command("docker", "exec", "sandbox-"+id, "sh", "-c", "ls -A /.agent-history 2>/dev/null; ls -l /proc/*/exe 2>/dev/null | grep -c glassbox-recorder").CombinedOutput()
		if err != nil && len(out) == 0 {
			t.Fatal(err)
		}
		return string(out)
	}
	for _, keep := range []bool{true, false} {
		box := r.connect(t, id)
		if _, err := box.Run(t.Context(), "true", nil); err != nil {
			t.Fatal(err)
		}
		if got := look(); !strings.Contains(got, "recorder.json") || !strings.HasSuffix(got, "\n2\n") {
			t.Errorf("before: got %q, want the recorder and its init", got)
		}
		if err := box.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if err := glassbox.Uninstall(t.Context(), r.url, id, keep, r.options(nil)); err != nil {
			t.Fatal(err)
		}
		got := look()
		if strings.Contains(got, "recorder") || strings.Contains(got, "boot.json") || strings.Contains(got, "history.sqlite3") != keep || !strings.HasSuffix(got, "0\n") {
			t.Errorf("after, keep %v: got %q", keep, got)
		}
	}
	if err := glassbox.Uninstall(t.Context(), r.url, id, true, r.options(nil)); !errors.Is(err, sandbox.ErrNotFound) {
		t.Errorf("got %v, want that there is none", err)
	}
}

// counting is a way out that counts what goes it.
type counting struct{ n atomic.Int64 }

func (c *counting) RoundTrip(r *http.Request) (*http.Response, error) {
	c.n.Add(1)
	return http.DefaultTransport.RoundTrip(r)
}

// Whoever only looks puts nothing into a sandbox, and finds what others have
// put there; all goes the one way that was given.
func TestOpenSandboxNoInstall(t *testing.T) {
	r := needOpenSandbox(t)
	id := r.bare(t)
	var way counting
	look := r.options(&glassbox.Options{NoInstall: true, Transport: &way})
	if _, err := glassbox.Connect(t.Context(), r.url, id, look); !errors.Is(err, sandbox.ErrUnsupported) {
		t.Errorf("got %v, want that there is no recorder", err)
	}
	if _, err := r.connect(t, id).Run(t.Context(), "echo here", nil); err != nil {
		t.Fatal(err)
	}
	before := way.n.Load()
	box, err := glassbox.Connect(t.Context(), r.url, id, look)
	if err != nil {
		t.Fatal(err)
	}
	defer box.Close(t.Context())
	if ops := list(t, box, nil); len(ops) != 1 || before == 0 || way.n.Load() == before {
		t.Errorf("%d operations, %d requests and then %d", len(ops), before, way.n.Load()-before)
	}
	look.APIKey = ""
	t.Setenv("GLASSBOX_API_KEY", r.key)
	if _, err := glassbox.Get(t.Context(), r.url, id, look); r.key != "" && err == nil {
		t.Error("a key of the environment went a way that was given")
	}
}
