package native_test

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/glassboxhq/glassbox/sandbox"
	"github.com/glassboxhq/glassbox/sandbox/native"
)

// sweepWriter is set for the process that writes and is killed.
const sweepWriter = "GLASSBOX_TEST_WRITER"

// written returns the names of the unfinished files in a folder.
func written(t *testing.T, dir string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, sandbox.TempPrefix+"*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// waitWritten waits until some content has come: from then on its writer holds
// the file.
func waitWritten(t *testing.T, dir string) {
	t.Helper()
	begun := func() bool {
		names := written(t, dir)
		if len(names) == 0 {
			return false
		}
		info, err := os.Stat(names[0])
		return err == nil && info.Size() > 0
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(30 * time.Second); !begun(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatal("the write did not begin")
		}
	}
}

// A scan removes what a writer that was killed left, and nothing else.
func TestSweep(t *testing.T) {
	if dir := os.Getenv(sweepWriter); dir != "" {
		s, err := native.New(&native.Options{Workdir: dir})
		if err == nil {
			_, err = s.Write(t.Context(), "deep/target", os.Stdin, nil)
		}
		t.Fatal("it was to be killed: ", err)
	}
	s, dir := newTree(t, "deep/target", ".glassbox-mine", ".glassbox-new")
	writer := exec.Command(os.Args[0], "-test.run=^TestSweep$")
	writer.Env = append(os.Environ(), sweepWriter+"="+dir)
	content, err := writer.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	if err := writer.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(content, "half of it"); err != nil {
		t.Fatal(err)
	}
	deep := filepath.Join(dir, "deep")
	waitWritten(t, deep)
	look := func() string {
		t.Helper()
		scan, err := s.Scan(t.Context(), dir, sandbox.ScanLimit{})
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(pathsOf(scan), " ")
	}
	if look(); len(written(t, deep)) != 1 {
		t.Error("what is being written was removed")
	}
	if err := writer.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = writer.Wait() // it was killed
	if got := look(); got != ".glassbox-mine .glassbox-new deep deep/target" || len(written(t, deep)) != 0 {
		t.Errorf("after the kill: %q, %v", got, written(t, deep))
	}
}

// Scans beside writers take nothing from them.
func TestSweepBesideWriters(t *testing.T) {
	s, dir := newTree(t)
	ctx, stop := context.WithCancel(t.Context())
	scanned := make(chan error, 1)
	go func() {
		for {
			if _, err := s.Scan(ctx, dir, sandbox.ScanLimit{}); err != nil {
				scanned <- err
				return
			}
		}
	}()
	for range 500 {
		if _, err := s.Write(t.Context(), "f", strings.NewReader("text"), nil); err != nil {
			t.Errorf("write: %v", err)
			break
		}
	}
	in, out := io.Pipe()
	slow := make(chan error, 1)
	go func() { _, err := s.Write(t.Context(), "slow", in, nil); slow <- err }()
	if _, err := io.WriteString(out, "early, "); err != nil {
		t.Fatal(err)
	}
	waitWritten(t, dir)
	_, err := io.WriteString(out, "late")
	if err := errors.Join(err, out.Close(), <-slow); err != nil {
		t.Error(err)
	}
	stop()
	if err := <-scanned; !errors.Is(err, context.Canceled) {
		t.Errorf("scan: %v", err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "slow")); err != nil || string(text) != "early, late" || len(written(t, dir)) != 0 {
		t.Errorf("got %q, %v, left %v", text, err, written(t, dir))
	}
}
