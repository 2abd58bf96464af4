package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/glassboxhq/glassbox/internal/ownserver"
)

// server is a local runtime of this source tree, with a state folder of its
// own.
type server struct {
	*ownserver.Server
	dir string
}

func (s *server) program(name string) string { return filepath.Join(s.dir, "bin", name) }

// The programs that take part, built as they are released.
var programs = map[string]string{
	"glassbox":          "./cmd/glassbox",
	"glassbox-recorder": "./cmd/glassbox-recorder",
	"guest":             "./internal/bench/guest",
}

func startServer(ctx context.Context, progress io.Writer) (_ *server, err error) {
	dir, err := os.MkdirTemp("", "glassbox-bench-")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	s := &server{dir: dir}
	for name, from := range programs {
		fmt.Fprintln(progress, "building", name)
		cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", s.program(name), from)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build %s: %w\n%s", name, err, out)
		}
	}
	s.Server, err = ownserver.Start(&ownserver.Options{
		Program: s.program("glassbox"), Recorder: s.program("glassbox-recorder"), Dir: dir, Log: progress,
	})
	return s, err
}
