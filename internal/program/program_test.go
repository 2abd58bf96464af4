package program_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/glassboxhq/glassbox/internal/program"
	"github.com/glassboxhq/glassbox/sandbox"
)

func TestRunscVersion(t *testing.T) {
	text, err := os.ReadFile("../../tools/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if want := "gvisor.dev/gvisor " + program.Runsc().Version; !strings.Contains(string(text), want) {
		t.Errorf("tools/go.mod does not hold %q", want)
	}
}

func TestFind(t *testing.T) {
	p := &program.Program{Name: "no-such-program", Variable: "NO_SUCH_PROGRAM", Package: "example.com/x", Version: "v0.1.0-dev"}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	say := func(string) {}
	t.Run("Missing", func(t *testing.T) {
		_, err := p.Find(t.Context(), say)
		if !errors.Is(err, sandbox.ErrUnsupported) || !strings.Contains(err.Error(), "NO_SUCH_PROGRAM") {
			t.Errorf("got %v, want an error that names the variable", err)
		}
	})
	t.Run("Variable", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "program")
		t.Setenv("NO_SUCH_PROGRAM", file)
		if _, err := p.Find(t.Context(), say); err == nil {
			t.Error("a variable that names nothing: got no error")
		}
		if err := os.WriteFile(file, nil, 0o700); err != nil {
			t.Fatal(err)
		}
		if got, err := p.Find(t.Context(), say); err != nil || got != file {
			t.Errorf("got %s, %v, want %s", got, err, file)
		}
	})
	t.Run("Cache", func(t *testing.T) {
		file := filepath.Join(os.Getenv("XDG_CACHE_HOME"), "glassbox", p.Version, p.Name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, nil, 0o700); err != nil {
			t.Fatal(err)
		}
		if got, err := p.Find(t.Context(), say); err != nil || got != file {
			t.Errorf("got %s, %v, want %s", got, err, file)
		}
	})
}
