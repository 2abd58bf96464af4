package localruntime_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/internal/localruntime"
	"github.com/glassboxhq/glassbox/internal/owner"
	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/sandbox"
)

// soak is few in the ordinary tests, and many where there is time: make soak.
func soak(few, many int) int {
	if os.Getenv("GLASSBOX_SOAK") != "" {
		return many
	}
	return few
}

// TestManyAtOnce makes many sandboxes at once, lets all of them work at the
// same time, and counts what is left when they are gone.
func TestManyAtOnce(t *testing.T) {
	n := soak(10, 50)
	state := t.TempDir()
	rt := startRuntime(t, options(t, state))
	cycle(t, rt) // what is made once, such as the copy of the recorder
	before := leftovers(t, state)
	began := time.Now()
	ids, held := make([]string, n), make([]bool, n)
	each := func(do func(i int) error) {
		t.Helper()
		var all sync.WaitGroup
		for i := range n {
			all.Go(func() {
				if err := do(i); err != nil {
					t.Errorf("sandbox %d: %v", i, err)
				}
			})
		}
		all.Wait()
		if t.Failed() {
			t.FailNow()
		}
	}
	each(func(i int) error {
		info, err := rt.Create(t.Context(), &sandbox.Spec{Name: fmt.Sprint(i), Limits: map[string]string{"memory": "512Mi"}})
		if err == nil {
			ids[i], held[i] = info.ID, len(info.Warnings) == 0
		}
		return err
	})
	made := time.Since(began)
	least := map[string]int{"processes": 2 * n, "sockets": n, "files": 3 * n}
	if !slices.Contains(held, false) {
		least["cgroups and others"] = n
	}
	for what, least := range least {
		if got := leftovers(t, state)[what]; got < least {
			t.Errorf("%d %s are counted of what lives, want at least %d: nothing would be found", got, what, least)
		}
	}
	each(func(i int) error {
		out, err := try(t.Context(), rt, ids[i], "echo "+ids[i]+" > mine; sleep 0.5; cat *; ls /tmp | wc -l")
		if want := ids[i] + "\n0\n"; err == nil && out.stdout != want {
			err = fmt.Errorf("got %+v, want %q", out, want)
		}
		return err
	})
	worked := time.Since(began)
	if list, err := rt.List(t.Context()); err != nil || len(list) != n {
		t.Errorf("%d sandboxes are listed, %v; want %d", len(list), err, n)
	}
	each(func(i int) error { return rt.Delete(t.Context(), ids[i]) })
	t.Logf("%d sandboxes: made after %v, worked after %v, gone after %v", n, made, worked, time.Since(began))
	nothingLeft(t, state, before)
	histories, err := rt.Histories(t.Context())
	if err != nil || len(histories) != n+1 {
		t.Errorf("%d histories are kept, %v; want %d", len(histories), err, n+1)
	}
}

// TestManyInALoop makes and deletes one sandbox after the other.
func TestManyInALoop(t *testing.T) {
	n := soak(20, 200)
	state := t.TempDir()
	rt := startRuntime(t, options(t, state))
	cycle(t, rt)
	before := leftovers(t, state)
	began := time.Now()
	for range n {
		cycle(t, rt)
	}
	t.Logf("%d sandboxes, one after the other, in %v: %v each", n, time.Since(began), time.Since(began)/time.Duration(n))
	nothingLeft(t, state, before)
}

// cycle is the life of a sandbox.
func cycle(t *testing.T, rt *localruntime.Runtime) {
	t.Helper()
	info := create(t, rt, &sandbox.Spec{Limits: map[string]string{"memory": "512Mi"}})
	if out := run(t, rt, info.ID, "echo x > /usr/x; touch /tmp/y; sleep 100 & echo ok"); out.stdout != "ok\n" {
		t.Errorf("%+v", out)
	}
	if err := rt.Delete(t.Context(), info.ID); err != nil {
		t.Fatal(err)
	}
}

