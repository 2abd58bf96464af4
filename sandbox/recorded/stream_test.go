package recorded_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/sandbox"
	"github.com/glassboxhq/glassbox/sandbox/recorded"
)

// A stream that ends without its last frame is no success.
func TestFB005StreamWithoutEnd(t *testing.T) {
	for name, resume := range map[string]func(http.ResponseWriter, *http.Request){
		"the resume is not found": func(w http.ResponseWriter, _ *http.Request) { notFound(w) },
		"the resume is refused":   func(w http.ResponseWriter, _ *http.Request) { reset(hijack(t, w)) },
		"the resume ends too":     func(w http.ResponseWriter, _ *http.Request) { send(w, startFrame()) },
		"the resume is a page": func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "<html>502</html>", http.StatusBadGateway)
		},
		"the resume is silent": func(_ http.ResponseWriter, r *http.Request) { hold(t, r) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStub(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost {
					send(w, startFrame(), output(0, "one"), output(3, "two"))
					return
				}
				resume(w, r)
			})
			session := s.session(t, &recorded.Options{ResumeFor: 500 * time.Millisecond, RequestTimeout: 300 * time.Millisecond})
			res, err := session.Run(t.Context(), &sandbox.Command{Line: "x"})
			if !errors.Is(err, sandbox.ErrInterrupted) && !errors.Is(err, sandbox.ErrNotFound) {
				t.Errorf("got error %v, want that the end was not seen", err)
			}
			if e, ok := errors.AsType[*sandbox.Error](err); !ok || e.Retryable {
				t.Errorf("got %#v: the same call again would be a second command", err)
			}
			if res == nil || res.ExitCode != -1 || res.Status != sandbox.Lost || string(res.Stdout) != "onetwo" {
				t.Errorf("got %+v, want what was read and no exit code", res)
			}
			if n := s.count(posts); n != 1 {
				t.Errorf("the command was sent %d times, want once", n)
			}
		})
	}
}

// The last frame is the end, whatever the connection does then.
func TestFB013AfterTheEnd(t *testing.T) {
	rounds := 200
	if testing.Short() {
		rounds = 20
	}
	for name, tt := range map[string]struct {
		after  func(t *testing.T, w http.ResponseWriter, r *http.Request)
		reused bool
	}{
		"reset": {after: func(t *testing.T, w http.ResponseWriter, _ *http.Request) { reset(hijack(t, w)) }},
		"stays open": {after: func(t *testing.T, _ http.ResponseWriter, r *http.Request) {
			hold(t, r)
		}},
		"junk": {after: func(t *testing.T, w http.ResponseWriter, _ *http.Request) {
			conn := hijack(t, w)
			_, _ = io.WriteString(conn, "\x00\xffjunk that is no part of an answer")
			_ = conn.CloseWrite()
			_, _ = io.Copy(io.Discard, conn)
			_ = conn.Close()
		}},
		"more frames": {after: func(t *testing.T, w http.ResponseWriter, r *http.Request) {
			send(w, output(0, "too late"))
			hold(t, r)
		}},
		"ends as it should": {after: func(*testing.T, http.ResponseWriter, *http.Request) {}, reused: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStub(t, func(w http.ResponseWriter, r *http.Request) {
				send(w, startFrame(), exitFrame(0))
				tt.after(t, w, r)
			})
			session := s.session(t, nil)
			before := runtime.NumGoroutine()
			began := time.Now()
			for range rounds {
				for _, detached := range []bool{false, true} {
					if err := runOnce(t.Context(), session, detached); err != nil {
						t.Fatal(err)
					}
				}
			}
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("took %v, want success at once", took)
			}
			if n := s.count(""); n != 2*rounds {
				t.Errorf("got %d requests, want one for each command", n)
			}
			if n := s.connections(); tt.reused && n > rounds/10 || !tt.reused && n != 2*rounds {
				t.Errorf("got %d connections for %d commands, reused: want %v", n, 2*rounds, tt.reused)
			}
			session.Close(t.Context())
			settled(t, before)
		})
	}
}

