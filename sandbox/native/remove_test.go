package native_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/glassboxhq/glassbox/sandbox"
	"github.com/glassboxhq/glassbox/sandbox/native"
)

// A tree goes whole, however deep it is, and nothing that its links lead to.
func TestRemoveTree(t *testing.T) {
	dir := t.TempDir()
	s := open(t, &native.Options{Workdir: filepath.Join(dir, "work")})
	line := `mkdir -p work/t/a/b work/t/none outside && cd work/t && touch a/b/f ../../outside/f && ln -s ../../../outside a/out && ln -s . self && mkfifo p && chmod 0 none
		for i in $(seq 1500); do mkdir d && cd d || exit 1; done; touch f`
	cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Remove(cancelled, "t", &sandbox.RemoveOptions{Recursive: true}); !errors.Is(err, sandbox.ErrCancelled) {
		t.Errorf("got %v, want it cancelled", err)
	}
	if err := s.Remove(t.Context(), "t", &sandbox.RemoveOptions{Recursive: true}); err != nil {
		t.Fatal(err)
	}
	if got := names(t, filepath.Join(dir, "work")); len(got) != 0 {
		t.Errorf("got %v, want nothing left", got)
	}
	if _, err := os.Stat(filepath.Join(dir, "outside", "f")); err != nil {
		t.Error(err)
	}
}
