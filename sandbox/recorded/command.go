package recorded

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/sandbox"
)

// Run implements sandbox.Session.
func (s *Session) Run(ctx context.Context, cmd *sandbox.Command) (*sandbox.Result, error) {
	return sandbox.RunProcess(ctx, s, cmd)
}

// Start implements sandbox.Starter. When ctx ends before the recorder has
// answered, the command is stopped as soon as it has.
func (s *Session) Start(ctx context.Context, cmd *sandbox.Command) (sandbox.Process, error) {
	if err := cmd.Validate(); err != nil {
		return nil, err
	}
	opID, err := operationID(cmd.ID)
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, sandbox.FromContext(ctx, "start command")
	}
	body, err := json.Marshal(withID(cmd, opID))
	if err != nil {
		return nil, &sandbox.Error{Op: "start command", Code: sandbox.CodeInvalid, Err: err}
	}
	p := newProcess(s, opID, cmd, history.ActorFrom(ctx))
	answers := make(chan error, 1)
	s.behind.Go(func() {
		err := s.open(context.WithoutCancel(ctx), p, func() *request {
			return &request{
				op: "start command", method: http.MethodPost, path: wire.PathCommands, id: opID,
				body: bytes.NewReader(body), size: int64(len(body)),
			}
		})
		if err != nil && p.sent && unanswered(err) {
			err = &sandbox.Error{
				Op: "start command", Code: sandbox.CodeInterrupted, Sandbox: s.opts.Sandbox, Err: err,
				Message: "whether operation " + opID + " was started is not known; ask for it again by this id",
			}
		}
		answers <- err
	})
	select {
	case err := <-answers:
		if err != nil {
			return nil, err
		}
		return p, nil
	case <-ctx.Done():
		s.behind.Go(func() { p.giveUp(answers) })
		return nil, s.ended(ctx, "start command")
	}
}

func withID(cmd *sandbox.Command, opID string) *wire.CommandRequest {
	req := wire.NewCommandRequest(cmd)
	req.ID = opID
	return req
}

// Attach implements sandbox.Attacher.
func (s *Session) Attach(ctx context.Context, opID string, from sandbox.Offsets) (sandbox.Process, error) {
	p := newProcess(s, opID, &sandbox.Command{Detached: true}, history.ActorFrom(ctx))
	p.at = from
	if err := s.open(ctx, p, func() *request { return attachRequest(opID, from) }); err != nil {
		return nil, err
	}
	return p, nil
}

func attachRequest(opID string, from sandbox.Offsets) *request {
	return &request{
		op: "attach to command", method: http.MethodGet, path: wire.Path(wire.PathCommand, opID), id: opID,
		query: offsetQuery(map[string]int64{"stdout": from.Stdout, "stderr": from.Stderr}),
	}
}

// open begins a command's stream, and waits for its first frame.
func (s *Session) open(ctx context.Context, p *process, next func() *request) error {
	err := s.again(ctx, func(ctx context.Context) error {
		start, err := p.connect(ctx, next())
		if err == nil {
			p.started = start.StartedAt
		}
		return err
	})
	if err != nil {
		p.cancel()
		return err
	}
	p.run()
	return nil
}

// Control implements sandbox.Attacher.
func (s *Session) Control(ctx context.Context, opID string) (sandbox.Control, error) {
	if _, err := operationID(opID); err != nil || opID == "" {
		return nil, sandbox.Invalid("id", "must be the UUID of an operation")
	}
	return &control{s: s, id: opID, self: id.New(), ctx: history.WithActor(context.Background(), history.ActorFrom(ctx))}, nil
}