// leftovers counts what there is of the sandboxes of a state folder, and what
// this process has open. Others may work on the machine beside the test.
func leftovers(t *testing.T, state string) map[string]int {
	t.Helper()
	glob := func(pattern string) []string {
		t.Helper()
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	open := glob("/proc/self/fd/*")
	count := map[string]int{
		"processes": len(processes(t, state+"/sandboxes")), "mounts": strings.Count(string(mounts), state),
		"fds": len(open), "goroutines": runtime.NumGoroutine(),
	}
	for _, name := range open {
		if what, err := os.Readlink(name); err == nil && strings.HasPrefix(what, "socket:") {
			count["sockets"]++
		}
	}
	for _, name := range []string{"run", "bundle", "overlay", "runsc", "console.log", "launch.json", "pid"} {
		count["files"] += len(glob(filepath.Join(state, "sandboxes", "*", name)))
	}
	for _, box := range glob(filepath.Join(state, "sandboxes", "*")) {
		for _, pattern := range []string{"/sys/fs/cgroup/*/glassbox/*", "/sys/fs/cgroup/glassbox/*", "/run/runsc-*", "/run/netns/*"} {
			count["cgroups and others"] += len(glob(pattern + filepath.Base(box) + "*"))
		}
	}
	return count
}

// nothingLeft waits until no more is left than there was before.
func nothingLeft(t *testing.T, state string, before map[string]int) {
	t.Helper()
	var after map[string]int
	more := func() (list []string) {
		after = leftovers(t, state)
		for what, n := range after {
			if n > before[what] {
				list = append(list, fmt.Sprintf("%d %s, before: %d", n, what, before[what]))
			}
		}
		return list
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(30 * time.Second); ; <-tick.C {
		left := more()
		if len(left) == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Errorf("left behind: %s", strings.Join(left, "; "))
			break
		}
	}
	t.Logf("before %v, after %v", before, after)
}

// storm is what clients of a server know that is killed now and then.
type storm struct {
	state  string
	client *http.Client
	random *rand.Rand // of the test's goroutine

	mu    sync.Mutex
	lives map[string]fate
}

// made waits until the clients have made so many sandboxes.
func (s *storm) made(t *testing.T, n int) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; <-time.After(20 * time.Millisecond) {
		s.mu.Lock()
		have := len(s.lives)
		s.mu.Unlock()
		if have >= n {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the clients made %d sandboxes in a minute", have)
		}
	}
}

// fate is what is known of a sandbox.
type fate int

const (
	living fate = iota
	dying       // its deletion was asked for, and not answered
	dead        // its deletion was answered
	killed      // from outside, while no server ran
)

// TestServerKilledAtRandom kills a server at random moments, while clients
// make and delete sandboxes. The next server knows each that lives, tells each
// that died, and leaves nothing of the rest.
func TestServerKilledAtRandom(t *testing.T) {
	rounds := soak(3, 20)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	state := t.TempDir()
	s := &storm{state: state, client: &http.Client{Transport: owner.Transport(state)}, random: rand.New(rand.NewPCG(seed, 0)), lives: map[string]fate{}}
	t.Cleanup(s.client.CloseIdleConnections)
	before := leftovers(t, state)
	server := s.serve(t)
	for round := range rounds {
		ctx, cancel := context.WithCancel(t.Context())
		var clients sync.WaitGroup
		for i := range 3 {
			clients.Go(func() { s.work(ctx, t, i) })
		}
		if round == 0 {
			s.made(t, rounds) // also on a machine that has much else to do
		}
		<-time.After(time.Duration(s.random.IntN(1500)) * time.Millisecond)
		killServer(t, server)
		cancel()
		clients.Wait()
		s.killOne(t)
		server = s.serve(t)
		s.check(t)
	}
	s.mu.Lock()
	counts := map[fate]int{}
	for _, f := range s.lives {
		counts[f]++
	}
	s.mu.Unlock()
	t.Logf("%d kills: %d sandboxes live, %d were deleted, %d died while no server ran", rounds, counts[living], counts[dead], counts[killed])
	for _, box := range s.list(t) {
		if err := s.ask(t.Context(), http.MethodDelete, "/"+box.ID, "", nil); err != nil {
			t.Errorf("delete at the end: %v", err)
		}
	}
	if _, err := localruntime.New(options(t, state)); !errors.Is(err, localruntime.ErrOwned) || !strings.Contains(err.Error(), fmt.Sprintf("process %d", server.Process.Pid)) {
		t.Errorf("a second server: %v", err)
	}
	killServer(t, server)
	s.client.CloseIdleConnections()
	nothingLeft(t, state, before)
}

// serve starts a server, and waits until it serves.
func (s *storm) serve(t *testing.T) *exec.Cmd {
	t.Helper()
	server, _ := startServer(t, s.state)
	eventually(t, "the server serves", func() bool {
		state, err := owner.Ask(t.Context(), s.state)
		return err == nil && state.PID == server.Process.Pid && s.ask(t.Context(), http.MethodGet, "", "", nil) == nil
	})
	return server
}

// described is a sandbox as the API tells it.
type described struct {
	ID     string `json:"id"`
	Status struct{ State, Message string }
}

