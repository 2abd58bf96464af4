package sandboxtest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/glassboxhq/glassbox/sandbox"
)

var size = sandbox.TerminalSize{Columns: 100, Rows: 30}

func testTerminals(t *testing.T, open Open) {
	s := open(t)
	starter, ok := s.(sandbox.Starter)
	if !ok || !s.Capabilities().Terminals {
		t.Skip("the session has no terminals")
	}
	t.Run("command", func(t *testing.T) { testTerminalCommand(t, s) })
	t.Run("shell", func(t *testing.T) { testShell(t, s, starter) })
	if attacher, ok := s.(sandbox.Attacher); ok && s.Capabilities().Attach {
		t.Run("many", func(t *testing.T) { testViewers(t, starter, attacher) })
	}
	t.Run("bad size", func(t *testing.T) {
		for _, bad := range []sandbox.TerminalSize{{}, {Columns: 80}, {Columns: 80, Rows: 20_000}} {
			_, err := s.Run(t.Context(), &sandbox.Command{Line: "true", Terminal: &bad})
			if e, ok := errors.AsType[*sandbox.Error](err); !ok || e.Field != "terminal" {
				t.Errorf("%+v: got %v, want it refused", bad, err)
			}
		}
	})
}

func testTerminalCommand(t *testing.T, s sandbox.Session) {
	for _, tt := range []struct {
		name   string
		cmd    sandbox.Command
		stdout string
		exit   int
	}{
		{name: "size", cmd: line("test -t 0 && test -t 1 && test -t 2 && stty size"), stdout: "30 100\r\n"},
		{name: "both streams are one", cmd: line("echo o; echo e >&2"), stdout: "o\r\ne\r\n"},
		{name: "code", cmd: line("printf x; exit 7"), stdout: "x", exit: 7},
		{name: "FB-015 slow character", cmd: line(`printf '\342'; sleep 0.05; printf '\234'; sleep 0.05; printf '\223'`), stdout: "✓"},
		{name: "input and its end", cmd: sandbox.Command{Line: "stty -echo; cat; echo end", Stdin: strings.NewReader("one\n")}, stdout: "one\r\nend\r\n"},
		{name: "argument list", cmd: sandbox.Command{Args: []string{"printf", "%s", "$HOME"}}, stdout: "$HOME"},
		{name: "FB-031 unknown program", cmd: sandbox.Command{Args: []string{"no-such-cmd-xyz"}}, stdout: "no-such-cmd-xyz: command not found\n", exit: 127},
		{name: "who keeps it holds nothing up", cmd: line("(trap '' HUP; sleep 20) & echo hi"), stdout: "hi\r\n"},
		{name: "much", cmd: line("seq 1 20000 | tail -c 100000 | wc -c | tr -d ' '; seq 1 100000 | sum >&2; seq 1 50000 >/dev/tty; echo end"), stdout: "*end\r\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.cmd.Terminal, tt.cmd.Timeout = &size, 20*time.Second
			began := time.Now()
			res := run(t, s, &tt.cmd)
			got := string(res.Stdout)
			if tail, ok := strings.CutPrefix(tt.stdout, "*"); ok {
				if n := strings.Count(got, "\r\n"); !strings.HasSuffix(got, tail) || n != 50_003 {
					t.Errorf("got %d lines, want 50003 and the last to be %q", n, tail)
				}
			} else if tt.name == "input and its end" {
				got = strings.TrimPrefix(got, "one\r\n") // shown where it was typed before the echo was off
				got, tt.stdout = strings.TrimPrefix(got, "one\r\n"), "end\r\n"
			}
			if !strings.HasPrefix(tt.stdout, "*") && got != tt.stdout || len(res.Stderr) > 0 || res.ExitCode != tt.exit {
				t.Errorf("got %q, %q and code %d, want %q and %d", res.Stdout, res.Stderr, res.ExitCode, tt.stdout, tt.exit)
			}
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
}

// screen reads what a terminal shows.
type screen struct {
	sandbox.Process
	seen []byte
}

// until reads on until the text has been shown, after what was found before.
func (s *screen) until(t *testing.T, pattern string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	defer cancel()
	want := regexp.MustCompile(pattern)
	for {
		if at := want.FindIndex(s.seen); at != nil {
			found := string(s.seen[at[0]:at[1]])
			s.seen = s.seen[at[1]:]
			return found
		}
		c, err := s.Next(ctx)
		if err != nil {
			t.Fatalf("wait for %q: %v after %q", pattern, err, s.seen)
		}
		s.seen = append(s.seen, c.Data...)
	}
}

func (s *screen) write(t *testing.T, text string) {
	t.Helper()
	if _, err := io.WriteString(s.Stdin(), text); err != nil {
		t.Fatalf("type %q: %v", text, err)
	}
}

func openShell(t *testing.T, s sandbox.Starter) *screen {
	t.Helper()
	sh := &screen{Process: start(t, s, &sandbox.Command{Terminal: &size, StdinPipe: true, Detached: true, Env: map[string]string{"PS1": "ready> "}})}
	t.Cleanup(func() { _ = sh.Stop(context.Background()) })
	sh.write(t, "PS1='ok> '\n") // whatever the shell's own files say
	sh.until(t, "ok> $")
	return sh
}

func testShell(t *testing.T, s sandbox.Session, starter sandbox.Starter) {
	sh := openShell(t, starter)
	sh.write(t, "echo $((6*7))$TERM\n")
	sh.until(t, "42xterm-256color\r\n")
	t.Run("Ctrl-C", func(t *testing.T) {
		sh.write(t, "sh -c \"echo beg''un; exec sleep 100\"\n")
		sh.until(t, "begun\r\n")
		sh.write(t, "\x03")
		sh.until(t, "ok> ")
		sh.write(t, "echo code-$?\n")
		sh.until(t, "code-130\r\n")
	})
	t.Run("signal", func(t *testing.T) {
		sh.write(t, "sh -c \"echo beg''un; exec sleep 100\"\n")
		sh.until(t, "begun\r\n")
		if err := sh.Signal(t.Context(), "INT"); err != nil {
			t.Fatal(err)
		}
		sh.until(t, "ok> ")
		sh.write(t, "echo code-$?\n")
		sh.until(t, "code-130\r\n")
	})
	t.Run("resize", func(t *testing.T) {
		term, ok := sh.Process.(sandbox.Terminal)
		if !ok {
			t.Fatal("a process on a terminal is no sandbox.Terminal")
		}
		if err := term.Resize(t.Context(), sandbox.TerminalSize{Columns: 71, Rows: 17}); err != nil {
			t.Fatal(err)
		}
		sh.write(t, "stty size\n")
		sh.until(t, "17 71\r\n")
		if err := term.Resize(t.Context(), sandbox.TerminalSize{}); !errors.Is(err, sandbox.ErrInvalid) {
			t.Errorf("no size at all: got %v, want it refused", err)
		}
	})
	t.Run("stop ends its jobs", func(t *testing.T) {
		sh.write(t, "sleep 1000 & echo job-$!-\n")
		pid := strings.Trim(sh.until(t, `job-\d+-`), "job-")
		if err := sh.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, reader{t.Context(), sh}); err != nil {
			t.Error(err)
		}
		if res, err := sh.Wait(t.Context()); err != nil || res.Status != sandbox.Cancelled {
			t.Errorf("got %+v, %v, want it stopped", res, err)
		}
		res := run(t, s, &sandbox.Command{Line: "for i in $(seq 100); do kill -0 " + pid + " 2>/dev/null || exit 0; sleep 0.05; done; exit 1"})
		if res.ExitCode != 0 {
			t.Error("a job of the shell lives on")
		}
	})
	t.Run("exit", func(t *testing.T) {
		sh := openShell(t, starter)
		sh.write(t, "exit 5\n")
		if _, err := io.Copy(io.Discard, reader{t.Context(), sh}); err != nil {
			t.Error(err)
		}
		if res, err := sh.Wait(t.Context()); err != nil || res.ExitCode != 5 {
			t.Errorf("got %+v, %v, want code 5", res, err)
		}
		if _, err := sh.Stdin().Write([]byte("x")); err == nil {
			t.Error("what has ended takes input")
		}
	})
}

// reader reads the output of a process.
type reader struct {
	ctx context.Context //nolint:containedctx // of a test
	p   sandbox.Process
}

func (r reader) Read(b []byte) (int, error) {
	c, err := r.p.Next(r.ctx)
	return copy(b, c.Data), err
}

// testViewers has two clients on one terminal.
func testViewers(t *testing.T, s sandbox.Starter, a sandbox.Attacher) {
	first := openShell(t, s)
	first.write(t, "echo fir''st\n")
	first.until(t, "first\r\n")
	attach := func(from sandbox.Offsets) *screen {
		p, err := a.Attach(t.Context(), first.ID(), from)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { p.Close() })
		return &screen{Process: p}
	}
	second := attach(sandbox.Offsets{})
	second.until(t, "first\r\n")
	t.Run("one types", func(t *testing.T) {
		_, err := io.WriteString(second.Stdin(), "echo second\n")
		if e, ok := errors.AsType[*sandbox.Error](err); !ok || e.Code != sandbox.CodeTerminalBusy {
			t.Errorf("got %v, want that the first has the keyboard", err)
		}
		if err := second.Process.(sandbox.Terminal).Resize(t.Context(), size); !errors.Is(err, sandbox.ErrConflict) {
			t.Errorf("resize: got %v, want a conflict", err)
		}
		if err := second.Process.(sandbox.Terminal).Take(t.Context()); err != nil {
			t.Fatal(err)
		}
		second.write(t, "echo sec''ond\n")
		second.until(t, "second\r\n")
		first.until(t, "second\r\n")
		if _, err := io.WriteString(first.Stdin(), "x"); !errors.Is(err, sandbox.ErrConflict) {
			t.Errorf("the first: got %v, want a conflict", err)
		}
		if err := first.Process.(sandbox.Terminal).Take(t.Context()); err != nil {
			t.Fatal(err)
		}
		first.write(t, "echo thi''rd\n")
		second.until(t, "third\r\n")
	})
	t.Run("goes on without clients", func(t *testing.T) {
		first.write(t, "sleep 0.3; echo al''one; touch alone\n")
		first.until(t, "sleep")
		first.Close()
		second.Close()
		run(t, s.(sandbox.Session), &sandbox.Command{Line: "until test -e alone; do sleep 0.05; done"})
		third := attach(sandbox.Offsets{Stdout: -200})
		third.until(t, "alone\r\n")
		if bytes.Contains(third.seen, []byte("first")) {
			t.Error("more was shown than the tail that was asked for")
		}
		third.write(t, "exit 3\n") // who is gone has no keyboard
		if _, err := io.Copy(io.Discard, reader{t.Context(), third}); err != nil {
			t.Error(err)
		}
		if res, err := third.Wait(t.Context()); err != nil || res.ExitCode != 3 {
			t.Errorf("got %+v, %v, want code 3", res, err)
		}
	})
}