// runOnce runs a command, or starts it in the background.
func runOnce(ctx context.Context, s *recorded.Session, detached bool) error {
	if !detached {
		res, err := s.Run(ctx, &sandbox.Command{Line: "true"})
		if err == nil && res.ExitCode != 0 {
			err = fmt.Errorf("exit code %d", res.ExitCode)
		}
		return err
	}
	p, err := s.Start(ctx, &sandbox.Command{Line: "true", Detached: true})
	if err != nil {
		return err
	}
	_, err = p.Wait(ctx)
	return errors.Join(err, p.Close())
}

// A recorder that says nothing does not hold its caller beyond the timeout.
func TestFB055Silent(t *testing.T) {
	const timeout = 2 * time.Second
	const limit = timeout + sandbox.DefaultGrace + 5*time.Second + time.Second // the last for a busy machine
	type call struct {
		name string
		do   func(context.Context, *recorded.Session) error
		most time.Duration
		opts recorded.Options
	}
	run := func(ctx context.Context, s *recorded.Session) error {
		_, err := s.Run(ctx, &sandbox.Command{Line: "true", Timeout: timeout})
		return err
	}
	short := recorded.Options{RequestTimeout: 300 * time.Millisecond}
	calls := []call{
		{name: "run with a timeout", do: run, most: limit},
		{name: "run within the limit of a request", do: run, opts: short, most: limit},
		{name: "cancelled run", most: 10 * time.Second, opts: short, do: func(ctx context.Context, s *recorded.Session) error {
			ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
			defer cancel()
			_, err := s.Run(ctx, &sandbox.Command{Line: "true", Grace: time.Millisecond})
			return err
		}},
		{name: "read", opts: short, most: 2 * time.Second, do: func(ctx context.Context, s *recorded.Session) error {
			f, err := s.Read(ctx, "x", nil)
			if err == nil {
				_, err = io.Copy(io.Discard, f)
				err = errors.Join(err, f.Close())
			}
			return err
		}},
		{name: "list", opts: short, most: 2 * time.Second, do: func(ctx context.Context, s *recorded.Session) error {
			_, err := s.List(ctx, "x")
			return err
		}},
		{name: "history", opts: short, most: 2 * time.Second, do: func(ctx context.Context, s *recorded.Session) error {
			_, err := s.History().Changes(ctx, &history.ChangeQuery{Wait: 100 * time.Millisecond})
			return err
		}},
	}
	for name, handle := range map[string]http.HandlerFunc{
		"never answers": func(_ http.ResponseWriter, r *http.Request) { hold(t, r) },
		"headers only": func(w http.ResponseWriter, r *http.Request) {
			send(w)
			hold(t, r)
		},
		"one frame": func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				send(w, startFrame())
			}
			hold(t, r)
		},
	} {
		for _, c := range calls {
			if c.name == "read" && name == "headers only" {
				continue // a file that is read may come as slowly as it will
			}
			if testing.Short() && c.most == limit {
				continue
			}
			t.Run(name+", "+c.name, func(t *testing.T) {
				t.Parallel()
				s := newStub(t, handle)
				session := s.session(t, &c.opts)
				began := time.Now()
				err := c.do(t.Context(), session)
				if took := time.Since(began); err == nil || took > c.most {
					t.Errorf("got %v after %v, want an error within %v", err, took, c.most)
				}
				e, ok := errors.AsType[*sandbox.Error](err)
				if !ok || !errors.Is(err, sandbox.ErrTimeout) && !errors.Is(err, sandbox.ErrInterrupted) {
					t.Errorf("got %v (%+v), want that nobody answered", err, e)
				}
				if err := session.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

func TestFB055Goroutines(t *testing.T) {
	s := newStub(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && r.URL.Path == wire.PathCommands {
			send(w, startFrame())
		}
		hold(t, r)
	})
	session := s.session(t, &recorded.Options{RequestTimeout: 200 * time.Millisecond})
	before := runtime.NumGoroutine()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := session.Run(ctx, &sandbox.Command{Line: "cat", Grace: time.Millisecond, Stdin: strings.NewReader("never taken")})
	if !errors.Is(err, sandbox.ErrTimeout) {
		t.Errorf("got %v, want a timeout", err)
	}
	if err := session.Close(t.Context()); err != nil {
		t.Error(err)
	}
	settled(t, before)
}

// What the reader takes its time for is not held against the recorder.
func TestSlowReaderWithTimeout(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for longer than the timeout and its margins")
	}
	t.Parallel()
	s := newStub(t, func(w http.ResponseWriter, _ *http.Request) {
		send(w, startFrame())
		for i := range int64(10) {
			send(w, output(i, "x"))
		}
		send(w, exitFrame(0))
	})
	slow := writerFunc(func(p []byte) (int, error) {
		<-time.After(600 * time.Millisecond)
		return len(p), nil
	})
	// The command is over at once, its margin before the output has been read.
	cmd := &sandbox.Command{Line: "x", Timeout: 10 * time.Millisecond, Grace: time.Millisecond, Stdout: slow}
	began := time.Now()
	res, err := s.session(t, nil).Run(t.Context(), cmd)
	if err != nil || string(res.Stdout) != "xxxxxxxxxx" {
		t.Errorf("got %+v, %v after %v, want the whole output", res, err, time.Since(began))
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// Who stops reading and lets go leaves nothing behind, here or there.
func TestFB061ReaderThatLeaves(t *testing.T) {
	rec := newRecorder(t)
	session := recorded.New(rec.URL, &recorded.Options{Token: token})
	if err := runOnce(t.Context(), session, false); err != nil { // opens the history
		t.Fatal(err)
	}
	if _, err := session.History().List(t.Context(), nil); err != nil { // also for reading, as a clean-up does
		t.Fatal(err)
	}
	rec.CloseClientConnections()
	before := runtime.NumGoroutine()
	rounds := 100
	if testing.Short() {
		rounds = 10
	}
	var group sync.WaitGroup
	rooms := make(chan struct{}, 10)
	for range rounds {
		rooms <- struct{}{}
		group.Go(func() {
			defer func() { <-rooms }()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			p, err := session.Start(ctx, &sandbox.Command{Line: "seq 1 100000; sleep 100"})
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := p.Next(ctx); err != nil {
				t.Error(err)
			}
			cancel()
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if err := session.Close(t.Context()); err != nil {
		t.Error(err)
	}
	settled(t, before)
	again := recorded.New(rec.URL, &recorded.Options{Token: token})
	defer again.Close(t.Context())
	// They were told to stop; that each has ended and is recorded takes a moment more.
	late := time.After(20 * time.Second)
	for info, err := again.Info(t.Context()); err != nil || info.Running != 0; info, err = again.Info(t.Context()) {
		select {
		case <-time.After(50 * time.Millisecond):
		case <-late:
			t.Fatalf("got %+v, %v, want no command left", info, err)
		}
	}
}

// Session.Close does not wait for a stream that nobody has let go of.
func TestCloseWithOpenStream(t *testing.T) {
	rec := newRecorder(t)
	session := recorded.New(rec.URL, &recorded.Options{Token: token})
	cmd := &sandbox.Command{Line: "echo here; sleep 0.5; echo there", Detached: true}
	p, err := session.Start(t.Context(), cmd)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if err := session.Close(ctx); err != nil {
		t.Errorf("got %v, want it closed", err)
	}
	if _, err := p.Wait(t.Context()); !errors.Is(err, sandbox.ErrInterrupted) {
		t.Errorf("got %v, want that the end was not seen", err)
	}
	again := recorded.New(rec.URL, &recorded.Options{Token: token})
	defer again.Close(t.Context())
	back, err := again.Attach(t.Context(), p.ID(), sandbox.Offsets{})
	if err != nil {
		t.Fatal(err)
	}
	defer back.Close()
	if res, err := back.Wait(t.Context()); err != nil || res.Status != sandbox.Succeeded {
		t.Errorf("got %+v, %v, want that the command went on", res, err)
	}
}

// Frames that are none end the stream as interrupted, and never as a success.
func TestMalformedFrames(t *testing.T) {
	long := binary.BigEndian.AppendUint32([]byte("o"), wire.MaxFrame+1)
	for name, frames := range map[string][][]byte{
		"longer than may be":      {startFrame(), append(long, make([]byte, 100)...)},
		"output too short":        {startFrame(), wire.AppendFrame(nil, wire.FrameStdout, []byte("short"))},
		"negative offset":         {startFrame(), output(-1, "x")},
		"a hole":                  {startFrame(), output(0, "abc"), output(4, "x"), exitFrame(0)},
		"exit without JSON":       {startFrame(), wire.AppendFrame(nil, wire.FrameExit, []byte("0"))},
		"exit that tells nothing": {startFrame(), wire.AppendFrame(nil, wire.FrameExit, []byte("{}"))},
		"exit that says started":  {startFrame(), wire.AppendFrame(nil, wire.FrameExit, []byte(`{"status":"started"}`))},
		"error without JSON":      {startFrame(), wire.AppendFrame(nil, wire.FrameError, []byte("oops"))},
		"output first":            {output(0, "x"), exitFrame(0)},
		"exit first":              {exitFrame(0)},
		"start without JSON":      {wire.AppendFrame(nil, wire.FrameStart, []byte("{"))},
		"a page":                  {[]byte("<html><body>welcome to the hotel</body></html>")},
		"nothing":                 {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStub(t, func(w http.ResponseWriter, _ *http.Request) { send(w, frames...) })
			session := s.session(t, &recorded.Options{ResumeFor: 300 * time.Millisecond})
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			res, err := session.Run(ctx, &sandbox.Command{Line: "x"})
			if err == nil || ctx.Err() != nil || res != nil && res.ExitCode == 0 {
				t.Errorf("got %+v, %v, want an error soon and no exit code", res, err)
			}
			if !errors.Is(err, sandbox.ErrInterrupted) && name != "error without JSON" {
				t.Errorf("got %v, want it interrupted", err)
			}
			if ids := s.operations(); len(ids) != 1 {
				t.Errorf("got operations %v, want all under one id", ids)
			}
		})
	}
}

// Frames of a newer protocol are passed over.
func TestUnknownFrames(t *testing.T) {
	s := newStub(t, func(w http.ResponseWriter, _ *http.Request) {
		send(w, startFrame(), wire.AppendFrame(nil, '?', []byte("new")), output(0, "x"), wire.AppendFrame(nil, wire.FramePing, nil), exitFrame(0))
	})
	res, err := s.session(t, nil).Run(t.Context(), &sandbox.Command{Line: "x"})
	if err != nil || string(res.Stdout) != "x" {
		t.Errorf("got %+v, %v, want x", res, err)
	}
}

// A line of 6 MiB, in frames of the largest size.
func TestFB039LongLine(t *testing.T) {
	const piece = wire.MaxFrame - 16
	line := bytes.Repeat([]byte("l"), 6<<20)
	s := newStub(t, func(w http.ResponseWriter, _ *http.Request) {
		send(w, startFrame())
		for at := 0; at < len(line); at += piece {
			send(w, output(int64(at), string(line[at:min(at+piece, len(line))])))
		}
		send(w, exitFrame(0))
	})
	res, err := s.session(t, nil).Run(t.Context(), &sandbox.Command{Line: "x", MaxOutput: 6 << 20})
	if err != nil || !bytes.Equal(res.Stdout, line) {
		t.Errorf("got %d bytes, %v, want 6 MiB", len(res.Stdout), err)
	}
}
