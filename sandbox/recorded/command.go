package recorded

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"

	"github.com/glassboxhq/glassbox/history"
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
	type answer struct {
		p   *process
		err error
	}
	answers := make(chan answer, 1)
	s.behind.Go(func() {
		p, err := s.open(context.WithoutCancel(ctx), opID, cmd, func() *request {
			return &request{
				op: "start command", method: http.MethodPost, path: wire.PathCommands, id: opID,
				body: bytes.NewReader(body), size: int64(len(body)),
			}
		})
		answers <- answer{p, err}
	})
	select {
	case a := <-answers:
		if a.err != nil {
			return nil, a.err
		}
		return a.p, nil
	case <-ctx.Done():
		s.behind.Go(func() {
			if a := <-answers; a.err == nil {
				_ = a.p.Close() // stops it, unless it was to be left running
			}
		})
		return nil, sandbox.FromContext(ctx, "start command")
	}
}

func withID(cmd *sandbox.Command, opID string) *wire.CommandRequest {
	req := wire.NewCommandRequest(cmd)
	req.ID = opID
	return req
}

// Attach implements sandbox.Attacher.
func (s *Session) Attach(ctx context.Context, opID string, from sandbox.Offsets) (sandbox.Process, error) {
	p, err := s.open(ctx, opID, &sandbox.Command{Detached: true}, func() *request { return attachRequest(opID, from) })
	if err != nil {
		return nil, err
	}
	p.at = from
	return p, nil
}

func attachRequest(opID string, from sandbox.Offsets) *request {
	return &request{
		op: "attach to command", method: http.MethodGet, path: wire.Path(wire.PathCommand, opID), id: opID,
		query: offsetQuery(map[string]int64{"stdout": from.Stdout, "stderr": from.Stderr}),
	}
}

// open begins a command's stream, and waits for its first frame.
func (s *Session) open(ctx context.Context, opID string, cmd *sandbox.Command, next func() *request) (*process, error) {
	p := newProcess(s, opID, cmd, history.ActorFrom(ctx))
	err := s.again(ctx, func(ctx context.Context) error { return p.connect(ctx, next()) })
	if err != nil {
		p.cancel()
		return nil, err
	}
	p.run()
	return p, nil
}

// Control implements sandbox.Attacher.
func (s *Session) Control(_ context.Context, opID string) (sandbox.Control, error) {
	if _, err := operationID(opID); err != nil || opID == "" {
		return nil, sandbox.Invalid("id", "must be the UUID of an operation")
	}
	return &control{s: s, id: opID}, nil
}
