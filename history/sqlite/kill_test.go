package sqlite_test

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/history/sqlite"
	"github.com/glassboxhq/glassbox/sandbox"
)

var (
	killRounds = flag.Int("killrounds", 0, "rounds of TestKill; 0: GLASSBOX_KILL_ROUNDS, else 25, and 200 when CI is true")
	killSeed   = flag.Uint64("killseed", 0, "seed of TestKill; 0: of the time")
)

// phases are what a child may be doing when it is killed, in the order of
// their numbers in the shared page.
var phases = []string{"start", "idle", "open", "write", "commit", "committed", "checkpoint", "prune"}

const phaseFile = "GLASSBOX_TEST_PHASE"

// page is a number that two processes share.
type page struct{ n *int32 }

func mapPage(path string) (page, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return page{}, err
	}
	defer f.Close()
	if err := f.Truncate(4096); err != nil {
		return page{}, err
	}
	mem, err := syscall.Mmap(int(f.Fd()), 0, 4096, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return page{}, err
	}
	return page{(*int32)(unsafe.Pointer(&mem[0]))}, nil
}

func (p page) set(phase string) { atomic.StoreInt32(p.n, int32(slices.Index(phases, phase))) }
func (p page) get() string      { return phases[atomic.LoadInt32(p.n)] }

// childRecord records as fast as it can until it is killed, and tells what
// was acknowledged after it was: "b ID", "a ID BYTES", "f ID".
func childRecord(path string) error {
	shared, err := mapPage(os.Getenv(phaseFile))
	if err != nil {
		return err
	}
	opts := &sqlite.Options{SandboxID: "killed", MaxDatabaseBytes: -1}
	opts.SetCheckpointPages(24)
	opts.SetPhase(shared.set)
	s, err := sqlite.Open(path, opts)
	if err != nil {
		return err
	}
	failed := make(chan error)
	for range 3 {
		go func() {
			for {
				if err := recordUntilKilled(s); err != nil {
					failed <- err
				}
			}
		}()
	}
	go func() {
		for {
			if err := pruneUntilKilled(s); err != nil {
				failed <- err
			}
		}
	}()
	return <-failed
}

func recordUntilKilled(s *sqlite.Store) error {
	ctx := context.Background()
	op := benchOperation()
	if err := s.Begin(ctx, op); err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, "b", op.ID)
	size := 0
	next := func() []sandbox.Chunk {
		n := 1 + rand.IntN(3000)
		if rand.IntN(20) == 0 {
			n += 50_000
		}
		chunk := sandbox.Chunk{Stream: sandbox.Stdout, Offset: int64(size), Time: time.Now(), Data: pattern(op.ID, size, n)}
		size += n
		return []sandbox.Chunk{chunk}
	}
	for range rand.IntN(4) {
		if err := s.Append(ctx, op.ID, next()); err != nil {
			return err
		}
		fmt.Fprintln(os.Stdout, "a", op.ID, size)
	}
	if err := s.Finish(ctx, op.ID, &history.End{Status: sandbox.Succeeded, Chunks: next(), OutputComplete: true}); err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, "a", op.ID, size)
	fmt.Fprintln(os.Stdout, "f", op.ID)
	return nil
}

// pruneUntilKilled adds operations whose time is over, and deletes them.
func pruneUntilKilled(s *sqlite.Store) error {
	for range 20 {
		op := benchOperation()
		op.Status, op.StartedAt = sandbox.Succeeded, time.Now().Add(-30*day)
		op.Request = history.Encode(fields{"filler": strings.Repeat("x", 50_000)}) // takes a while to delete
		if err := s.Import(context.Background(), op); err != nil {
			return err
		}
	}
	_, err := s.Prune(context.Background())
	return err
}

// pattern is the output of an operation from an offset on.
func pattern(id string, offset, n int) []byte {
	data := make([]byte, n)
	for i := range data {
		data[i] = id[(offset+i)%len(id)]
	}
	return data
}

// acknowledged is what a child has told of one operation.
type acknowledged struct {
	bytes    int
	finished bool
}

