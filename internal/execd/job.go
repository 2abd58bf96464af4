package execd

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/glassboxhq/glassbox/internal/idle"
	"github.com/glassboxhq/glassbox/sandbox"
)

// jobs are the background commands whose output is kept in the order in which
// it came. Others, and older ones, are read from the history, where stdout
// comes before stderr.
type jobs struct {
	mu    sync.Mutex
	byID  map[string]*job
	ended []string // oldest first
}

type job struct {
	log  *spool
	seen func(sandbox.Chunk) // is told of output before it is in the log; may be nil
	done chan struct{}       // the log is whole
}

// maxEnded is how many logs of commands that have ended are kept.
const maxEnded = 32

func newJobs() *jobs { return &jobs{byID: map[string]*job{}} }

func (j *jobs) find(id string) *job {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.byID[id]
}

func (j *jobs) retire(id string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.ended = append(j.ended, id)
	if len(j.ended) > maxEnded {
		delete(j.byID, j.ended[0])
		j.ended = j.ended[1:]
	}
}

// follow keeps the output of a background command. It reads as fast as the
// command prints, whoever looks at the log.
func (h *Handler) follow(p sandbox.Process, seen func(sandbox.Chunk)) (*job, error) {
	log, err := newSpool(h.opts.Spool)
	if err != nil {
		_ = p.Stop(context.Background()) // a command that nobody can ask for
		_ = p.Close()
		return nil, &sandbox.Error{Op: "keep output", Code: sandbox.CodeInternal, Err: err}
	}
	j := &job{log: log, seen: seen, done: make(chan struct{})}
	h.jobs.mu.Lock()
	h.jobs.byID[p.ID()] = j
	h.jobs.mu.Unlock()
	// It ends with the command, which ends with the session.
	go func() {
		defer h.jobs.retire(p.ID())
		defer close(j.done)
		defer p.Close()
		for {
			c, err := p.Next(context.Background())
			if err != nil {
				return
			}
			if j.seen != nil {
				j.seen(c)
			}
			if err := log.write(c.Data); err != nil {
				h.opts.Logger.Warn("output of a background command is lost", "operation", p.ID(), "error", err)
			}
		}
	}()
	return j, nil
}

// status is how a command stands, as execd tells it.
type status struct {
	ID       string     `json:"id"`
	Content  string     `json:"content"`
	Running  bool       `json:"running"`
	ExitCode *int       `json:"exit_code,omitempty"`
	Error    string     `json:"error,omitempty"`
	Started  time.Time  `json:"started_at"`
	Finished *time.Time `json:"finished_at,omitempty"`
}

// askCommand serves /command/status/{id} and /command/{id}/logs, which a mux
// cannot tell apart.
func (h *Handler) askCommand(w http.ResponseWriter, r *http.Request) error {
	first, second := r.PathValue("first"), r.PathValue("second")
	switch {
	case first == "status":
		return h.commandStatus(w, r, second)
	case second == "logs":
		return h.commandLogs(w, r, first)
	}
	http.NotFound(w, r)
	return nil
}

func (h *Handler) commandStatus(w http.ResponseWriter, r *http.Request, opID string) error {
	p, res, err := h.look(r.Context(), opID)
	if err != nil {
		return err
	}
	leave(p, h.opts.Abandoned)
	st := &status{ID: opID, Content: h.lineOf(r.Context(), opID), Running: res == nil, Started: startOf(p, res)}
	if res != nil {
		if j := h.jobs.find(opID); j != nil {
			<-j.done // who learns of the end reads the log once more
		}
		code, text := verdict(res)
		finished := res.StartedAt.Add(res.Duration)
		st.ExitCode, st.Finished = &code, &finished
		if res.Status != sandbox.Succeeded {
			st.Error = text
		}
	}
	return answer(w, st)
}

