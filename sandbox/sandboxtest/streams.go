package sandboxtest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/sandbox"
)

func itoa(n int) string { return strconv.Itoa(n) }

func testStreams(t *testing.T, open Open) {
	s := open(t)
	t.Run("FB-009 whole log at the end", func(t *testing.T) {
		for range 5 {
			res := run(t, s, &sandbox.Command{Line: "seq 1 200000; exit 3", MaxOutput: 4 << 20})
			if n := bytes.Count(res.Stdout, []byte("\n")); n != 200000 || res.ExitCode != 3 {
				t.Fatalf("got %d lines and code %d, want 200000 and 3", n, res.ExitCode)
			}
		}
	})
	t.Run("FB-039 long line", func(t *testing.T) {
		const size = 6 << 20
		res := run(t, s, &sandbox.Command{Line: "head -c " + itoa(size) + " /dev/zero | tr '\\0' q", MaxOutput: size})
		if len(res.Stdout) != size || bytes.Count(res.Stdout, []byte("q")) != size {
			t.Errorf("got %d bytes, want %d times q", len(res.Stdout), size)
		}
	})
	t.Run("both streams, much", func(t *testing.T) {
		res := run(t, s, &sandbox.Command{
			Line:      "(seq 1 100000; seq 100001 200000 >&2) & seq 200001 300000 >&2; wait",
			MaxOutput: 4 << 20,
		})
		if o, e := bytes.Count(res.Stdout, []byte("\n")), bytes.Count(res.Stderr, []byte("\n")); o != 100000 || e != 200000 {
			t.Errorf("got %d and %d lines, want 100000 and 200000", o, e)
		}
	})
	t.Run("output as it comes", func(t *testing.T) {
		w := &moments{}
		run(t, s, &sandbox.Command{Line: "echo one; sleep 0.5; echo two", Stdout: w})
		if len(w.at) < 2 || w.at[len(w.at)-1].Sub(w.at[0]) < 300*time.Millisecond {
			t.Errorf("got output at %v, want the first line well before the second", w.at)
		}
	})
	t.Run("100 MB on one line", func(t *testing.T) {
		sum := sha256.New()
		res := run(t, s, &sandbox.Command{Line: "head -c 100000000 /dev/zero | tr '\\0' z", Stdout: sum})
		want := sha256.New()
		for range 1000 {
			want.Write(bytes.Repeat([]byte("z"), 100_000))
		}
		if !bytes.Equal(sum.Sum(nil), want.Sum(nil)) || res.StdoutBytes != 100_000_000 {
			t.Errorf("got %d bytes with another hash, want 100000000 times z", res.StdoutBytes)
		}
	})
	if starter, ok := s.(sandbox.Starter); ok {
		testStart(t, starter)
	}
	if attacher, ok := s.(sandbox.Attacher); ok && s.Capabilities().Attach {
		testAttach(t, s.(sandbox.Starter), attacher)
	}
}

type moments struct{ at []time.Time }

func (m *moments) Write(p []byte) (int, error) {
	m.at = append(m.at, time.Now())
	return len(p), nil
}

func testStart(t *testing.T, s sandbox.Starter) {
	t.Run("conversation", func(t *testing.T) {
		p := start(t, s, &sandbox.Command{Line: "while read x; do echo got $x; done; echo bye", StdinPipe: true})
		for _, word := range []string{"one", "two"} {
			if _, err := io.WriteString(p.Stdin(), word+"\n"); err != nil {
				t.Fatal(err)
			}
			c, err := p.Next(t.Context())
			if err != nil || string(c.Data) != "got "+word+"\n" {
				t.Fatalf("got %q, %v, want the echo of %s", c.Data, err, word)
			}
		}
		p.Stdin().Close()
		c, err := p.Next(t.Context())
		if err != nil || string(c.Data) != "bye\n" {
			t.Fatalf("got %q, %v, want bye", c.Data, err)
		}
		if res, err := p.Wait(t.Context()); err != nil || res.Status != sandbox.Succeeded {
			t.Fatalf("got %+v, %v, want success", res, err)
		}
	})
	t.Run("signal", func(t *testing.T) {
		p := start(t, s, &sandbox.Command{Line: "trap 'echo caught; exit 9' USR1; echo ready; while :; do sleep 0.05; done"})
		if c, err := p.Next(t.Context()); err != nil || string(c.Data) != "ready\n" {
			t.Fatalf("got %q, %v, want ready", c.Data, err)
		}
		if err := p.Signal(t.Context(), "NOSUCH"); !errors.Is(err, sandbox.ErrInvalid) {
			t.Errorf("unknown signal: got %v, want it refused", err)
		}
		if err := p.Signal(t.Context(), "USR1"); err != nil {
			t.Fatal(err)
		}
		out, _, err := collect(t.Context(), p)
		if err != nil || string(out) != "caught\n" {
			t.Errorf("got %q, %v, want caught", out, err)
		}
		if res, err := p.Wait(t.Context()); err != nil || res.ExitCode != 9 {
			t.Errorf("got %+v, %v, want code 9", res, err)
		}
		if err := p.Signal(t.Context(), "USR1"); !errors.Is(err, sandbox.ErrState) {
			t.Errorf("signal after the end: got %v, want an error about the state", err)
		}
	})
	t.Run("20 at once", func(t *testing.T) {
		began := time.Now()
		var group sync.WaitGroup
		for i := range 20 {
			group.Go(func() {
				res, err := s.(sandbox.Session).Run(t.Context(), &sandbox.Command{Line: fmt.Sprintf("sleep 0.2; echo %d", i)})
				if err != nil || string(res.Stdout) != itoa(i)+"\n" {
					t.Errorf("command %d: got %+v, %v", i, res, err)
				}
			})
		}
		group.Wait()
		t.Logf("20 times sleep 0.2 at once took %v", time.Since(began))
	})
}

