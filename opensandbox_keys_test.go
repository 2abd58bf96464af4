package glassbox_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/glassboxhq/glassbox"
)

// A key is told to nobody but the service, by whatever way it came in.
func TestOpenSandboxKeyWays(t *testing.T) {
	r := needOpenSandbox(t)
	for name, way := range map[string]func(t *testing.T, o *glassbox.Options){
		"option":     func(_ *testing.T, o *glassbox.Options) { o.APIKey = glassbox.Secret(r.key) },
		"our name":   func(t *testing.T, _ *glassbox.Options) { t.Setenv("GLASSBOX_API_KEY", r.key) },
		"their name": func(t *testing.T, _ *glassbox.Options) { t.Setenv("OPEN_SANDBOX_API_KEY", r.key) },
	} {
		t.Run(name, func(t *testing.T) {
			var said bytes.Buffer
			o := &glassbox.Options{
				Name: "keys", StateDir: t.TempDir(), Env: map[string]string{"DATABASE_PASSWORD": "planted-value-1"}, Metadata: map[string]string{"a": "b"},
				Logger: slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelDebug})),
			}
			way(t, o)
			box, err := glassbox.Create(t.Context(), r.url, o)
			if err != nil {
				t.Fatal(err)
			}
			defer box.Close(t.Context())
			res, err := box.Run(t.Context(), `env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' '\n'`, nil)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(res.Stdout), r.key) || !strings.Contains(string(res.Stdout), "planted-value-1") {
				t.Error("the sandbox has the key, or not what it was given")
			}
			bad := *o
			bad.Image, bad.StateDir = "no-such-image:1", o.StateDir
			_, createErr := glassbox.Create(t.Context(), r.url, &bad)
			if createErr == nil {
				t.Error("an image that is not there was found")
			}
			ops, err := json.Marshal(list(t, box, nil))
			if err != nil {
				t.Fatal(err)
			}
			for what, text := range map[string]string{
				"the log": said.String(), "an error": fmt.Sprintf("%v %+v %#v", createErr, createErr, createErr), "the history": string(ops),
				"the outbox": all(t, o.StateDir), "the options": fmt.Sprintf("%v %+v %#v", o, *o, o), "the container's log": docker(t, "logs", "sandbox-"+box.ID()),
			} {
				if strings.Contains(text, r.key) {
					t.Errorf("%s tells the key: %s", what, text)
				}
				if strings.Contains(text, "planted-value-1") && what != "the options" && what != "the container's log" {
					t.Errorf("%s tells a value of the environment: %s", what, text)
				}
			}
		})
	}
	t.Run("program", func(t *testing.T) {
		cmd := r.program(t, "run", "--verbose", "-e", "DATABASE_PASSWORD=planted-value-2", "--", "sh", "-c", "echo running; sleep 2; env")
		var errs bytes.Buffer
		cmd.Stderr = &errs
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		first := make([]byte, len("running\n"))
		if _, err := out.Read(first); err != nil {
			t.Errorf("%v: %s", err, errs.String())
		}
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", cmd.Process.Pid))
		if err != nil || strings.Contains(string(line), r.key) {
			t.Errorf("the list of processes tells the key: %q, %v", line, err)
		}
		var rest bytes.Buffer
		_, _ = rest.ReadFrom(out)
		if err := cmd.Wait(); err != nil || strings.Contains(rest.String()+errs.String(), r.key) {
			t.Errorf("got %v and\n%s%s", err, rest.String(), errs.String())
		}
	})
	t.Run("wrong one", func(t *testing.T) {
		wrong := &remote{r.url, "planted-wrong-key"}
		out, err := wrong.program(t, "sandbox", "list", "--verbose").CombinedOutput()
		if err == nil || strings.Contains(string(out), wrong.key) || !strings.Contains(string(out), "GLASSBOX_API_KEY") {
			t.Errorf("got %v and %s, want it refused, without the key", err, out)
		}
	})
	if out, err := exec.Command("ps", "axww").CombinedOutput(); err == nil && strings.Contains(string(out), r.key) {
		t.Error("the list of processes tells the key")
	}
}

// all returns what the files below a folder hold.
func all(t *testing.T, dir string) string {
	t.Helper()
	var text strings.Builder
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		text.Write(content)
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return text.String()
}

// The recorder is one for the sandbox's architecture, not for the SDK's.
func TestOpenSandboxArchitecture(t *testing.T) {
	r := needOpenSandbox(t)
	for machine, want := range map[string]string{
		"aarch64": "is no program for Linux on arm64", "riscv64": `there is no recorder for "riscv64", only for amd64 and arm64`,
	} {
		id := r.bare(t)
		r.inside(t, id, "sh", "-c", "printf '#!/bin/sh\necho "+machine+"\n' >/usr/local/bin/uname && chmod 755 /usr/local/bin/uname")
		box, err := glassbox.Connect(t.Context(), r.url, id, r.options(nil))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("on %s: got %v, %v, want %q", machine, box, err, want)
		}
		if out := r.inside(t, id, "sh", "-c", "ls -A /.agent-history/bin 2>/dev/null; true"); out != "" {
			t.Errorf("on %s: %q was left in the sandbox", machine, out)
		}
	}
}
