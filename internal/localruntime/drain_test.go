package localruntime_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/glassboxhq/glassbox/internal/localruntime"
	"github.com/glassboxhq/glassbox/internal/owner"
	"github.com/glassboxhq/glassbox/internal/sockets"
	"github.com/glassboxhq/glassbox/sandbox"
)

// stateClient is another process of the user, as far as the owner can tell.
func stateClient(t *testing.T, state string, http2 bool) *http.Client {
	t.Helper()
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return owner.Dial(ctx, state)
		},
		Protocols: new(http.Protocols),
	}
	transport.Protocols.SetHTTP1(!http2)
	transport.Protocols.SetUnencryptedHTTP2(http2)
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func get(t *testing.T, client *http.Client, path string) (*http.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost"+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	return client.Do(req)
}

// wantStatus asks on a connection that is there.
func wantStatus(t *testing.T, client *http.Client, path string, want int) {
	t.Helper()
	res, err := get(t, client, path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		t.Error(err)
	}
	res.Body.Close()
	if res.StatusCode != want {
		t.Errorf("%s: %s", path, res.Status)
	}
}

// plain options suffice: nothing is isolated here.
func hereOptions(t *testing.T) *localruntime.Options {
	t.Helper()
	return &localruntime.Options{StateDir: t.TempDir(), Recorder: recorderBinary(t), Here: true}
}

func TestDrain(t *testing.T) {
	for name, http2 := range map[string]bool{"HTTP/1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			opts := hereOptions(t)
			rt := startOwner(t, opts)
			client := stateClient(t, opts.StateDir, http2)
			wantStatus(t, client, "/glassbox/state", http.StatusOK)
			var held []io.Closer
			for i := range 3 {
				lease, err := get(t, client, "/glassbox/lease")
				if err != nil || lease.StatusCode != http.StatusOK {
					t.Fatalf("lease: %v %v", err, lease)
				}
				held = append(held, lease.Body)
				if n := rt.Leases(); n != i+1 {
					t.Errorf("%d leases, want %d", n, i+1)
				}
			}
			held[0].Close()
			eventually(t, "a lease was given back", func() bool { return rt.Leases() == 2 })

			short, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
			defer cancel()
			if err := rt.Drain(short); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("drained with leases: %v", err)
			}
			if _, err := owner.Dial(t.Context(), opts.StateDir); !errors.Is(err, sandbox.ErrUnavailable) || !sockets.Refused(err) {
				t.Errorf("a new client: %v", err)
			}
			if http2 { // one connection carries it all
				wantStatus(t, client, "/glassbox/state", http.StatusOK)
			}
			drained := make(chan error, 1)
			go func() { drained <- rt.Drain(context.WithoutCancel(t.Context())) }()
			held[1].Close()
			select {
			case err := <-drained:
				t.Errorf("drained with a lease: %v", err)
			case <-time.After(100 * time.Millisecond):
			}
			held[2].Close()
			if err := <-drained; err != nil || rt.Leases() != 0 {
				t.Errorf("drain: %v, %d leases", err, rt.Leases())
			}
			if err := rt.Drain(t.Context()); err != nil { // again
				t.Error(err)
			}
			if _, err := rt.List(t.Context()); err != nil {
				t.Errorf("the runtime itself works on: %v", err)
			}
			if _, err := localruntime.New(opts); !errors.Is(err, localruntime.ErrOwned) {
				t.Errorf("it still owns the folder: %v", err)
			}
			rt.stop()
			if err := rt.Drain(t.Context()); err != nil {
				t.Errorf("drain after the end: %v", err)
			}
		})
	}
}