func start(t *testing.T, s sandbox.Starter, cmd *sandbox.Command) sandbox.Process {
	t.Helper()
	p, err := s.Start(t.Context(), cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// collect reads on from wherever the process is.
func collect(ctx context.Context, p sandbox.Process) (out, errs []byte, err error) {
	for {
		c, err := p.Next(ctx)
		if errors.Is(err, io.EOF) {
			return out, errs, nil
		}
		if err != nil {
			return out, errs, err
		}
		if c.Stream == sandbox.Stdout {
			out = append(out, c.Data...)
		} else {
			errs = append(errs, c.Data...)
		}
	}
}

func testAttach(t *testing.T, s sandbox.Starter, a sandbox.Attacher) {
	t.Run("resume by offset", func(t *testing.T) {
		p := start(t, s, &sandbox.Command{Line: "seq 1 1000; sleep 0.3; seq 1001 2000", Detached: true})
		var first []byte
		for len(first) < 100 {
			c, err := p.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			first = append(first, c.Data...)
		}
		p.Close()
		again, err := a.Attach(t.Context(), p.ID(), sandbox.Offsets{Stdout: int64(len(first))})
		if err != nil {
			t.Fatal(err)
		}
		defer again.Close()
		rest, _, err := collect(t.Context(), again)
		if err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(append(first, rest...), []byte("\n")); n != 2000 {
			t.Errorf("got %d lines in all, want 2000", n)
		}
		late, err := a.Attach(t.Context(), p.ID(), sandbox.Offsets{})
		if err != nil {
			t.Fatal(err)
		}
		defer late.Close()
		out, _, err := readAll(t.Context(), late)
		if n := bytes.Count(out, []byte("\n")); err != nil || n != 2000 {
			t.Errorf("after the end: got %d lines, %v, want 2000", n, err)
		}
		if res, err := late.Wait(t.Context()); err != nil || res.Status != sandbox.Succeeded || res.OperationID != p.ID() {
			t.Errorf("after the end: got %+v, %v, want success", res, err)
		}
	})
	t.Run("same id runs once", func(t *testing.T) {
		cmd := &sandbox.Command{ID: id.New(), Line: "echo x >> once; cat once; exit 5"}
		for range 3 {
			res := run(t, s.(sandbox.Session), cmd)
			checkResult(t, res, &sandbox.Result{Status: sandbox.Unsuccessful, ExitCode: 5, Stdout: []byte("x\n")})
		}
		other := &sandbox.Command{ID: cmd.ID, Line: "echo other"}
		if res, err := s.(sandbox.Session).Run(t.Context(), other); !errors.Is(err, sandbox.ErrConflict) {
			t.Errorf("another command under the id: got %+v, %v, want a conflict", res, err)
		}
	})
	t.Run("same id at the same time", func(t *testing.T) {
		cmd := sandbox.Command{ID: id.New(), Line: "echo x >> twice; sleep 0.2; cat twice"}
		var group sync.WaitGroup
		for range 8 {
			mine := cmd
			group.Go(func() {
				res, err := s.(sandbox.Session).Run(t.Context(), &mine)
				if err != nil || string(res.Stdout) != "x\n" {
					t.Errorf("got %+v, %v, want the one result", res, err)
				}
			})
		}
		group.Wait()
	})
	t.Run("unknown id", func(t *testing.T) {
		if p, err := a.Attach(t.Context(), id.New(), sandbox.Offsets{}); !errors.Is(err, sandbox.ErrNotFound) {
			t.Errorf("got %v, %v, want not found", p, err)
		}
	})
}
