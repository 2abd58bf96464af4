package glassbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/glassboxhq/glassbox"
	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/sandbox"
)

// inside runs something in a sandbox's container as root, with nothing of ours
// on the way.
func (r *remote) inside(t *testing.T, id string, args ...string) string {
	t.Helper()
	return docker(t, append([]string{"exec", "--user", "0", "sandbox-" + id}, args...)...)
}

// mount changes what is mounted in a sandbox, which nobody in it may.
func (r *remote) mount(t *testing.T, id, script string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can mount in a container")
	}
	pid := strings.TrimSpace(docker(t, "inspect", "--format", "{{.State.Pid}}", "sandbox-"+id))
	if out, err := exec.Command("nsenter", "--target", pid, "--mount", "sh", "-c", script).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
}

func docker(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command("docker", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("docker %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// program is a call of the glassbox that a user has, for the real server.
func (r *remote) program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	bin, err := builtProgramOnce()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), bin, append(args, "--url", r.url)...)
	cmd.Env = append(os.Environ(), "GLASSBOX_API_KEY="+r.key, "GLASSBOX_STATE_DIR="+t.TempDir())
	return cmd
}

var builtProgramOnce = sync.OnceValues(func() (string, error) {
	if built := os.Getenv(builtProgram); built != "" {
		return built, nil
	}
	bin := filepath.Join(os.TempDir(), fmt.Sprintf("glassbox-test-%d", os.Getpid()))
	out, err := exec.Command("go", "build", "-o", bin, "./cmd/glassbox").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("build glassbox: %w\n%s", err, out)
	}
	return bin, err
})

// The name is read back as it was given by whoever looks: labels hold it where
// they can, and for other clients.
func TestOpenSandboxNames(t *testing.T) {
	r := needOpenSandbox(t)
	long := strings.Repeat("研", 127) + "😀"
	for _, name := range []string{"plain-name_1.0", "研究员 / the 2nd: \"x\"", long} {
		box := r.create(t, &glassbox.Options{Name: name, Metadata: map[string]string{"team": "red"}})
		out, err := r.program(t, "sandbox", "get", name, "--output", "json").Output()
		if err != nil {
			t.Fatalf("%q: %s: %v", name, out, err)
		}
		var info glassbox.Info
		if err := json.Unmarshal(out, &info); err != nil || info.ID != box.ID() || info.Name != name {
			t.Errorf("got %s, %v, want %q", out, err, name)
		}
		want := map[string]string{"team": "red", "sandbox_instance_id": info.InstanceID}
		if name == "plain-name_1.0" {
			want["agent_sandbox.name"] = name
		}
		if diff := cmp.Diff(want, info.Metadata); diff != "" {
			t.Errorf("metadata of %q: %s", name, diff)
		}
	}
	// A beginning of an id will do; what two have is refused, and nothing is done.
	first, second := r.create(t, &glassbox.Options{Name: "双"}), r.create(t, &glassbox.Options{Name: "双"})
	if out, err := r.program(t, "sandbox", "get", first.ID()[:8], "--output", "json").Output(); err != nil || !strings.Contains(string(out), first.ID()) {
		t.Errorf("by the beginning of its id: got %s, %v", out, err)
	}
	out, err := r.program(t, "sandbox", "delete", "双").CombinedOutput()
	if err == nil || !strings.Contains(string(out), first.ID()) || !strings.Contains(string(out), second.ID()) {
		t.Errorf("deletion of one of two: got %s, %v, want both ids", out, err)
	}
	for _, box := range []*glassbox.Sandbox{first, second} {
		if _, err := box.Run(t.Context(), "true", nil); err != nil {
			t.Errorf("it was to be left alone: %v", err)
		}
	}
}