// errGone is that of an answer that did not come.
var errGone = errors.New("no answer")

func (s *storm) ask(ctx context.Context, method, path, body string, to any) error {
	req, err := http.NewRequestWithContext(ctx, method, "http://localhost/v1/sandboxes"+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return errors.Join(errGone, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return errors.Join(errGone, err)
	case resp.StatusCode == http.StatusNotFound:
		return sandbox.ErrNotFound
	case resp.StatusCode/100 != 2:
		return fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, text)
	case to == nil:
		return nil
	}
	return json.Unmarshal(text, to)
}

// work makes sandboxes and deletes some, until the server is gone.
func (s *storm) work(ctx context.Context, t *testing.T, n int) {
	for i := n; ctx.Err() == nil; i++ {
		var box described
		err := s.ask(ctx, http.MethodPost, "", `{"image":{"uri":"host"},"entrypoint":["sleep","infinity"],"resourceLimits":{}}`, &box)
		if err != nil {
			if !errors.Is(err, errGone) {
				t.Errorf("create: %v", err)
			}
			return
		}
		s.set(box.ID, living)
		if i%3 == 0 {
			continue
		}
		s.set(box.ID, dying)
		switch err := s.ask(ctx, http.MethodDelete, "/"+box.ID, "", nil); {
		case err == nil:
			s.set(box.ID, dead)
		case !errors.Is(err, errGone):
			t.Errorf("delete: %v", err)
		default:
			return
		}
	}
}

func (s *storm) set(id string, f fate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lives[id] = f
}

// killOne kills a sandbox that lives, or none.
func (s *storm) killOne(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, f := range s.lives {
		if f != living {
			continue
		}
		for _, pid := range processes(t, id) {
			_ = exec.Command("kill", "-9", pid).Run() // another may have ended with the first
		}
		eventually(t, "the sandbox is dead", func() bool { return len(processes(t, id)) == 0 })
		s.lives[id] = killed
		return
	}
}

func (s *storm) list(t *testing.T) []described {
	t.Helper()
	var page struct{ Items []described }
	if err := s.ask(t.Context(), http.MethodGet, "?pageSize=200", "", &page); err != nil {
		t.Fatal(err)
	}
	return page.Items
}

// check compares what the new server tells with what the clients know.
func (s *storm) check(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	listed := s.list(t)
	told := map[string]described{}
	for _, box := range listed {
		told[box.ID] = box
		if _, known := s.lives[box.ID]; !known { // the answer to its creation was lost
			s.lives[box.ID] = living
		}
	}
	for id, f := range s.lives {
		box, is := told[id]
		switch {
		case f == dying && !is:
			s.lives[id] = dead
			f = dead
		case f == dying: // the question was lost
			s.lives[id] = living
			f = living
		}
		switch f {
		case living:
			if !is || box.Status.State != string(sandbox.Running) {
				t.Errorf("%s lives, and is told %+v", id, box)
				continue
			}
			if err := s.echo(t.Context(), id); err != nil {
				t.Errorf("%s lives, and does not work: %v", id, err)
			}
		case killed:
			if !is || box.Status.State != string(sandbox.Failed) || !strings.Contains(box.Status.Message, "no server ran") {
				t.Errorf("%s was killed, and is told %+v", id, box)
			}
		default:
			if left := processes(t, id); is || len(left) > 0 {
				t.Errorf("%s was deleted, and is told %+v; processes are left: %v", id, box, left)
			}
		}
	}
	folders, err := filepath.Glob(filepath.Join(s.state, "sandboxes", "*", "run"))
	if err != nil || len(folders) > len(told) {
		t.Errorf("%d folders of sandboxes that are told, for %d: %v", len(folders), len(told), err)
	}
}

// echo lets a sandbox do something, as a client of the server.
func (s *storm) echo(ctx context.Context, box string) error {
	var end struct {
		Endpoint string
		Headers  map[string]string
	}
	if err := s.ask(ctx, http.MethodGet, "/"+box+"/endpoints/44780", "", &end); err != nil {
		return err
	}
	body, err := json.Marshal(&wire.CommandRequest{ID: id.New(), Line: "echo " + box})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+end.Endpoint+wire.PathCommands, bytes.NewReader(body))
	if err != nil {
		return err
	}
	for name, value := range end.Headers {
		req.Header.Set(name, value)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && !strings.Contains(string(text), box+"\n") {
		err = fmt.Errorf("got %s %.200q", resp.Status, text)
	}
	return err
}