// TestDrainWaitsForAnswers drains while a client waits for a command, and a
// connection says nothing.
func TestDrainWaitsForAnswers(t *testing.T) {
	opts := hereOptions(t)
	rt := startOwner(t, opts)
	info := create(t, rt.Runtime, &sandbox.Spec{Image: localruntime.ImageHere, Workdir: t.TempDir()})
	quiet, err := owner.Dial(t.Context(), opts.StateDir)
	if err != nil {
		t.Fatal(err)
	}
	defer quiet.Close()
	access, err := rt.Access(t.Context(), info.ID)
	if err != nil {
		t.Fatal(err)
	}
	const body = `{"id":"0198c3a5-0000-7000-8000-000000000001","line":"echo begun; sleep 0.7; echo done"}`
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
		"http://localhost/v1/sandboxes/"+info.ID+"/proxy/44780/glassbox/v1/commands", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Glassbox-Token", access.Token)
	res, err := stateClient(t, opts.StateDir, false).Do(req)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%v %v", err, res)
	}
	defer res.Body.Close()
	text := make(chan string, 1)
	go func() {
		all, err := io.ReadAll(res.Body)
		if err != nil {
			all = append(all, err.Error()...)
		}
		text <- string(all)
	}()
	if err := rt.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case got := <-text:
		if !strings.Contains(got, "done\n") {
			t.Errorf("got %q", got)
		}
	case <-time.After(time.Second):
		t.Error("drained before the answer was whole")
	}
	if err := rt.Delete(t.Context(), info.ID); err != nil {
		t.Error(err)
	}
	began := time.Now()
	rt.stop()
	if took := time.Since(began); took > time.Second {
		t.Errorf("the end waited %v for a connection that says nothing", took)
	}
}

// TestDrainUnderDialling lets clients dial while the owner drains: each gets an
// answer, or is refused before it has said anything.
func TestDrainUnderDialling(t *testing.T) {
	opts := hereOptions(t)
	rt := startOwner(t, opts)
	faults := make(chan error, 8)
	for range cap(faults) {
		go func() {
			for {
				client := stateClient(t, opts.StateDir, false)
				res, err := get(t, client, "/glassbox/state")
				if err == nil {
					_, err = io.Copy(io.Discard, res.Body)
					res.Body.Close()
				}
				client.CloseIdleConnections()
				if err != nil {
					faults <- err
					return
				}
			}
		}()
	}
	<-time.After(50 * time.Millisecond)
	if err := rt.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	rt.stop()
	for range cap(faults) {
		if err := <-faults; !sockets.Refused(err) {
			t.Errorf("a client got %v", err)
		}
	}
}

// TestForeignSocketStays drains beside a socket that another one has put in
// place of ours.
func TestForeignSocketStays(t *testing.T) {
	opts := hereOptions(t)
	rt := startOwner(t, opts)
	other, err := sockets.Listen(owner.Socket(opts.StateDir))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := rt.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	rt.stop()
	if _, err := os.Lstat(owner.Socket(opts.StateDir)); err != nil {
		t.Errorf("the other one's socket: %v", err)
	}
}

// TestLeaseEndsWithRun does not wait for leases when the owner ends undrained.
func TestLeaseEndsWithRun(t *testing.T) {
	opts := hereOptions(t)
	rt := startOwner(t, opts)
	lease, err := get(t, stateClient(t, opts.StateDir, false), "/glassbox/lease")
	if err != nil {
		t.Fatal(err)
	}
	defer lease.Body.Close()
	began := time.Now()
	rt.stop()
	if took := time.Since(began); took > time.Second {
		t.Errorf("the end took %v", took)
	}
	if _, err := io.Copy(io.Discard, lease.Body); err != nil {
		t.Errorf("the lease ended with %v", err)
	}
}

// TestHandOver asks an owner to make way.
func TestHandOver(t *testing.T) {
	opts := hereOptions(t)
	rt := startOwner(t, opts)
	if makesWay, err := owner.HandOver(t.Context(), opts.StateDir); err != nil || makesWay {
		t.Errorf("one that stays: %v %v", makesWay, err)
	}
	rt.stop()
	asked := make(chan struct{}, 1)
	opts.HandOver = func() { asked <- struct{}{} }
	startOwner(t, opts)
	if makesWay, err := owner.HandOver(t.Context(), opts.StateDir); err != nil || !makesWay || len(asked) != 1 {
		t.Errorf("one that makes way: %v %v, asked %d times", makesWay, err, len(asked))
	}
}