// Sandboxes into which a recorder is not easily put.
func TestOpenSandboxOddPlaces(t *testing.T) {
	r := needOpenSandbox(t)
	works := func(t *testing.T, id, dir string) {
		t.Helper()
		box := r.connect(t, id)
		res, err := box.Run(t.Context(), "echo ran", nil)
		if err != nil || string(res.Stdout) != "ran\n" || res.Recording != sandbox.RecordedWhole {
			t.Fatalf("got %+v, %v, want it recorded", res, err)
		}
		if out := r.inside(t, id, "ls", dir); !strings.Contains(out, "history.sqlite3") {
			t.Errorf("%s holds %s", dir, out)
		}
		again := r.connect(t, id)
		if was, is := recorderOf(t, box), recorderOf(t, again); was.PID != is.PID {
			t.Errorf("got %+v, want the recorder that is there, %+v", is, was)
		}
		// Who only looks finds it, too.
		look, err := glassbox.Connect(t.Context(), r.url, id, r.options(&glassbox.Options{NoInstall: true}))
		if err != nil {
			t.Fatal(err)
		}
		if ops := list(t, look, &glassbox.Filter{Types: []string{history.CommandExecute}}); len(ops) != 1 {
			t.Errorf("got %+v, want the command", ops)
		}
		if err := look.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	t.Run("read-only root", func(t *testing.T) {
		t.Parallel()
		id := r.bare(t)
		r.mount(t, id, "mount -t tmpfs none /root && mount -t tmpfs none /tmp && mount -o remount,ro /")
		works(t, id, "/root/.agent-history")
	})
	t.Run("noexec", func(t *testing.T) {
		t.Parallel()
		id := r.bare(t)
		r.mount(t, id, "mkdir /.agent-history && mount -t tmpfs -o noexec none /.agent-history")
		works(t, id, "/root/.agent-history")
		if out := r.inside(t, id, "ls", "-A", "/.agent-history"); out != "" {
			t.Errorf("what was tried is left: %q", out)
		}
	})
	t.Run("noexec everywhere", func(t *testing.T) {
		t.Parallel()
		id := r.bare(t)
		r.mount(t, id, "mkdir /.agent-history && mount -t tmpfs -o noexec none /.agent-history && mount -t tmpfs -o noexec none /root")
		box, err := glassbox.Connect(t.Context(), r.url, id, r.options(nil))
		if !errors.Is(err, sandbox.ErrUnsupported) || strings.Count(err.Error(), "noexec") != 2 {
			t.Errorf("got %v, %v, want both places named", box, err)
		}
	})
	t.Run("no shell", func(t *testing.T) {
		t.Parallel()
		id := r.bare(t)
		r.inside(t, id, "rm", "-f", "/bin/bash", "/bin/dash", "/bin/sh", "/bin/rbash")
		box, err := glassbox.Connect(t.Context(), r.url, id, r.options(nil))
		if !errors.Is(err, sandbox.ErrUnsupported) || !strings.Contains(err.Error(), "no shell") {
			t.Errorf("got %v, %v, want that there is no shell", box, err)
		}
	})
	t.Run("a shell that went", func(t *testing.T) {
		t.Parallel()
		id := r.bare(t)
		works(t, id, "/.agent-history")
		r.inside(t, id, "rm", "-f", "/bin/bash", "/bin/dash", "/bin/sh", "/bin/rbash")
		box := r.connect(t, id)
		res, err := box.Run(t.Context(), "", &glassbox.Command{Args: []string{"echo", "ran"}})
		if err != nil || string(res.Stdout) != "ran\n" {
			t.Errorf("got %+v, %v, want the recorder to need no shell", res, err)
		}
	})
	t.Run("token file lost", func(t *testing.T) {
		t.Parallel()
		id := r.bare(t)
		works(t, id, "/.agent-history")
		was := recorderOf(t, r.connect(t, id))
		r.inside(t, id, "rm", "-f", "/.agent-history/recorder.json")
		box := r.connect(t, id)
		if is := recorderOf(t, box); is.SandboxID != was.SandboxID {
			t.Errorf("got %+v, want the sandbox's recorder", is)
		}
		if ops := list(t, box, &glassbox.Filter{Types: []string{history.CommandExecute}}); len(ops) != 1 {
			t.Errorf("got %+v, want the history as it was", ops)
		}
		if out := r.inside(t, id, "sh", "-c", "ls -l /proc/*/exe 2>/dev/null | grep -c agent-history"); strings.TrimSpace(out) != "2" {
			t.Errorf("%s processes of the recorder run, want one and its init", out)
		}
	})
}

// The program takes out again what was put in.
func TestOpenSandboxUninstallProgram(t *testing.T) {
	r := needOpenSandbox(t)
	box := r.create(t, &glassbox.Options{Image: "glassbox-odd:user"})
	if _, err := box.Run(t.Context(), "true", nil); err != nil {
		t.Fatal(err)
	}
	if out, err := r.program(t, "sandbox", "uninstall", box.ID()).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if out := r.inside(t, box.ID(), "sh", "-c", "ls -A /home/agent; ls -l /proc/*/exe | grep -c agent-history; true"); strings.Contains(out, ".agent-history") || !strings.HasSuffix(out, "0\n") {
		t.Errorf("left: %s", out)
	}
	again, err := glassbox.Connect(context.Background(), r.url, box.ID(), r.options(nil))
	if err != nil {
		t.Fatal(err)
	}
	if ops := list(t, again, nil); len(ops) != 0 {
		t.Errorf("got %+v, want a history that is new", ops)
	}
	if err := again.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