// TestKill kills a recording process again and again, before, in and after a
// commit, a checkpoint and a clean-up. Whatever was acknowledged is there.
func TestKill(t *testing.T) {
	rounds := *killRounds
	if rounds == 0 {
		rounds = 25
		if os.Getenv("CI") == "true" && !raceEnabled {
			rounds = 200
		}
		if n, err := strconv.Atoi(os.Getenv("GLASSBOX_KILL_ROUNDS")); err == nil {
			rounds = n
		}
	}
	seed := *killSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d, %d rounds", seed, rounds)
	random := rand.New(rand.NewPCG(seed, 0))
	hits, records := map[string]int{}, 0
	var path string
	for round := range rounds {
		if round%10 == 0 { // what earlier kills left goes into the next rounds
			path = filepath.Join(t.TempDir(), "history.sqlite3")
		}
		phase, told := killOnce(t, path, random)
		hits[phase]++
		records += len(told)
		checkKilled(t, path, told)
		if t.Failed() {
			t.Fatalf("round %d: killed in phase %s; run with -killseed %d", round, phase, seed)
		}
	}
	for _, phase := range slices.Sorted(maps.Keys(hits)) {
		t.Logf("killed in phase %-10s %d times", phase, hits[phase])
	}
	t.Logf("%d operations acknowledged, none lost", records)
}

// killOnce runs a child and kills it, at a random moment or as soon as it is
// seen in a phase. It returns the phase in which it died and what it told.
func killOnce(t *testing.T, path string, random *rand.Rand) (string, map[string]*acknowledged) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "phase")
	shared, err := mapPage(name)
	must(t, err)
	child := startChild(t, "record", path, phaseFile+"="+name)
	var reading sync.WaitGroup
	told := map[string]*acknowledged{}
	hear(t, told, child.lines.Text())
	reading.Go(func() {
		for child.lines.Scan() {
			hear(t, told, child.lines.Text())
		}
	})
	wait := time.After(time.Duration(random.IntN(60_000)) * time.Microsecond)
	target := phases[random.IntN(len(phases))]
	<-wait
	for limit := time.Now().Add(100 * time.Millisecond); target != "start" && shared.get() != target && time.Now().Before(limit); {
	}
	must(t, child.cmd.Process.Kill())
	reading.Wait() // to the end of what the pipe still holds
	_ = child.cmd.Wait()
	return shared.get(), told
}

// hear takes one line of a child. The last one may be cut.
func hear(t *testing.T, told map[string]*acknowledged, line string) {
	words := strings.Fields(line)
	if len(words) < 2 || len(words[1]) != 36 {
		return
	}
	if told[words[1]] == nil {
		told[words[1]] = &acknowledged{}
	}
	switch words[0] {
	case "a":
		n, err := strconv.Atoi(words[2])
		if err != nil {
			t.Errorf("child wrote %q", line)
		}
		told[words[1]].bytes = n
	case "f":
		told[words[1]].finished = true
	}
}

// checkKilled opens what a killed process left.
func checkKilled(t *testing.T, path string, told map[string]*acknowledged) {
	t.Helper()
	s, err := sqlite.Open(path, &sqlite.Options{SandboxID: "killed"})
	must(t, err)
	defer s.Close()
	must(t, s.Check(t.Context()))
	lost, err := s.Recover(t.Context(), "killed")
	must(t, err)
	for id, ack := range told {
		op, err := s.Get(t.Context(), id)
		if err != nil {
			t.Errorf("acknowledged operation %s: %v", id, err)
			continue
		}
		if ack.finished && op.Status != sandbox.Succeeded || op.Status != sandbox.Succeeded && !slices.Contains(lost, id) {
			t.Errorf("operation %s has status %s, finished %v", id, op.Status, ack.finished)
		}
		data, err := s.Output(t.Context(), id, sandbox.Stdout, 0, 1<<20)
		if err != nil || len(data) < ack.bytes || string(data) != string(pattern(id, 0, len(data))) {
			t.Errorf("operation %s has %d bytes, %v, want %d or more", id, len(data), err, ack.bytes)
		}
	}
	if page, err := s.List(t.Context(), &history.Filter{Statuses: []sandbox.Status{sandbox.Started}}); err != nil || len(page.Operations) > 0 {
		t.Errorf("still started after Recover: %+v, %v", page, err)
	}
}
