package glassbox_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/glassboxhq/glassbox"
	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/version"
	"github.com/glassboxhq/glassbox/sandbox"
)

// recorderOfVersion builds the recorder as a tree of another version has it.
func recorderOfVersion(t *testing.T, number string) string {
	t.Helper()
	const source = "internal/version/version.go"
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	other, overlay, bin := filepath.Join(dir, "version.go"), filepath.Join(dir, "overlay.json"), filepath.Join(dir, "glassbox-recorder")
	abs, err := filepath.Abs(source)
	if err != nil {
		t.Fatal(err)
	}
	replaced, err := json.Marshal(map[string]any{"Replace": map[string]string{abs: other}})
	if err != nil {
		t.Fatal(err)
	}
	was, is := `Number = "`+version.Number+`"`, `Number = "`+number+`"`
	for file, content := range map[string]string{other: strings.Replace(string(text), was, is, 1), overlay: string(replaced)} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("go", "build", "-overlay", overlay, "-buildvcs=false", "-trimpath", "-ldflags=-s -w", "-o", bin, "./cmd/glassbox-recorder")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return bin
}

// A recorder of another version is in the sandbox: an older one is replaced
// when no command runs there, and a newer one is used as it is.
func TestOpenSandboxUpgrade(t *testing.T) {
	r := needOpenSandbox(t)
	id, ours := r.bare(t), os.Getenv("GLASSBOX_RECORDER")
	t.Setenv("GLASSBOX_RECORDER", recorderOfVersion(t, "0.0.1"))
	old := r.connect(t, id)
	was := recorderOf(t, old)
	if !strings.HasPrefix(was.Version, "0.0.1") {
		t.Fatalf("got %+v, want the older version", was)
	}
	working, err := old.Start(t.Context(), "echo before; until [ -e /tmp/go ]; do sleep 0.05; done; echo after", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GLASSBOX_RECORDER", ours)
	beside := r.connect(t, id)
	if is := recorderOf(t, beside); is.PID != was.PID {
		t.Errorf("got %+v, want the recorder left alone while it works", is)
	}
	if _, err := beside.Run(t.Context(), "touch /tmp/go", nil); err != nil {
		t.Error(err)
	}
	if res, err := working.Wait(t.Context()); err != nil || res.Status != sandbox.Succeeded || res.StdoutBytes != int64(len("before\nafter\n")) {
		t.Errorf("got %+v, %v, want the command untouched", res, err)
	}
	after := r.connect(t, id)
	is := recorderOf(t, after)
	if is.PID == was.PID || !strings.HasPrefix(is.Version, version.Number) {
		t.Errorf("got %+v, want ours", is)
	}
	if ops := list(t, after, &glassbox.Filter{Types: []string{history.CommandExecute}}); len(ops) != 2 || ops[0].Status != sandbox.Succeeded {
		t.Errorf("got %+v, want what was recorded before", ops)
	}
	// Who held the old one goes on with the new one.
	if res, err := old.Run(t.Context(), "echo still", nil); err != nil || string(res.Stdout) != "still\n" {
		t.Errorf("got %+v, %v, want the old handle to go on", res, err)
	}
	// The newest stays, whoever comes.
	t.Setenv("GLASSBOX_RECORDER", recorderOfVersion(t, "99.0.0"))
	r.inside(t, id, "/.agent-history/bin/glassbox-recorder", "uninstall", "--dir", "/.agent-history", "--keep-history")
	newest := recorderOf(t, r.connect(t, id))
	t.Setenv("GLASSBOX_RECORDER", ours)
	if got := recorderOf(t, r.connect(t, id)); !strings.HasPrefix(got.Version, "99.") || got.PID != newest.PID {
		t.Errorf("got %+v, want the newer one %+v", got, newest)
	}
}
