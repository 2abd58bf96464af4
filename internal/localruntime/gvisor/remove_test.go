package gvisor_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/internal/localruntime/gvisor"
	"github.com/glassboxhq/glassbox/internal/localruntime/proc"
)

// program starts a program with a command line as the engine's have, and
// returns when it has begun, or was killed already.
func program(t *testing.T, args ...string) proc.Ref {
	t.Helper()
	cmd := exec.Command("/bin/sh", append([]string{"-c", "sleep 60; true"}, args...)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = cmd.Wait() }()
	t.Cleanup(func() { cmd.Process.Kill(); <-ended })
	ref, err := proc.Find(cmd.Process.Pid)
	if err != nil {
		return proc.Ref{}
	}
	for ref.Alive() { // it has begun when its command line is its own
		list, err := proc.Search(func(line []string) bool { return len(line) > 3 && line[3] == args[0] })
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(list, ref) {
			break
		}
	}
	return ref
}

// TestRemoveWithoutRecord removes a sandbox of which nothing is known but its
// folder, as an owner that died during its creation leaves it.
func TestRemoveWithoutRecord(t *testing.T) {
	name, other := id.NewRandom(), id.NewRandom()
	dir := filepath.Join(t.TempDir(), name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	e := &gvisor.Engine{SelfArgs: []string{"local-launch"}}
	launcher := program(t, "local-launch", filepath.Join(dir, "launch.json"))
	sandboxed := program(t, "--root=/another/way/to/"+name+"/runsc", "boot")
	bystanders := []proc.Ref{
		program(t, "--root=/state/"+other+"/runsc", "boot"),
		program(t, "view", filepath.Join(dir, "launch.json")),
		program(t, "tail", filepath.Join(dir, "console.log")),
	}
	// A number that a file tells may be another process's by now.
	stale := program(t, "unrelated")
	if err := os.WriteFile(filepath.Join(dir, "pid"), []byte(strconv.Itoa(stale.PID)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := e.Remove(t.Context(), name, dir, proc.Ref{}); err != nil {
		t.Fatal(err)
	}
	if launcher.Alive() || sandboxed.Alive() {
		t.Errorf("alive: launcher %v, sandbox %v", launcher.Alive(), sandboxed.Alive())
	}
	for _, ref := range append(bystanders, stale) {
		if !ref.Alive() {
			t.Error("a process that is none of the sandbox was killed")
		}
	}
}

// TestRemoveDuringLaunch keeps everything while somebody holds the launch, and
// ends what the launch starts in its last moment.
func TestRemoveDuringLaunch(t *testing.T) {
	name := id.NewRandom()
	dir := filepath.Join(t.TempDir(), name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"launch.lock", "launch.json"} {
		if err := os.WriteFile(filepath.Join(dir, file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	held, err := os.Open(filepath.Join(dir, "launch.lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if err := unix.Flock(int(held.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	e := &gvisor.Engine{SelfArgs: []string{"local-launch"}}
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := e.Remove(short, name, dir, proc.Ref{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("remove while the launch goes on: %v", err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "launch.json")); err != nil {
		t.Errorf("something was removed: %v", err)
	}
	removed := make(chan error, 1)
	go func() { removed <- e.Remove(t.Context(), name, dir, proc.Ref{}) }()
	late := program(t, "--root="+dir+"/runsc", "boot")
	held.Close()
	if err := <-removed; err != nil {
		t.Fatal(err)
	}
	if late.Alive() {
		t.Error("what the launch started last is alive")
	}
	if _, err := os.Lstat(filepath.Join(dir, "launch.json")); err == nil {
		t.Error("the launch file is still there")
	}
}
