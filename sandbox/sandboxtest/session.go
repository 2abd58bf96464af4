// Package sandboxtest is the conformance suite of sandbox sessions.
//
//	func TestSession(t *testing.T) {
//		sandboxtest.TestSession(t, func(t *testing.T) sandbox.Session { return open(t) })
//	}
//
// The suite is what the ports of package sandbox promise, and the faults that
// the field has seen, numbered FB-nnn.
package sandboxtest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/glassboxhq/glassbox/sandbox"
)

// Open returns a fresh session, whose working directory is empty, and ends it
// with the test.
type Open func(t *testing.T) sandbox.Session

// TestSession runs the suite. A session with fewer capabilities is asked less.
func TestSession(t *testing.T, open Open) {
	t.Run("Commands", func(t *testing.T) { testCommands(t, open) })
	t.Run("Streams", func(t *testing.T) { testStreams(t, open) })
	t.Run("Stop", func(t *testing.T) { testStop(t, open) })
	t.Run("Terminals", func(t *testing.T) { testTerminals(t, open) })
	t.Run("Files", func(t *testing.T) { testFiles(t, open) })
	t.Run("FileRanges", func(t *testing.T) { testLines(t, open(t)) })
	t.Run("FileDiff", func(t *testing.T) { testDiff(t, open(t)) })
	t.Run("FileAppend", func(t *testing.T) { testAppend(t, open(t)) })
	t.Run("FileEdit", func(t *testing.T) { testEdit(t, open(t)) })
	t.Run("FileTree", func(t *testing.T) { testTree(t, open(t)) })
	t.Run("FileGlob", func(t *testing.T) { testGlob(t, open(t)) })
	t.Run("FileCircles", func(t *testing.T) { testCircles(t, open(t)) })
	t.Run("FileGrep", func(t *testing.T) { testGrep(t, open(t)) })
	t.Run("FileDownload", func(t *testing.T) { testDownload(t, open(t)) })
	t.Run("FileUpload", func(t *testing.T) { testUpload(t, open(t)) })
	t.Run("Invalid", func(t *testing.T) { testInvalid(t, open) })
}

type commandCase struct {
	name           string
	cmd            sandbox.Command
	stdout, stderr string
	exit           int
}

