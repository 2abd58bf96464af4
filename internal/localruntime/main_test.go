package localruntime_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/internal/localruntime"
	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/sandbox"
)

// The test binary is also the launcher and, for the tests that kill one, a
// server.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "local-launch" {
		fmt.Fprintln(os.Stderr, localruntime.Launch(os.Args[2:]))
		os.Exit(1)
	}
	if len(os.Args) > 2 && os.Args[1] == "serve-for-test" {
		serveForTest(os.Args[2], os.Args[3:]...)
		return
	}
	code := m.Run()
	if built.dir != "" {
		os.RemoveAll(built.dir)
	}
	os.Exit(code)
}

var built struct {
	sync.Once
	dir string
	err error
}

// recorderBinary builds the recorder once for all tests.
func recorderBinary(t testing.TB) string {
	t.Helper()
	if path := os.Getenv("GLASSBOX_RECORDER"); path != "" {
		return path
	}
	built.Do(func() {
		//nolint:usetesting // it is for all tests, TestMain removes it
		if built.dir, built.err = os.MkdirTemp("", "localruntime-test-"); built.err != nil {
			return
		}
		cmd := exec.Command("go", "build", "-o", filepath.Join(built.dir, "glassbox-recorder"), "github.com/glassboxhq/glassbox/cmd/glassbox-recorder")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			built.err = fmt.Errorf("%w: %s", err, out)
		}
	})
	if built.err != nil {
		t.Fatalf("build recorder: %v", built.err)
	}
	return filepath.Join(built.dir, "glassbox-recorder")
}

// runsc returns the path of gVisor's runsc, and ends the test where there is
// none: as failed in CI, as not run elsewhere.
func runsc(t testing.TB) string {
	t.Helper()
	path := os.Getenv("GLASSBOX_RUNSC")
	switch {
	case os.Getenv("GLASSBOX_NO_ISOLATION") != "":
		t.Skip("needs gVisor")
	case path != "":
		return path
	case os.Getenv("CI") == "true":
		t.Fatal("CI must run this test with GLASSBOX_RUNSC naming a static runsc")
	default:
		t.Skip("needs GLASSBOX_RUNSC naming a static runsc")
	}
	return ""
}

func options(t testing.TB, state string) *localruntime.Options {
	t.Helper()
	return &localruntime.Options{
		StateDir: state, Runsc: runsc(t), Recorder: recorderBinary(t), SelfArgs: []string{"local-launch"},
		Logger: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
}

// startRuntime runs a runtime until the test ends, and then checks that it can
// delete all its sandboxes.
func startRuntime(t testing.TB, opts *localruntime.Options) *localruntime.Runtime {
	t.Helper()
	o := startOwner(t, opts)
	t.Cleanup(func() {
		list, err := o.List(context.Background())
		if err != nil && !errors.Is(err, sandbox.ErrUnavailable) {
			t.Errorf("list at the end: %v", err)
		}
		for _, info := range list {
			if err := o.Delete(context.Background(), info.ID); err != nil {
				t.Errorf("delete at the end: %v", err)
			}
		}
		o.stop()
	})
	return o.Runtime
}

// running is a runtime that runs.
type running struct {
	*localruntime.Runtime
	stop func() // ends its serving; its sandboxes go on
}

func startOwner(t testing.TB, opts *localruntime.Options) *running {
	t.Helper()
	rt, err := localruntime.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- rt.Run(ctx) }()
	o := &running{rt, sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("run: %v", err)
		}
	})}
	t.Cleanup(o.stop)
	if _, err := rt.List(t.Context()); err != nil { // it serves from here on
		t.Fatal(err)
	}
	return o
}

func create(t testing.TB, rt *localruntime.Runtime, spec *sandbox.Spec) *sandbox.Info {
	t.Helper()
	info, err := rt.Create(t.Context(), spec)
	if err != nil {
		t.Fatalf("create: %v", err)
	}
	return info
}

type outcome struct {
	stdout, stderr string
	code           int
}

// try runs a shell line in a sandbox.
func try(ctx context.Context, rt *localruntime.Runtime, box, line string) (outcome, error) {
	return tryCommand(ctx, rt, box, &wire.CommandRequest{ID: id.New(), Line: line})
}

func tryCommand(ctx context.Context, rt *localruntime.Runtime, box string, command *wire.CommandRequest) (outcome, error) {
	access, err := rt.Access(ctx, box)
	if err != nil {
		return outcome{}, err
	}
	body, err := json.Marshal(command)
	if err != nil {
		return outcome{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://recorder"+wire.PathCommands, bytes.NewReader(body))
	if err != nil {
		return outcome{}, err
	}
	req.Header.Set(wire.HeaderToken, access.Token)
	res, err := rt.Conn(box).RoundTrip(req)
	if err != nil {
		return outcome{}, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(res.Body)
		return outcome{}, wire.DecodeFault(res.StatusCode, text)
	}
	var out outcome
	for frames := wire.NewReader(res.Body); ; {
		f, err := frames.Next()
		if err != nil {
			return out, err
		}
		switch f.Type {
		case wire.FrameStdout, wire.FrameStderr:
			c, err := f.Chunk()
			if err != nil {
				return out, err
			}
			if c.Stream == sandbox.Stdout {
				out.stdout += string(c.Data)
			} else {
				out.stderr += string(c.Data)
			}
		case wire.FrameExit:
			r, err := wire.DecodeResult(f.Payload)
			if err != nil {
				return out, err
			}
			out.code = r.ExitCode
			return out, nil
		case wire.FrameError:
			return out, fmt.Errorf("command: %s", f.Payload)
		}
	}
}

// run is try for what must work as an exchange, whatever the exit code.
func run(t testing.TB, rt *localruntime.Runtime, box, line string) outcome {
	t.Helper()
	out, err := try(t.Context(), rt, box, line)
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return out
}

// eventually waits until what holds, and fails the test when it does not.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); <-tick.C {
		if holds() {
			return
		}
	}
	t.Fatalf("never came true: %s", what)
}

// host runs a shell line on this machine: what an attempt would give without
// a sandbox.
func host(t testing.TB, line string, env ...string) (string, error) {
	t.Helper()
	cmd := exec.Command("sh", "-c", line)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}
