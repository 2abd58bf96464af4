package record_test

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/history/sqlite"
	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/record"
	"github.com/glassboxhq/glassbox/record/redact"
	"github.com/glassboxhq/glassbox/sandbox"
	"github.com/glassboxhq/glassbox/sandbox/native"
)

// secret is put together, so that no scanner of sources reports it.
var secret = "ghp_" + "Ab3dEf6hIj9lMn2pQr5tUv8xYz1BcD4eFg7H"

// Secrets reach the command and its clients, and no file of the history.
func TestRedacted(t *testing.T) {
	dir := t.TempDir()
	inner, err := native.New(&native.Options{Workdir: t.TempDir(), Env: map[string]string{"PATH": os.Getenv("PATH")}})
	if err != nil {
		t.Fatal(err)
	}
	store, err := sqlite.Open(filepath.Join(dir, "history.sqlite3"), nil)
	if err != nil {
		t.Fatal(err)
	}
	s := record.New(inner, store, nil)
	ctx := t.Context()
	line := "printf '%s' " + secret[:20] + "; sleep 0.05; echo " + secret[20:] + " next; echo " + secret + " >&2"
	cmd := &sandbox.Command{ID: id.New(), Line: line, Env: map[string]string{"GIT_TOKEN": secret}}
	res, err := s.Run(ctx, cmd)
	if err != nil || string(res.Stdout) != secret+" next\n" || string(res.Stderr) != secret+"\n" {
		t.Fatalf("live: got %+v, %v, want what was printed", res, err)
	}
	mask := strings.Repeat("*", len(secret))
	for stream, want := range map[sandbox.Stream]string{sandbox.Stdout: mask + " next\n", sandbox.Stderr: mask + "\n"} {
		got, err := store.Output(ctx, cmd.ID, stream, 0, 1000)
		if err != nil || string(got) != want {
			t.Errorf("kept: %s is %q, %v, want %q", stream, got, err, want)
		}
	}
	op, err := store.Get(ctx, cmd.ID)
	if err != nil || !strings.Contains(op.Command.Line, "echo "+mask+" >&2") || !strings.Contains(string(op.Result), `"redacted":3`) {
		t.Errorf("got %+v %s, %v, want the line masked and three counted", op.Command, op.Result, err)
	}
	t.Run("repeated", func(t *testing.T) {
		again, err := s.Run(ctx, cmd)
		if err != nil || again.OperationID != cmd.ID || string(again.Stdout) != mask+" next\n" {
			t.Errorf("got %+v, %v, want the first one's result, masked", again, err)
		}
		other := *cmd
		other.Line += " # another"
		if _, err := s.Run(ctx, &other); sandbox.CodeOf(err) != sandbox.CodeOperationConflict {
			t.Errorf("another command: got %v", err)
		}
	})
	t.Run("files", func(t *testing.T) {
		name := "notes-" + secret
		if _, err := s.Write(ctx, name, strings.NewReader("x"), &sandbox.WriteOptions{ID: id.New()}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Read(ctx, "none-"+secret, nil); !errors.Is(err, sandbox.ErrNotFound) || !strings.Contains(err.Error(), secret) {
			t.Errorf("got %v, want the caller told what is not there", err)
		}
		if err := s.Remove(ctx, name, nil); err != nil {
			t.Errorf("got %v, want the file found by its name", err)
		}
	})
	t.Run("elsewhere", func(t *testing.T) {
		made := &history.Operation{
			ID: id.New(), Type: history.SandboxCreate, Status: sandbox.Succeeded, StartedAt: time.Now(),
			Request: history.EncodeRequest(map[string]any{"metadata": map[string]any{"remote": "https://me:" + "s3cr3tpass" + "@host"}}),
		}
		if err := s.Import(ctx, made); err != nil {
			t.Fatal(err)
		}
		got, err := store.Get(ctx, made.ID)
		if err != nil || !strings.Contains(string(got.Request), "https://me:**********@host") || !history.Ours(got.Request) || string(got.Result) != `{"redacted":1}` {
			t.Errorf("got %s %s, %v", got.Request, got.Result, err)
		}
	})
	if err := errors.Join(s.Close(ctx), store.Close()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "history.sqlite3"))
	if err != nil || bytes.Contains(text, []byte(secret)) || bytes.Contains(text, []byte("s3cr3tpass")) {
		t.Errorf("the file holds a secret (%v)", err)
	}
}

// A client that comes while a tail is held back gets it, as it was written, and
// all of it once; the history has it at the end.
func TestHeldBack(t *testing.T) {
	for name, rules := range map[string]*redact.Rules{
		"detectors": nil,
		"known":     {Known: []redact.Secret{redact.Hash(strings.Repeat("x", 4000))}},
		"patterns":  {Patterns: []string{`corp-[0-9a-f]{8}`}},
		"off":       {Off: true},
	} {
		t.Run(name, func(t *testing.T) {
			mask, err := redact.New(rules)
			if err != nil {
				t.Fatal(err)
			}
			s, store := newSession(t, &record.Options{Mask: mask, Spool: t.TempDir()})
			first, rest := "see "+secret[:12], secret[12:]+" end"
			cmd := &sandbox.Command{ID: id.New(), Line: "printf '%s' '" + first + "'; read x; printf '%s' '" + rest + "'", StdinPipe: true}
			p, err := s.Start(t.Context(), cmd)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			if c, err := p.Next(t.Context()); err != nil || string(c.Data) != first {
				t.Fatalf("got %q, %v, want all that was printed", c.Data, err)
			}
			late, err := s.Attach(t.Context(), cmd.ID, sandbox.Offsets{Stdout: 6})
			if err != nil {
				t.Fatal(err)
			}
			defer late.Close()
			if _, err := p.Stdin().Write([]byte("\n")); err != nil {
				t.Fatal(err)
			}
			var got []byte
			for len(got) < len(first+rest)-6 {
				c, err := late.Next(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, c.Data...)
			}
			if string(got) != (first + rest)[6:] {
				t.Errorf("late: got %q", got)
			}
			waitEnd(t, store, cmd.ID)
			want := "see " + strings.Repeat("*", len(secret)) + " end"
			if rules != nil && rules.Off {
				want = first + rest
			}
			kept, err := store.Output(t.Context(), cmd.ID, sandbox.Stdout, 0, 1000)
			if err != nil || string(kept) != want {
				t.Errorf("kept: got %q, %v, want %q", kept, err, want)
			}
		})
	}
}

