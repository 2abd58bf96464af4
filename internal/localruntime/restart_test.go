package localruntime_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/glassboxhq/glassbox/internal/localruntime"
	"github.com/glassboxhq/glassbox/internal/owner"
	"github.com/glassboxhq/glassbox/sandbox"
)

// serveForTest is a server that makes the sandboxes that its arguments ask
// for, prints their ids, and serves until it is killed.
func serveForTest(state string, lives ...string) {
	rt, err := localruntime.New(&localruntime.Options{
		StateDir: state, Runsc: os.Getenv("GLASSBOX_RUNSC"), Recorder: os.Getenv("TEST_RECORDER"), SelfArgs: []string{"local-launch"}, Here: true,
		CreatePatience: 50 * time.Millisecond,
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	ctx := context.Background()
	go func() {
		for _, life := range lives {
			timeout, _ := time.ParseDuration(life)
			spec := &sandbox.Spec{Name: "lives " + life, Timeout: timeout}
			if strings.Contains(life, "/") {
				spec.Image = life
			}
			if life == "here" {
				spec.Image, spec.Workdir = localruntime.ImageHere, state
			}
			info, err := rt.Create(ctx, spec)
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			fmt.Fprintln(os.Stdout, info.ID)
		}
	}()
	fmt.Fprintln(os.Stderr, rt.Run(ctx))
	os.Exit(1)
}

// startServer starts serveForTest and returns it with the ids that it printed.
func startServer(t *testing.T, state string, lives ...string) (*exec.Cmd, []string) {
	t.Helper()
	server := exec.Command(os.Args[0], append([]string{"serve-for-test", state}, lives...)...)
	server.Env = append(os.Environ(), "TEST_RECORDER="+recorderBinary(t), "GLASSBOX_RUNSC="+runsc(t))
	server.Stderr = os.Stderr
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Process.Kill(); server.Wait() })
	var ids []string
	for lines := bufio.NewScanner(out); len(ids) < len(lives) && lines.Scan(); {
		ids = append(ids, lines.Text())
	}
	if len(ids) < len(lives) {
		t.Fatalf("the server made %d sandboxes, not %d", len(ids), len(lives))
	}
	return server, ids
}

func killServer(t *testing.T, server *exec.Cmd) {
	t.Helper()
	if err := server.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	server.Wait()
}

func TestServerKilled(t *testing.T) {
	state := t.TempDir()
	server, ids := startServer(t, state, "0s", "0s", "0s", "1h", "0s", "0s")
	pauseByState(t, state, ids[4])
	_, err := localruntime.New(options(t, state))
	if !errors.Is(err, localruntime.ErrOwned) || !strings.Contains(err.Error(), fmt.Sprintf("process %d", server.Process.Pid)) {
		t.Errorf("a second owner: %v", err)
	}
	killServer(t, server)
	// One dies while no server runs, and one was being deleted.
	for _, pid := range processes(t, ids[1]) {
		exec.Command("kill", "-9", pid).Run()
	}
	eventually(t, "the killed one is gone", func() bool { return len(processes(t, ids[1])) == 0 })
	edit(t, state, ids[2], `"engine":`, `"deleting": true, "engine":`)
	edit(t, state, ids[5], `"state": "Running"`, `"state": "Pending"`) // was being made

	rt := startRuntime(t, options(t, state))
	start := time.Now()
	out := run(t, rt, ids[0], "echo alive")
	t.Logf("the living one answered %v after the start of the new server", time.Since(start))
	if out.stdout != "alive\n" {
		t.Errorf("%+v", out)
	}
	if out := run(t, rt, ids[3], "echo alive"); out.stdout != "alive\n" {
		t.Errorf("%+v", out)
	}
	info, err := rt.Get(t.Context(), ids[1])
	if err != nil || info.State != sandbox.Failed || !strings.Contains(info.Message, "no server ran") {
		t.Errorf("the dead one: %v %+v", err, info)
	}
	if _, err := rt.Get(t.Context(), ids[2]); !errors.Is(err, sandbox.ErrNotFound) {
		t.Errorf("the one that was being deleted: %v", err)
	}
	if left := processes(t, ids[2]); len(left) > 0 {
		t.Errorf("processes of the deleted one: %v", left)
	}
	if info, err := rt.Get(t.Context(), ids[4]); err != nil || info.State != sandbox.Paused {
		t.Errorf("the paused one: %v %+v", err, info)
	}
	if _, err := rt.Resume(t.Context(), ids[4]); err != nil {
		t.Error(err)
	}
	if out := run(t, rt, ids[4], "echo awake"); out.stdout != "awake\n" {
		t.Errorf("%+v", out)
	}
	if _, err := os.Lstat(filepath.Join(state, "sandboxes", ids[5])); err == nil || len(processes(t, ids[5])) > 0 {
		t.Error("something is left of the one that was being made")
	}
	histories, err := rt.Histories(t.Context())
	if err != nil || len(histories) != 5 {
		t.Errorf("%d histories, %v; want 5", len(histories), err)
	}
}

