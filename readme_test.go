package glassbox_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestReadme runs the programs that README shows, as they stand there.
func TestReadme(t *testing.T) {
	s := needLocal(t)
	program := shown(t, "six")
	before, after, ok := strings.Cut(program, "\treturn nil\n")
	if !ok || strings.Contains(after, "return nil") {
		t.Fatal("README's program has no last return nil")
	}
	for name, tt := range map[string]struct{ program, want string }{
		"Six":   {program, "42\n 0\n"},
		"Files": {before + shown(t, "files") + "\treturn nil\n" + after, "42\n 0\nfile.write succeeded 12\nfile.read succeeded 12\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if out, err := runProgram(t, s.state, tt.program); err != nil || out != tt.want {
				t.Errorf("got %q, %v, want %q", out, err, tt.want)
			}
		})
	}
}

// shown returns the Go between two markers of README.
func shown(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "<!-- "+name+" -->\n```go\n")
	lines, _, ok := strings.Cut(rest, "```\n<!-- /"+name+" -->")
	if !ok {
		t.Fatal("README shows no Go named " + name)
	}
	return lines
}

func runProgram(t *testing.T, stateDir, program string) (string, error) {
	t.Helper()
	// Below the module, so that it is built with it; the name keeps it out of ./...
	dir, err := os.MkdirTemp(".", "_readme-") //nolint:usetesting // it must lie below the module
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "run", "./"+filepath.Base(dir))
	cmd.Env = append(os.Environ(), "GLASSBOX_STATE_DIR="+stateDir)
	out, err := cmd.CombinedOutput()
	return string(out), err
}
