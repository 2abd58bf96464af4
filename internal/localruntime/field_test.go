package localruntime_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/internal/localruntime"
	"github.com/glassboxhq/glassbox/sandbox"
	"github.com/glassboxhq/glassbox/sandbox/recorded"
)

// newSession opens a sandbox as the SDK does.
func newSession(t *testing.T, rt *localruntime.Runtime, box string) *recorded.Session {
	t.Helper()
	access, err := rt.Access(t.Context(), box)
	if err != nil {
		t.Fatal(err)
	}
	s := recorded.New("http://sandbox", &recorded.Options{Token: access.Token, Client: &http.Client{Transport: rt.Conn(box)}, Sandbox: box})
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	return s
}

// FB-065: of a call that is cancelled, however early, nothing goes on.
func TestFB065Cancelled(t *testing.T) {
	rt := startRuntime(t, options(t, t.TempDir()))
	box := create(t, rt, &sandbox.Spec{Concurrency: &sandbox.Concurrency{Commands: 16}}).ID
	s := newSession(t, rt, box)
	reached := 0
	for range soak(10, 50) {
		for _, after := range []time.Duration{0, 1, 5, 50} {
			ctx, cancel := context.WithTimeoutCause(t.Context(), after*time.Millisecond, context.Canceled)
			opID := id.New()
			_, err := s.Run(ctx, &sandbox.Command{ID: opID, Line: "sleep 300"})
			cancel()
			if !errors.Is(err, sandbox.ErrCancelled) && !errors.Is(err, sandbox.ErrTimeout) && !errors.Is(err, context.Canceled) {
				t.Fatalf("after %v: got %v, want it cancelled", after*time.Millisecond, err)
			}
			if op, err := s.History().Get(t.Context(), opID); err == nil {
				reached++
				eventually(t, "the record tells the end of "+op.ID, func() bool {
					op, err := s.History().Get(t.Context(), opID)
					return err == nil && history.Final(op.Status) && op.Status != sandbox.Succeeded
				})
			}
		}
	}
	if reached == 0 {
		t.Error("no call reached the sandbox")
	}
	eventually(t, "no command is left", func() bool {
		return run(t, rt, box, "cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -c 'slee[p] 300'").stdout == "0\n"
	})
}

// FB-069: a server that starts again knows the expiry that was set last.
func TestFB069RenewedExpiry(t *testing.T) {
	state := t.TempDir()
	server, ids := startServer(t, state, "1m")
	until := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	conn := stateClient(t, state, false)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/v1/sandboxes/"+ids[0]+"/renew-expiration",
		strings.NewReader(fmt.Sprintf(`{"expiresAt":%q}`, until.Format(time.RFC3339))))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := conn.Do(req)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%v %v", err, resp)
	}
	resp.Body.Close()
	killServer(t, server)
	rt := startRuntime(t, options(t, state))
	if info, err := rt.Get(t.Context(), ids[0]); err != nil || !info.ExpiresAt.Equal(until) {
		t.Errorf("got %+v, %v, want it to expire at %v", info, err, until)
	}
	if out := run(t, rt, ids[0], "cat /run/glassbox/expires_at"); !strings.Contains(out.stdout, until.Format("15:04:05")) {
		t.Errorf("inside: %+v", out)
	}
}

// FB-071: a sandbox is paused and resumed as often as one likes, and twice is
// told, not broken.
func TestFB071PauseAgain(t *testing.T) {
	rt := startRuntime(t, options(t, t.TempDir()))
	box := create(t, rt, nil).ID
	run(t, rt, box, "echo kept > f")
	for round := range 5 {
		for range 1 + round%2 {
			if _, err := rt.Pause(t.Context(), box); err != nil && !errors.Is(err, sandbox.ErrState) {
				t.Fatalf("round %d: pause: %v", round, err)
			}
		}
		for range 1 + round%2 {
			if _, err := rt.Resume(t.Context(), box); err != nil && !errors.Is(err, sandbox.ErrState) {
				t.Fatalf("round %d: resume: %v", round, err)
			}
		}
		if out := run(t, rt, box, "cat f"); out.stdout != "kept\n" {
			t.Fatalf("round %d: %+v", round, out)
		}
		s := newSession(t, rt, box)
		p, err := s.Start(t.Context(), &sandbox.Command{Args: []string{"echo", "typed"}, Terminal: &sandbox.TerminalSize{Columns: 80, Rows: 24}})
		if err != nil {
			t.Fatalf("round %d: terminal: %v", round, err)
		}
		var shown strings.Builder
		for {
			c, err := p.Next(t.Context())
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("round %d: terminal: %v", round, err)
			}
			shown.Write(c.Data)
		}
		if shown.String() != "typed\r\n" {
			t.Errorf("round %d: terminal: %q", round, shown.String())
		}
	}
}