// TestServerKilledDuringCreate kills servers in the middle of a creation. The
// next one leaves nothing of what was begun: no process, no folder.
func TestServerKilledDuringCreate(t *testing.T) {
	state := t.TempDir()
	for _, after := range []time.Duration{0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 110, 130, 150} {
		server := exec.Command(os.Args[0], "serve-for-test", state, "0s")
		server.Env = append(os.Environ(), "TEST_RECORDER="+recorderBinary(t), "GLASSBOX_RUNSC="+runsc(t))
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		began := func() bool {
			found, err := filepath.Glob(filepath.Join(state, "sandboxes", "*", "launch.json"))
			return err == nil && len(found) > 0
		}
		eventually(t, "a creation began", began)
		<-time.After(after * time.Millisecond)
		killServer(t, server)
		rt := startOwner(t, options(t, state))
		list, err := rt.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, info := range list { // its creation was done
			if err := rt.Delete(t.Context(), info.ID); err != nil {
				t.Error(err)
			}
		}
		if left := processes(t, state+"/sandboxes"); len(left) > 0 {
			t.Errorf("%v after the launch began: processes are left: %v", after*time.Millisecond, left)
		}
		rt.stop()
		folders, err := filepath.Glob(filepath.Join(state, "sandboxes", "*", "launch.*"))
		if err != nil || len(folders) > 0 {
			t.Errorf("%v after the launch began: left %v %v", after*time.Millisecond, folders, err)
		}
	}
	<-time.After(500 * time.Millisecond) // what would still be on its way
	if left := processes(t, state+"/sandboxes"); len(left) > 0 {
		t.Errorf("processes came up later: %v", left)
	}
}

// TestProcessNotInRecord takes up sandboxes whose owner died after it had
// started a process, and before it had written down which.
func TestProcessNotInRecord(t *testing.T) {
	for _, life := range []string{"0s", "here"} {
		t.Run(life, func(t *testing.T) {
			state := t.TempDir()
			server, ids := startServer(t, state, life)
			killServer(t, server)
			edit(t, state, ids[0], `"state": "Running"`, `"state": "Pending"`)
			edit(t, state, ids[0], `"process":`, `"nothing":`)
			if len(processes(t, ids[0])) == 0 {
				t.Fatal("the sandbox died with its server")
			}
			opts := options(t, state)
			opts.Here = true
			startRuntime(t, opts)
			if left := processes(t, ids[0]); len(left) > 0 {
				t.Errorf("processes are left: %v", left)
			}
			if _, err := os.Lstat(filepath.Join(state, "sandboxes", ids[0])); err == nil {
				t.Error("its folder is left")
			}
		})
	}
}

// TestTakeUpIsQuick bounds what a command pays that finds no server.
func TestTakeUpIsQuick(t *testing.T) {
	state := t.TempDir()
	server, ids := startServer(t, state, "0s")
	killServer(t, server)
	<-time.After(time.Second) // the recorder has found out, and dials now and then
	start := time.Now()
	rt := startRuntime(t, options(t, state))
	serving := time.Since(start)
	out := run(t, rt, ids[0], "echo alive")
	took := time.Since(start)
	t.Logf("served after %v, answered after %v", serving, took)
	if out.stdout != "alive\n" || serving > 400*time.Millisecond {
		t.Errorf("served after %v: %+v", serving, out)
	}
}

