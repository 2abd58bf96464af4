package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"github.com/glassboxhq/glassbox/internal/console/mirror"
	"github.com/glassboxhq/glassbox/sandbox"
)

type followAllQuery struct {
	LastEventID string `header:"Last-Event-ID" maxLength:"32" doc:"the id that was read last; absent: what comes from now on"`
	After       string `query:"after" maxLength:"32" pattern:"^[0-9]*$" doc:"as Last-Event-ID, for the first request; 0: from the beginning"`
}

func (s *Server) routeFollowAll() {
	route(s, huma.Operation{
		OperationID: "follow-all", Method: http.MethodGet, Path: "/events", Tags: []string{"operations"},
		Summary: "Follow what is done in all sandboxes, as server-sent events",
		Description: "Event operation: an operation that began or changed, as search-operations tells it; its id is a place in the feed, to come back to. " +
			"Event end: nothing more will come, and why.",
		Responses: map[string]*huma.Response{"200": {Description: "events", Content: map[string]*huma.MediaType{"text/event-stream": {Schema: &huma.Schema{Type: huma.TypeString}}}}},
	}, s.followAll)
}

func (s *Server) followAll(ctx context.Context, v *visit, in *followAllQuery) (*huma.StreamResponse, error) {
	if s.opts.Mirror == nil {
		return nil, &sandbox.Error{Op: "follow all operations", Code: codeNoMirror, Message: "this server keeps no copy of the histories"}
	}
	after, err := s.placeOfAll(ctx, in)
	if err == nil {
		err = s.beginStream("follow all operations")
	}
	if err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(c huma.Context) {
		defer s.endStream()
		r, w := humachi.Unwrap(c)
		f := &followerOfAll{s: s, v: v, r: r, after: after}
		var err error
		if f.sse, err = newSSE(w); err == nil {
			f.run(c.Context())
		}
	}}, nil
}

func (s *Server) placeOfAll(ctx context.Context, in *followAllQuery) (int64, error) {
	from := in.LastEventID
	if from == "" {
		from = in.After
	}
	if from == "" {
		return s.opts.Mirror.LastEvent(ctx)
	}
	after, err := strconv.ParseInt(from, 10, 64)
	if err != nil || after < 0 {
		return 0, sandbox.Invalid("Last-Event-ID", "must be an id of this stream")
	}
	return after, nil
}

// followerOfAll is one stream of the events of all sandboxes.
type followerOfAll struct {
	s     *Server
	v     *visit
	r     *http.Request
	after int64
	*sse
}

// run sends what changes until the client goes, or whoever asked may ask no
// longer.
func (f *followerOfAll) run(ctx context.Context) {
	for {
		list, err := f.s.opts.Mirror.Events(ctx, f.after, changesAtOnce, waitForChange)
		if err == nil {
			err = f.s.admit(f.r, &visit{}, accesses["follow-all"]) // signed out meanwhile
		}
		if err == nil {
			err = f.tell(ctx, list)
		}
		if err != nil {
			if ctx.Err() == nil {
				_ = f.event("end", "", f.s.problemOf(err, f.v)) // the client may have gone
			}
			return
		}
	}
}

func (f *followerOfAll) tell(ctx context.Context, list []*mirror.Event) error {
	if len(list) == 0 {
		return f.alive()
	}
	key := func(e *mirror.Event) string { return fmt.Sprint(e.History, " ", e.Change.Operation) }
	latest := map[string]int64{} // of several changes of one operation the last counts
	for _, e := range list {
		latest[key(e)] = e.No
	}
	for _, e := range list {
		f.after = e.No
		if latest[key(e)] != e.No {
			continue
		}
		op, err := f.s.opts.Mirror.Reader(e.History).Get(ctx, e.Change.Operation)
		if errors.Is(err, sandbox.ErrNotFound) {
			continue // cleaned up meanwhile
		}
		if err == nil {
			err = f.event("operation", strconv.FormatInt(e.No, 10), Hit{Connection: e.Connection, Sandbox: e.Sandbox, Generation: e.History, Operation: op, Snippets: []Snippet{}})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Document returns the OpenAPI document of all that is served.
func (s *Server) Document() ([]byte, error) {
	return json.MarshalIndent(s.api.OpenAPI(), "", "  ")
}
