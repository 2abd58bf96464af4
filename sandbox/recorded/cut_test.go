package recorded_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/sandbox"
	"github.com/glassboxhq/glassbox/sandbox/recorded"
)

// cutter is a proxy that cuts a connection after so many bytes one way.
type cutter struct {
	net.Listener
	down, up func() int64 // bytes of the next connection; negative: all
	cuts     atomic.Int64
}

func newCutter(t *testing.T, target string, down, up func() int64) *cutter {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{Listener: l, down: down, up: up}
	var conns sync.WaitGroup
	t.Cleanup(func() { l.Close(); conns.Wait() })
	conns.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", strings.TrimPrefix(target, "http://"))
			if err != nil {
				t.Error(err)
				return
			}
			conns.Go(func() { c.carry(client, server, c.down(), c.up()) })
		}
	})
	return c
}

func (c *cutter) carry(client, server net.Conn, down, up int64) {
	var ways sync.WaitGroup
	for _, way := range []struct {
		to, from net.Conn
		most     int64
	}{{client, server, down}, {server, client, up}} {
		ways.Go(func() {
			if way.most < 0 {
				_, _ = io.Copy(way.to, way.from)
			} else if _, err := io.CopyN(way.to, way.from, way.most); err == nil {
				c.cuts.Add(1)
			}
			_ = client.Close()
			_ = server.Close()
		})
	}
	ways.Wait()
}

func always(n int64) func() int64 { return func() int64 { return n } }

// dice returns a source of numbers that all goroutines share.
func dice(t *testing.T) func(n int64) int64 {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	var mu sync.Mutex
	return func(n int64) int64 {
		mu.Lock()
		defer mu.Unlock()
		return r.Int64N(n)
	}
}

// Wherever a stream is cut, nothing is lost, nothing doubled, and nothing run
// twice.
func TestCutStream(t *testing.T) {
	rec := newRecorder(t)
	roll := dice(t)
	rounds, atOnce := 50, 10
	if testing.Short() {
		rounds = 10
	}
	const lines = 20_000
	var want bytes.Buffer
	for i := range lines {
		fmt.Fprintln(&want, i+1)
	}
	var group sync.WaitGroup
	var cuts atomic.Int64
	rooms := make(chan struct{}, atOnce)
	for round := range rounds {
		rooms <- struct{}{}
		group.Go(func() {
			defer func() { <-rooms }()
			var conns atomic.Int64
			proxy := newCutter(t, rec.URL, func() int64 {
				if conns.Add(1) > 3 {
					return -1
				}
				return roll(int64(want.Len()) * 2)
			}, always(-1))
			s := recorded.New("http://"+proxy.Addr().String(), &recorded.Options{Token: token})
			defer s.Close(t.Context())
			mark := fmt.Sprintf("ran-%d", round)
			res, err := s.Run(t.Context(), &sandbox.Command{
				Line: fmt.Sprintf("echo x >> %s; seq 1 %d; seq 1 %d >&2; exit $(wc -l < %s)", mark, lines, lines, mark),
			})
			cuts.Add(proxy.cuts.Load())
			if err != nil {
				t.Errorf("round %d: %v", round, err)
				return
			}
			if !bytes.Equal(res.Stdout, want.Bytes()) || !bytes.Equal(res.Stderr, want.Bytes()) {
				t.Errorf("round %d: got %d and %d bytes, want %d twice", round, len(res.Stdout), len(res.Stderr), want.Len())
			}
			if res.ExitCode != 1 {
				t.Errorf("round %d: it ran %d times", round, res.ExitCode)
			}
		})
	}
	group.Wait()
	t.Logf("%d cuts in %d rounds", cuts.Load(), rounds)
	if cuts.Load() < int64(rounds) {
		t.Errorf("%d cuts in %d rounds, want more", cuts.Load(), rounds)
	}
}

// Input goes on where it was cut, and for as long as the stream would.
func TestCutInput(t *testing.T) {
	rec := newRecorder(t)
	roll := dice(t)
	var left atomic.Int64
	left.Store(6) // more in a row than an ordinary request is tried
	proxy := newCutter(t, rec.URL, always(-1), func() int64 {
		if left.Add(-1) < 0 {
			return -1
		}
		return 600 + roll(50_000)
	})
	s := recorded.New("http://"+proxy.Addr().String(), &recorded.Options{Token: token})
	defer s.Close(t.Context())
	input := make([]byte, 1<<20)
	for i := range input {
		input[i] = byte(i * i >> 3)
	}
	res, err := s.Run(t.Context(), &sandbox.Command{Line: "cat", Stdin: bytes.NewReader(input), Timeout: 20 * time.Second})
	if err != nil || !bytes.Equal(res.Stdout, input) {
		t.Errorf("got %d bytes, %v, want the input back", len(res.Stdout), err)
	}
	t.Logf("%d cuts", proxy.cuts.Load())
}

