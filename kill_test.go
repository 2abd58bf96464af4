package glassbox_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/glassboxhq/glassbox"
	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/sandbox"
	"github.com/glassboxhq/glassbox/sandbox/recorded"
)

// rounds is how often the recorder is killed.
func rounds(fallback int) int {
	if n, err := strconv.Atoi(os.Getenv("GLASSBOX_KILL_ROUNDS")); err == nil {
		return n
	}
	return fallback
}

// acknowledged is what this client, outside the sandbox, was told.
type acknowledged struct {
	mu   sync.Mutex
	ends map[string]string // of commands that were told to have succeeded: what they printed
	ran  map[string]bool   // of those that were told to have started
	lost int               // were told to be unknown
}

// TestKillRecorder kills the recorder in a sandbox at random moments under
// load. No record that a client was told of may be missing, and what ran must
// be told.
func TestKillRecorder(t *testing.T) {
	box := newBox(t, nil)
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	ack := &acknowledged{ends: map[string]string{}, ran: map[string]bool{}}
	n := rounds(200)
	for range n {
		killRound(t, box, ack, random)
	}
	t.Logf("%d kills: %d commands were told to have succeeded, %d to be unknown", n, len(ack.ends), ack.lost)
	if len(ack.ends) < n/2 || ack.lost == 0 {
		t.Errorf("the kills missed: %d ends, %d unknown", len(ack.ends), ack.lost)
	}
	ack.check(t, box)
}

func killRound(t *testing.T, box *glassbox.Sandbox, ack *acknowledged, random *rand.Rand) {
	t.Helper()
	info := recorderInfo(t, box)
	ctx, cancel := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	for range 3 {
		clients.Go(func() {
			for ctx.Err() == nil {
				ack.run(t, box)
			}
		})
	}
	wait := time.Duration(random.IntN(60)) * time.Millisecond
	kill := fmt.Sprintf("sleep %f; kill -9 %d", wait.Seconds(), info.PID)
	p, err := box.Start(t.Context(), kill, &glassbox.Command{Detached: true})
	if err != nil {
		t.Fatal(err)
	}
	p.Close()
	deadline := time.Now().Add(20 * time.Second)
	for recorderInfo(t, box).PID == info.PID {
		if time.Now().After(deadline) {
			t.Fatal("the recorder was not killed, or did not come back")
		}
	}
	cancel()
	clients.Wait()
}

// run runs one command, and notes what it is told.
func (a *acknowledged) run(t *testing.T, box *glassbox.Sandbox) {
	opID := id.New()
	res, err := box.Run(t.Context(), "echo "+opID, &glassbox.Command{ID: opID})
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case err != nil && errors.Is(err, sandbox.ErrUnavailable):
		return // nothing was told of this one
	case err != nil:
		t.Errorf("run: %v", err)
	case res.Status == sandbox.Succeeded:
		a.ends[opID] = opID + "\n"
		if string(res.Stdout) != a.ends[opID] {
			t.Errorf("got %q, want %q", res.Stdout, a.ends[opID])
		}
	case res.Status == sandbox.Lost:
		a.lost++
		a.ran[opID] = true
	default: // killed with the recorder, by the one after it
		t.Errorf("got %+v, want success or unknown", res)
	}
}

func (a *acknowledged) check(t *testing.T, box *glassbox.Sandbox) {
	t.Helper()
	h := box.History()
	for opID, want := range a.ends {
		op, err := h.Get(t.Context(), opID)
		if err != nil {
			t.Errorf("acknowledged operation is missing: %v", err)
			continue
		}
		out, err := h.Output(t.Context(), opID, sandbox.Stdout, 0, 1000)
		if err != nil || op.Status != sandbox.Succeeded || string(out) != want {
			t.Errorf("operation %s: got %s with %q, %v, want success with %q", opID, op.Status, out, err, want)
		}
	}
	for opID := range a.ran {
		if op, err := h.Get(t.Context(), opID); err != nil || op.Status != sandbox.Lost {
			t.Errorf("operation %s: got %+v, %v, want unknown", opID, op, err)
		}
	}
	restarts, err := h.List(t.Context(), &history.Filter{Types: []string{history.RecorderRestart}, Limit: 1000})
	if err != nil || len(restarts.Operations) == 0 {
		t.Errorf("got %d restarts, %v, want them recorded", len(restarts.Operations), err)
	}
	started, err := h.List(t.Context(), &history.Filter{Statuses: []sandbox.Status{sandbox.Started}})
	if err != nil || len(started.Operations) != 0 {
		t.Errorf("got %d operations that still run, %v, want none", len(started.Operations), err)
	}
}

type recorderFacts struct{ PID int }

