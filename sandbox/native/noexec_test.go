package native_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/glassboxhq/glassbox/sandbox"
	"github.com/glassboxhq/glassbox/sandbox/native"
)

// FB-123: where nothing may be executed commands run all the same, also one
// that is too long for an argument list; only a program that lies there does
// not, which is told as a shell tells it.
func TestFB123NoExec(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root to mount a file system")
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOEXEC, "size=8m"); err != nil {
		t.Skipf("needs to mount a file system: %v", err)
	}
	defer func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	}()
	s := open(t, &native.Options{Workdir: dir, Scripts: dir})
	if err := os.WriteFile(filepath.Join(dir, "t"), []byte("#!/bin/sh\necho hi\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		cmd  *sandbox.Command
		code int
		out  string
	}{
		{"a line", &sandbox.Command{Line: "echo ran"}, 0, "ran"},
		{"a long line", &sandbox.Command{Line: "echo ran # " + strings.Repeat("x", 200_000)}, 0, "ran"},
		{"a script there, by a line", &sandbox.Command{Line: "./t"}, 126, "ermission denied"},
		{"a script there", &sandbox.Command{Args: []string{"./t"}}, 126, "permission denied"},
		{"a script there, by its interpreter", &sandbox.Command{Args: []string{"sh", "./t"}}, 0, "hi"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			res, err := s.Run(t.Context(), tt.cmd)
			if err != nil || res.ExitCode != tt.code || !strings.Contains(string(res.Stdout)+string(res.Stderr), tt.out) {
				t.Errorf("got %+v, %v, want %d with %q", res, err, tt.code, tt.out)
			}
		})
	}
}