// look finds a command, and its result if it has ended.
func (h *Handler) look(ctx context.Context, opID string) (sandbox.Process, *sandbox.Result, error) {
	p, err := h.session.Attach(ctx, opID, sandbox.Offsets{})
	if err != nil {
		if errors.Is(err, sandbox.ErrNotFound) || errors.Is(err, sandbox.ErrInvalid) {
			err = &sandbox.Error{Op: "find command", Code: sandbox.CodeOperationNotFound, Message: "command not found: " + opID}
		}
		return nil, nil, err
	}
	now, cancel := context.WithCancel(ctx)
	cancel() // does not wait
	res, err := p.Wait(now)
	if err != nil {
		return p, nil, nil //nolint:nilerr // it runs
	}
	return p, res, nil
}

func startOf(p sandbox.Process, res *sandbox.Result) time.Time {
	if t, ok := p.(interface{ StartedAt() time.Time }); ok {
		return t.StartedAt()
	}
	if res != nil {
		return res.StartedAt
	}
	return time.Time{}
}

// lineOf is what a command was asked to run, as the history has it.
func (h *Handler) lineOf(ctx context.Context, opID string) string {
	if h.store == nil {
		return ""
	}
	op, err := h.store.Get(ctx, opID)
	if err != nil || op.Command == nil {
		return ""
	}
	return op.Command.Line
}

// interrupt stops a command, and answers when it has ended. The id of a shell
// closes that.
func (h *Handler) interrupt(_ http.ResponseWriter, r *http.Request) error {
	opID := r.URL.Query().Get("id")
	if opID == "" {
		return sandbox.Invalid("id", "is missing in the query")
	}
	if h.shells.find(opID) != nil {
		return h.shells.close(opID)
	}
	p, res, err := h.look(r.Context(), opID)
	if err != nil {
		return err
	}
	defer leave(p, h.opts.Abandoned)
	if res != nil {
		return &sandbox.Error{Op: "interrupt command", Code: sandbox.CodeSandboxState, Message: "the command has ended"}
	}
	if err := p.Stop(r.Context()); err != nil {
		return err
	}
	_, err = p.Wait(r.Context())
	return err
}

// headerCursor tells from where to read on.
const headerCursor = "EXECD-COMMANDS-TAIL-CURSOR"

// commandLogs answers with a command's output from a byte on, and with where
// it ends now.
func (h *Handler) commandLogs(w http.ResponseWriter, r *http.Request, opID string) error {
	from := int64(0)
	if text := r.URL.Query().Get("cursor"); text != "" {
		var err error
		if from, err = strconv.ParseInt(text, 10, 64); err != nil || from < 0 {
			return sandbox.Invalid("cursor", "must be a whole number, 0 or more")
		}
	}
	if j := h.jobs.find(opID); j != nil {
		body, _, end := j.log.from(from)
		return h.answerLog(w, body, max(from, end))
	}
	data, err := h.recall(r.Context(), opID, from)
	if err != nil {
		return err
	}
	return h.answerLog(w, bytes.NewReader(data), from+int64(len(data)))
}

func (h *Handler) answerLog(w http.ResponseWriter, body io.Reader, cursor int64) error {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set(headerCursor, strconv.FormatInt(cursor, 10))
	w.WriteHeader(http.StatusOK)
	if _, err := io.Copy(idle.Answer(w, h.opts.Idle), body); err != nil {
		panic(http.ErrAbortHandler) // a clean end would look like the whole
	}
	return nil
}

// What recall returns at most, and how long it waits for output to come.
const (
	maxRecall  = 8 << 20
	recallWait = 50 * time.Millisecond
)

// recall reads output again, from a byte of both streams together on.
func (h *Handler) recall(ctx context.Context, opID string, from int64) ([]byte, error) {
	p, _, err := h.look(ctx, opID)
	if err != nil {
		return nil, err
	}
	defer leave(p, h.opts.Abandoned)
	var data []byte
	for at := int64(0); len(data) < maxRecall; {
		wait, cancel := context.WithTimeout(ctx, recallWait)
		c, err := p.Next(wait)
		cancel()
		switch {
		case errors.Is(err, io.EOF), err != nil && wait.Err() != nil && ctx.Err() == nil:
			return data, nil // all there is, or all there is now
		case err != nil:
			return nil, err
		}
		skip := min(max(from-at, 0), int64(len(c.Data)))
		data = append(data, c.Data[skip:]...)
		at += int64(len(c.Data))
	}
	return data, nil
}
