package server

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/sandbox"
)

const (
	// waitForChange is how long a stream may be silent.
	waitForChange = 15 * time.Second
	writeTimeout  = 30 * time.Second // for a client that does not read
	changesAtOnce = 200
)

type eventsQuery struct {
	SandboxPath
	LastEventID string `header:"Last-Event-ID" maxLength:"32" doc:"the id that was read last; absent: what comes from now on"`
	After       string `query:"after" maxLength:"32" pattern:"^[0-9]*$" doc:"as Last-Event-ID, for the first request; 0: from the beginning"`
}

func (s *Server) routeEvents() {
	route(s, huma.Operation{
		OperationID: "follow-operations", Method: http.MethodGet, Path: "/connections/{connection}/sandboxes/{sandbox}/events",
		Summary: "Follow what is done in a sandbox, as server-sent events",
		Description: "Event operation: an operation that began or changed, as list-operations tells it; its id is a place in the feed, to come back to. " +
			"Event reset: the feed was cut or replaced, read the list anew. Event end: nothing more will come, and why.",
		Tags:      []string{"operations"},
		Responses: map[string]*huma.Response{"200": {Description: "events", Content: map[string]*huma.MediaType{"text/event-stream": {Schema: &huma.Schema{Type: huma.TypeString}}}}},
	}, s.follow)
}

func (s *Server) follow(ctx context.Context, v *visit, in *eventsQuery) (*huma.StreamResponse, error) {
	from := in.LastEventID
	if from == "" {
		from = in.After
	}
	after := int64(-1)
	if from != "" {
		var err error
		if after, err = strconv.ParseInt(from, 10, 64); err != nil || after < 0 {
			return nil, sandbox.Invalid("Last-Event-ID", "must be an id of this stream")
		}
	}
	h, err := s.history(ctx, &in.SandboxPath)
	if err != nil {
		return nil, err
	}
	if after < 0 {
		feed, err := h.Changes(ctx, &history.ChangeQuery{Limit: 1})
		if err != nil {
			return nil, errors.Join(err, h.Close())
		}
		after = feed.Max
	}
	if err := s.beginStream("follow operations"); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return &huma.StreamResponse{Body: func(c huma.Context) {
		defer s.endStream()
		defer h.Close()
		r, w := humachi.Unwrap(c)
		f := &follower{s: s, v: v, h: h, r: r, after: after}
		var err error
		if f.sse, err = newSSE(w); err == nil {
			f.run(c.Context())
		}
	}}, nil
}

// beginStream takes a place of the few for those who stay.
func (s *Server) beginStream(op string) error {
	select {
	case s.streams <- struct{}{}:
		return nil
	default:
		return &sandbox.Error{Op: op, Code: codeBusy, Message: "too many streams are open", Retryable: true}
	}
}

func (s *Server) endStream() { <-s.streams }

// follower is one stream of events.
type follower struct {
	s     *Server
	v     *visit
	h     history.Reader
	r     *http.Request
	after int64
	*sse
}

// run sends what changes until the client goes, the sandbox ends, or whoever
// asked may ask no longer.
func (f *follower) run(ctx context.Context) {
	for {
		feed, err := f.h.Changes(ctx, &history.ChangeQuery{After: f.after, Limit: changesAtOnce, Wait: waitForChange})
		if err == nil {
			err = f.s.admit(f.r, &visit{}, accesses["follow-operations"]) // signed out meanwhile
		}
		if err == nil {
			err = f.tell(ctx, feed)
		}
		if err != nil {
			if ctx.Err() == nil {
				_ = f.event("end", "", f.s.problemOf(err, f.v)) // the client may have gone
			}
			return
		}
	}
}

func (f *follower) tell(ctx context.Context, feed *history.Feed) error {
	if feed.Reset {
		f.after = feed.Max
		return f.event("reset", strconv.FormatInt(feed.Max, 10), map[string]int64{"after": feed.Max})
	}
	latest := map[string]int64{} // of several changes of one operation the last counts
	for _, c := range feed.Changes {
		latest[c.Operation] = c.Seq
	}
	for _, c := range feed.Changes {
		if latest[c.Operation] != c.Seq {
			continue
		}
		op, err := f.h.Get(ctx, c.Operation)
		if errors.Is(err, sandbox.ErrNotFound) {
			continue // cleaned up meanwhile
		}
		if err == nil {
			err = f.event("operation", strconv.FormatInt(c.Seq, 10), op)
		}
		if err != nil {
			return err
		}
		f.after = c.Seq
	}
	f.after = max(f.after, feed.Next)
	if len(feed.Changes) > 0 {
		return nil
	}
	if e, ended := f.h.(interface{ Ended() bool }); ended && e.Ended() {
		return &sandbox.Error{Op: "follow operations", Code: sandbox.CodeSandboxState, Message: "the sandbox has ended, and this was all"}
	}
	return f.alive()
}