// recorderInfo asks the recorder, and waits while there is none.
func recorderInfo(t *testing.T, box *glassbox.Sandbox) recorderFacts {
	t.Helper()
	session := box.Session().(*recorded.Session)
	deadline := time.Now().Add(20 * time.Second)
	for {
		info, err := session.Info(t.Context())
		if err == nil {
			return recorderFacts{info.PID}
		}
		if time.Now().After(deadline) {
			t.Fatalf("the recorder does not answer: %v", err)
		}
	}
}

// TestKillInit kills process 1: the sandbox ends, is told to have failed, and
// its history can be read from outside.
func TestKillInit(t *testing.T) {
	s := needLocal(t)
	box := newBox(t, nil)
	res, err := box.Run(t.Context(), "echo before", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := box.Run(t.Context(), "kill -9 1; sleep 10", &glassbox.Command{Timeout: 5 * time.Second}); err == nil {
		t.Error("got no error from a command in a sandbox that ended")
	}
	waitState(t, box, sandbox.Failed)
	out, err := s.command("history", "show", res.OperationID, "--stdout").Output()
	if err != nil || string(out) != "before\n" {
		t.Errorf("got %q, %v, want what was printed before", out, err)
	}
	text, err := s.command("history", "show", box.ID()).Output()
	if err != nil || !strings.Contains(string(text), "kill -9 1") {
		t.Errorf("got %s, %v, want what killed it", text, err)
	}
}

func waitState(t *testing.T, box *glassbox.Sandbox, want sandbox.State) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		info, err := glassbox.Get(t.Context(), serverURL, box.ID(), nil)
		if err == nil && info.State == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("got %+v, %v, want state %s", info, err, want)
		}
	}
}

// TestKillClient kills a client in the middle of a command: the command goes
// on, and its record is whole.
func TestKillClient(t *testing.T) {
	s := needLocal(t)
	box := newBox(t, nil)
	client := s.command("exec", box.ID(), "-c", "for i in 1 2 3 4 5; do echo $i; sleep 0.2; done")
	out, err := client.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if err := client.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = client.Wait()
	op := waitCommand(t, box, "echo $i")
	kept, err := box.History().Output(t.Context(), op.ID, sandbox.Stdout, 0, 100)
	if err != nil || op.Status != sandbox.Succeeded || string(kept) != "1\n2\n3\n4\n5\n" {
		t.Errorf("got %s with %q, %v, want all five lines", op.Status, kept, err)
	}
}

// waitCommand waits until a command that holds text has ended.
func waitCommand(t *testing.T, box *glassbox.Sandbox, text string) *glassbox.Operation {
	t.Helper()
	h := box.History()
	query := &history.ChangeQuery{Wait: 10 * time.Second}
	for {
		feed, err := h.Changes(t.Context(), query)
		if err != nil {
			t.Fatal(err)
		}
		if len(feed.Changes) == 0 {
			t.Fatal("the command did not end in time")
		}
		for _, c := range feed.Changes {
			op, err := h.Get(t.Context(), c.Operation)
			if err != nil {
				t.Fatal(err)
			}
			if op.Command != nil && strings.Contains(op.Command.Line, text) && history.Final(op.Status) {
				return op
			}
		}
		query.After = feed.Next
	}
}

// TestKillServer kills the server in the middle of a command and starts it
// again: the command goes on, and its client sees it end.
func TestKillServer(t *testing.T) {
	s := needLocal(t)
	box := newBox(t, nil)
	p, err := box.Start(t.Context(), "for i in $(seq 20); do echo $i; sleep 0.1; done", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	first, err := p.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	out := string(first.Data)
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = s.cmd.Wait()
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
	for {
		c, err := p.Next(t.Context())
		if err != nil {
			break
		}
		out += string(c.Data)
	}
	res, err := p.Wait(t.Context())
	if err != nil || res.Status != sandbox.Succeeded {
		t.Fatalf("got %+v, %v, want success", res, err)
	}
	want := ""
	for i := range 20 {
		want += strconv.Itoa(i+1) + "\n"
	}
	if out != want {
		t.Errorf("got %q, want %q", out, want)
	}
}

// TestNothingCallsHome runs the program in a network without routes.
func TestNothingCallsHome(t *testing.T) {
	s := needLocal(t)
	run := s.command("run", "--state-dir", t.TempDir(), "--", "echo", "alone")
	namespaces := []string{"--net"}
	if os.Geteuid() != 0 {
		namespaces = []string{"--user", "--map-current-user", "--net"}
	}
	cmd := exec.Command("unshare", append(namespaces, run.Args...)...)
	cmd.Env = run.Env
	began := time.Now()
	out, err := cmd.CombinedOutput()
	if err != nil || string(out) != "alone\n" {
		t.Errorf("got %q, %v, want it to work without a network", out, err)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("took %v: it waits for a network", took)
	}
}
