package main

import (
	"bytes"
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
	"github.com/glassboxhq/glassbox/internal/compat/matrix"
	"github.com/glassboxhq/glassbox/internal/ownserver"
)

// trial is one run of a client's scenario.
type trial struct {
	client  *matrix.Client
	way     matrix.Way
	program string
	result  *matrix.Result
}

// bench is where the trials take place.
type bench struct {
	server   *ownserver.Server
	key      glassbox.Secret
	program  string // glassbox
	dir      string
	progress io.Writer
}

const (
	atOnce  = 2
	timeout = 8 * time.Minute // of a trial; the longest takes a minute on two idle cores
)

// runAll runs the trials, some at once. One that cannot be run ends all.
func (b *bench) runAll(ctx context.Context, trials []*trial) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	next := make(chan *trial, len(trials))
	for _, t := range trials {
		next <- t
	}
	close(next)
	var workers sync.WaitGroup
	for range atOnce {
		workers.Go(func() {
			for t := range next {
				if err := b.run(ctx, t); err != nil {
					stop(fmt.Errorf("%s %s: %w", t.client.Name, t.way, err))
					return
				}
			}
		})
	}
	workers.Wait()
	return context.Cause(ctx)
}

func (b *bench) run(ctx context.Context, t *trial) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	began := time.Now()
	home, err := os.MkdirTemp(b.dir, "home-")
	if err != nil {
		return err
	}
	script := filepath.Join(scenarios, t.client.Script)
	if t.client.Python == "" {
		if script, err = forNode(script, t.program, home); err != nil {
			return err
		}
	}
	cmd := exec.CommandContext(ctx, t.program, script)
	if t.way == matrix.Proxy {
		cmd.Args = append(cmd.Args, "--proxy")
	}
	// Nothing of this user's settings, above all no proxy for loopback.
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + home, "LANG=C.UTF-8", "PYTHONDONTWRITEBYTECODE=1",
		"CL_URL=" + b.server.URL, "CL_KEY=" + string(b.key), "CL_IMAGE=" + image,
		"GLASSBOX=" + b.program, "GLASSBOX_STATE_DIR=" + b.server.State(),
	}, t.client.Env...)
	// What a client started ends with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	if context.Cause(ctx) != nil {
		err = context.Cause(ctx)
	}
	if err == nil {
		t.result, err = b.read(t, stdout.String())
	}
	if err != nil {
		return fmt.Errorf("%w\n%s", err, tail(stdout.String()+stderr.String()))
	}
	fmt.Fprintf(b.progress, "%s %s: %.0f s\n", t.client.Name, t.way, time.Since(began).Seconds())
	return nil
}

// forNode puts a script where Node.js finds the packages of its environment:
// beside node_modules.
func forNode(script, program, dir string) (string, error) {
	text, err := os.ReadFile(script)
	if err != nil {
		return "", err
	}
	modules := filepath.Join(filepath.Dir(filepath.Dir(program)), "node_modules")
	placed := filepath.Join(dir, filepath.Base(script))
	return placed, errors.Join(os.Symlink(modules, filepath.Join(dir, "node_modules")), os.WriteFile(placed, text, 0o600))
}

// read reads what a scenario has printed, and tells the reasons of failures
// that are not known.
func (b *bench) read(t *trial, output string) (*matrix.Result, error) {
	result, reasons, err := matrix.Parse(output)
	if err != nil {
		return nil, err
	}
	if result.Passed+len(result.Failed) == 0 {
		return nil, errors.New("no step was run")
	}
	for _, step := range result.Failed {
		if t.client.Why(step) == "" {
			fmt.Fprintf(b.progress, "%s %s: %s: %s\n", t.client.Name, t.way, step, reasons[step])
		}
	}
	return result, nil
}

// tail returns the last lines of what a program printed.
func tail(text string) string {
	const lines = 30
	all := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