// A file whose upload is cut is not replaced; where the content can be read
// again, the write is done all the same, once.
func TestCutWrite(t *testing.T) {
	rec := newRecorder(t)
	direct := recorded.New(rec.URL, &recorded.Options{Token: token})
	defer direct.Close(t.Context())
	content := bytes.Repeat([]byte("0123456789abcdef"), 64<<10)
	for name, tt := range map[string]struct {
		content func() io.Reader
		opID    string
		done    bool
	}{
		"can be read again":             {content: func() io.Reader { return bytes.NewReader(content) }, done: true},
		"cannot be read again":          {content: func() io.Reader { return struct{ io.Reader }{bytes.NewReader(content)} }},
		"the caller named an operation": {content: func() io.Reader { return bytes.NewReader(content) }, opID: id.New()},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := direct.Write(t.Context(), "f", strings.NewReader("old"), nil); err != nil {
				t.Fatal(err)
			}
			var conns atomic.Int64
			proxy := newCutter(t, rec.URL, always(-1), func() int64 {
				if conns.Add(1) > 1 {
					return -1
				}
				return 300_000
			})
			s := recorded.New("http://"+proxy.Addr().String(), &recorded.Options{Token: token})
			defer s.Close(t.Context())
			info, err := s.Write(t.Context(), "f", tt.content(), &sandbox.WriteOptions{ID: tt.opID})
			want := "old"
			if tt.done {
				want = string(content)
				if err != nil || info.Size != int64(len(content)) {
					t.Errorf("got %+v, %v, want it written", info, err)
				}
			} else if err == nil {
				t.Errorf("got %+v, want an error", info)
			}
			f, err := direct.Read(t.Context(), "f", nil)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if got, err := io.ReadAll(f); err != nil || string(got) != want {
				t.Errorf("got %d bytes, %v, want %d", len(got), err, len(want))
			}
			if res, err := direct.Run(t.Context(), &sandbox.Command{Line: "ls -A | grep -c glassbox"}); err != nil || string(res.Stdout) != "0\n" {
				t.Errorf("got %q, %v, want no temporary file left", res.Stdout, err)
			}
		})
	}
}

// Content that cannot be read is not the recorder's fault.
func TestUnreadableContent(t *testing.T) {
	rec := newRecorder(t)
	s := recorded.New(rec.URL, &recorded.Options{Token: token})
	defer s.Close(t.Context())
	broken := errors.New("the disk is on fire")
	_, err := s.Write(t.Context(), "f", io.MultiReader(strings.NewReader("half"), iotest.ErrReader(broken)), nil)
	if !errors.Is(err, broken) {
		t.Errorf("got %v, want the reader's own error", err)
	}
	if _, err := s.Read(t.Context(), "f", nil); !errors.Is(err, sandbox.ErrNotFound) {
		t.Errorf("got %v, want no file", err)
	}
}

// A command that is cancelled in the middle of much output is gone, and what
// was read is returned.
func TestCancelMuchOutput(t *testing.T) {
	rec := newRecorder(t)
	s := recorded.New(rec.URL, &recorded.Options{Token: token})
	defer s.Close(t.Context())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var n int
	began := time.Now()
	res, err := s.Run(ctx, &sandbox.Command{
		Line: "head -c 100000000 /dev/zero | tr '\\0' z; sleep 100",
		Stdout: writerFunc(func(p []byte) (int, error) {
			if n += len(p); n > 5_000_000 {
				cancel()
			}
			return len(p), nil
		}),
	})
	if !errors.Is(err, sandbox.ErrCancelled) || res.Status != sandbox.Cancelled || len(res.Stdout) == 0 {
		t.Errorf("got %v, status %s with %d bytes, want it cancelled with what was read", err, res.Status, len(res.Stdout))
	}
	if took := time.Since(began); took > 8*time.Second {
		t.Errorf("took %v", took)
	}
	if info, err := s.Info(t.Context()); err != nil || info.Running != 0 {
		t.Errorf("got %+v, %v, want nothing left", info, err)
	}
}

// A start that is cut before its first frame is asked for again, under the
// same id, and runs once.
func TestCutBeforeTheFirstFrame(t *testing.T) {
	real := newRecorder(t)
	target, err := url.Parse(real.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.FlushInterval = -1
	cuts := 0
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && cuts < 2 {
			cuts++
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
		proxy.ServeHTTP(w, r)
	}))
	defer front.Close()
	s := recorded.New(front.URL, &recorded.Options{Token: token})
	res, err := s.Run(t.Context(), &sandbox.Command{Line: "echo x >> ran; cat ran"})
	if err != nil || string(res.Stdout) != "x\n" || cuts != 2 {
		t.Errorf("got %+v, %v after %d cuts, want one run", res, err, cuts)
	}
}

// endless is an answer that begins, and ends as if it were whole when its
// request does.
type endless struct{}

func (endless) RoundTrip(r *http.Request) (*http.Response, error) {
	from, to := io.Pipe()
	context.AfterFunc(r.Context(), func() { to.Close() })
	go func() { _, _ = to.Write(startFrame()) }()
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: from, Request: r}, nil
}

// Whoever lets go of a command while somebody waits for it does not make that
// look like its end.
func TestCloseWhileWaiting(t *testing.T) {
	session := recorded.New("http://recorder", &recorded.Options{Client: &http.Client{Transport: endless{}}})
	p, err := session.Attach(t.Context(), id.New(), sandbox.Offsets{})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() {
		_, err := p.Wait(t.Context())
		ended <- err
	}()
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; !errors.Is(err, sandbox.ErrInterrupted) || errors.Is(err, io.EOF) {
		t.Errorf("got %v, want that the end was not seen", err)
	}
}
