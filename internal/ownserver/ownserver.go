// Package ownserver runs a glassbox serve of its own, with a state folder that
// goes with it, for measurements and for trials of clients.
package ownserver

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

	"github.com/glassboxhq/glassbox"
)

// Server is a glassbox serve at a port of its own.
type Server struct {
	URL string

	dir     string
	cmd     *exec.Cmd
	telling sync.WaitGroup
}

// Options say what is served, and where.
type Options struct {
	Program  string    // glassbox
	Recorder string    // for the sandboxes
	Dir      string    // holds the state folder; Stop removes it
	Args     []string  // further ones of serve
	Log      io.Writer // gets what the server says
}

const startTimeout = 30 * time.Second

// Start starts a server and waits until it says that it serves.
func Start(o *Options) (*Server, error) {
	s := &Server{dir: o.Dir}
	// It outlives an interrupt: Stop ends it, after the sandboxes.
	s.cmd = exec.Command(o.Program, append([]string{"serve", "--port", "0"}, o.Args...)...) //nolint:noctx // see above
	s.cmd.Dir = o.Dir
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		if name != "GLASSBOX_URL" && name != "OPEN_SANDBOX_DOMAIN" {
			s.cmd.Env = append(s.cmd.Env, entry)
		}
	}
	s.cmd.Env = append(s.cmd.Env, "GLASSBOX_RECORDER="+o.Recorder, "GLASSBOX_STATE_DIR="+s.State())
	if err := s.start(o.Log); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

func (s *Server) start(log io.Writer) error {
	errs, err := s.cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := s.cmd.Start(); err != nil {
		s.cmd = nil
		return err
	}
	serves := make(chan string, 1)
	s.telling.Go(func() {
		defer close(serves)
		lines := bufio.NewScanner(errs)
		for lines.Scan() {
			if _, rest, found := strings.Cut(lines.Text(), "serving OpenSandbox at "); found {
				url, _, _ := strings.Cut(rest, ";")
				serves <- url
				continue
			}
			fmt.Fprintln(log, "server:", lines.Text())
		}
	})
	select {
	case s.URL = <-serves:
		if s.URL == "" {
			return errors.New("the server did not start")
		}
		return nil
	case <-time.After(startTimeout):
		return errors.New("the server did not start in time")
	}
}

// State is the server's state folder.
func (s *Server) State() string { return filepath.Join(s.dir, "state") }

// Key is the key of the server's API.
func (s *Server) Key() (glassbox.Secret, error) {
	text, err := os.ReadFile(filepath.Join(s.State(), "api_key"))
	return glassbox.Secret(strings.TrimSpace(string(text))), err
}

// Sweep deletes every sandbox that is left, and returns their ids.
func (s *Server) Sweep(ctx context.Context) ([]string, error) {
	key, err := s.Key()
	if err != nil {
		return nil, err
	}
	o := &glassbox.Options{APIKey: key}
	left, err := glassbox.List(ctx, s.URL, o)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, info := range left {
		ids = append(ids, info.ID)
		err = errors.Join(err, glassbox.Delete(ctx, s.URL, info.ID, o))
	}
	return ids, err
}

const stopTimeout = 20 * time.Second

// Stop ends the server and removes its folder.
func (s *Server) Stop() error {
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
