package glassbox_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The tests of this package work on a real server of the local runtime, which
// is built and started once, at the port that the documentation names.
const serverURL = "http://localhost:7717"

// server is what TestMain has started.
type server struct {
	bin, state string // folders
	recorder   string // file
	cmd        *exec.Cmd
}

var local *server // set by TestMain, nil without isolation

// noIsolation is set where gVisor cannot start: what needs it is not run, and
// says so.
const noIsolation = "GLASSBOX_NO_ISOLATION"

func TestMain(m *testing.M) {
	code, err := testMain(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func testMain(m *testing.M) (code int, err error) {
	if os.Getenv(noIsolation) != "" {
		return m.Run(), nil
	}
	dir, err := os.MkdirTemp("", "glassbox-test-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	s := &server{bin: filepath.Join(dir, "bin"), state: filepath.Join(dir, "state")}
	if err := s.build(); err != nil {
		return 1, err
	}
	// As a user has it: the SDK finds the server by its state folder.
	os.Setenv("GLASSBOX_STATE_DIR", s.state)
	if err := s.start(); err != nil {
		return 1, err
	}
	defer s.stop()
	local = s
	return m.Run(), nil
}

// builtProgram is set for the tests that an ordinary user runs: where its
// program is.
const builtProgram = "GLASSBOX_TEST_PROGRAM"

func (s *server) build() error {
	if built := os.Getenv(builtProgram); built != "" {
		s.bin, s.recorder = filepath.Dir(built), os.Getenv("GLASSBOX_RECORDER")
		return nil
	}
	s.recorder = os.Getenv("GLASSBOX_RECORDER") // make has built it
	programs := []string{"glassbox"}
	if s.recorder == "" {
		s.recorder = filepath.Join(s.bin, "glassbox-recorder")
		programs = append(programs, "glassbox-recorder")
	}
	for _, name := range programs {
		cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", filepath.Join(s.bin, name), "./cmd/"+name)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w\n%s", name, err, out)
		}
	}
	return nil
}

// command is a call of the program, with the test's state folder.
func (s *server) command(args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.bin, "glassbox"), args...)
	cmd.Env = append(os.Environ(), "GLASSBOX_RECORDER="+s.recorder, "GLASSBOX_STATE_DIR="+s.state)
	return cmd
}

// start starts the server and waits until it says that it serves.
func (s *server) start() error {
	s.cmd = s.command("serve")
	errs, err := s.cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := s.cmd.Start(); err != nil {
		return err
	}
	lines := bufio.NewScanner(errs)
	var said []string
	for lines.Scan() {
		said = append(said, lines.Text())
		if strings.Contains(lines.Text(), "serving OpenSandbox at") {
			go func() {
				for lines.Scan() { // the server must not block on what it says
					fmt.Fprintln(os.Stderr, "server:", lines.Text())
				}
			}()
			return nil
		}
	}
	return fmt.Errorf("the server did not start: %w\n%s", s.cmd.Wait(), strings.Join(said, "\n"))
}

func (s *server) stop() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	done := make(chan struct{})
	go func() { _ = s.cmd.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		_ = s.cmd.Process.Kill()
	}
}

// needLocal skips what needs isolation where there is none.
func needLocal(t *testing.T) *server {
	t.Helper()
	if local == nil {
		t.Skip("needs gVisor")
	}
	return local
}
