// Package program finds the programs that Glassbox works with and does not
// hold itself: the recorder and runsc. No program is fetched from anywhere but
// the Go module proxy that the machine is set up for.
package program

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/glassboxhq/glassbox/internal/version"
	"github.com/glassboxhq/glassbox/sandbox"
)

// Program is a program that can be found or built.
type Program struct {
	Name     string // of the file
	Variable string // environment variable that names the file
	Package  string // Go package to build it from
	Version  string // of the package's module
	Arch     string // that it runs on
}

// Recorder is what runs inside a sandbox on this machine.
func Recorder() *Program { return RecorderFor(runtime.GOARCH) }

// RecorderFor is what runs inside a sandbox on another architecture: beside
// that of this machine, its name tells which.
func RecorderFor(arch string) *Program {
	name := "glassbox-recorder"
	if arch != runtime.GOARCH {
		name += "-" + arch
	}
	return &Program{
		Name: name, Arch: arch, Variable: "GLASSBOX_RECORDER",
		Package: "github.com/glassboxhq/glassbox/cmd/glassbox-recorder", Version: "v" + version.String(),
	}
}

// runscVersion is the one in tools/go.mod; a test compares them.
const runscVersion = "v0.0.0-20260905035102-160fafc42237"

// Runsc is gVisor's OCI runtime.
func Runsc() *Program {
	return &Program{Name: "runsc", Arch: runtime.GOARCH, Variable: "GLASSBOX_RUNSC", Package: "gvisor.dev/gvisor/runsc", Version: runscVersion}
}

// Find returns the path of the program: the file that the environment variable
// names, one beside this executable, one in the cache, or one that is built
// into the cache where a Go tool is at hand. say is told of a build.
func (p *Program) Find(ctx context.Context, say func(string)) (string, error) {
	path, cache, err := p.look()
	if err == nil || cache == "" {
		return path, err
	}
	built := filepath.Join(cache, p.Version, p.Name)
	if buildErr := p.build(ctx, built, say); buildErr != nil {
		return "", errors.Join(err, buildErr)
	}
	return built, nil
}

// Look is Find without building.
func (p *Program) Look() (string, error) {
	path, _, err := p.look()
	return path, err
}

// look returns the path, or the folder in which the program can be built.
func (p *Program) look() (path, cache string, err error) {
	if path := os.Getenv(p.Variable); path != "" {
		if err := runnable(path); err != nil {
			return "", "", p.missing(fmt.Errorf("%s names %s: %w", p.Variable, path, err))
		}
		path, err = filepath.Abs(path)
		return path, "", err
	}
	var tried []string
	self, err := os.Executable()
	if err == nil {
		if self, err = filepath.EvalSymlinks(self); err == nil {
			tried = append(tried, filepath.Join(filepath.Dir(self), p.Name))
		}
	}
	if cache, err = os.UserCacheDir(); err == nil {
		cache = filepath.Join(cache, "glassbox")
		tried = append(tried, filepath.Join(cache, p.Version, p.Name), filepath.Join(cache, "tools", p.Version, p.Name))
	}
	for _, path := range tried {
		if runnable(path) == nil {
			return path, "", nil
		}
	}
	err = p.missing(errors.New("it is not at " + strings.Join(tried, ", nor at ")))
	if strings.Contains(p.Version, "-dev") {
		cache = "" // no module proxy has it
	}
	return "", cache, err
}

func (p *Program) missing(err error) error {
	return &sandbox.Error{
		Op: "find " + p.Name, Code: sandbox.CodeUnsupported, Err: err,
		Message: "run make build in the source tree, or set " + p.Variable + " to its path",
	}
}

func runnable(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return fs.ErrPermission
	}
	return nil
}

// build makes the program in a temporary module.
func (p *Program) build(ctx context.Context, to string, say func(string)) (err error) {
	tool, err := exec.LookPath("go")
	if err != nil {
		return errors.New("there is no Go tool to build it with")
	}
	say("building " + p.Name + " " + p.Version + "; this is done once")
	dir, err := os.MkdirTemp("", "glassbox-build-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module build\n\ngo 1.26\n"), 0o600); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	part := fmt.Sprintf("%s.%d", to, os.Getpid())
	for _, args := range [][]string{
		{"get", p.Package + "@" + p.Version},
		{"build", "-trimpath", "-ldflags=-s -w", "-o", part, p.Package},
	} {
		cmd := exec.CommandContext(ctx, tool, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+p.Arch, "GOFLAGS=-mod=mod")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("go %s: %w: %s", args[0], err, lastLine(out))
		}
	}
	return os.Rename(part, to)
}

func lastLine(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[len(lines)-1]
}
