package glassbox_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestSixLines runs the lines that README shows, as they stand there.
func TestSixLines(t *testing.T) {
	s := needLocal(t)
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "<!-- six -->\n```go\n")
	lines, _, ok := strings.Cut(rest, "```\n<!-- /six -->")
	if !ok {
		t.Fatal("README shows no six lines")
	}
	program := `package main

import (
	"context"
	"fmt"

	"github.com/glassboxhq/glassbox"
)

func main() {
	ctx := context.Background()
	` + lines + `
	if err != nil {
		panic(err)
	}
}
`
	// Below the module, so that it is built with it; the name keeps it out of ./...
	dir, err := os.MkdirTemp(".", "_six-") //nolint:usetesting // it must lie below the module
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "run", "./"+filepath.Base(dir))
	cmd.Env = append(os.Environ(), "GLASSBOX_STATE_DIR="+s.state)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "Python 3.") || !strings.HasSuffix(string(out), "\n 0\n") {
		t.Errorf("got %q, %v, want the version and 0", out, err)
	}
}
