package proc_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/glassboxhq/glassbox/internal/localruntime/proc"
)

func start(t *testing.T) (*exec.Cmd, proc.Ref) {
	t.Helper()
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	ref, err := proc.Find(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	return cmd, ref
}

func TestEnd(t *testing.T) {
	_, ref := start(t)
	if !ref.Alive() {
		t.Fatal("it is not alive")
	}
	h, err := ref.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	waited := make(chan error, 1)
	go func() { waited <- h.Wait(t.Context()) }()
	if err := ref.End(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-waited; err != nil {
		t.Errorf("wait: %v", err)
	}
	if ref.Alive() { // a zombie is not alive
		t.Error("it is alive")
	}
	if err := h.Signal(unix.SIGTERM); err != nil {
		t.Errorf("signal to an ended one: %v", err)
	}
	if err := ref.End(t.Context()); err != nil {
		t.Errorf("end again: %v", err)
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	_, ref := start(t)
	h, err := ref.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := h.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("wait: %v", err)
	}
}

func TestAnotherWithTheSameNumber(t *testing.T) {
	_, ref := start(t)
	before := proc.Ref{PID: ref.PID, Start: ref.Start - 1}
	if before.Alive() {
		t.Error("the process that had the number before is alive")
	}
	if _, err := before.Open(); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("open: %v", err)
	}
	if err := before.End(t.Context()); err != nil || !ref.Alive() {
		t.Errorf("end: %v, the other one is alive: %v", err, ref.Alive())
	}
	if _, err := proc.Find(0); err == nil {
		t.Error("there is a process 0")
	}
}
