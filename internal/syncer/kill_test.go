package syncer_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/glassboxhq/glassbox/internal/console/mirror"
	"github.com/glassboxhq/glassbox/internal/db"
	"github.com/glassboxhq/glassbox/internal/db/dbtest"
	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/internal/syncer"
)

type syncOptions = syncer.Options

func newSyncer(f syncer.Fleet, m *mirror.Mirror) *syncer.Syncer {
	return syncer.New(f, m, &syncer.Options{Wait: time.Second, Retry: 20 * time.Millisecond})
}

// syncForTest is a process that syncs until it is killed: its arguments are a
// database and boxes, each an id and a URL.
func syncForTest(args []string) {
	ctx := context.Background()
	d, err := db.Open(ctx, args[0])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	f := newFleet()
	var boxes [][2]string
	if err := json.NewDecoder(bufio.NewReader(os.Stdin)).Decode(&boxes); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for _, b := range boxes {
		f.add("local", remoteBox(b[0], b[1]))
	}
	fmt.Fprintln(os.Stdout, "ready")
	if err := newSyncer(f, mirror.New(d, nil)).Run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// soak is how much more the long form does.
func soak(short, long int) int {
	if os.Getenv("GLASSBOX_SOAK") != "" {
		return long
	}
	return short
}

// TestKill kills the syncer at random moments while sandboxes are at work. In
// the end the mirror has each of their histories, operation by operation.
func TestKill(t *testing.T) {
	if testing.Short() {
		t.Skip("starts many processes")
	}
	dbtest.EachAddress(t, func(t *testing.T, address string) {
		seed := uint64(time.Now().UnixNano())
		if text := os.Getenv("GLASSBOX_KILL_SEED"); text != "" {
			seed, _ = strconv.ParseUint(text, 10, 64)
		}
		t.Logf("GLASSBOX_KILL_SEED=%d", seed)
		random := rand.New(rand.NewPCG(seed, 1))
		dbtest.Open(t, address) // its tables are made before
		boxes := newBoxes(t, soak(3, 50))
		stop := make(chan struct{})
		var writers sync.WaitGroup
		for _, b := range boxes {
			writers.Go(func() {
				for range soak(1, 20) {
					b.work(t, soak(3, 7))
					select {
					case <-stop:
						return
					default:
					}
				}
			})
		}
		for range soak(4, 20) {
			killed(t, address, boxes, time.Duration(random.IntN(1500))*time.Millisecond)
		}
		close(stop)
		writers.Wait()
		d := dbtest.Open(t, address)
		s, m := start(t, newFleet(boxes...), d, nil)
		for _, b := range boxes {
			wantSame(t, s, m, "local", b)
		}
		if err := m.Index(t.Context()); err != nil {
			t.Error(err)
		}
		var ops, docs int
		if err := d.QueryRow(t.Context(), `select count(*) from mirror_operations`).Scan(&ops); err != nil {
			t.Fatal(err)
		}
		if err := d.QueryRow(t.Context(), `select count(*) from (select distinct rowid >> 10 from mirror_index) o`).Scan(&docs); err != nil {
			t.Fatal(err)
		}
		if ops != docs || ops < len(boxes) {
			t.Errorf("%d operations, of which search knows %d", ops, docs)
		}
	})
}

// killed runs a syncer, and kills it after a while.
func killed(t *testing.T, address string, boxes []*box, after time.Duration) {
	t.Helper()
	var list [][2]string
	for _, b := range boxes {
		list = append(list, [2]string{b.id, b.URL})
	}
	input, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "sync-for-test", address)
	cmd.Stdin, cmd.Stderr = strings.NewReader(string(input)), t.Output()
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Errorf("%q, %v", line, err)
	}
	<-time.After(after) // a random moment, not a synchronisation
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait() // it was killed
}

// TestMany follows 50 sandboxes at once.
func TestMany(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		var boxes []*box
		for range 50 {
			boxes = append(boxes, newBox(t, id.New(), filepath.Join(t.TempDir(), "history.sqlite3"), nil))
		}
		s, m := start(t, newFleet(boxes...), d, nil)
		var writers sync.WaitGroup
		for _, b := range boxes {
			writers.Go(func() {
				for n := range soak(3, 200) {
					b.run(t, fmt.Sprintf("echo %d", n))
				}
			})
		}
		writers.Wait()
		for _, b := range boxes {
			wantSame(t, s, m, "local", b)
		}
	})
}
