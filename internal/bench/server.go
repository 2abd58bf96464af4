package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// server is a local runtime of this source tree, with a state folder of its
// own.
type server struct {
	dir     string
	cmd     *exec.Cmd
	telling sync.WaitGroup
}

func (s *server) state() string              { return filepath.Join(s.dir, "state") }
func (s *server) program(name string) string { return filepath.Join(s.dir, "bin", name) }

// The programs that take part, built as they are released.
var programs = map[string]string{
	"glassbox":          "./cmd/glassbox",
	"glassbox-recorder": "./cmd/glassbox-recorder",
	"guest":             "./internal/bench/guest",
}

const startTimeout = 30 * time.Second

func startServer(ctx context.Context, progress io.Writer) (_ *server, err error) {
	dir, err := os.MkdirTemp("", "glassbox-bench-")
	if err != nil {
		return nil, err
	}
	s := &server{dir: dir}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.stop())
		}
	}()
	for name, from := range programs {
		fmt.Fprintln(progress, "building", name)
		cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", s.program(name), from)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build %s: %w\n%s", name, err, out)
		}
	}
	return s, s.start(progress)
}

// start starts the server and waits until it says that it serves.
func (s *server) start(progress io.Writer) error {
	// It outlives an interrupt: stop ends it, after the sandboxes.
	s.cmd = exec.Command(s.program("glassbox"), "serve", "--port", "0") //nolint:noctx // see above
	s.cmd.Dir = s.dir
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		if name != "GLASSBOX_URL" && name != "OPEN_SANDBOX_DOMAIN" {
			s.cmd.Env = append(s.cmd.Env, entry)
		}
	}
	s.cmd.Env = append(s.cmd.Env, "GLASSBOX_RECORDER="+s.program("glassbox-recorder"), "GLASSBOX_STATE_DIR="+s.state())
	errs, err := s.cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := s.cmd.Start(); err != nil {
		s.cmd = nil
		return err
	}
	serves := make(chan bool, 1)
	s.telling.Go(func() {
		defer close(serves)
		lines := bufio.NewScanner(errs)
		for lines.Scan() {
			if strings.Contains(lines.Text(), "serving OpenSandbox at") {
				serves <- true
				continue
			}
			fmt.Fprintln(progress, "server:", lines.Text())
		}
	})
	select {
	case ok := <-serves:
		if !ok {
			return errors.New("the server did not start")
		}
		return nil
	case <-time.After(startTimeout):
		return errors.New("the server did not start in time")
	}
}

const stopTimeout = 20 * time.Second

func (s *server) stop() error {
	var err error
	if s.cmd != nil {
		_ = s.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		kill := time.AfterFunc(stopTimeout, func() { _ = s.cmd.Process.Kill() })
		s.telling.Wait()
		err = s.cmd.Wait()
		kill.Stop()
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}
