package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	_ "embed"

	"github.com/glassboxhq/glassbox"
)

// task is what a worker is asked for, a line each.
type task struct {
	Do   string `json:"do"` // open, run, turns, many, write, read or close
	Line string `json:"line,omitempty"`
	N    int    `json:"n,omitempty"` // of commands, or bytes
	Path string `json:"path,omitempty"`
}

// done is its answer.
type done struct {
	N       int     `json:"n"` // bytes of output or content, or commands
	Seconds float64 `json:"seconds"`
	Peak    float64 `json:"peak"` // resident memory of the process so far, in bytes
	Error   string  `json:"error,omitempty"`
}

// worker is a client in a process of its own, so that its memory can be told.
type worker struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

//go:embed worker.py
var workerPython string

// startWorker starts a client of a service: ours, or one of a Python
// environment.
func startWorker(ctx context.Context, which, url, key string) (*worker, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	args := []string{self, "worker", url}
	if which != "glassbox" {
		python := os.Getenv(map[string]string{"official": "GLASSBOX_BENCH_OFFICIAL", "seed": "GLASSBOX_SEED_PYTHON"}[which])
		if python == "" {
			return nil, fmt.Errorf("there is no Python with the client %q: run make bench-opensandbox", which)
		}
		args = []string{python, "-c", workerPython, which, url, key}
	}
	w := &worker{cmd: exec.CommandContext(ctx, args[0], args[1:]...)}
	w.cmd.Env = append(os.Environ(), "GLASSBOX_API_KEY="+key)
	w.cmd.Stderr = os.Stderr
	if w.in, err = w.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	w.out = bufio.NewReader(out)
	return w, w.cmd.Start()
}

func (w *worker) do(t *task) (*done, error) {
	if err := json.NewEncoder(w.in).Encode(t); err != nil {
		return nil, err
	}
	line, err := w.out.ReadBytes('\n')
	if err != nil {
		return nil, fmt.Errorf("the client died: %w", err)
	}
	d := &done{}
	if err := json.Unmarshal(line, d); err != nil {
		return nil, err
	}
	if d.Error != "" {
		return nil, errors.New(d.Error)
	}
	return d, nil
}

// stop ends the client with its sandbox.
func (w *worker) stop() error {
	_, err := w.do(&task{Do: "close"})
	return errors.Join(err, w.in.Close(), w.cmd.Wait())
}

// work is such a client with our SDK. The service's key is in the environment.
func work(ctx context.Context, url string, in io.Reader, out io.Writer) error {
	c := &sdk{url: url}
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var t task
		if err := json.Unmarshal(lines.Bytes(), &t); err != nil {
			return err
		}
		began, d := time.Now(), &done{}
		n, err := c.act(ctx, &t)
		if d.N, d.Seconds = n, time.Since(began).Seconds(); err != nil {
			d.Error = err.Error()
		}
		var usage syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
			return err
		}
		d.Peak = float64(usage.Maxrss) * 1024
		if err := json.NewEncoder(out).Encode(d); err != nil {
			return err
		}
	}
	return nil
}

type sdk struct {
	url string
	box *glassbox.Sandbox
}

func (c *sdk) act(ctx context.Context, t *task) (n int, err error) {
	switch t.Do {
	case "open":
		c.box, err = glassbox.Create(ctx, c.url, &glassbox.Options{Concurrency: &glassbox.Concurrency{Commands: 32}})
		if err != nil {
			return 0, err
		}
		return c.run(ctx, "true")
	case "run":
		return c.run(ctx, t.Line)
	case "turns":
		for range t.N {
			if _, err := c.run(ctx, t.Line); err != nil {
				return 0, err
			}
		}
		return t.N, nil
	case "many":
		errs := make([]error, t.N)
		var all sync.WaitGroup
		for i := range t.N {
			all.Go(func() { _, errs[i] = c.run(ctx, t.Line) })
		}
		all.Wait()
		return t.N, errors.Join(errs...)
	case "write":
		data := make([]byte, t.N)
		_, _ = rand.Read(data)
		_, err = c.box.Write(ctx, t.Path, strings.NewReader(string(data)), nil)
		return t.N, err
	case "read":
		content, err := c.box.ReadFile(ctx, t.Path)
		return len(content), err
	case "close":
		return 0, c.box.Close(ctx)
	}
	return 0, fmt.Errorf("what is %q?", t.Do)
}

func (c *sdk) run(ctx context.Context, line string) (int, error) {
	res, err := c.box.Run(ctx, line, &glassbox.Command{MaxOutput: 64 << 20})
	if err := ended(res, err); err != nil {
		return 0, err
	}
	return len(res.Stdout), nil
}
