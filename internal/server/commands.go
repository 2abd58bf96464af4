package server

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/sandbox"
)

// NewCommand is what is run in a sandbox.
type NewCommand struct {
	Command    string            `json:"command,omitempty" maxLength:"4194304" doc:"a line for the shell; or argv"`
	Argv       []string          `json:"argv,omitempty" maxItems:"65536" doc:"a program with its arguments, without a shell"`
	Dir        string            `json:"cwd,omitempty" maxLength:"4096" doc:"absent: the working directory"`
	Env        map[string]string `json:"env,omitempty"`
	TimeoutMS  int64             `json:"timeout_ms,omitempty" minimum:"0" maximum:"31536000000" doc:"absent: no limit"`
	Stdin      bool              `json:"stdin,omitempty" doc:"input follows; absent: it reads nothing, as from /dev/null"`
	Background bool              `json:"background,omitempty" doc:"it goes on whoever watches, and takes no turn; else it waits for one, and is stopped when nobody has watched for five minutes"`
	Operation  string            `json:"operation_id,omitempty" pattern:"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$" doc:"a UUID of the client's: the same twice is one command"`
}

// StartedCommand is a command that was started.
type StartedCommand struct {
	Operation string    `json:"operation_id" doc:"of the history, and of all that is done with the command"`
	StartedAt time.Time `json:"started_at"`
}

type oneStarted struct {
	Location string `header:"Location"`
	Body     StartedCommand
}

// Commands are those that run, and those of a part of the history.
type Commands struct {
	Running []*history.Operation `json:"running,omitempty" doc:"of the first page: those that run, newest first"`
	Page[*history.Operation]
}

// startTimeout is what a large body has to arrive.
const startTimeout = 30 * time.Second

func (s *Server) routeCommands() {
	tag := []string{"commands"}
	const all = boxPath + "/commands"
	s.routePast("list-commands", all, "List the commands that run, and what the history has of others, newest first", tag, history.CommandExecute)
	work(s, huma.Operation{
		OperationID: "start-command", Method: http.MethodPost, Path: all, Summary: "Start a command", Tags: tag,
		DefaultStatus: http.StatusCreated, MaxBodyBytes: 8 << 20, BodyReadTimeout: startTimeout,
	}, startCommand)
	work(s, huma.Operation{
		OperationID: "signal-command", Method: http.MethodPost, Path: all + "/{operation}/signal", Summary: "Send a signal to a command and all that it has started", Tags: tag,
		DefaultStatus: http.StatusNoContent,
	},
		func(ctx context.Context, box *inside, in *struct {
			OperationPath
			Body struct {
				Signal string `json:"signal" pattern:"^[A-Z0-9+-]{1,16}$" doc:"as kill names it: INT, TERM, KILL, HUP …"`
			}
		},
		) (*nothing, error) {
			box.v.detail = detail(map[string]any{"signal": in.Body.Signal})
			c, err := box.Control(ctx, in.Operation)
			if err != nil {
				return nil, err
			}
			return nil, c.Signal(ctx, in.Body.Signal)
		})
	work(s, huma.Operation{
		OperationID: "stop-command", Method: http.MethodDelete, Path: all + "/{operation}", Summary: "End a command as cancelled: TERM, and KILL after three seconds", Tags: tag,
		DefaultStatus: http.StatusNoContent,
	}, stopCommand)
	s.routeInput()
	s.routeFollow()
}

func startCommand(ctx context.Context, box *inside, in *struct {
	SandboxPath
	Body NewCommand
},
) (*oneStarted, error) {
	b := &in.Body
	cmd := &sandbox.Command{
		ID: b.Operation, Line: b.Command, Args: b.Argv, Dir: b.Dir, Env: b.Env, Timeout: time.Duration(b.TimeoutMS) * time.Millisecond,
		StdinPipe: b.Stdin, Detached: b.Background,
	}
	return box.start(ctx, cmd, in.box(), "commands")
}

// start starts a command that outlives the request: the session is left
// before the command is told to end.
func (i *inside) start(ctx context.Context, cmd *sandbox.Command, at *SandboxPath, kind string) (*oneStarted, error) {
	if cmd.ID == "" {
		cmd.ID = id.New()
	}
	i.v.detail = detail(map[string]any{"operation_id": cmd.ID})
	p, err := i.Start(ctx, cmd)
	if err != nil {
		return nil, err
	}
	out := &oneStarted{
		Location: Prefix + "/connections/" + at.Connection + "/sandboxes/" + at.Sandbox + "/" + kind + "/" + p.ID(),
		Body:     StartedCommand{Operation: p.ID(), StartedAt: time.Now().UTC()},
	}
	if t, ok := p.(interface{ StartedAt() time.Time }); ok {
		out.Body.StartedAt = t.StartedAt().UTC()
	}
	return out, nil
}

func stopCommand(ctx context.Context, box *inside, in *OperationPath) (*nothing, error) {
	c, err := box.Control(ctx, in.Operation)
	if err != nil {
		return nil, err
	}
	return nil, c.Stop(ctx)
}

type pastQuery struct {
	SandboxPath
	Paging
}

// maxRunning bounds how many are told that run.
const maxRunning = 200

// routePast serves a list of operations of one type, which are read from the
// history alone.
func (s *Server) routePast(name, path, summary string, tag []string, kind string) {
	route(s, huma.Operation{OperationID: name, Method: http.MethodGet, Path: path, Summary: summary, Tags: tag},
		func(ctx context.Context, _ *visit, in *pastQuery) (_ *struct{ Body Commands }, err error) {
			q := &operationQuery{SandboxPath: in.SandboxPath, Paging: in.Paging}
			q.Types = []string{kind}
			filter, _, err := q.filter()
			if err != nil {
				return nil, err
			}
			h, err := s.history(ctx, &in.SandboxPath)
			if err != nil {
				return nil, err
			}
			defer func() { err = errors.Join(err, h.Close()) }()
			page, err := h.List(ctx, filter)
			if err != nil {
				return nil, err
			}
			out := &struct{ Body Commands }{}
			out.Body.Page = operationsOf(page)
			if in.Cursor == "" {
				running, err := h.List(ctx, &history.Filter{Types: q.Types, Statuses: []sandbox.Status{sandbox.Started}, Limit: maxRunning, Newest: true})
				if err != nil {
					return nil, err
				}
				out.Body.Running = running.Operations
			}
			return out, nil
		})
}

func operationsOf(page *history.Page) Page[*history.Operation] {
	out := Page[*history.Operation]{Items: []*history.Operation{}}
	out.Items = append(out.Items, page.Operations...)
	if n := len(page.Operations); page.More && n > 0 {
		out.Next = cursor(moment{Seq: page.Operations[n-1].Seq})
	}
	return out
}