// TestUnreadableRecord finds records that cannot be read, of a sandbox that
// lives and of one that is gone.
func TestUnreadableRecord(t *testing.T) {
	state := t.TempDir()
	server, ids := startServer(t, state, "0s", "0s")
	deleteByState(t, state, ids[1])
	killServer(t, server)
	for _, id := range ids {
		if err := os.Truncate(filepath.Join(state, "sandboxes", id, "sandbox.json"), 100); err != nil {
			t.Fatal(err)
		}
	}
	rt := startRuntime(t, options(t, state))
	find := func(id string) *localruntime.History {
		t.Helper()
		histories, err := rt.Histories(t.Context())
		i := slices.IndexFunc(histories, func(h *localruntime.History) bool { return h.ID == id })
		if err != nil || i < 0 {
			t.Fatalf("no history of %s: %v %v", id, err, histories)
		}
		return histories[i]
	}
	if h := find(ids[0]); !h.Live || h.State != sandbox.Unknown || !strings.Contains(h.Message, "sandbox.json") {
		t.Errorf("the living one: %+v", h)
	}
	h := find(ids[1])
	if h.Live || h.State != sandbox.Unknown || h.Deleted.IsZero() || !strings.Contains(h.Message, "sandbox.json") {
		t.Errorf("the one that is gone: %+v", h)
	}
	if _, err := os.Lstat(h.Dir); err != nil {
		t.Errorf("its history: %v", err)
	}
	list, err := rt.List(t.Context())
	if err != nil || len(list) != 1 || list[0].ID != ids[0] || list[0].State != sandbox.Unknown {
		t.Fatalf("list: %v %v", err, list)
	}
	if _, err := try(t.Context(), rt, ids[0], "true"); !errors.Is(err, sandbox.ErrState) {
		t.Errorf("a command: %v", err)
	}
	if err := rt.Delete(t.Context(), ids[0]); err != nil {
		t.Fatal(err)
	}
	if left := processes(t, ids[0]); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
	if h := find(ids[0]); h.Live || h.State != sandbox.Terminated {
		t.Errorf("after the deletion: %+v", h)
	}
}

// TestExpiryWithoutServer shows that a sandbox ends by itself.
func TestExpiryWithoutServer(t *testing.T) {
	state := t.TempDir()
	server, ids := startServer(t, state, "3s")
	killServer(t, server)
	if len(processes(t, ids[0])) == 0 {
		t.Fatal("the sandbox died with its server")
	}
	eventually(t, "the sandbox ended at its expiry", func() bool { return len(processes(t, ids[0])) == 0 })
	rt := startRuntime(t, options(t, state))
	if _, err := rt.Get(t.Context(), ids[0]); !errors.Is(err, sandbox.ErrNotFound) {
		t.Errorf("get: %v", err)
	}
	histories, err := rt.Histories(t.Context())
	if err != nil || len(histories) != 1 || histories[0].State != sandbox.Terminated || histories[0].Live {
		t.Errorf("histories: %v %+v", err, histories)
	}
}

// edit changes the record of a sandbox.
func edit(t *testing.T, state, id, from, to string) {
	t.Helper()
	file := filepath.Join(state, "sandboxes", id, "sandbox.json")
	text, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(text), from) {
		t.Fatalf("%v: %s", err, text)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(text), from, to, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// pauseByState asks the owner of the state folder.
func pauseByState(t *testing.T, state, id string) {
	t.Helper()
	askByState(t, state, "POST /v1/sandboxes/"+id+"/pause", " 202 ")
}

func deleteByState(t *testing.T, state, id string) {
	t.Helper()
	askByState(t, state, "DELETE /v1/sandboxes/"+id, " 204 ")
}

func askByState(t *testing.T, state, what, status string) {
	t.Helper()
	conn, err := owner.Dial(t.Context(), state)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", what)
	if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.Contains(line, status) {
		t.Fatalf("%s: %v %s", what, err, line)
	}
}

// processes lists the processes of this machine whose command line holds mark.
func processes(t testing.TB, mark string) []string {
	t.Helper()
	entries, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, entry := range entries {
		line, err := os.ReadFile(entry + "/cmdline")
		if err == nil && strings.Contains(string(line), mark) {
			found = append(found, filepath.Base(entry))
		}
	}
	slices.Sort(found)
	return found
}
