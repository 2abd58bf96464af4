package localruntime_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/internal/localruntime"
	"github.com/glassboxhq/glassbox/internal/owner"
	"github.com/glassboxhq/glassbox/sandbox"
)

func TestLife(t *testing.T) {
	state := t.TempDir()
	rt := startRuntime(t, options(t, state))
	start := time.Now()
	info := create(t, rt, &sandbox.Spec{
		Name: "研究员 1", Env: map[string]string{"GREETING": "hello there"}, Metadata: map[string]string{"team": "a"}, Workdir: "/data/work",
	})
	t.Logf("create took %v", time.Since(start))
	if !id.Valid(info.ID) || info.State != sandbox.Running || info.Name != "研究员 1" || info.Image != "host" || len(info.Warnings) > 0 {
		t.Errorf("created %+v", info)
	}
	got, err := rt.Get(t.Context(), info.ID)
	if err != nil || cmp.Diff(got, info) != "" {
		t.Errorf("get: %v\n%s", err, cmp.Diff(got, info))
	}
	list, err := rt.List(t.Context())
	if err != nil || cmp.Diff(list, []*sandbox.Info{info}) != "" {
		t.Errorf("list: %v\n%s", err, cmp.Diff(list, []*sandbox.Info{info}))
	}
	out := run(t, rt, info.ID, `pwd; echo "$GREETING"; echo "$https_proxy"; id -u; awk 'BEGIN{print 6*7}'; ls /usr/local/bin; exit 3`)
	if want := (outcome{stdout: "/data/work\nhello there\nhttp://127.0.0.1:3128\n0\n42\npip\npip3\n", code: 3}); out != want {
		t.Errorf("ran %+v, want %+v", out, want)
	}
	if err := rt.Delete(t.Context(), info.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := rt.Get(t.Context(), info.ID); !errors.Is(err, sandbox.ErrNotFound) {
		t.Errorf("get of a deleted one: %v", err)
	}
	if err := rt.Delete(t.Context(), info.ID); !errors.Is(err, sandbox.ErrNotFound) {
		t.Errorf("delete of a deleted one: %v", err)
	}
	left, err := filepath.Glob(filepath.Join(state, "sandboxes", info.ID, "*"))
	if err != nil || len(left) != 2 {
		t.Errorf("left on the disk: %v %v, want history and sandbox.json", left, err)
	}
	text, err := os.ReadFile(filepath.Join(state, "sandboxes", info.ID, "sandbox.json"))
	if err != nil || strings.Contains(string(text), "hello there") || strings.Contains(string(text), `"token"`) {
		t.Errorf("the record holds secrets: %v\n%s", err, text)
	}
}

// TestCreateCancelled stops creations at all their stages.
func TestCreateCancelled(t *testing.T) {
	state := t.TempDir()
	rt := startRuntime(t, options(t, state))
	for _, after := range []time.Duration{0, 10, 20, 30, 40, 50, 60, 80, 100, 130} {
		ctx, cancel := context.WithTimeout(t.Context(), after*time.Millisecond)
		info, err := rt.Create(ctx, nil)
		cancel()
		if err == nil {
			if err := rt.Delete(t.Context(), info.ID); err != nil {
				t.Error(err)
			}
			continue
		}
		if left := processes(t, state+"/sandboxes"); len(left) > 0 {
			t.Errorf("cancelled after %v: processes are left: %v", after*time.Millisecond, left)
		}
		if left, err := filepath.Glob(filepath.Join(state, "sandboxes", "*", "run")); err != nil || len(left) > 0 {
			t.Errorf("cancelled after %v: left %v %v", after*time.Millisecond, left, err)
		}
	}
}

func TestPauseAndResume(t *testing.T) {
	rt := startRuntime(t, options(t, t.TempDir()))
	info := create(t, rt, nil)
	run(t, rt, info.ID, `(while :; do echo >> beat; sleep 0.01; done) >/dev/null 2>&1 &`)
	info, err := rt.Pause(t.Context(), info.ID)
	if err != nil || info.State != sandbox.Paused {
		t.Fatalf("pause: %v %+v", err, info)
	}
	start := time.Now()
	if _, err := try(t.Context(), rt, info.ID, "true"); !errors.Is(err, sandbox.ErrState) || !strings.Contains(err.Error(), "paused") {
		t.Errorf("a command while paused: %v", err)
	}
	if took := time.Since(start); took > time.Second {
		t.Errorf("the refusal took %v", took)
	}
	if _, err := rt.Pause(t.Context(), info.ID); !errors.Is(err, sandbox.ErrState) {
		t.Errorf("pause twice: %v", err)
	}
	info, err = rt.Resume(t.Context(), info.ID)
	if err != nil || info.State != sandbox.Running {
		t.Fatalf("resume: %v %+v", err, info)
	}
	if out := run(t, rt, info.ID, "a=$(wc -c < beat); for i in $(seq 50); do sleep 0.1; [ $(wc -c < beat) != $a ] && exit 0; done; exit 1"); out.code != 0 {
		t.Errorf("what ran does not go on: %+v", out)
	}
	if _, err := rt.Resume(t.Context(), info.ID); !errors.Is(err, sandbox.ErrState) {
		t.Errorf("resume twice: %v", err)
	}
	if _, err := rt.Pause(t.Context(), info.ID); err != nil {
		t.Fatal(err)
	}
	if err := rt.Delete(t.Context(), info.ID); err != nil {
		t.Errorf("delete while paused: %v", err)
	}
}

func TestRecorderKilledInside(t *testing.T) {
	rt := startRuntime(t, options(t, t.TempDir()))
	info := create(t, rt, nil)
	for range 5 {
		if _, err := try(t.Context(), rt, info.ID, "kill -9 $PPID; sleep 1"); err == nil {
			t.Fatal("the recorder survived")
		}
		start := time.Now()
		if out := run(t, rt, info.ID, "echo back"); out.stdout != "back\n" {
			t.Errorf("after the recorder's death: %+v", out)
		}
		t.Logf("back after %v", time.Since(start))
	}
}

func TestInitKilledInside(t *testing.T) {
	rt := startRuntime(t, options(t, t.TempDir()))
	info := create(t, rt, nil)
	if _, err := try(t.Context(), rt, info.ID, "kill -9 1; sleep 5"); err == nil {
		t.Error("the sandbox survived the death of its init")
	}
	wantFailed(t, rt, info.ID, "first process ended")
}

func TestMemoryLimit(t *testing.T) {
	rt := startRuntime(t, options(t, t.TempDir()))
	info := create(t, rt, &sandbox.Spec{Limits: map[string]string{"memory": "256Mi", "cpu": "1500m"}})
	if len(info.Warnings) > 0 {
		t.Skipf("needs control groups: %v", info.Warnings)
	}
	if out := run(t, rt, info.ID, `python3 -c 'b = bytearray(64 << 20); print(len(b))'`); out.code != 0 {
		t.Errorf("64 MiB of 256: %+v", out)
	}
	if _, err := try(t.Context(), rt, info.ID, `python3 -c 'b = b"x" * (1 << 30); print(len(b))'`); err == nil {
		t.Error("1 GiB of 256 MiB was given")
	}
	wantFailed(t, rt, info.ID, "memory limit")
}

// wantFailed waits for the state Failed with a reason, and checks that a
// command is told of it.
func wantFailed(t *testing.T, rt *localruntime.Runtime, box, reason string) {
	t.Helper()
	eventually(t, "the sandbox failed", func() bool {
		info, err := rt.Get(t.Context(), box)
		return err == nil && info.State == sandbox.Failed && strings.Contains(info.Message, reason)
	})
	if _, err := try(t.Context(), rt, box, "true"); !errors.Is(err, sandbox.ErrState) || !strings.Contains(err.Error(), reason) {
		t.Errorf("a command to the failed sandbox: %v", err)
	}
}

func TestExpiry(t *testing.T) {
	rt := startRuntime(t, options(t, t.TempDir()))
	short := create(t, rt, &sandbox.Spec{Timeout: 1500 * time.Millisecond})
	renewed := create(t, rt, &sandbox.Spec{Timeout: 1500 * time.Millisecond})
	renewed, err := rt.Renew(t.Context(), renewed.ID, time.Now().Add(time.Hour))
	if err != nil || time.Until(renewed.ExpiresAt) < 59*time.Minute {
		t.Fatalf("renew: %v %+v", err, renewed)
	}
	if _, err := rt.Renew(t.Context(), renewed.ID, time.Now().Add(-time.Second)); !errors.Is(err, sandbox.ErrInvalid) {
		t.Errorf("renew into the past: %v", err)
	}
	eventually(t, "the sandbox is gone at its expiry", func() bool {
		_, err := rt.Get(t.Context(), short.ID)
		return errors.Is(err, sandbox.ErrNotFound)
	})
	if now := time.Now(); now.Before(short.ExpiresAt) {
		t.Errorf("it was gone %v early", short.ExpiresAt.Sub(now))
	}
	run(t, rt, renewed.ID, "sleep 1.5")
	if info, err := rt.Get(t.Context(), renewed.ID); err != nil || info.State != sandbox.Running {
		t.Errorf("the renewed one: %v %+v", err, info)
	}
	histories, err := rt.Histories(t.Context())
	if err != nil || len(histories) != 2 || histories[0].Live == histories[1].Live {
		t.Errorf("histories: %v %+v", err, histories)
	}
	for _, h := range histories {
		if !h.Live && (h.State != sandbox.Terminated || !strings.Contains(h.Message, "expiry")) {
			t.Errorf("history of the expired one: %+v", h)
		}
	}
}

func TestDefaultTimeout(t *testing.T) {
	opts := options(t, t.TempDir())
	opts.DefaultTimeout = time.Hour
	rt := startRuntime(t, opts)
	for _, tt := range []struct {
		asked, want time.Duration
		warned      bool
	}{{0, time.Hour, false}, {time.Minute, time.Minute, false}, {time.Hour, time.Hour, false}, {2 * time.Hour, time.Hour, true}} {
		info := create(t, rt, &sandbox.Spec{Timeout: tt.asked})
		if got := info.ExpiresAt.Sub(info.CreatedAt); got != tt.want || (len(info.Warnings) > 0) != tt.warned {
			t.Errorf("asked for %v: lives %v, %q; want %v", tt.asked, got, info.Warnings, tt.want)
		}
		for _, at := range []time.Time{time.Now().Add(3 * time.Hour), {}} {
			info, err := rt.Renew(t.Context(), info.ID, at)
			if err != nil || time.Until(info.ExpiresAt) > time.Hour || time.Until(info.ExpiresAt) < 50*time.Minute {
				t.Errorf("renewed: %v %+v", err, info)
			}
		}
	}
	opts = options(t, t.TempDir())
	opts.DefaultTimeout = -time.Second
	if _, err := localruntime.New(opts); !errors.Is(err, sandbox.ErrInvalid) {
		t.Errorf("a negative one: %v", err)
	}
}

func TestDeepStateDir(t *testing.T) {
	state := filepath.Join(t.TempDir(), strings.Repeat("deep/", 30), "state")
	rt := startRuntime(t, options(t, state))
	info := create(t, rt, nil)
	if out := run(t, rt, info.ID, "echo ok"); out.stdout != "ok\n" {
		t.Errorf("%+v", out)
	}
	if _, err := rt.Pause(t.Context(), info.ID); err != nil {
		t.Error(err)
	}
	if _, err := rt.Resume(t.Context(), info.ID); err != nil {
		t.Error(err)
	}
	conn, err := owner.Dial(t.Context(), state)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	if err := rt.Delete(t.Context(), info.ID); err != nil {
		t.Error(err)
	}
	for _, place := range []string{"/var/run", "/tmp"} {
		if left, _ := filepath.Glob(filepath.Join(place, "runsc-"+info.ID+"*")); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	}
}

func TestDialPort(t *testing.T) {
	rt := startRuntime(t, options(t, t.TempDir()))
	info := create(t, rt, nil)
	run(t, rt, info.ID, `echo 'import socketserver
class H(socketserver.StreamRequestHandler):
    def handle(self):
        n = 0
        while b := self.rfile.read1(65536):
            n += len(b)
        self.wfile.write(b"got %d" % n)
socketserver.TCPServer(("127.0.0.1", 9000), H).serve_forever()' > s.py; python3 s.py >/dev/null 2>&1 &
for i in $(seq 200); do python3 -c 'import socket; socket.create_connection(("127.0.0.1", 9000))' 2>/dev/null && exit 0; done; exit 1`)
	conn, err := rt.DialPort(t.Context(), info.ID, 9000)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write(make([]byte, 3<<20)); err != nil {
		t.Fatal(err)
	}
	if err := conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, 100)
	n, err := conn.Read(answer)
	if got := string(answer[:n]); got != "got 3145728" {
		t.Errorf("answered %q, %v", got, err)
	}
	if _, err := rt.DialPort(t.Context(), info.ID, 9001); err == nil {
		t.Error("a port that nobody listens at was dialled")
	}
	late, err := rt.DialPort(t.Context(), info.ID, 9000)
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close()
	if err := late.SetDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := late.Read(answer); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read after the deadline: %v", err)
	}
}
