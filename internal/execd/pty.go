package execd

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"slices"
	"sync"

	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/sandbox"
)

// ptys are the terminals that were asked for, oldest first.
type ptys struct {
	mu   sync.Mutex
	list []*pty
}

// pty is a shell, or a command, on a terminal, or with pipes in its place. It
// is started by its first viewer and belongs to none of them: its output goes
// to the log as fast as it comes, and viewers read that at their own pace.
//
//	open ──first viewer──> running ──> ended
type pty struct {
	id        string // of the session and of its operation
	dir, line string

	mu     sync.Mutex
	pipes  bool            // no terminal: stderr by itself
	p      sandbox.Process // nil: nobody has come yet
	job    *job
	keys   chan typed
	turns  []turn  // where the output changes its stream
	viewer *viewer // nil: nobody looks
}

// turn is a place in the log from which on output is of one stream.
type turn struct {
	at     int64
	stream sandbox.Stream
}

// typed is input, and who has to know when it cannot be had.
type typed struct {
	data []byte
	by   *viewer
}

const (
	maxPTYs  = 128
	maxTurns = 4096 // what is older is shown as one stream
	keysHeld = 64   // pieces of input that the program has not read
)

// firstSize is a terminal's until its viewer tells another.
var firstSize = sandbox.TerminalSize{Columns: 80, Rows: 24}

func newPTYs() *ptys { return &ptys{} }

func (s *ptys) find(name string) (*pty, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.list {
		if t.id == name {
			return t, nil
		}
	}
	return nil, errNoPTY(name)
}

func errNoPTY(name string) error {
	return &refusal{http.StatusNotFound, fault{"CONTEXT_NOT_FOUND", "session not found: " + name}}
}

// add takes a terminal in. Where there are too many, the oldest that has ended
// goes.
func (s *ptys) add(t *pty) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.list) >= maxPTYs {
		i := slices.IndexFunc(s.list, (*pty).over)
		if i < 0 {
			return &sandbox.Error{Op: "open terminal", Code: sandbox.CodeUnavailable, Message: "128 terminals are open; delete those that are no longer needed"}
		}
		s.list = slices.Delete(s.list, i, i+1)
	}
	s.list = append(s.list, t)
	return nil
}

func (s *ptys) drop(name string) (*pty, error) {
	t, err := s.find(name)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = slices.DeleteFunc(s.list, func(other *pty) bool { return other == t })
	return t, nil
}

// over reports whether it has ended.
func (t *pty) over() bool {
	_, j := t.started()
	if j == nil {
		return false
	}
	select {
	case <-j.done:
		return true
	default:
		return false
	}
}

// started returns what runs, or nil before the first viewer.
func (t *pty) started() (sandbox.Process, *job) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.p, t.job
}

func (h *Handler) openPTY(w http.ResponseWriter, r *http.Request) error {
	var req struct {
		Dir     string `json:"cwd"`
		Command string `json:"command"`
	}
	if err := h.decode(w, r, &req); err != nil && !errors.Is(err, io.EOF) { // no body is no wish
		return err
	}
	t := &pty{id: id.New(), line: req.Command, keys: make(chan typed, keysHeld)}
	if req.Dir != "" {
		t.dir = h.path(req.Dir)
	}
	if err := t.command(nil).Validate(); err != nil {
		return err
	}
	if err := h.needDir(r.Context(), t.dir); err != nil {
		return err
	}
	if err := h.ptys.add(t); err != nil {
		return err
	}
	answerStatus(w, http.StatusCreated, map[string]string{"session_id": t.id})
	return nil
}

// needDir makes a directory where there is none.
func (h *Handler) needDir(ctx context.Context, name string) error {
	if name == "" {
		return nil
	}
	if h.isDir(name) {
		return nil
	}
	_, err := h.session.MakeDir(ctx, name, nil)
	return err
}

// isDir looks without a record: it is a part of another act.
func (h *Handler) isDir(name string) bool {
	info, err := os.Stat(sandbox.Resolve(h.opts.Workdir, name))
	return err == nil && info.IsDir()
}

func (h *Handler) ptyStatus(w http.ResponseWriter, r *http.Request) error {
	t, err := h.ptys.find(r.PathValue("id"))
	if err != nil {
		return err
	}
	st := struct {
		ID      string `json:"session_id"`
		Running bool   `json:"running"`
		Offset  int64  `json:"output_offset"`
	}{ID: t.id}
	if _, j := t.started(); j != nil {
		_, st.Offset, _ = j.log.span()
		st.Running = !t.over()
	}
	return answer(w, &st)
}

// closePTY ends a terminal, and what runs on it. Its viewer sees the end.
func (h *Handler) closePTY(_ http.ResponseWriter, r *http.Request) error {
	t, err := h.ptys.drop(r.PathValue("id"))
	if err != nil {
		return err
	}
	if p, _ := t.started(); p != nil {
		return p.Stop(r.Context()) // one that has ended is stopped
	}
	return nil
}

// command is what is run: on a terminal, or with pipes.
func (t *pty) command(env map[string]string) *sandbox.Command {
	cmd := &sandbox.Command{ID: t.id, Line: t.line, Dir: t.dir, Env: env, Detached: true}
	if t.pipes {
		cmd.StdinPipe = true
	} else {
		size := firstSize
		cmd.Terminal = &size
	}
	if t.line == "" {
		cmd.Args = plainShell(!t.pipes)
	}
	return cmd
}

// plainShell is a shell without the startup files of whoever uses it, which may
// wait for anything.
func plainShell(onTerminal bool) []string {
	args := []string{shell()}
	if args[0] == "bash" {
		args = append(args, "--norc", "--noprofile")
	}
	if onTerminal {
		args = append(args, "-i")
	}
	return args
}

// start starts it, if no viewer has done so before. The caller holds mu.
func (h *Handler) start(ctx context.Context, t *pty, pipes bool) error {
	if t.p != nil {
		return nil
	}
	env, err := h.environment()
	if err != nil {
		return err
	}
	t.pipes = pipes
	p, err := h.session.Start(ctx, t.command(env))
	if err != nil {
		return err
	}
	j, err := h.follow(p, t.noteStream())
	if err != nil {
		return err
	}
	t.p, t.job = p, j
	go t.feed(p.Stdin()) // ends with the program
	return nil
}

// noteStream notes where output changes its stream, as the log has one only.
func (t *pty) noteStream() func(sandbox.Chunk) {
	at, last := int64(0), sandbox.Stream("")
	return func(c sandbox.Chunk) {
		if c.Stream != last {
			t.mu.Lock()
			t.turns = append(t.turns, turn{at, c.Stream})
			if len(t.turns) > maxTurns {
				t.turns = t.turns[1:]
			}
			t.mu.Unlock()
			last = c.Stream
		}
		at += int64(len(c.Data))
	}
}

// streamAt tells whose output stands at a place of the log, and up to where.
// One that is too old to be known is nobody's.
func (t *pty) streamAt(at, end int64) (sandbox.Stream, int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	stream := sandbox.Stream("")
	for _, turn := range t.turns {
		if turn.at > at {
			return stream, min(turn.at, end)
		}
		stream = turn.stream
	}
	return stream, end
}

// feed gives the program what is typed, until it ends.
func (t *pty) feed(stdin io.Writer) {
	for {
		select {
		case in := <-t.keys:
			if _, err := stdin.Write(in.data); err != nil {
				in.by.tell(&serverFrame{Type: "error", Error: err.Error(), Code: "STDIN_WRITE_FAILED"})
			}
		case <-t.job.done:
			return
		}
	}
}
