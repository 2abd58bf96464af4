package sandbox_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"

	"github.com/glassboxhq/glassbox/sandbox"
)

func TestError(t *testing.T) {
	cause := errors.New("disk on fire")
	err := error(&sandbox.Error{
		Op: "write file", Code: sandbox.CodeModified, Message: "f has changed", Err: cause,
		ProviderCode: "X::Y", RequestID: "r-1",
	})
	if got, want := err.Error(), "write file: f has changed: disk on fire (X::Y) (request r-1)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if !errors.Is(err, sandbox.ErrConflict) || !errors.Is(err, cause) || errors.Is(err, sandbox.ErrNotFound) {
		t.Error("the kind and the cause are not found")
	}
	if got, want := (&sandbox.Error{Code: sandbox.CodeNotEmpty}).Error(), "directory not empty"; got != want {
		t.Errorf("without a message: got %q, want %q", got, want)
	}
	for err, want := range map[error]sandbox.Code{
		err: sandbox.CodeModified, context.Canceled: sandbox.CodeCancelled,
		context.DeadlineExceeded: sandbox.CodeTimeout, cause: sandbox.CodeInternal,
	} {
		if got := sandbox.CodeOf(err); got != want {
			t.Errorf("code of %v: got %s, want %s", err, got, want)
		}
	}
}

// What Join writes, a shell reads back.
func TestJoin(t *testing.T) {
	for _, args := range [][]string{
		{"a"}, {""}, {"a b", "c"}, {"it's"}, {"'", "''"}, {"$HOME", "`id`", "$(id)"}, {"a\nb", "\t"}, {"*", "?", "~"}, {"研究员"}, {"-n", "--", "#"}, {`\`},
	} {
		out, err := exec.CommandContext(t.Context(), "sh", "-c", `printf '%s\0' `+sandbox.Join(args)).Output()
		if err != nil {
			t.Fatal(err)
		}
		if got, want := string(out), strings.Join(args, "\x00")+"\x00"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// scripted is a process whose output is known.
type scripted struct {
	chunks []sandbox.Chunk
	err    error
	stops  int
	result sandbox.Result
}

func (p *scripted) ID() string                           { return "id" }
func (p *scripted) Stdin() io.WriteCloser                { return nil }
func (p *scripted) Signal(context.Context, string) error { return nil }
func (p *scripted) Stop(context.Context) error           { p.stops++; return nil }
func (p *scripted) Close() error                         { return nil }

func (p *scripted) Wait(context.Context) (*sandbox.Result, error) {
	res := p.result
	return &res, nil
}

func (p *scripted) Next(ctx context.Context) (sandbox.Chunk, error) {
	if ctx.Err() != nil {
		return sandbox.Chunk{}, sandbox.FromContext(ctx, "read output")
	}
	if len(p.chunks) == 0 {
		if p.err != nil {
			return sandbox.Chunk{}, p.err
		}
		return sandbox.Chunk{}, io.EOF
	}
	c := p.chunks[0]
	p.chunks = p.chunks[1:]
	return c, nil
}

func out(text string) sandbox.Chunk {
	return sandbox.Chunk{Stream: sandbox.Stdout, Data: []byte(text)}
}

func TestCollect(t *testing.T) {
	t.Run("head and tail", func(t *testing.T) {
		for _, pieces := range []int{1, 7, 100} {
			p := &scripted{result: sandbox.Result{StdoutBytes: 100}}
			text := strings.Repeat("0123456789", 10)
			for rest := text; rest != ""; {
				n := min(len(rest), max(1, 100/pieces))
				p.chunks, rest = append(p.chunks, out(rest[:n])), rest[n:]
			}
			res, err := sandbox.Collect(t.Context(), p, &sandbox.Command{MaxOutput: 20, MaxTail: 8})
			if err != nil || string(res.Stdout) != "012345678901"+"23456789" || !res.Truncated {
				t.Errorf("%d pieces: got %q, %v, %v, want 12 bytes of the head and 8 of the tail", pieces, res.Stdout, res.Truncated, err)
			}
		}
	})
	t.Run("the end is missing", func(t *testing.T) {
		p := &scripted{chunks: []sandbox.Chunk{out("abc")}, result: sandbox.Result{StdoutBytes: 9}}
		if res, err := sandbox.Collect(t.Context(), p, &sandbox.Command{}); err != nil || !res.Truncated {
			t.Errorf("got %+v, %v, want it told to be truncated", res, err)
		}
	})
	t.Run("a fault keeps what was read", func(t *testing.T) {
		p := &scripted{chunks: []sandbox.Chunk{out("abc")}, err: errors.New("cut")}
		res, err := sandbox.Collect(t.Context(), p, &sandbox.Command{})
		if err == nil || string(res.Stdout) != "abc" || res.ExitCode != -1 || res.Status != sandbox.Lost {
			t.Errorf("got %+v, %v, want the output, no exit code and the error", res, err)
		}
	})
	t.Run("a context that ends stops the command", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		p := &scripted{chunks: []sandbox.Chunk{out("late")}, result: sandbox.Result{Status: sandbox.Cancelled}}
		res, err := sandbox.Collect(ctx, p, &sandbox.Command{})
		if !errors.Is(err, sandbox.ErrCancelled) || p.stops != 1 || string(res.Stdout) != "late" || res.Status != sandbox.Cancelled {
			t.Errorf("got %+v, %v after %d stops, want the rest and a cancelled call", res, err, p.stops)
		}
	})
	t.Run("output is passed on", func(t *testing.T) {
		var w bytes.Buffer
		p := &scripted{chunks: []sandbox.Chunk{out("a"), {Stream: sandbox.Stderr, Data: []byte("e")}, out("b")}}
		if _, err := sandbox.Collect(t.Context(), p, &sandbox.Command{Stdout: &w}); err != nil || w.String() != "ab" {
			t.Errorf("got %q, %v, want ab", w.String(), err)
		}
	})
}