func commandCases() []commandCase {
	return []commandCase{
		{name: "FB-001 no last newline", cmd: line(`printf 'a\nlast-no-nl'`), stdout: "a\nlast-no-nl"},
		{name: "FB-001 one byte", cmd: line("printf x"), stdout: "x"},
		{name: "FB-001 stderr", cmd: line("printf e >&2"), stderr: "e"},
		{name: "FB-003 slow line", cmd: line("for i in 1 2 3 4 5; do printf part$i; sleep 0.05; done; echo"), stdout: "part1part2part3part4part5\n"},
		{name: "FB-011 no newline and a code", cmd: line("printf 7; exit 3"), stdout: "7", exit: 3},
		{name: "FB-011 marker in the output", cmd: line("printf '__EXIT__0'; exit 4"), stdout: "__EXIT__0", exit: 4},
		{name: "FB-015 slow character", cmd: line(`printf '\342'; sleep 0.05; printf '\234'; sleep 0.05; printf '\223\n'`), stdout: "✓\n"},
		{name: "FB-015 half a character", cmd: line(`printf '\342'`), stdout: "\342"},
		{name: "blank lines and invalid bytes", cmd: line(`printf 'a\n\n\377 b'; printf e >&2; exit 3`), stdout: "a\n\n\377 b", stderr: "e", exit: 3},
		{name: "carriage returns", cmd: line(`printf 'a\r\nb\rc\n\n\n'`), stdout: "a\r\nb\rc\n\n\n"},
		{name: "NUL bytes", cmd: line(`printf 'a\000b'`), stdout: "a\x00b"},
		{name: "FB-031 unknown program", cmd: line("no-such-cmd-xyz 2>/dev/null"), exit: 127},
		{name: "FB-031 killed", cmd: line("kill -9 $$"), exit: 137},
		{name: "FB-051 cat without input", cmd: line("cat")},
		{name: "FB-051 read without input", cmd: line("read x; echo rc=$?"), stdout: "rc=1\n"},
		{name: "FB-051 count without input", cmd: line("wc -c | tr -d ' '"), stdout: "0\n"},
		{name: "FB-051 shell without input", cmd: line("sh -s")},
		{name: "FB-053 heredoc", cmd: line("cat <<'EOF'\nhello\nEOF\necho a # c"), stdout: "hello\na\n"},
		{name: "argument list", cmd: sandbox.Command{Args: []string{"printf", "%s|", "a b", "$HOME", "'", "*"}}, stdout: "a b|$HOME|'|*|"},
		{name: "FB-031 argument list, unknown program", cmd: sandbox.Command{Args: []string{"no-such-cmd-xyz"}}, stderr: "no-such-cmd-xyz: command not found\n", exit: 127},
		{name: "environment is literal", cmd: sandbox.Command{Line: `printf '[%s]' "$K"`, Env: map[string]string{"K": "v 1\n$x\"=`"}}, stdout: "[v 1\n$x\"=`]"},
		{name: "empty value", cmd: sandbox.Command{Line: `printf '[%s]' "${K-unset}"`, Env: map[string]string{"K": ""}}, stdout: "[]"},
		{name: "input", cmd: sandbox.Command{Line: "cat; echo end", Stdin: strings.NewReader("one\ntwo")}, stdout: "one\ntwoend\n"},
		{name: "input that is not read", cmd: sandbox.Command{Line: "true", Stdin: strings.NewReader(strings.Repeat("x", 1<<20))}},
		{name: "runs once", cmd: line("echo x >> runs.txt; cat runs.txt"), stdout: "x\n"},
		{name: "Chinese", cmd: line("echo 研究员"), stdout: "研究员\n"},
	}
}

func line(s string) sandbox.Command { return sandbox.Command{Line: s} }

func testCommands(t *testing.T, open Open) {
	s := open(t)
	for _, tt := range commandCases() {
		t.Run(tt.name, func(t *testing.T) {
			res, err := s.Run(t.Context(), &tt.cmd)
			if err != nil {
				t.Fatal(err)
			}
			want := &sandbox.Result{Status: sandbox.Succeeded, ExitCode: tt.exit, Stdout: []byte(tt.stdout), Stderr: []byte(tt.stderr)}
			if tt.exit != 0 {
				want.Status = sandbox.Unsuccessful
			}
			checkResult(t, res, want)
		})
	}
	t.Run("long command runs from a file", func(t *testing.T) {
		text := strings.Repeat("x", 2<<20)
		res := run(t, s, &sandbox.Command{Line: "v=" + text + "; printf %s ${#v}"})
		checkResult(t, res, &sandbox.Result{Status: sandbox.Succeeded, Stdout: []byte("2097152")})
	})
	t.Run("FB-045 bounded result", func(t *testing.T) {
		for _, size := range []int{1 << 20, 2 << 20} {
			res := run(t, s, &sandbox.Command{Line: "head -c " + itoa(size) + " /dev/zero | tr '\\0' b"})
			if got, want := res.Truncated, size > 1<<20; got != want || len(res.Stdout) > 1<<20 || res.StdoutBytes != int64(size) {
				t.Errorf("%d bytes: got truncated %v with %d of %d bytes, want %v", size, got, len(res.Stdout), res.StdoutBytes, want)
			}
		}
	})
	t.Run("FB-037 directory", func(t *testing.T) {
		run(t, s, &sandbox.Command{Line: "mkdir 'my dir'"})
		res := run(t, s, &sandbox.Command{Line: "basename \"$PWD\"", Dir: "my dir"})
		checkResult(t, res, &sandbox.Result{Status: sandbox.Succeeded, Stdout: []byte("my dir\n")})
	})
	t.Run("FB-059 interactive shell", func(t *testing.T) {
		start := time.Now()
		res := run(t, s, &sandbox.Command{Line: "sh -ic 'echo hi' 2>/dev/null", Timeout: 10 * time.Second})
		checkResult(t, res, &sandbox.Result{Status: sandbox.Succeeded, Stdout: []byte("hi\n")})
		if took := time.Since(start); took > 3*time.Second {
			t.Errorf("took %v, want less than 3 s", took)
		}
	})
}

