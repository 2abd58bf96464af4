package execd

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/glassboxhq/glassbox/sandbox"
)

// failed reads the event of a command that did not succeed. One whose number
// is no number was not started.
func (p *process) failed(e *eventError) (*sandbox.Result, error) {
	if e == nil {
		return nil, p.lost(errors.New("the last event does not tell how the command ended"))
	}
	code, err := strconv.Atoi(e.Value)
	if err != nil {
		f := newFault(0, &answerFault{Message: strings.Join(append([]string{e.Value}, e.Traceback...), "; ")})
		if f.Code == sandbox.CodeProvider {
			f.Code = sandbox.CodeCommand
		}
		return nil, p.s.fault("run command", f)
	}
	return p.end(code, strings.Join(e.Traceback, "; ")), nil
}

// end is the result of a command that ended with a code; -1 is a signal, which
// text names.
func (p *process) end(code int, text string) *sandbox.Result {
	took := time.Since(p.began)
	res := &sandbox.Result{
		OperationID: p.id, Status: sandbox.Succeeded, ExitCode: code, StartedAt: p.began, Duration: took,
		StdoutBytes: p.counts.Stdout, StderrBytes: p.counts.Stderr, Recording: sandbox.NotRecorded,
	}
	if code != 0 {
		res.Status = sandbox.Unsuccessful
	}
	if code < 0 {
		res.Signal, res.ExitCode = signalIn(text)
		switch { // of itself, execd tells one end from another by nothing
		case p.stopped.Load():
			res.Status, res.Reason = sandbox.Cancelled, "it was stopped"
		case p.cmd.Timeout > 0 && took >= p.cmd.Timeout:
			res.Status, res.Reason = sandbox.TimedOut, "it went over its timeout of "+p.cmd.Timeout.String()
		}
	} else if p.stopped.Load() && code > 128 {
		res.Status, res.Reason = sandbox.Cancelled, "it was stopped"
	}
	return res
}

// signals are those by which commands end, as Go names them on Linux.
var signals = map[string]struct {
	name   string
	number int
}{
	"hangup": {"HUP", 1}, "interrupt": {"INT", 2}, "quit": {"QUIT", 3}, "illegal instruction": {"ILL", 4},
	"aborted": {"ABRT", 6}, "bus error": {"BUS", 7}, "floating point exception": {"FPE", 8}, "killed": {"KILL", 9},
	"user defined signal 1": {"USR1", 10}, "segmentation fault": {"SEGV", 11}, "user defined signal 2": {"USR2", 12},
	"broken pipe": {"PIPE", 13}, "alarm clock": {"ALRM", 14}, "terminated": {"TERM", 15},
}

func signalIn(text string) (name string, code int) {
	_, word, _ := strings.Cut(text, "signal: ")
	word, _, _ = strings.Cut(word, ";")
	word, _, _ = strings.Cut(word, " (")
	if sig, ok := signals[strings.TrimSpace(word)]; ok {
		return sig.name, 128 + sig.number
	}
	return "", -1
}

// status is how a command stands, as execd tells it.
type status struct {
	Running  bool   `json:"running"`
	ExitCode *int   `json:"exit_code"`
	Error    string `json:"error"`
}

// How long a command that was just started may be unknown, and how long one
// whose stream was cut is waited for.
const (
	statusEvery  = 100 * time.Millisecond
	statusUnseen = 2 * time.Second
	statusWithin = 30 * time.Second
)

// status asks how a command stands until it has ended. One that has just
// begun may not be known yet.
func (s *Session) status(ctx context.Context, name string) (*status, error) {
	ctx, cancel := context.WithTimeout(ctx, statusWithin)
	defer cancel()
	began := time.Now()
	for {
		st := &status{}
		err := s.ask(ctx, &request{op: "ask for command", method: http.MethodGet, path: "/command/status/" + url.PathEscape(name)}, st)
		unseen := errors.Is(err, sandbox.ErrNotFound) && time.Since(began) < statusUnseen
		if err == nil && !st.Running || err != nil && !unseen {
			return st, err
		}
		select {
		case <-ctx.Done():
			return st, err
		case <-time.After(statusEvery):
		}
	}
}
