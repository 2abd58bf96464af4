package server

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/console/door"
	"github.com/glassboxhq/glassbox/sandbox"
)

// NewTerminal is a terminal that is opened in a sandbox.
type NewTerminal struct {
	Columns   uint16            `json:"columns" minimum:"1" maximum:"10000"`
	Rows      uint16            `json:"rows" minimum:"1" maximum:"10000"`
	Command   string            `json:"command,omitempty" maxLength:"65536" doc:"a line for the shell; absent: a shell to type in"`
	Dir       string            `json:"cwd,omitempty" maxLength:"4096" doc:"absent: the working directory"`
	Env       map[string]string `json:"env,omitempty"`
	Operation string            `json:"operation_id,omitempty" pattern:"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$" doc:"a UUID of the client's: the same twice is one terminal"`
}

func (s *Server) routeTerminals() {
	tag := []string{"terminals"}
	const all = boxPath + "/terminals"
	s.routePast("list-terminals", all, "List the terminals that are open, and what the history has of others, newest first", tag, history.TerminalSession)
	work(s, huma.Operation{
		OperationID: "open-terminal", Method: http.MethodPost, Path: all, Summary: "Open a terminal, which stays when its clients go", Tags: tag, DefaultStatus: http.StatusCreated,
	},
		func(ctx context.Context, box *inside, in *struct {
			SandboxPath
			Body NewTerminal
		},
		) (*oneStarted, error) {
			b := &in.Body
			return box.start(ctx, &sandbox.Command{
				ID: b.Operation, Line: b.Command, Dir: b.Dir, Env: b.Env, Detached: true, Terminal: &sandbox.TerminalSize{Columns: b.Columns, Rows: b.Rows},
			}, in.box(), "terminals")
		})
	work(s, huma.Operation{
		OperationID: "close-terminal", Method: http.MethodDelete, Path: all + "/{operation}", Summary: "End a terminal and what runs on it", Tags: tag, DefaultStatus: http.StatusNoContent,
	}, stopCommand)
	route(s, huma.Operation{
		OperationID: "use-terminal", Method: http.MethodGet, Path: all + "/{operation}/socket", Summary: "Use a terminal, over a WebSocket", Tags: tag,
		Description: `Binary frames are what is shown and what is typed. Text frames are JSON. From the server: {"type":"start","offset"} before the first byte, its place in all that was shown; {"type":"live"} when all that was shown before has come; ` +
			`{"type":"role","writer"} when this client may type, or may not as another does; {"type":"exit","code","status"}, and {"type":"problem","problem"}, before it closes. ` +
			`From the client: {"type":"resize","columns","rows"} and {"type":"role","writer":true}, which takes the keyboard; with window, {"type":"shown","offset"} as it gets on. Whoever comes back with the offset reached misses nothing.`,
		Responses: map[string]*huma.Response{"101": {Description: "a WebSocket"}},
	}, s.useTerminal)
}

type socketQuery struct {
	OperationPath
	Offset int64 `query:"offset" doc:"from this byte of what was shown; a negative one counts from the end"`
	Window int64 `query:"window" minimum:"65536" maximum:"16777216" doc:"bytes that are sent before the client tells that it has shown them; absent: any number"`
}

func (s *Server) useTerminal(ctx context.Context, v *visit, in *socketQuery) (*huma.StreamResponse, error) {
	ctx, box, err := s.open(ctx, v, &in.SandboxPath)
	if err != nil {
		return nil, err
	}
	p, err := s.attach(ctx, box, in.Operation, sandbox.Offsets{Stdout: in.Offset})
	if err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(c huma.Context) {
		defer s.endStream()
		defer box.leave()
		defer p.Close() // it stays
		r, w := humachi.Unwrap(c)
		if v.visitor.Via != door.ViaToken && !s.fromOwnPage(r, v) {
			s.refuse(w, r, &sandbox.Error{Code: codeOrigin, Message: "a browser's socket must tell that it comes from this server's own page"})
			return
		}
		k := &socket{s: s, v: v, r: r, p: p, window: in.Window}
		k.serve(ctx, w)
	}}, nil
}
