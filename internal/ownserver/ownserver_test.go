package ownserver_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/glassboxhq/glassbox/internal/ownserver"
)

// What does not serve leaves nothing behind, and what it said is told.
func TestStartFails(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, program, says string }{
		{"ends at once", "#!/bin/sh\necho no port is free >&2\nexit 1\n", "server: no port is free"},
		{"is no program", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			program, dir := filepath.Join(t.TempDir(), "glassbox"), filepath.Join(t.TempDir(), "own")
			if err := errors.Join(os.WriteFile(program, []byte(tt.program), 0o700), os.Mkdir(dir, 0o700)); err != nil {
				t.Fatal(err)
			}
			var log bytes.Buffer
			s, err := ownserver.Start(&ownserver.Options{Program: program, Dir: dir, Log: &log})
			if err == nil || s != nil {
				t.Errorf("got %v, %v, want an error", s, err)
			}
			if !strings.Contains(log.String(), tt.says) {
				t.Errorf("it told %q, want %q", log.String(), tt.says)
			}
			if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("its folder: %v, want it gone", err)
			}
		})
	}
}
