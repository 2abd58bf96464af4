package glassbox_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/glassboxhq/glassbox"
	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/record/redact"
	"github.com/glassboxhq/glassbox/sandbox"
	"github.com/glassboxhq/glassbox/sandbox/sandboxtest"
)

// newBox makes a sandbox that ends with the test.
func newBox(t *testing.T, opts *glassbox.Options) *glassbox.Sandbox {
	t.Helper()
	needLocal(t)
	box, err := glassbox.Create(t.Context(), serverURL, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := box.Close(context.Background()); err != nil && !errors.Is(err, sandbox.ErrNotFound) {
			t.Error(err)
		}
	})
	return box
}

func TestSession(t *testing.T) {
	needLocal(t)
	sandboxtest.TestSession(t, func(t *testing.T) sandbox.Session { return newBox(t, nil).Session() })
}

func Example() {
	if local == nil { // without isolation there is nothing to show
		fmt.Println("Python 3 0")
		return
	}
	ctx := glassbox.WithActor(context.Background(), glassbox.Actor{ID: "research-agent", Thread: "thread-1", Run: "run-1"})
	box, err := glassbox.Create(ctx, "http://localhost:7717", &glassbox.Options{Name: "research-workspace"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer box.Close(ctx) // deletes the sandbox; Cleanup: glassbox.Never keeps it
	res, err := box.Run(ctx, "python3 --version", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	version, _, _ := strings.Cut(string(res.Stdout), ".")
	fmt.Println(version, res.ExitCode)
	// Output: Python 3 0
}

func TestActor(t *testing.T) {
	box := newBox(t, &glassbox.Options{Name: "研究员的工作区 42"})
	if got, err := glassbox.Get(t.Context(), serverURL, box.ID(), nil); err != nil || got.Name != "研究员的工作区 42" {
		t.Errorf("got %+v, %v, want the name as it was given", got, err)
	}
	ctx := glassbox.WithActor(t.Context(), glassbox.Actor{ID: "研究员", Thread: "t", Run: "r"})
	inner := glassbox.WithActor(ctx, glassbox.Actor{ID: "helper"})
	var group sync.WaitGroup
	for _, c := range []struct {
		ctx  context.Context
		line string
	}{{ctx, "echo outer"}, {inner, "echo inner"}, {t.Context(), "echo outside"}} {
		group.Go(func() {
			if _, err := box.Run(c.ctx, c.line, nil); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	actors := map[string]glassbox.Actor{}
	for _, op := range list(t, box, &glassbox.Filter{Types: []string{history.CommandExecute}}) {
		actors[op.Command.Line] = op.Actor
	}
	outer, nested, outside := actors["echo outer"], actors["echo inner"], actors["echo outside"]
	if outer.ID != "研究员" || outer.Type != history.Agent || outer.Run != "r" || outer.Correlation == "" {
		t.Errorf("outer: got %+v", outer)
	}
	if nested.ID != "helper" || nested.Run != "r" || nested.Correlation != outer.Correlation {
		t.Errorf("inner: got %+v, want the scope's correlation", nested)
	}
	if outside.Type != history.System || outside.ID != "" {
		t.Errorf("outside: got %+v, want the system", outside)
	}
}

func list(t *testing.T, box *glassbox.Sandbox, filter *glassbox.Filter) []*glassbox.Operation {
	t.Helper()
	page, err := box.History().List(t.Context(), filter)
	if err != nil {
		t.Fatal(err)
	}
	return page.Operations
}

func TestCreateIsRecorded(t *testing.T) {
	box := newBox(t, &glassbox.Options{Env: map[string]string{"TOKEN": "s3cr3t-value"}})
	ops := list(t, box, &glassbox.Filter{Types: []string{history.SandboxCreate}})
	if len(ops) != 1 || ops[0].Status != sandbox.Succeeded || !strings.Contains(string(ops[0].Request), `"TOKEN":"***"`) {
		t.Fatalf("got %+v, want one creation with the names of its environment", ops)
	}
	if res, err := box.Run(t.Context(), "printf $TOKEN", nil); err != nil || string(res.Stdout) != "s3cr3t-value" {
		t.Errorf("got %+v, %v, want the value in the environment", res, err)
	}
	for _, text := range []string{string(ops[0].Request), string(ops[0].Result)} {
		if strings.Contains(text, "s3cr3t") {
			t.Errorf("a secret is recorded: %s", text)
		}
	}
}

// The configuration of a history goes with the creation of its sandbox.
func TestHistoryConfig(t *testing.T) {
	known := "a very secret word"
	box := newBox(t, &glassbox.Options{
		Metadata: map[string]string{"key": "AKIA" + "IOSFODNN7EXAMPLE"},
		History: &glassbox.HistoryConfig{
			TTLDays: 30, MaxOperationOutputBytes: 100,
			Redaction: &redact.Rules{Patterns: []string{`corp-\d+`}, Known: []redact.Secret{redact.Hash(known)}},
		},
	})
	res, err := box.Run(t.Context(), "echo corp-123 a very secret word; seq 1000", nil)
	if err != nil || !strings.HasPrefix(string(res.Stdout), "corp-123 "+known+"\n") || res.Recording != sandbox.RecordedTruncated {
		t.Fatalf("got %+v, %v", res, err)
	}
	got, err := box.History().Output(t.Context(), res.OperationID, sandbox.Stdout, 0, 1000)
	if want := "******** ******************\n1\n2\n"; err != nil || !strings.HasPrefix(string(got), want) || len(got) != 100 {
		t.Errorf("kept: %q, %v, want 100 bytes that begin with %q", got, err, want)
	}
	config, err := box.History().Config(t.Context())
	if err != nil || config.Config.TTLDays != 30 || config.Config.Redaction != nil {
		t.Errorf("got %+v, %v", config, err)
	}
	for _, op := range list(t, box, nil) {
		if text := string(op.Request) + string(op.Result); strings.Contains(text, "EXAMPLE") {
			t.Errorf("%s keeps a key: %s", op.Type, text)
		}
	}
	_, err = glassbox.Create(t.Context(), serverURL, &glassbox.Options{History: &glassbox.HistoryConfig{TTLDays: 1, CompressionLevel: 10}})
	if e, ok := errors.AsType[*sandbox.Error](err); !ok || e.Code != sandbox.CodeHistoryConfig || e.Field != "compression_level" {
		t.Errorf("got %v, want the field named", err)
	}
}

func TestFailedCreateIsRecorded(t *testing.T) {
	needLocal(t)
	_, err := glassbox.Create(t.Context(), serverURL, &glassbox.Options{Image: "127.0.0.1:1/no-such-image"})
	if !errors.Is(err, sandbox.ErrNotFound) || sandbox.CodeOf(err) != sandbox.CodeImageNotFound || !strings.Contains(err.Error(), "no-such-image") {
		t.Errorf("got %v, want that the image is not there, by its name", err)
	}
	pending, err := glassbox.ListPending("")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pending {
		if op := p.Operation; op.Status == sandbox.Unsuccessful && strings.Contains(string(op.Request), "no-such-image") {
			return
		}
	}
	t.Errorf("got %+v, want the failed creation", pending)
}

func TestErrors(t *testing.T) {
	box := newBox(t, nil)
	for _, tt := range []struct {
		name string
		err  func() error
		want error
	}{
		{"unknown sandbox", func() error {
			_, err := glassbox.Connect(t.Context(), serverURL, "0b9c1f2e-0000-4000-8000-000000000000", nil)
			return err
		}, glassbox.ErrNotFound},
		{"no id", func() error { _, err := glassbox.Get(t.Context(), serverURL, "../x", nil); return err }, glassbox.ErrInvalid},
		{"URL with a path", func() error { _, err := glassbox.List(t.Context(), serverURL+"/v1", nil); return err }, glassbox.ErrInvalid},
		{"URL with credentials", func() error { _, err := glassbox.List(t.Context(), "http://u:p@localhost", nil); return err }, glassbox.ErrInvalid},
		{"nobody there", func() error { _, err := glassbox.List(t.Context(), "http://127.0.0.1:1", nil); return err }, glassbox.ErrUnavailable},
		{"wrong key", func() error {
			_, err := glassbox.List(t.Context(), serverURL, &glassbox.Options{APIKey: "wrong", StateDir: t.TempDir()})
			return err
		}, glassbox.ErrUnauthorized},
		{"history is not written to", func() error {
			_, err := box.Write(t.Context(), "/.agent-history/x", strings.NewReader("x"), nil)
			return err
		}, glassbox.ErrPermission},
		{"history is not removed", func() error {
			return box.Remove(t.Context(), "/.agent-history/history.sqlite3", nil)
		}, glassbox.ErrPermission},
		{"history is not reached by a link", func() error {
			if _, err := box.Run(t.Context(), "ln -s /.agent-history h", nil); err != nil {
				return err
			}
			_, err := box.Write(t.Context(), "h/x", strings.NewReader("x"), nil)
			return err
		}, glassbox.ErrPermission},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.err()
			if !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
			if err != nil && strings.Contains(err.Error(), "u:p") {
				t.Errorf("the error tells a password: %v", err)
			}
		})
	}
	t.Run("modes", func(t *testing.T) {
		res, err := box.Run(t.Context(), "stat -c '%a %n' /.agent-history /.agent-history/*.sqlite3*", nil)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(res.Stdout)) {
			want := "600 "
			if strings.TrimSpace(line) == "700 /.agent-history" {
				continue
			}
			if !strings.HasPrefix(line, want) {
				t.Errorf("got %q, want mode 600", line)
			}
		}
	})
	t.Run("zombies are reaped", func(t *testing.T) {
		const loop = "for i in $(seq 50); do sh -c 'sleep 0.1 & exec sleep 0'; done; sleep 0.5; cat /proc/[0-9]*/stat 2>/dev/null | grep -c '(sleep) Z' || true"
		res, err := box.Run(t.Context(), loop, nil)
		if err != nil || strings.TrimSpace(string(res.Stdout)) != "0" {
			t.Errorf("got %q, %v, want no zombies", res.Stdout, err)
		}
	})
}

func TestTTL(t *testing.T) {
	box := newBox(t, &glassbox.Options{TTL: time.Hour})
	info, err := glassbox.Get(t.Context(), serverURL, box.ID(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if left := time.Until(info.ExpiresAt); left < 59*time.Minute || left > 61*time.Minute {
		t.Errorf("got expiry in %v, want an hour", left)
	}
}
