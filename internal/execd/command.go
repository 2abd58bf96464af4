package execd

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"os/exec"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/sandbox"
)

// commandRequest asks for a command: a line for the shell, or arguments.
type commandRequest struct {
	Command    string            `json:"command"`
	Argv       []string          `json:"argv"`
	Dir        string            `json:"cwd"`
	Background bool              `json:"background"`
	TimeoutMS  int64             `json:"timeout"`
	UID        *uint32           `json:"uid"`
	GID        *uint32           `json:"gid"`
	Env        map[string]string `json:"envs"`
}

func (h *Handler) runCommand(w http.ResponseWriter, r *http.Request) error {
	var req commandRequest
	if err := h.decode(w, r, &req); err != nil {
		return err
	}
	if h.helper.answers(w, r, &req) {
		return nil
	}
	return h.execute(w, r, &req)
}

// execute runs a command, and answers with its events.
func (h *Handler) execute(w http.ResponseWriter, r *http.Request, req *commandRequest) error {
	cmd, err := h.newCommand(req)
	if err != nil {
		return err
	}
	if said := h.helper.announced(history.CommandExecute, commandSubject(req.Command, req.Dir)); said != "" {
		cmd.ID = said
	}
	w.Header().Set(wire.HeaderID, cmd.ID)
	out := newEvents(w, h.opts.Idle)
	defer out.stop()
	p, err := h.session.Start(r.Context(), cmd) // it may have to wait for its turn
	if err != nil {
		return out.refuse(err)
	}
	if req.Background {
		if _, err := h.follow(p, nil); err != nil {
			return out.refuse(err)
		}
		_ = out.send(begin(p.ID()), pong(), &event{Type: "execution_complete"})
		return nil
	}
	h.stream(r.Context(), out, p, p.ID(), func() { leave(p, h.opts.Abandoned) })
	return nil
}

func (h *Handler) newCommand(req *commandRequest) (*sandbox.Command, error) {
	if req.TimeoutMS < 0 || req.TimeoutMS > maxTimeoutMS {
		return nil, sandbox.Invalid("timeout", "must be between 0 (no limit) and one year, in milliseconds")
	}
	cmd := &sandbox.Command{
		ID: id.New(), Line: req.Command, Args: req.Argv, Detached: req.Background,
		Timeout: time.Duration(req.TimeoutMS) * time.Millisecond,
	}
	if req.Dir != "" {
		cmd.Dir = h.path(req.Dir)
	}
	if req.UID != nil {
		cmd.User = &sandbox.User{UID: *req.UID, GID: req.GID}
	} else if req.GID != nil {
		return nil, sandbox.Invalid("gid", "needs uid")
	}
	env, err := h.environment()
	if err != nil {
		return nil, err
	}
	maps.Copy(env, req.Env)
	cmd.Env = env
	return cmd, nil
}

const maxTimeoutMS = 365 * 24 * 3600 * 1000

func shell() string {
	if _, err := exec.LookPath("bash"); err == nil {
		return "bash"
	}
	return "sh"
}

func begin(name string) *event { return &event{Type: "init", Text: name} }

func pong() *event { return &event{Type: "ping", Text: "pong"} }

// stream tells a command's output and its end. A client that goes before is
// given up by lost.
func (h *Handler) stream(ctx context.Context, out *events, p sandbox.Process, name string, lost func()) {
	err := out.send(begin(name), pong())
	split := newSplitter()
	for err == nil {
		var c sandbox.Chunk
		if c, err = p.Next(ctx); err != nil {
			break
		}
		if list := split.add(c); len(list) > 0 {
			err = out.send(list...)
		}
	}
	if errors.Is(err, io.EOF) {
		var res *sandbox.Result
		if res, err = p.Wait(ctx); err == nil {
			_ = out.send(append(split.end(), end(res))...) // who is gone asks for the status
			_ = p.Close()
			return
		}
	}
	if ctx.Err() == nil && err != nil {
		f := newFault(err)
		_ = out.send(append(split.end(), &event{Type: "error", Error: &eventError{"CommandExecError", f.Message, []string{f.Code}}})...)
	}
	lost()
}

// end is the last event of a command.
func end(res *sandbox.Result) *event {
	if res.Status == sandbox.Succeeded && res.ExitCode == 0 {
		return &event{Type: "execution_complete", Duration: res.Duration.Milliseconds()}
	}
	value, trace := verdict(res)
	traceback := []string{trace}
	if res.Reason != "" {
		traceback = append(traceback, res.Reason)
	}
	return &event{Type: "error", Error: &eventError{"CommandExecError", strconv.Itoa(value), traceback}}
}

// verdict is the end of a command as execd tells it: -1 for one that did not
// end by itself.
func verdict(res *sandbox.Result) (code int, text string) {
	switch {
	case res.Status == sandbox.TimedOut:
		return -1, "signal: killed" // by which clients know a timeout
	case res.Signal != "":
		return -1, "signal: " + signalText(res.Signal)
	case res.Status == sandbox.Cancelled:
		return -1, "signal: " + signalText("TERM")
	case res.Status == sandbox.Lost:
		return -1, "nobody saw the end"
	}
	return res.ExitCode, "exit status " + strconv.Itoa(res.ExitCode)
}

func signalText(name string) string {
	if sig := unix.SignalNum("SIG" + name); sig != 0 {
		return sig.String()
	}
	return name
}

// leave lets go of a command that its client may come back for.
func leave(p sandbox.Process, after time.Duration) {
	if l, ok := p.(interface{ Leave(time.Duration) }); ok {
		l.Leave(after)
		return
	}
	_ = p.Close()
}