// run runs a command that must end.
func run(t *testing.T, s sandbox.Session, cmd *sandbox.Command) *sandbox.Result {
	t.Helper()
	res, err := s.Run(t.Context(), cmd)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// checkResult compares what does not differ from run to run.
func checkResult(t *testing.T, got, want *sandbox.Result) {
	t.Helper()
	type facts struct {
		Status         sandbox.Status
		ExitCode       int
		Stdout, Stderr string
		Truncated      bool
	}
	of := func(r *sandbox.Result) facts {
		return facts{r.Status, r.ExitCode, string(r.Stdout), string(r.Stderr), r.Truncated}
	}
	if diff := cmp.Diff(of(want), of(got)); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
	if got.StdoutBytes < int64(len(got.Stdout)) || got.StderrBytes < int64(len(got.Stderr)) || got.StartedAt.IsZero() || got.Duration < 0 {
		t.Errorf("got counts %d and %d, start %v, duration %v", got.StdoutBytes, got.StderrBytes, got.StartedAt, got.Duration)
	}
}

func testInvalid(t *testing.T, open Open) {
	s := open(t)
	for _, tt := range []struct {
		name, field string
		cmd         sandbox.Command
	}{
		{"nothing to run", "command", sandbox.Command{}},
		{"both", "command", sandbox.Command{Line: "a", Args: []string{"b"}}},
		{"NUL in the command", "command", line("a\x00b")},
		{"NUL in an argument", "args", sandbox.Command{Args: []string{"a", "\x00"}}},
		{"not UTF-8", "command", line("echo \xff")},
		{"env with =", "env", sandbox.Command{Line: "true", Env: map[string]string{"A=B": "c"}}},
		{"env with NUL", "env", sandbox.Command{Line: "true", Env: map[string]string{"A": "\x00"}}},
		{"env without name", "env", sandbox.Command{Line: "true", Env: map[string]string{"": "x"}}},
		{"no such directory", "cwd", sandbox.Command{Line: "true", Dir: "nowhere/at/all"}},
		{"negative timeout", "timeout", sandbox.Command{Line: "true", Timeout: -1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			res, err := s.Run(t.Context(), &tt.cmd)
			e, ok := errors.AsType[*sandbox.Error](err)
			if !ok || !errors.Is(err, sandbox.ErrInvalid) || e.Field != tt.field {
				t.Errorf("got %v and error %v, want an invalid %s", res, err, tt.field)
			}
		})
	}
	if res := run(t, s, &sandbox.Command{Line: "echo alive"}); string(res.Stdout) != "alive\n" {
		t.Errorf("after bad input: got %q, want alive", res.Stdout)
	}
}

// readAll reads the output of a process to its end, stream by stream.
func readAll(ctx context.Context, p sandbox.Process) (out, errs []byte, err error) {
	for {
		c, err := p.Next(ctx)
		if errors.Is(err, io.EOF) {
			return out, errs, nil
		}
		if err != nil {
			return out, errs, err
		}
		into := &out
		if c.Stream == sandbox.Stderr {
			into = &errs
		}
		if c.Offset != int64(len(*into)) {
			return out, errs, errors.New("a piece of output does not begin where the last one ended")
		}
		*into = append(*into, bytes.Clone(c.Data)...)
	}
}
