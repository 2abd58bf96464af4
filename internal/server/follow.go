package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"github.com/glassboxhq/glassbox/sandbox"
)

type followQuery struct {
	OperationPath
	Stdout      int64  `query:"stdout" minimum:"0" doc:"from this byte on"`
	Stderr      int64  `query:"stderr" minimum:"0"`
	LastEventID string `header:"Last-Event-ID" maxLength:"64" doc:"the id that was read last; it wins"`
}

// Output is a piece of a command's output.
type Output struct {
	Stream sandbox.Stream `json:"stream"`
	Offset int64          `json:"offset"` // of its first byte in the stream
	Data   []byte         `json:"data"`   // in base64: no byte of it may be lost
	Time   time.Time      `json:"time"`
}

// Ended is how a command ended.
type Ended struct {
	Status      sandbox.Status    `json:"status"`
	ExitCode    int               `json:"exit_code"`
	Signal      string            `json:"signal,omitempty"`
	Reason      string            `json:"reason,omitempty"`
	StartedAt   time.Time         `json:"started_at"`
	DurationMS  int64             `json:"duration_ms"`
	StdoutBytes int64             `json:"stdout_bytes"`
	StderrBytes int64             `json:"stderr_bytes"`
	Recording   sandbox.Recording `json:"recording"`
}

func (s *Server) routeFollow() {
	route(s, huma.Operation{
		OperationID: "follow-command", Method: http.MethodGet, Path: boxPath + "/commands/{operation}/stream",
		Summary: "Follow the output of a command, as server-sent events",
		Description: "Event output: {stream, offset, data in base64, time}; its id is the place after it in both streams. Event end: {status, exit_code, signal, reason, duration_ms, …}. " +
			"Event problem: why nothing more comes, as an error is told. Whoever comes back with Last-Event-ID misses no byte and gets none twice; after the end, the answer is 204.",
		Tags:      []string{"commands"},
		Responses: map[string]*huma.Response{"200": {Description: "events", Content: map[string]*huma.MediaType{"text/event-stream": {Schema: &huma.Schema{Type: huma.TypeString}}}}, "204": {Description: "the end was told before"}},
	}, s.followCommand)
}

// eventID is the id of an event: the places in the two streams, and whether
// that was the end.
var eventID = regexp.MustCompile(`^(\d{1,18})-(\d{1,18})(-end)?$`)

// place reads where to begin.
func (q *followQuery) place() (from sandbox.Offsets, ended bool, err error) {
	if q.LastEventID == "" {
		return sandbox.Offsets{Stdout: q.Stdout, Stderr: q.Stderr}, false, nil
	}
	parts := eventID.FindStringSubmatch(q.LastEventID)
	if parts == nil {
		return from, false, sandbox.Invalid("Last-Event-ID", "must be an id of this stream")
	}
	from.Stdout, err = strconv.ParseInt(parts[1], 10, 64)
	if err == nil {
		from.Stderr, err = strconv.ParseInt(parts[2], 10, 64)
	}
	return from, parts[3] != "", err
}

func (s *Server) followCommand(ctx context.Context, v *visit, in *followQuery) (*huma.StreamResponse, error) {
	from, ended, err := in.place()
	if err != nil {
		return nil, err
	}
	if ended {
		return &huma.StreamResponse{Body: func(c huma.Context) { c.SetStatus(http.StatusNoContent) }}, nil
	}
	ctx, box, err := s.open(ctx, v, &in.SandboxPath)
	if err != nil {
		return nil, err
	}
	p, err := s.attach(ctx, box, in.Operation, from)
	if err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(c huma.Context) {
		defer s.endStream()
		defer box.leave()
		defer p.Close() // it goes on
		r, w := humachi.Unwrap(c)
		e, err := newSSE(w)
		if err != nil {
			return
		}
		s.recordNow(ctx, v)
		f := &watcher{s: s, v: v, r: r, p: p, at: from, sse: e, admitted: time.Now()}
		f.run(ctx)
	}}, nil
}

// admitEvery is how often it is asked whether who stays may stay.
const admitEvery = time.Second

// watcher is one stream of a command's output.
type watcher struct {
	s        *Server
	v        *visit
	r        *http.Request
	p        sandbox.Process
	at       sandbox.Offsets // after what was sent
	admitted time.Time       // when it was last asked whether the visitor may watch
	*sse
}

// run sends output until the command ends, the client goes, or whoever asked
// may ask no longer.
func (f *watcher) run(ctx context.Context) {
	for {
		err := f.next(ctx)
		if err == nil && time.Since(f.admitted) >= admitEvery {
			f.admitted = time.Now()
			err = f.s.admit(f.r, &visit{}, accesses["follow-command"]) // signed out meanwhile
		}
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			return
		case ctx.Err() != nil:
			return
		default:
			p, id := f.s.fail(f.v, err), ""
			if !p.Retry { // who comes back would be told the same
				id = f.id("-end")
			}
			_ = f.event("problem", id, p) // the client may have gone
			return
		}
	}
}

func (f *watcher) id(end string) string { return fmt.Sprintf("%d-%d%s", f.at.Stdout, f.at.Stderr, end) }

// next sends the next piece, that there is none yet, or the end, after which it
// returns io.EOF.
func (f *watcher) next(ctx context.Context) error {
	waiting, cancel := context.WithTimeout(ctx, waitForChange)
	defer cancel()
	c, err := f.p.Next(waiting)
	switch {
	case err == nil:
		return f.output(c)
	case errors.Is(err, io.EOF):
		return f.end(ctx)
	case ctx.Err() == nil && waiting.Err() != nil:
		return f.alive()
	}
	return err
}

// maxEvent is what one event holds, before base64: there are clients that take
// no line of 64 KiB.
const maxEvent = 32 << 10

func (f *watcher) output(c sandbox.Chunk) error {
	at := &f.at.Stdout
	if c.Stream == sandbox.Stderr {
		at = &f.at.Stderr
	}
	for len(c.Data) > 0 {
		n := min(len(c.Data), maxEvent)
		*at = c.Offset + int64(n)
		if err := f.event("output", f.id(""), &Output{c.Stream, c.Offset, c.Data[:n], c.Time.UTC()}); err != nil {
			return err
		}
		c.Offset, c.Data = c.Offset+int64(n), c.Data[n:]
	}
	return nil
}

func (f *watcher) end(ctx context.Context) error {
	res, err := f.p.Wait(ctx)
	if err != nil {
		return err
	}
	err = f.event("end", f.id("-end"), &Ended{
		Status: res.Status, ExitCode: res.ExitCode, Signal: res.Signal, Reason: res.Reason, StartedAt: res.StartedAt.UTC(), DurationMS: res.Duration.Milliseconds(),
		StdoutBytes: res.StdoutBytes, StderrBytes: res.StderrBytes, Recording: res.Recording,
	})
	return errors.Join(err, io.EOF)
}