// Behind a window that is full a client gets what is held back of the other
// stream.
func TestHeldBackBehindTheWindow(t *testing.T) {
	s, store := newSession(t, &record.Options{Spool: t.TempDir()})
	cmd := &sandbox.Command{ID: id.New(), MaxOutput: 32 << 20, Line: "printf 'tail " + secret[:12] + "' >&2; head -c 9000000 /dev/zero | tr '\\0' y; read x", StdinPipe: true}
	p, err := s.Start(t.Context(), cmd)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for n := 0; n < 9_000_000; {
		c, err := p.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if c.Stream == sandbox.Stdout {
			n += len(c.Data)
		}
	}
	late, err := s.Attach(t.Context(), cmd.ID, sandbox.Offsets{Stdout: 9_000_000})
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close()
	var got []byte
	for len(got) < 17 {
		c, err := late.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, c.Data...)
	}
	if string(got) != "tail "+secret[:12] {
		t.Errorf("got %q", got)
	}
	if _, err := p.Stdin().Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	if op := waitEnd(t, store, cmd.ID); op.Command.StderrBytes != 17 || op.Command.StdoutBytes != 9_000_000 {
		t.Errorf("got %+v, want all of it kept", op.Command)
	}
	if _, err := p.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	after, err := s.Attach(t.Context(), cmd.ID, sandbox.Offsets{})
	if err != nil {
		t.Fatal(err)
	}
	defer after.Close()
	if n, err := drain(t.Context(), after); err != nil || n != 9_000_017 {
		t.Errorf("after its end: got %d bytes, %v, want all", n, err)
	}
}

// A pattern as wide as can be leaves a history that can be read: it hides what
// was said, not how it went.
func TestPatternsLeaveOurWords(t *testing.T) {
	mask, err := redact.New(&redact.Rules{Patterns: []string{`.+`}})
	if err != nil {
		t.Fatal(err)
	}
	s, store := newSession(t, &record.Options{Mask: mask, Spool: t.TempDir()})
	for _, tt := range []struct{ name, line, reason string }{
		{"ends well", "echo out", ""},
		{"killed", "kill -9 $$", `"reason":"ended by signal KILL"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cmd := &sandbox.Command{ID: id.New(), Line: tt.line}
			if _, err := s.Run(t.Context(), cmd); err != nil {
				t.Fatal(err)
			}
			op := waitEnd(t, store, cmd.ID)
			if want := strings.Repeat("*", len(tt.line)); op.Command.Line != want {
				t.Errorf("the line is %q, want %q", op.Command.Line, want)
			}
			if got := string(op.Result); !strings.Contains(got, `"command_id":"`+cmd.ID+`"`) || !strings.Contains(got, tt.reason) || !strings.Contains(got, `"history_storage_state":"complete"`) {
				t.Errorf("got %s", got)
			}
		})
	}
	read := id.New()
	if _, err := s.Read(t.Context(), "not there", &sandbox.ReadOptions{ID: read}); !errors.Is(err, sandbox.ErrNotFound) {
		t.Fatal(err)
	}
	if op := waitEnd(t, store, read); !strings.Contains(string(op.Result), `"code":"file_not_found"`) || strings.Trim(op.File.Path, "*") != "" {
		t.Errorf("got %q %s", op.File.Path, op.Result)
	}
}

// Who acts, and the names of an environment, may be secrets by mistake.
func TestSecretsInNames(t *testing.T) {
	s, store := newSession(t, nil)
	ctx := history.WithActor(t.Context(), history.Actor{ID: "me-" + secret, Thread: secret, Run: secret, Correlation: secret, Source: history.SourceMCP})
	cmd := &sandbox.Command{ID: id.New(), Line: "true", Env: map[string]string{secret: "x", "PLAIN": "y"}}
	if _, err := s.Run(ctx, cmd); err != nil {
		t.Fatal(err)
	}
	op := waitEnd(t, store, cmd.ID)
	mask := strings.Repeat("*", len(secret))
	want := history.Actor{Type: history.Agent, ID: "me-" + mask, Thread: mask, Run: mask, Correlation: mask}
	if op.Actor != want || op.Source != history.SourceMCP {
		t.Errorf("got %+v by %s, want %+v", op.Actor, op.Source, want)
	}
	env := map[string]string{mask: "***", "PLAIN": "***"}
	if !maps.Equal(op.Command.Env, env) || strings.Contains(string(op.Request), secret) {
		t.Errorf("got %v, %s", op.Command.Env, op.Request)
	}
	if !strings.Contains(string(op.Result), `"redacted":5`) {
		t.Errorf("got %s, want five counted", op.Result)
	}
}
