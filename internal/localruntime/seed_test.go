package localruntime_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/localruntime"
	"github.com/glassboxhq/glassbox/internal/localruntime/lifecycle"
	"github.com/glassboxhq/glassbox/sandbox"
	"github.com/glassboxhq/glassbox/sandbox/recorded"
)

// seedPython names an interpreter that has the published package.
func seedPython(t *testing.T) string {
	t.Helper()
	python := os.Getenv("GLASSBOX_SEED_PYTHON")
	if python == "" {
		if os.Getenv("CI") != "" {
			t.Fatal("CI must run this test with GLASSBOX_SEED_PYTHON")
		}
		t.Skip("needs GLASSBOX_SEED_PYTHON, a Python with the package agent-sandbox-backends")
	}
	return python
}

// step is what a step of the script gave.
type step struct {
	OK    json.RawMessage
	Error string
}

// seed is the published package at work, in a process of its own.
type seed struct {
	in      io.Writer
	out     *bufio.Reader
	sandbox string
}

func startSeed(t *testing.T, url string) *seed {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), seedPython(t), "testdata/seed.py", url, "key")
	cmd.Stderr = t.Output()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	s := &seed{in: in, out: bufio.NewReader(out)}
	var made struct{ Sandbox string }
	s.read(t, &made)
	s.sandbox = made.Sandbox
	return s
}

// read reads what the script says next.
func (s *seed) read(t *testing.T, to any) {
	t.Helper()
	line, err := s.out.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, to)
	}
	if err != nil {
		t.Fatalf("the script said %.200q, %v", line, err)
	}
}

// goOn lets the script go on.
func (s *seed) goOn() { fmt.Fprintln(s.in) }

func (s *seed) session(t *testing.T, rt *localruntime.Runtime) *recorded.Session {
	t.Helper()
	access, err := rt.Access(t.Context(), s.sandbox)
	if err != nil {
		t.Fatal(err)
	}
	return recorded.New("http://recorder", &recorded.Options{Token: access.Token, Client: &http.Client{Transport: rt.Conn(s.sandbox)}})
}

// The published Python package works here as it stands. Each of its operations
// is one in the history, beside ours, and both write at once.
func TestSeed(t *testing.T) {
	seedPython(t)
	rt := startRuntime(t, options(t, t.TempDir()))
	server := httptest.NewServer(lifecycle.New(rt, &lifecycle.Options{APIKey: "key"}))
	defer server.Close()
	s := startSeed(t, server.URL)
	ours := s.session(t, rt)
	const ourCommands = 20
	var both sync.WaitGroup
	s.goOn()
	both.Go(func() {
		for i := range ourCommands {
			if _, err := ours.Run(t.Context(), &sandbox.Command{Line: fmt.Sprintf("echo ours %d", i)}); err != nil {
				t.Errorf("ours: %v", err)
			}
		}
	})
	var steps map[string]step
	s.read(t, &steps)
	both.Wait()
	for name, want := range map[string]string{
		"fail":    `"exit_code": 3`,
		"write":   `"5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03"`,
		"read":    `"hello\n"`,
		"list":    `["/workspace/a.txt"]`,
		"delete":  `null`,
		"config":  `3`,
		"health":  `"schema_version": 1`,
		"pause":   `"paused"`,
		"resume":  `"running"`,
		"execute": `"exit_code": 0`,
		"after":   `"stdout": "still"`,
	} {
		if got := steps[name]; got.Error != "" || !strings.Contains(string(got.OK), want) {
			t.Errorf("%s: got %s %s, want %s", name, got.OK, got.Error, want)
		}
	}
	if got := steps["missing"]; !strings.Contains(got.Error, "FileNotFoundError") {
		t.Errorf("a missing file: got %+v", got)
	}
	checkSeedHistory(t, ours, ourCommands)
	s.goOn()
	var closed step
	if s.read(t, &closed); closed.Error != "" {
		t.Errorf("close: %s", closed.Error)
	}
	if _, err := rt.Get(t.Context(), s.sandbox); sandbox.CodeOf(err) != sandbox.CodeSandboxNotFound {
		t.Errorf("the sandbox after close: %v", err)
	}
	// What it told itself is not told again by us at the end. Its renewals it
	// does not tell.
	counts := map[string]int{}
	for _, act := range keptActs(t, rt, s.sandbox) {
		if kind, _, _ := strings.Cut(act, " "); strings.HasPrefix(kind, "sandbox.") {
			counts[kind]++
		}
	}
	if want := map[string]int{"sandbox.create": 1, "sandbox.pause": 1, "sandbox.resume": 1, "sandbox.renew": 1, "sandbox.delete": 1}; !maps.Equal(counts, want) {
		t.Errorf("the history that is kept has %v, want %v", counts, want)
	}
}

func checkSeedHistory(t *testing.T, ours *recorded.Session, ourCommands int) {
	t.Helper()
	page, err := ours.History().List(t.Context(), &history.Filter{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for _, op := range page.Operations {
		name := op.Type
		if op.Command != nil && strings.HasPrefix(op.Command.Line, "echo ours") {
			name = "ours"
		}
		counts[name]++
		if name != "ours" && op.Type != "sandbox.create" && (op.Actor.ID != "研究" || op.Actor.Run != "run-1" || op.Source != history.SourceSDK) {
			t.Errorf("an operation of somebody else: %+v", op)
		}
		if op.Status == sandbox.Started {
			t.Errorf("it has no end: %+v", op)
		}
	}
	want := map[string]int{
		"ours": ourCommands, "sandbox.create": 1, "command.execute": 7, "file.write": 1, "file.read": 2, "file.list": 1, "file.delete": 1,
		"sandbox.pause": 1, "sandbox.resume": 1,
	}
	for name, n := range counts {
		if want[name] != n {
			t.Errorf("%d operations %s, want %d", n, name, want[name])
		}
	}
	if len(counts) != len(want) {
		t.Errorf("got %v, want %v", counts, want)
	}
	i := slices.IndexFunc(page.Operations, func(op *history.Operation) bool {
		return op.Command != nil && strings.HasPrefix(op.Command.Line, "echo one")
	})
	if i < 0 {
		t.Fatal("the first command is not there")
	}
	text, err := ours.History().Output(t.Context(), page.Operations[i].ID, sandbox.Stdout, 0, 1000)
	if err != nil || string(text) != "one\ntwo\n" {
		t.Errorf("the first command printed %q, %v; want its very bytes", text, err)
	}
}