// FB-073: a sandbox that was ended behind the server's back is told so at once,
// and nothing waits for it.
func TestFB073EndedBehindOurBack(t *testing.T) {
	state := t.TempDir()
	rt := startRuntime(t, options(t, state))
	box := create(t, rt, nil).ID
	s := newSession(t, rt, box)
	for _, pid := range processes(t, state+"/sandboxes/"+box) {
		_ = exec.Command("kill", "-9", pid).Run() // another may have ended with the first
	}
	eventually(t, "it is told to have failed", func() bool {
		info, err := rt.Get(t.Context(), box)
		return err == nil && info.State == sandbox.Failed
	})
	for name, act := range map[string]func() error{
		"a command": func() error {
			_, err := s.Run(t.Context(), &sandbox.Command{Line: "true", Timeout: 5 * time.Second})
			return err
		},
		"a terminal": func() error {
			_, err := s.Start(t.Context(), &sandbox.Command{Terminal: &sandbox.TerminalSize{Columns: 1, Rows: 1}})
			return err
		},
		"a file": func() error { _, err := s.Read(t.Context(), "/etc/passwd", nil); return err },
	} {
		began := time.Now()
		if err := act(); !errors.Is(err, sandbox.ErrState) || time.Since(began) > 5*time.Second {
			t.Errorf("%s: %v after %v, want the state told within 5 s", name, err, time.Since(began))
		}
	}
	if histories, err := rt.Histories(t.Context()); err != nil || len(histories) != 1 || histories[0].Live || histories[0].Dir == "" {
		t.Errorf("its history: %v %+v", err, histories)
	}
}

// FB-077: what has lost its parent is reaped.
func TestFB077NoZombies(t *testing.T) {
	rt := startRuntime(t, options(t, t.TempDir()))
	box := create(t, rt, nil).ID
	run(t, rt, box, "for i in $(seq 200); do sh -c 'sleep 0.1 & exec sleep 0'; done")
	eventually(t, "no zombie is left", func() bool {
		return run(t, rt, box, "cat /proc/[0-9]*/status 2>/dev/null | grep -c '^State:.Z'").stdout == "0\n"
	})
}

// FB-121: files are worked on without Python, and without grep, find and their
// kind.
func TestFB121WithoutPrograms(t *testing.T) {
	rt := startRuntime(t, options(t, t.TempDir()))
	box := create(t, rt, nil).ID
	s := newSession(t, rt, box)
	broken := `printf '#!/bin/sh\nexit 1\n' > /tmp/broken; chmod 755 /tmp/broken
for p in python3 python grep find sed cat ls stat tar mv cp mkdir head; do f=$(command -v $p) && cp /tmp/broken /tmp/b && mv -f /tmp/b $(readlink -f $f); done; python3 -c 1; echo $?`
	if out := run(t, rt, box, strings.Replace(broken, "mkdir head", "mkdir head", 1)); !strings.HasSuffix(out.stdout, "1\n") && !strings.Contains(out.stderr, "python3") {
		t.Fatalf("python still works: %+v", out)
	}
	ctx := t.Context()
	if _, err := s.Write(ctx, "d/f.txt", strings.NewReader("one\ntwo\n"), nil); err != nil {
		t.Fatal(err)
	}
	if info, err := s.Edit(ctx, "d/f.txt", &sandbox.Edit{Old: "two", New: "three"}); err != nil || info.Size != 10 {
		t.Errorf("edit: %+v %v", info, err)
	}
	if got, err := s.Glob(ctx, &sandbox.GlobQuery{Pattern: "**/*.txt"}); err != nil || len(got.Files) != 1 {
		t.Errorf("glob: %+v %v", got, err)
	}
	if got, err := s.Grep(ctx, &sandbox.GrepQuery{Pattern: "three"}); err != nil || len(got.Matches) != 1 {
		t.Errorf("grep: %+v %v", got, err)
	}
	if got, err := s.List(ctx, "d"); err != nil || len(got) != 1 {
		t.Errorf("list: %+v %v", got, err)
	}
	f, err := s.Read(ctx, "d/f.txt", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if text, err := io.ReadAll(f); err != nil || string(text) != "one\nthree\n" {
		t.Errorf("read: %q %v", text, err)
	}
}
