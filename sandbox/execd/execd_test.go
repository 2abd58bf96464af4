package execd_test

import (
	"context"
	"errors"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	server "github.com/glassboxhq/glassbox/internal/execd"
	"github.com/glassboxhq/glassbox/record"
	"github.com/glassboxhq/glassbox/sandbox"
	"github.com/glassboxhq/glassbox/sandbox/execd"
	"github.com/glassboxhq/glassbox/sandbox/native"
)

// open returns a session with an execd that works in a folder of this machine.
func open(t *testing.T) (s *execd.Session, dir string) {
	t.Helper()
	dir = t.TempDir()
	inner, err := native.New(&native.Options{Workdir: dir})
	if err != nil {
		t.Fatal(err)
	}
	session := record.New(inner, nil, nil)
	srv := httptest.NewServer(server.New(session, nil, &server.Options{Open: true, Home: dir, Dir: t.TempDir()}))
	t.Cleanup(func() {
		srv.Close()
		if err := session.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return execd.New(srv.URL, &execd.Options{Workdir: dir}), dir
}

func TestRun(t *testing.T) {
	t.Parallel()
	s, dir := open(t)
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	type facts struct {
		Status         sandbox.Status
		ExitCode       int
		Signal         string
		Stdout, Stderr string
	}
	for _, tt := range []struct {
		name string
		cmd  sandbox.Command
		want facts
	}{
		{"lines", sandbox.Command{Line: `printf 'a\n\n\nb\n'`}, facts{Status: sandbox.Succeeded, Stdout: "a\n\n\nb\n"}},
		{"no last newline", sandbox.Command{Line: `printf 'a\nb'`}, facts{Status: sandbox.Succeeded, Stdout: "a\nb\n"}},
		{"both streams", sandbox.Command{Line: "echo o; echo e >&2; exit 3"}, facts{Status: sandbox.Unsuccessful, ExitCode: 3, Stdout: "o\n", Stderr: "e\n"}},
		{"arguments", sandbox.Command{Args: []string{"printf", "%s|", "a b", "$HOME", "'"}}, facts{Status: sandbox.Succeeded, Stdout: "a b|$HOME|'|\n"}},
		{"directory", sandbox.Command{Line: `basename "$PWD"`, Dir: "sub"}, facts{Status: sandbox.Succeeded, Stdout: "sub\n"}},
		{"environment", sandbox.Command{Line: `echo "$K"`, Env: map[string]string{"K": "v 1"}}, facts{Status: sandbox.Succeeded, Stdout: "v 1\n"}},
		{"killed", sandbox.Command{Line: "kill -9 $$"}, facts{Status: sandbox.Unsuccessful, ExitCode: 137, Signal: "KILL"}},
		{"timeout", sandbox.Command{Line: "echo begun; sleep 60", Timeout: 300 * time.Millisecond}, facts{Status: sandbox.TimedOut, ExitCode: 137, Signal: "KILL", Stdout: "begun\n"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			res, err := s.Run(t.Context(), &tt.cmd)
			if err != nil {
				t.Fatal(err)
			}
			got := facts{res.Status, res.ExitCode, res.Signal, string(res.Stdout), string(res.Stderr)}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
			if res.Recording != sandbox.NotRecorded {
				t.Errorf("got recording %q", res.Recording)
			}
		})
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	s, dir := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	w := writes(cancel)
	res, err := s.Run(ctx, &sandbox.Command{Line: "echo begun; sleep 60; touch ended", Stdout: w})
	if !errors.Is(err, sandbox.ErrCancelled) || res.Status != sandbox.Cancelled || string(res.Stdout) != "begun\n" {
		t.Errorf("got %+v, %v, want it stopped, with what it had printed", res, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "ended")); err == nil {
		t.Error("the command went on")
	}
}

// writes calls what it is when something is written.
type writes func()

func (w writes) Write(p []byte) (int, error) {
	w()
	return len(p), nil
}

func TestUnsupported(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	for name, cmd := range map[string]*sandbox.Command{
		"input":    {Line: "cat", Stdin: strings.NewReader("x")},
		"terminal": {Line: "tty", Terminal: &sandbox.TerminalSize{Columns: 80, Rows: 24}},
		"detached": {Line: "sleep 1", Detached: true},
	} {
		if p, err := s.Start(t.Context(), cmd); !errors.Is(err, sandbox.ErrUnsupported) {
			t.Errorf("%s: got %v, %v, want it unsupported", name, p, err)
		}
	}
	if _, err := s.Run(t.Context(), &sandbox.Command{Line: "true", Dir: "nowhere"}); !errors.Is(err, sandbox.ErrInvalid) {
		t.Errorf("no such directory: got %v", err)
	}
	for _, name := range []string{"a$b", "~/x"} {
		if _, err := s.Read(t.Context(), name, nil); name[0] != '~' && !errors.Is(err, sandbox.ErrUnsupported) {
			t.Errorf("%s: got %v, want it unsupported", name, err)
		}
	}
}

func TestFiles(t *testing.T) {
	t.Parallel()
	s, dir := open(t)
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	first, err := s.Write(t.Context(), "sub/研究员 every.bin", strings.NewReader(string(every)), &sandbox.WriteOptions{Mode: 0o751})
	if err != nil || first.Size != 256 {
		t.Fatalf("write: got %+v, %v", first, err)
	}
	read := func(opts *sandbox.ReadOptions) string {
		t.Helper()
		f, err := s.Read(t.Context(), "sub/研究员 every.bin", opts)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		text, err := io.ReadAll(f)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if got := read(nil); got != string(every) {
		t.Errorf("got %x, want every byte once", got)
	}
	if got := read(&sandbox.ReadOptions{Offset: 250, Length: 3}); got != string(every[250:253]) {
		t.Errorf("range: got %x", got)
	}
	if got := read(&sandbox.ReadOptions{Offset: 999}); got != "" {
		t.Errorf("beyond the end: got %x", got)
	}
	list, err := s.List(t.Context(), "sub")
	if err != nil || len(list) != 1 || filepath.Base(list[0].Path) != "研究员 every.bin" || list[0].Mode != 0o751 || list[0].Size != 256 {
		t.Errorf("list: got %+v, %v, want the one file, and nothing left beside it", list, err)
	}
	if _, err := s.Write(t.Context(), "sub/研究员 every.bin", strings.NewReader("x"), &sandbox.WriteOptions{IfHash: sandbox.Absent}); !errors.Is(err, sandbox.ErrExists) {
		t.Errorf("write of what must be new: got %v", err)
	}
	if _, err := s.Write(t.Context(), "sub/研究员 every.bin", strings.NewReader("x"), &sandbox.WriteOptions{IfHash: strings.Repeat("0", 64)}); !errors.Is(err, sandbox.ErrConflict) {
		t.Errorf("write over another: got %v", err)
	}
	if _, err := s.Write(t.Context(), "sub/研究员 every.bin", strings.NewReader("new"), &sandbox.WriteOptions{IfHash: first.SHA256}); err != nil || read(nil) != "new" {
		t.Errorf("write over the expected: got %v", err)
	}
	if info, err := os.Stat(filepath.Join(dir, "sub/研究员 every.bin")); err != nil || info.Mode().Perm() != 0o751 {
		t.Errorf("got %v, %v, want the mode kept", info, err)
	}
	for _, tt := range []struct {
		name string
		err  error
		want error
	}{
		{"write over a directory", second(s.Write(t.Context(), "sub", strings.NewReader("x"), nil)), sandbox.ErrIsDirectory},
		{"read a directory", second(s.Read(t.Context(), "sub", nil)), sandbox.ErrIsDirectory},
		{"read what is not there", second(s.Read(t.Context(), "nothing", nil)), sandbox.ErrNotFound},
		{"list what is not there", second(s.List(t.Context(), "nothing")), sandbox.ErrNotFound},
		{"remove what is not there", s.Remove(t.Context(), "nothing", nil), sandbox.ErrNotFound},
		{"remove a full directory", s.Remove(t.Context(), "sub", nil), sandbox.ErrState},
		{"remove the working directory", s.Remove(t.Context(), ".", &sandbox.RemoveOptions{Recursive: true}), sandbox.ErrPermission},
	} {
		if !errors.Is(tt.err, tt.want) {
			t.Errorf("%s: got %v, want %v", tt.name, tt.err, tt.want)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("got %v, %v, want nothing left of what was refused", left, err)
	}
	if err := s.Remove(t.Context(), "sub", &sandbox.RemoveOptions{Recursive: true}); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "sub")); err == nil {
		t.Error("the directory is there still")
	}
}

func second[T any](_ T, err error) error { return err }
