package native

import (
	"errors"
	"io/fs"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/glassboxhq/glassbox/sandbox"
)

// stop ends the whole process group: TERM, and KILL to what is left after the
// grace. What runs on a terminal is told by HUP that the terminal goes, since
// an interactive shell ignores TERM. The first cause is the one that is told.
func (p *process) stop(cause sandbox.Status) {
	p.mu.Lock()
	first := p.cause == "" && p.result == nil
	if first {
		p.cause = cause
	}
	p.mu.Unlock()
	if first {
		go p.terminate()
	}
}

func (p *process) terminate() {
	end := unix.SIGTERM
	if p.terminal != nil {
		end = unix.SIGHUP
	}
	_ = p.kill(end)          // no process is left: that is what was asked
	_ = p.kill(unix.SIGCONT) // one that is stopped would not see TERM
	deadline := time.NewTimer(p.grace)
	defer deadline.Stop()
	// The leader may be gone before others of its group are. The group's
	// number cannot be given to others while one of them lives.
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-deadline.C:
			_ = p.kill(unix.SIGKILL)
			return
		case <-tick.C:
			if errors.Is(p.kill(0), unix.ESRCH) {
				return
			}
		}
	}
}

func (p *process) kill(sig syscall.Signal) error {
	if p.terminal != nil {
		return p.killSession(sig)
	}
	return unix.Kill(-p.cmd.Process.Pid, sig)
}

// notRun is the result of a program that the system would not start: as a
// shell tells it, 127 for one that is not there, 126 for one that may not run.
func notRun(cmd *sandbox.Command, err error) *sandbox.Result {
	if len(cmd.Args) == 0 {
		return nil
	}
	code, text := 0, ""
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		code, text = 127, "command not found"
	case errors.Is(err, fs.ErrPermission):
		code, text = 126, "permission denied"
	case errors.Is(err, unix.ENOEXEC):
		code, text = 126, "not a program that this system can run"
	default:
		return nil
	}
	return &sandbox.Result{
		Status: sandbox.Unsuccessful, ExitCode: code, Reason: text,
		Stderr: []byte(cmd.Args[0] + ": " + text + "\n"),
	}
}

// newFailed makes p a process that has ended with res and its stderr.
func newFailed(p *process, cmd *sandbox.Command, res *sandbox.Result) *process {
	p.started = time.Now()
	text, stream := res.Stderr, sandbox.Stderr
	res.OperationID, res.StartedAt, res.Recording = cmd.ID, p.started, sandbox.NotRecorded
	res.StderrBytes, res.Stderr = int64(len(text)), nil
	if cmd.Terminal != nil {
		stream, res.StdoutBytes, res.StderrBytes = sandbox.Stdout, res.StderrBytes, 0
	}
	p.result = res
	p.chunks = make(chan chunk, 1)
	buffer := append([]byte(nil), text...)
	p.chunks <- chunk{Chunk: sandbox.Chunk{Stream: stream, Time: p.started, Data: buffer}}
	close(p.chunks)
	close(p.exited)
	close(p.ended)
	return p
}

func signalName(sig syscall.Signal) string {
	if name := unix.SignalName(sig); name != "" {
		return strings.TrimPrefix(name, "SIG")
	}
	return sig.String()
}
