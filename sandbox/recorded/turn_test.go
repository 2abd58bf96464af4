package recorded_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/record"
	"github.com/glassboxhq/glassbox/sandbox"
	"github.com/glassboxhq/glassbox/sandbox/recorded"
)

// A command that waits for its turn sends pings before its first frame, for
// longer than an answer may take.
func TestWaitForTurn(t *testing.T) {
	const limit = 300 * time.Millisecond
	for _, tt := range []struct {
		name string
		last []byte
		want sandbox.Code
	}{
		{"its turn", append(startFrame(), exitFrame(0)...), ""},
		{"no turn", wire.AppendFrame(nil, wire.FrameError, wire.EncodeFault(&sandbox.Error{Code: sandbox.CodeCommandQueue, Message: "no turn"})), sandbox.CodeCommandQueue},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newStub(t, func(w http.ResponseWriter, r *http.Request) {
				for range 6 {
					send(w, wire.AppendFrame(nil, wire.FramePing, nil))
					select {
					case <-time.After(limit / 3):
					case <-r.Context().Done():
						return
					}
				}
				send(w, tt.last)
			})
			session := s.session(t, &recorded.Options{RequestTimeout: limit})
			res, err := session.Run(t.Context(), &sandbox.Command{Line: "x", Timeout: time.Minute})
			if tt.want == "" && (err != nil || res.ExitCode != 0) || tt.want != "" && sandbox.CodeOf(err) != tt.want {
				t.Errorf("got %+v, %v", res, err)
			}
			if n := s.count(posts); n != 1 {
				t.Errorf("the command was sent %d times, want once", n)
			}
		})
	}
}

// A command whose call ends while it waits for its turn is never run.
func TestGiveUpTurn(t *testing.T) {
	server := newRecorderWith(t, &record.Options{Concurrency: &sandbox.Concurrency{Commands: 1}})
	s := recorded.New(server.URL, &recorded.Options{Token: token})
	first, err := s.Start(t.Context(), &sandbox.Command{Line: "cat", StdinPipe: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if res, err := s.Run(ctx, &sandbox.Command{Line: "touch never"}); !errors.Is(err, sandbox.ErrTimeout) {
		t.Errorf("got %+v, %v, want the end of the call", res, err)
	}
	if err := s.Close(t.Context()); err != nil { // and it has left the queue
		t.Fatal(err)
	}
	s = recorded.New(server.URL, &recorded.Options{Token: token})
	defer s.Close(t.Context())
	control, err := s.Control(t.Context(), first.ID())
	if err != nil {
		t.Fatal(err)
	}
	if err := control.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	res, err := s.Run(t.Context(), &sandbox.Command{Line: "ls"})
	if err != nil || len(res.Stdout) > 0 {
		t.Errorf("got %+v, %v, want that nothing was touched", res, err)
	}
}
