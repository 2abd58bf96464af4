package sandboxtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/glassboxhq/glassbox/sandbox"
)

func testStop(t *testing.T, open Open) {
	s := open(t)
	t.Run("timeout", func(t *testing.T) {
		began := time.Now()
		res := run(t, s, &sandbox.Command{Line: "echo before; sleep 6; echo after", Timeout: 300 * time.Millisecond})
		if res.Status != sandbox.TimedOut || string(res.Stdout) != "before\n" || res.Reason == "" {
			t.Errorf("got %+v, want a timeout and what was printed before it", res)
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("took %v, want about 0.3 s", took)
		}
	})
	t.Run("ignores TERM", func(t *testing.T) {
		began := time.Now()
		res := run(t, s, &sandbox.Command{
			Line: "trap '' TERM; echo here; while :; do sleep 0.1; done", Timeout: 200 * time.Millisecond, Grace: 500 * time.Millisecond,
		})
		if res.Status != sandbox.TimedOut || res.Signal != "KILL" || string(res.Stdout) != "here\n" {
			t.Errorf("got %+v, want a timeout ended by KILL", res)
		}
		if took := time.Since(began); took < 600*time.Millisecond || took > 3*time.Second {
			t.Errorf("took %v, want about 0.7 s", took)
		}
	})
	t.Run("cancel", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		w := writerFunc(func(p []byte) (int, error) { cancel(); return len(p), nil })
		res, err := s.Run(ctx, &sandbox.Command{Line: "echo before; sleep 30", Stdout: w})
		if !errors.Is(err, sandbox.ErrCancelled) || res == nil || res.Status != sandbox.Cancelled || string(res.Stdout) != "before\n" {
			t.Errorf("got %+v, %v, want it cancelled with what was printed", res, err)
		}
	})
	t.Run("FB-031 a signal of its own is no timeout", func(t *testing.T) {
		res := run(t, s, &sandbox.Command{Line: "kill -TERM $$", Timeout: 20 * time.Second})
		if res.Status != sandbox.Unsuccessful || res.Signal != "TERM" || res.ExitCode != 143 {
			t.Errorf("got %+v, want failed by TERM", res)
		}
	})
	t.Run("FB-049 a child keeps the pipe", func(t *testing.T) {
		for _, command := range []string{"sleep 12.25 & echo started", "sleep 1000.25 & echo started"} {
			began := time.Now()
			res := run(t, s, &sandbox.Command{Line: command, Timeout: 10 * time.Second})
			checkResult(t, res, &sandbox.Result{Status: sandbox.Succeeded, Stdout: []byte("started\n")})
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("%s: took %v, want less than 2 s", command, took)
			}
		}
		run(t, s, &sandbox.Command{Line: "pkill -f '^sleep 1(2|000).25' || true"})
	})
	t.Run("a child in the background lives on", func(t *testing.T) {
		run(t, s, &sandbox.Command{Line: "(sleep 0.3; echo late; echo done > late.txt) & echo now"})
		res := run(t, s, &sandbox.Command{Line: "sleep 0.8; cat late.txt"})
		if string(res.Stdout) != "done\n" {
			t.Errorf("got %q, want what the child wrote after it lost its reader", res.Stdout)
		}
	})
	t.Run("the whole group is ended", func(t *testing.T) {
		res := run(t, s, &sandbox.Command{Line: "sleep 321 & sleep 322 | sleep 323", Timeout: 200 * time.Millisecond})
		if res.Status != sandbox.TimedOut {
			t.Errorf("got %+v, want a timeout", res)
		}
		checkGone(t, s, "sleep 32[123]")
	})
	t.Run("FB-057 after timeouts", func(t *testing.T) {
		for range 3 {
			run(t, s, &sandbox.Command{Line: "sleep 100", Timeout: 50 * time.Millisecond})
		}
		if res := run(t, s, &sandbox.Command{Line: "echo alive"}); string(res.Stdout) != "alive\n" {
			t.Errorf("got %q, want alive", res.Stdout)
		}
	})
	t.Run("FB-065 cancelled early", func(t *testing.T) {
		mark := fmt.Sprintf("sleep 300.%d", rand.Uint32()) // what others left is not ours
		for _, after := range []time.Duration{0, time.Millisecond, 5 * time.Millisecond, 50 * time.Millisecond} {
			for range 5 {
				ctx, cancel := context.WithTimeout(t.Context(), after)
				_, err := s.Run(ctx, &sandbox.Command{Line: "exec " + mark})
				cancel()
				if !errors.Is(err, sandbox.ErrCancelled) && !errors.Is(err, sandbox.ErrTimeout) {
					t.Errorf("after %v: got %v, want a cancelled call", after, err)
				}
			}
		}
		checkGone(t, s, mark)
	})
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// checkGone waits for processes to be gone, for five seconds.
func checkGone(t *testing.T, s sandbox.Session, pattern string) {
	t.Helper()
	const look = `for i in $(seq 50); do
		n=0; for f in /proc/[0-9]*/cmdline; do tr '\0' ' ' < $f 2>/dev/null | grep -q '^PATTERN' && n=$((n+1)); done
		[ $n = 0 ] && break; sleep 0.1; done; echo $n`
	res := run(t, s, &sandbox.Command{Line: strings.Replace(look, "PATTERN", pattern, 1)})
	if got := strings.TrimSpace(string(res.Stdout)); got != "0" {
		t.Errorf("got %s processes like %q, want none", got, pattern)
	}
}
