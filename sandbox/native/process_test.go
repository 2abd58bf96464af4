package native_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/glassboxhq/glassbox/sandbox"
	"github.com/glassboxhq/glassbox/sandbox/native"
)

func open(t *testing.T, opts *native.Options) *native.Session {
	t.Helper()
	mine := native.Options{}
	if opts != nil {
		mine = *opts
	}
	if mine.Workdir == "" {
		mine.Workdir = t.TempDir()
	}
	mine.Scripts = t.TempDir()
	s, err := native.New(&mine)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(t.Context()) })
	return s
}

func run(t *testing.T, s sandbox.Session, cmd *sandbox.Command) *sandbox.Result {
	t.Helper()
	res, err := s.Run(t.Context(), cmd)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// mark is a number that no other process has in its command line.
func mark() string { return strconv.Itoa(1_000_000 + rand.IntN(8_000_000)) }

// alive finds the processes whose command line holds a text, zombies left out.
func alive(t *testing.T, text string) (pids []int) {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		line, err := os.ReadFile("/proc/" + entry.Name() + "/cmdline")
		if pid, convErr := strconv.Atoi(entry.Name()); convErr == nil && err == nil && pid != os.Getpid() && strings.Contains(string(line), text) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// end kills such processes.
func end(t *testing.T, text string) {
	t.Helper()
	for _, pid := range alive(t, text) {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
}

// goneSoon waits for such processes to be gone.
func goneSoon(t *testing.T, text string) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	late := time.After(5 * time.Second)
	for len(alive(t, text)) > 0 {
		select {
		case <-tick.C:
		case <-late:
			t.Errorf("processes %v are left", alive(t, text))
			return
		}
	}
}

// The whole group is ended, whatever has become of its leader, and whether its
// members run, are stopped, or want nothing to do with TERM.
func TestGroup(t *testing.T) {
	s := open(t, nil)
	for name, line := range map[string]string{
		"members":                      "sleep MARK & sleep MARK | sleep MARK & wait",
		"the leader goes at TERM":      "(trap '' TERM; while :; do sleep 0.MARK; done) & trap 'exit 0' TERM; wait",
		"stopped members":              "sleep MARK & kill -STOP $!; sleep MARK",
		"a stopped leader":             "sleep MARK & kill -STOP $$; wait",
		"stopped and deaf to TERM":     "(trap '' TERM; kill -STOP $BASHPID; sleep MARK) & sleep MARK",
		"a grandchild with the output": "(sleep MARK & sleep MARK) & wait",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := mark()
			began := time.Now()
			res := run(t, s, &sandbox.Command{
				Line: strings.ReplaceAll(line, "MARK", m), Timeout: 300 * time.Millisecond, Grace: 300 * time.Millisecond,
			})
			if res.Status != sandbox.TimedOut {
				t.Errorf("got %+v, want a timeout", res)
			}
			goneSoon(t, m)
			if took := time.Since(began); took > 3*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
}

// A command is over when its leader is, although others go on: they are left
// alone, and who holds or fills the output does not matter.
func TestLeaderFirst(t *testing.T) {
	s := open(t, nil)
	for name, tt := range map[string]struct{ line, want string }{
		"FB-049 holds the pipe": {"sleep 0.MARK2 & sleep 1.MARK & echo started", "started\n"},
		"fills the pipe":        {"(exec -a yes-MARK yes MARK) & echo started", "started\n"},
		"fills it already":      {"(exec -a yes-MARK yes MARK) & head -c 1000 /dev/zero | tr '\\0' x; sleep 0.2", ""},
		"fills stderr":          {"(exec -a yes-MARK yes MARK >&2) & echo started", "started\n"},
		"several fill it":       {"for i in 1 2 3 4 5 6; do (exec -a yes-MARK yes MARK) & done; echo started", "started\n"},
	} {
		t.Run(name, func(t *testing.T) {
			m := mark()
			if _, err := os.Stat("/bin/bash"); err != nil {
				t.Skip("exec -a needs bash")
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			began := time.Now()
			res, err := s.Run(ctx, &sandbox.Command{Line: strings.ReplaceAll(tt.line, "MARK", m), MaxOutput: 64 << 20})
			if took := time.Since(began); err != nil || took > 2*time.Second {
				t.Fatalf("got %v after %v, want it over at once", err, took)
			}
			if res.Status != sandbox.Succeeded || !strings.Contains(string(res.Stdout), tt.want) {
				t.Errorf("got %+v, want %q and success", res.Status, tt.want)
			}
			if len(alive(t, m)) == 0 { // it may be between two programs
				<-time.After(100 * time.Millisecond)
				if len(alive(t, m)) == 0 {
					t.Error("what went on in the background was ended")
				}
			}
			end(t, m)
			goneSoon(t, m)
		})
	}
}

// What a command prints just before its end is there, although a grandchild
// holds the pipe.
func TestLastWords(t *testing.T) {
	s := open(t, nil)
	rounds := 200
	if testing.Short() {
		rounds = 50
	}
	m := "0." + mark()
	for i := range rounds {
		size := 1 + rand.IntN(200_000)
		line := fmt.Sprintf("sleep 5%s & head -c %d /dev/zero | tr '\\0' w; printf last%d; printf err%d >&2", m, size, i, i)
		res := run(t, s, &sandbox.Command{Line: line})
		if len(res.Stdout) != size+len(fmt.Sprint("last", i)) || !strings.HasSuffix(string(res.Stdout), fmt.Sprint("last", i)) || string(res.Stderr) != fmt.Sprint("err", i) {
			t.Fatalf("round %d: got %d bytes and %q, want %d and all of it", i, len(res.Stdout), res.Stderr, size)
		}
	}
}

// Input that nobody reads holds up neither the command nor us.
func TestInputNotRead(t *testing.T) {
	s := open(t, nil)
	run(t, s, &sandbox.Command{Line: "true"})
	before := runtime.NumGoroutine()
	m := mark()
	for name, line := range map[string]string{
		"exits at once":             "exit 3",
		"reads a little":            "head -c 10 > /dev/null; exit 3",
		"closes its input":          "exec <&-; sleep 0.05; exit 3",
		"a grandchild has it still": "exec 5<&0; sleep 3." + m + " <&5 & exit 3",
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			input := io.LimitReader(zeros{}, 50<<20)
			res := run(t, s, &sandbox.Command{Line: line, Stdin: input})
			if took := time.Since(began); res.ExitCode != 3 || took > 2*time.Second {
				t.Errorf("got %+v after %v, want code 3 at once", res, took)
			}
		})
	}
	p, err := s.Start(t.Context(), &sandbox.Command{Line: "exec 5<&0; sleep 3." + m + " <&5 & exit 0", StdinPipe: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if _, err := io.Copy(p.Stdin(), io.LimitReader(zeros{}, 1<<20)); err == nil || time.Since(began) > time.Second {
		t.Errorf("input after the end: got %v after %v, want it refused at once", err, time.Since(began))
	}
	p.Close()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	late := time.After(2 * time.Second)       // before the grandchildren end
	for runtime.NumGoroutine() > before+2*2 { // theirs, which keep their output drained
		select {
		case <-tick.C:
		case <-late:
			stacks := make([]byte, 1<<20)
			t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, stacks[:runtime.Stack(stacks, true)])
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// What Linux cannot pass to a program is refused by name.
func TestTooLongForAProgram(t *testing.T) {
	s := open(t, nil)
	for name, tt := range map[string]struct {
		cmd   sandbox.Command
		field string
	}{
		"one value":    {sandbox.Command{Line: "true", Env: map[string]string{"LONG": strings.Repeat("v", 200_000)}}, "env"},
		"one argument": {sandbox.Command{Args: []string{"true", strings.Repeat("v", 200_000)}}, "args"},
		"all of them":  {sandbox.Command{Args: append([]string{"true"}, many(40, strings.Repeat("v", 100_000))...)}, "args"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := s.Run(t.Context(), &tt.cmd)
			e, ok := errors.AsType[*sandbox.Error](err)
			if !ok || !errors.Is(err, sandbox.ErrInvalid) || e.Field != tt.field || strings.Contains(err.Error(), "vvvv") {
				t.Errorf("got %v, want an invalid %s", err, tt.field)
			}
		})
	}
	res := run(t, s, &sandbox.Command{Line: "printf %s ${#LONG}", Env: map[string]string{"LONG": strings.Repeat("v", 100_000)}})
	if string(res.Stdout) != "100000" {
		t.Errorf("got %q, want a value of 100000 bytes", res.Stdout)
	}
}

func many(n int, s string) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = s
	}
	return list
}

// A command of 2 MiB does what it says, and its file is removed.
func TestLongCommand(t *testing.T) {
	scripts := t.TempDir()
	s, err := native.New(&native.Options{Workdir: t.TempDir(), Scripts: scripts})
	if err != nil {
		t.Fatal(err)
	}
	var line strings.Builder
	for i := 0; line.Len() < 2<<20; i++ {
		fmt.Fprintf(&line, ": %d 研究员 '\n' \"$0\" $$ \\\n && echo %d\n", i, i)
	}
	n := strings.Count(line.String(), "echo")
	res := run(t, s, &sandbox.Command{Line: line.String() + "read x; echo [$x]; exit 7", Stdin: strings.NewReader("in\n")})
	if bytes.Count(res.Stdout, []byte("\n")) != n+1 || !strings.HasSuffix(string(res.Stdout), "[in]\n") || res.ExitCode != 7 {
		t.Errorf("got %d lines, code %d, want %d and 7", bytes.Count(res.Stdout, []byte("\n")), res.ExitCode, n+1)
	}
	if left, err := os.ReadDir(scripts); err != nil || len(left) > 0 {
		t.Errorf("got %v, %v, want nothing left", left, err)
	}
}

// Close waits for what was stopped, and no longer than it may.
func TestCloseWaits(t *testing.T) {
	s := open(t, nil)
	m := mark()
	p, err := s.Start(t.Context(), &sandbox.Command{Line: "trap '' TERM; sleep 0." + m + "; while :; do sleep 0.05; done", Grace: 400 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := s.Close(short); !errors.Is(err, sandbox.ErrTimeout) {
		t.Errorf("while it runs: got %v, want that it took too long", err)
	}
	p.Close()
	if err := s.Close(t.Context()); err != nil {
		t.Errorf("once it was stopped: %v", err)
	}
	goneSoon(t, "0."+m)
}
