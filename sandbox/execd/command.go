package execd

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/sandbox"
)

// commandRequest asks for a command.
type commandRequest struct {
	Command   string            `json:"command"`
	Dir       string            `json:"cwd,omitempty"`
	TimeoutMS int64             `json:"timeout,omitempty"`
	Env       map[string]string `json:"envs,omitempty"`
}

// Run implements sandbox.Session.
func (s *Session) Run(ctx context.Context, cmd *sandbox.Command) (*sandbox.Result, error) {
	return sandbox.RunProcess(ctx, s, cmd)
}

// Start implements sandbox.Starter. A start whose answer was lost is not
// repeated: execd would run the command twice.
func (s *Session) Start(ctx context.Context, cmd *sandbox.Command) (sandbox.Process, error) {
	if err := s.check(cmd); err != nil {
		return nil, err
	}
	req := &commandRequest{Command: cmd.Line, Dir: s.opts.Workdir, TimeoutMS: ceilMS(cmd.Timeout), Env: cmd.Env}
	if req.Command == "" {
		req.Command = sandbox.Join(cmd.Args) // older execds know no argument lists
	}
	if cmd.Dir != "" {
		req.Dir = s.resolve(cmd.Dir)
	}
	body, err := json.Marshal(req)
	if err != nil {
		return nil, s.fault("start command", &sandbox.Error{Code: sandbox.CodeInvalid, Err: err})
	}
	p := &process{s: s, id: cmd.ID, cmd: cmd, chunks: make(chan sandbox.Chunk, 64), ended: make(chan struct{})}
	if p.id == "" {
		p.id = id.New()
	}
	p.ctx, p.cut = context.WithCancel(context.WithoutCancel(ctx))
	if err := p.begin(ctx, &request{op: "start command", method: http.MethodPost, path: "/command", body: bytes.NewReader(body)}); err != nil {
		p.cut()
		return nil, err
	}
	go p.read() // ends with the stream, which Close cuts
	return p, nil
}

// check refuses what this wire cannot carry.
func (s *Session) check(cmd *sandbox.Command) error {
	if err := cmd.Validate(); err != nil {
		return err
	}
	for what, asked := range map[string]bool{
		"input of a command": cmd.Stdin != nil || cmd.StdinPipe, "a terminal": cmd.Terminal != nil, "a detached command": cmd.Detached,
	} {
		if asked {
			return s.fault("start command", &sandbox.Error{Code: sandbox.CodeUnsupported, Message: what + " needs a recorder in the sandbox"})
		}
	}
	return nil
}

func ceilMS(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}
