package glassbox_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/glassboxhq/glassbox"
	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/sandbox"
)

// A sandbox that is paused under an open tunnel: calls wait until their
// deadline, and say what it is; afterwards all goes on.
func TestOpenSandboxPaused(t *testing.T) {
	r := needOpenSandbox(t)
	box := r.create(t, nil)
	ticks, err := box.Start(t.Context(), "for i in $(seq 40); do echo $i; sleep 0.05; done", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ticks.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := box.Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, call := range map[string]func(context.Context) error{
		"run":  func(ctx context.Context) error { _, err := box.Run(ctx, "true", nil); return err },
		"list": func(ctx context.Context) error { _, err := box.List(ctx, "/"); return err },
		"write": func(ctx context.Context) error {
			_, err := box.Write(ctx, "f", strings.NewReader("x"), nil)
			return err
		},
		"connect": func(ctx context.Context) error {
			_, err := glassbox.Connect(ctx, r.url, box.ID(), r.options(nil))
			return err
		},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		began := time.Now()
		err := call(ctx)
		cancel()
		if err == nil || !strings.Contains(strings.ToLower(err.Error()), "paused") || time.Since(began) > 5*time.Second {
			t.Errorf("%s: got %v after %v, want that it is paused", name, err, time.Since(began))
		}
		if name != "connect" && !errors.Is(err, glassbox.ErrTimeout) {
			t.Errorf("%s: got %v, want a timeout", name, err)
		}
	}
	if err := box.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	res, err := ticks.Wait(t.Context())
	if err != nil || res.Status != sandbox.Succeeded || res.StdoutBytes != 9*2+31*3 {
		t.Errorf("got %+v, %v, want the command to go on", res, err)
	}
	if res, err := box.Run(t.Context(), "echo again", nil); err != nil || string(res.Stdout) != "again\n" {
		t.Errorf("got %+v, %v", res, err)
	}
}

// FB-073: a sandbox that is gone, however it went, is told so at once.
func TestOpenSandboxFB073Gone(t *testing.T) {
	r := needOpenSandbox(t)
	for name, end := range map[string]func(t *testing.T, box *glassbox.Sandbox){
		"removed": func(t *testing.T, box *glassbox.Sandbox) { docker(t, "rm", "-f", "sandbox-"+box.ID()) },
		"killed":  func(t *testing.T, box *glassbox.Sandbox) { docker(t, "kill", "sandbox-"+box.ID()) },
		"deleted": func(t *testing.T, box *glassbox.Sandbox) {
			if err := glassbox.Delete(t.Context(), r.url, box.ID(), r.options(nil)); err != nil {
				t.Error(err)
			}
		},
		"expired": func(t *testing.T, box *glassbox.Sandbox) {
			if err := box.Renew(t.Context(), time.Second); err != nil {
				t.Error(err)
			}
			waitFor(t, "its end", func() bool {
				_, err := glassbox.Get(t.Context(), r.url, box.ID(), r.options(nil))
				return errors.Is(err, glassbox.ErrNotFound)
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			box, err := glassbox.Create(t.Context(), r.url, r.options(&glassbox.Options{TTL: time.Hour}))
			if err != nil {
				t.Fatal(err)
			}
			running, err := box.Start(t.Context(), "echo begun; sleep 300", nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := running.Next(t.Context()); err != nil {
				t.Fatal(err)
			}
			end(t, box)
			want := glassbox.ErrNotFound
			if name == "killed" { // the service still has it
				want = glassbox.ErrState
			}
			for what, call := range map[string]func() error{
				"run":     func() error { _, err := box.Run(t.Context(), "true", nil); return err },
				"read":    func() error { _, err := box.ReadFile(t.Context(), "/etc/passwd"); return err },
				"connect": func() error { _, err := glassbox.Connect(t.Context(), r.url, box.ID(), r.options(nil)); return err },
			} {
				began := time.Now()
				if err := call(); !errors.Is(err, want) || time.Since(began) > 10*time.Second {
					t.Errorf("%s: got %v after %v, want %v", what, err, time.Since(began), want)
				}
			}
			began := time.Now()
			if res, err := running.Wait(t.Context()); err == nil || time.Since(began) > 15*time.Second {
				t.Errorf("the command: got %+v, %v after %v, want it lost soon", res, err, time.Since(began))
			}
			if err := box.Close(t.Context()); err != nil {
				t.Errorf("close: %v", err)
			}
		})
	}
}

func waitFor(t *testing.T, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !so(); <-time.After(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// A command that takes all of the sandbox's memory does not take the sandbox.
func TestOpenSandboxOutOfMemory(t *testing.T) {
	t.Parallel()
	r := needOpenSandbox(t)
	box := r.create(t, &glassbox.Options{Limits: map[string]string{"memory": "192Mi"}})
	res, err := box.Run(t.Context(), `python3 -c 'b = bytearray(1 << 30); print("had it")'`, nil)
	if err == nil && res.Status == sandbox.Succeeded || err != nil && !errors.Is(err, glassbox.ErrInterrupted) {
		t.Errorf("got %+v, %v, want it to have failed", res, err)
	}
	again := r.connect(t, box.ID())
	if res, err := again.Run(t.Context(), "echo here", nil); err != nil || string(res.Stdout) != "here\n" {
		t.Errorf("got %+v, %v, want the sandbox to go on", res, err)
	}
	ops := list(t, again, &glassbox.Filter{Types: []string{history.CommandExecute}})
	if len(ops) != 2 || ops[0].Status != sandbox.Unsuccessful && ops[0].Status != sandbox.Lost {
		t.Errorf("got %+v, want both commands, the first without success", ops)
	}
}

// ownServer is a server of a test's own, on the same engine, which it can end.
type ownServer struct {
	remote
	config string
	cmd    *exec.Cmd
}

func (r *remote) ownServer(t *testing.T) *ownServer {
	t.Helper()
	text, err := os.ReadFile(os.Getenv("GLASSBOX_OPENSANDBOX_CONFIG"))
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	dir := t.TempDir()
	s := &ownServer{remote{fmt.Sprintf("http://127.0.0.1:%d", port), r.key}, filepath.Join(dir, "config.toml"), nil}
	_, was, _ := strings.Cut(r.url, "127.0.0.1:")
	config := strings.Replace(string(text), "port = "+was, fmt.Sprintf("port = %d", port), 1)
	config = strings.ReplaceAll(config, filepath.Dir(os.Getenv("GLASSBOX_OPENSANDBOX_CONFIG")), dir)
	if err := os.WriteFile(s.config, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	s.start(t)
	t.Cleanup(s.kill)
	return s
}

func (s *ownServer) start(t *testing.T) {
	t.Helper()
	program := os.Getenv("GLASSBOX_OPENSANDBOX_SERVER")
	s.cmd = exec.Command(filepath.Join(filepath.Dir(program), "python"), program, "--config", s.config)
	s.cmd.Env = append(os.Environ(), "HOME="+filepath.Dir(s.config))
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the server", func() bool {
		resp, err := http.Get(s.url + "/health")
		if err == nil {
			resp.Body.Close()
		}
		return err == nil && resp.StatusCode == http.StatusOK
	})
}

func (s *ownServer) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// The server dies in the middle of a command, and is started again: nothing is
// lost, and nothing run twice.
func TestOpenSandboxServerRestart(t *testing.T) {
	t.Parallel()
	s := needOpenSandbox(t).ownServer(t)
	box := s.create(t, nil)
	p, err := box.Start(t.Context(), "for i in $(seq 1000 1200); do echo $i; sleep 0.05; done", nil)
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	take := func() error {
		c, err := p.Next(t.Context())
		got.Write(c.Data)
		return err
	}
	if err := take(); err != nil {
		t.Fatal(err)
	}
	s.kill()
	if _, err := box.List(t.Context(), "/"); !errors.Is(err, glassbox.ErrUnavailable) {
		t.Errorf("without a server: got %v, want that it does not answer", err)
	}
	s.start(t)
	for err == nil {
		err = take()
	}
	var want strings.Builder
	for i := 1000; i <= 1200; i++ {
		fmt.Fprintln(&want, i)
	}
	if !errors.Is(err, io.EOF) || got.String() != want.String() {
		t.Errorf("got %v and\n%s", err, got.String())
	}
	if ops := list(t, box, &glassbox.Filter{Types: []string{history.CommandExecute}}); len(ops) != 1 || ops[0].Status != sandbox.Succeeded {
		t.Errorf("got %+v, want the one command", ops)
	}
}

// frozen is a way to the server that stops carrying anything, and does not say
// so: what was open then stays open, as when a router forgets it.
type frozen struct {
	net.Listener
	target string
	ice    atomic.Int64 // connections before this one carry nothing
	count  atomic.Int64
	conns  sync.WaitGroup
}

func newFrozen(t *testing.T, target string) *frozen {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &frozen{Listener: l, target: target}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			f.conns.Go(func() { f.carry(ctx, client, f.count.Add(1)) })
		}
	}()
	t.Cleanup(func() { cancel(); l.Close(); <-done; f.conns.Wait() })
	return f
}

// carry ends with the way.
func (f *frozen) carry(ctx context.Context, client net.Conn, n int64) {
	server, err := net.Dial("tcp", f.target)
	if err != nil {
		client.Close()
		return
	}
	var ways sync.WaitGroup
	stop := context.AfterFunc(ctx, func() { client.Close(); server.Close() })
	defer stop()
	for _, way := range [][2]net.Conn{{client, server}, {server, client}} {
		ways.Go(func() {
			buffer := make([]byte, 32<<10)
			for {
				k, err := way[1].Read(buffer)
				if n <= f.ice.Load() {
					<-ctx.Done()
					return
				}
				if _, writeErr := way[0].Write(buffer[:k]); err != nil || writeErr != nil {
					_ = client.Close()
					_ = server.Close()
					return
				}
			}
		})
	}
	ways.Wait()
}

// A connection that is dead and does not look so is found out, and what was on
// it goes on over another one.
func TestOpenSandboxHalfOpen(t *testing.T) {
	t.Parallel()
	r := needOpenSandbox(t)
	f := newFrozen(t, strings.TrimPrefix(r.url, "http://"))
	way := &remote{"http://" + f.Addr().String(), r.key}
	box := way.create(t, nil)
	p, err := box.Start(t.Context(), "echo begun; sleep 1; echo ended", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.ice.Store(f.count.Load())
	began := time.Now()
	if res, err := box.Run(t.Context(), "echo after >> f; cat f", nil); err != nil || string(res.Stdout) != "after\n" {
		t.Errorf("got %+v, %v, want it run once", res, err)
	}
	if res, err := p.Wait(t.Context()); err != nil || res.StdoutBytes != int64(len("begun\nended\n")) {
		t.Errorf("got %+v, %v, want the whole command", res, err)
	}
	t.Logf("found out after %v", time.Since(began))
}

// A container that another one has taken the place of, under the same id, has
// none of what was put in: whoever held the old one is told, and whoever comes
// begins anew.
func TestOpenSandboxReplaced(t *testing.T) {
	t.Parallel()
	r := needOpenSandbox(t)
	box := r.create(t, nil)
	if _, err := box.Run(t.Context(), "true", nil); err != nil {
		t.Fatal(err)
	}
	name, old := "sandbox-"+box.ID(), "replaced-"+box.ID()
	docker(t, "rename", name, old)
	docker(t, "stop", "--time", "0", old)
	args := []string{"create", "--name", name, "--entrypoint", "/opt/opensandbox/bootstrap.sh"}
	for label := range strings.Lines(docker(t, "inspect", "--format", `{{range $k, $v := .Config.Labels}}{{println $k "=" $v}}{{end}}`, old)) {
		key, value, _ := strings.Cut(strings.TrimSpace(label), " = ")
		if key != "" {
			args = append(args, "--label", key+"="+value)
		}
	}
	docker(t, append(args, "python:3.12", "tail", "-f", "/dev/null")...)
	dir := t.TempDir()
	docker(t, "cp", old+":/opt/opensandbox", dir)
	docker(t, "cp", filepath.Join(dir, "opensandbox"), name+":/opt/opensandbox")
	docker(t, "rm", "-f", old)
	docker(t, "start", name)
	began := time.Now()
	if res, err := box.Run(t.Context(), "echo old", nil); err == nil || time.Since(began) > 20*time.Second {
		t.Errorf("the old handle: got %+v, %v after %v, want that its recorder is not there", res, err, time.Since(began))
	} else {
		t.Logf("the old handle: %v", err)
	}
	again := r.connect(t, box.ID())
	if res, err := again.Run(t.Context(), "echo new", nil); err != nil || string(res.Stdout) != "new\n" {
		t.Errorf("got %+v, %v", res, err)
	}
	if ops := list(t, again, nil); len(ops) != 1 || ops[0].Type != history.CommandExecute {
		t.Errorf("got %+v, want a history that begins with this command", ops)
	}
	_, err := box.Run(t.Context(), "echo old", nil)
	if err == nil {
		t.Error("the old handle works in another container")
	}
	t.Logf("the old handle then: %v", err)
}
