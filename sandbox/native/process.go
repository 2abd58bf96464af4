package native

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/glassboxhq/glassbox/sandbox"
)

// maxArgument is the longest single argument that Linux takes, less some.
const maxArgument = 120 << 10

// process is a command and its process group, which is a session of its own,
// on a terminal if one was asked for. A signal reaches all of it.
//
//	running ──exit──> drained ──> ended
//	   └─ stop(timeout | cancelled): TERM, grace, KILL ─┘
type process struct {
	id       string
	cmd      *exec.Cmd
	stdin    io.WriteCloser
	terminal *terminal // nil: it has none
	script   string    // file to remove at the end
	grace    time.Duration
	remains  bool // Close does not stop it
	started  time.Time

	chunks chan chunk
	last   *[]byte       // buffer of the chunk that Next handed out
	exited chan struct{} // the leader has been waited for
	ended  chan struct{} // its output has been read too
	gone   chan struct{} // nobody wants the output any more
	leave  sync.Once

	mu     sync.Mutex
	cause  sandbox.Status // why it was stopped, if it was
	counts sandbox.Offsets
	result *sandbox.Result
}

type chunk struct {
	sandbox.Chunk
	buffer *[]byte
}

// Start implements sandbox.Starter.
func (s *Session) Start(ctx context.Context, cmd *sandbox.Command) (sandbox.Process, error) {
	if err := cmd.Validate(); err != nil {
		return nil, err
	}
	dir, err := s.commandDir(cmd.Dir)
	if err != nil {
		return nil, err
	}
	p := &process{
		id: cmd.ID, grace: cmd.Grace, remains: cmd.Detached, chunks: make(chan chunk),
		exited: make(chan struct{}), ended: make(chan struct{}), gone: make(chan struct{}),
	}
	if p.grace == 0 {
		p.grace = sandbox.DefaultGrace
	}
	if p.cmd, p.script, err = s.build(cmd, dir); err != nil {
		if res := notRun(cmd, err); res != nil {
			return newFailed(p, cmd, res), nil
		}
		if ours, ok := errors.AsType[*sandbox.Error](err); ok {
			return nil, ours
		}
		return nil, fault("start command", err)
	}
	start := p.start
	if cmd.Terminal != nil {
		start = p.startTerminal
	}
	if err := start(cmd); err != nil {
		p.removeScript()
		if res := notRun(cmd, err); res != nil {
			return newFailed(p, cmd, res), nil
		}
		switch {
		case errors.Is(err, unix.E2BIG):
			return nil, tooLong(cmd)
		case errors.Is(err, unix.EPERM) && cmd.User != nil:
			return nil, &sandbox.Error{Op: "start command", Code: sandbox.CodePermission, Field: "user", Message: "only root can run a command as another user"}
		}
		return nil, fault("start command", err)
	}
	s.running.Go(func() { <-p.ended })
	if cmd.Timeout > 0 {
		timer := time.AfterFunc(cmd.Timeout, func() { p.stop(sandbox.TimedOut) })
		s.running.Go(func() { <-p.exited; timer.Stop() })
	}
	return p, nil
}

// tooLong names what the system could not pass to a program.
func tooLong(cmd *sandbox.Command) error {
	for _, key := range slices.Sorted(maps.Keys(cmd.Env)) {
		if len(key)+len(cmd.Env[key]) > maxArgument {
			return sandbox.Invalid("env", "the value of "+key+" is longer than the 128 KiB that Linux passes to a program; put it into a file")
		}
	}
	return sandbox.Invalid("args", "is longer than what Linux passes to a program, 128 KiB an argument and about 2 MiB in all; use a shell line, stdin or a file")
}

// commandDir is where a command runs; the session's own directory is made.
func (s *Session) commandDir(name string) (string, error) {
	dir := sandbox.Resolve(s.opts.Workdir, name)
	if dir == s.opts.Workdir {
		if err := s.opts.User.mkdirAll(dir, 0o755); err != nil {
			return "", fault("make the working directory", err)
		}
	}
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", sandbox.Invalid("cwd", dir+" does not exist; make it first, or leave cwd empty for "+s.opts.Workdir)
	case err != nil:
		return "", fault("open cwd", err)
	case !info.IsDir():
		return "", sandbox.Invalid("cwd", dir+" is not a directory")
	}
	return dir, nil
}

// build makes the exec.Cmd, and a script file for a line that is too long for
// an argument.
func (s *Session) build(cmd *sandbox.Command, dir string) (_ *exec.Cmd, script string, err error) {
	user := s.opts.User
	if cmd.User != nil {
		user = known(cmd.User)
	}
	c := &exec.Cmd{Dir: dir, Env: s.environment(cmd), SysProcAttr: &syscall.SysProcAttr{Setsid: true, Credential: user.credential()}}
	switch {
	case len(cmd.Args) > 0:
		c.Args = cmd.Args
		if c.Path, err = s.lookPath(cmd, dir); err != nil {
			return nil, "", err
		}
	case cmd.Line == "": // on a terminal
		c.Path = s.findShell()
		c.Args = []string{c.Path, "-i"}
	case len(cmd.Line) <= maxArgument:
		c.Path = s.findShell()
		c.Args = []string{c.Path, "-c", cmd.Line}
	default:
		if script, err = s.writeScript(cmd.Line, user); err != nil {
			return nil, "", err
		}
		c.Path = s.findShell()
		c.Args = []string{c.Path, script}
	}
	return c, script, nil
}

func (s *Session) writeScript(line string, user *User) (string, error) {
	dir := s.opts.Scripts
	if user != nil {
		dir = "" // into which the user can look
	}
	f, err := os.CreateTemp(dir, "command-*.sh")
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(line)
	if err := errors.Join(err, user.own(int(f.Fd())), f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}

// start makes the pipes, starts the process and the goroutines that read from
// it; they end when the process has, whether or not anybody calls Next.
func (p *process) start(cmd *sandbox.Command) error {
	var ours, theirs []*os.File
	defer func() {
		for _, f := range theirs {
			f.Close()
		}
	}()
	pipe := func() (r, w *os.File, err error) {
		r, w, err = os.Pipe()
		if err == nil {
			enlarge(r)
		}
		return r, w, err
	}
	for _, to := range []*io.Writer{&p.cmd.Stdout, &p.cmd.Stderr} {
		r, w, err := pipe()
		if err != nil {
			closeAll(ours)
			return err
		}
		ours, theirs, *to = append(ours, r), append(theirs, w), w
	}
	if cmd.Stdin != nil || cmd.StdinPipe {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(ours)
			return err
		}
		theirs, p.cmd.Stdin, p.stdin = append(theirs, r), r, w
	}
	p.started = time.Now()
	if err := p.cmd.Start(); err != nil {
		closeAll(ours)
		if p.stdin != nil {
			p.stdin.Close()
		}
		return err
	}
	if cmd.Stdin != nil {
		go p.feed(cmd.Stdin)
	}
	var readers sync.WaitGroup
	readers.Go(func() { p.read(ours[0], sandbox.Stdout) })
	readers.Go(func() { p.read(ours[1], sandbox.Stderr) })
	go p.wait(ours, &readers)
	return nil
}

// feed copies input to the command. A command that stops reading is no error.
func (p *process) feed(from io.Reader) {
	_, _ = io.Copy(p.stdin, from)
	p.stdin.Close()
}

// wait sees the leader end, has what it printed read to the last byte, and
// settles the result.
func (p *process) wait(pipes []*os.File, readers *sync.WaitGroup) {
	err := p.cmd.Wait()
	took := time.Since(p.started)
	close(p.exited)
	if p.stdin != nil && p.terminal == nil {
		_ = p.stdin.Close() // a grandchild may have the other end, and never read
	}
	for _, r := range pipes {
		_ = r.SetReadDeadline(time.Unix(1, 0)) // wakes the reader: what is in the pipe now is the rest
	}
	readers.Wait()
	p.removeScript()

	p.mu.Lock()
	defer p.mu.Unlock()
	p.result = &sandbox.Result{
		OperationID: p.id, Status: sandbox.Succeeded, StartedAt: p.started, Duration: took,
		StdoutBytes: p.counts.Stdout, StderrBytes: p.counts.Stderr, Recording: sandbox.NotRecorded,
	}
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !ok {
		p.result.Status, p.result.ExitCode, p.result.Reason = sandbox.Lost, -1, fmt.Sprint(err)
	} else {
		settle(p.result, status, p.cause)
	}
	close(p.chunks)
	close(p.ended)
}

// settle reads a wait status, and tells the causes apart.
func settle(res *sandbox.Result, status syscall.WaitStatus, cause sandbox.Status) {
	res.ExitCode = status.ExitStatus()
	if status.Signaled() {
		res.ExitCode = 128 + int(status.Signal())
		res.Signal = signalName(status.Signal())
		res.Reason = "ended by signal " + res.Signal
	}
	if res.ExitCode != 0 {
		res.Status = sandbox.Unsuccessful
	}
	switch cause {
	case sandbox.TimedOut:
		res.Status, res.Reason = cause, "stopped at its timeout"
	case sandbox.Cancelled:
		res.Status, res.Reason = cause, "stopped on request"
	}
}

// ID implements sandbox.Process.
func (p *process) ID() string { return p.id }

// Next implements sandbox.Process.
func (p *process) Next(ctx context.Context) (sandbox.Chunk, error) {
	if p.last != nil {
		buffers.Put(p.last)
		p.last = nil
	}
	select {
	case c, ok := <-p.chunks:
		if !ok {
			return sandbox.Chunk{}, io.EOF
		}
		p.last = c.buffer
		return c.Chunk, nil
	case <-ctx.Done():
		return sandbox.Chunk{}, sandbox.FromContext(ctx, "read output")
	}
}

// Stdin implements sandbox.Process.
func (p *process) Stdin() io.WriteCloser {
	if p.stdin == nil {
		return closedInput{}
	}
	return p.stdin
}

// Signal implements sandbox.Process.
func (p *process) Signal(_ context.Context, name string) error {
	sig := unix.SignalNum("SIG" + strings.TrimPrefix(strings.ToUpper(name), "SIG"))
	if sig == 0 {
		return sandbox.Invalid("signal", "must be a name such as TERM, INT or KILL")
	}
	select {
	case <-p.exited:
		return &sandbox.Error{Op: "send signal", Code: sandbox.CodeSandboxState, Message: "the command has ended"}
	default:
	}
	send := p.kill
	if p.terminal != nil {
		send = p.killForeground
	}
	if err := send(sig); err != nil {
		return fault("send signal", err)
	}
	return nil
}

// Stop implements sandbox.Process.
func (p *process) Stop(context.Context) error {
	p.stop(sandbox.Cancelled)
	return nil
}

// Wait implements sandbox.Process.
func (p *process) Wait(ctx context.Context) (*sandbox.Result, error) {
	select {
	case <-p.ended:
		res := *p.result
		return &res, nil
	case <-ctx.Done():
		return nil, sandbox.FromContext(ctx, "wait for command")
	}
}

// Close implements sandbox.Process.
func (p *process) Close() error {
	p.leave.Do(func() { close(p.gone) })
	if !p.remains {
		p.stop(sandbox.Cancelled)
	}
	return nil
}

func (p *process) removeScript() {
	if p.script != "" {
		_ = os.Remove(p.script) // a leftover is swept when the recorder starts
	}
}

// closedInput is the input of a command that was given none.
type closedInput struct{}

func (closedInput) Write([]byte) (int, error) {
	return 0, &sandbox.Error{Op: "write input", Code: sandbox.CodeSandboxState, Message: "the command was started without input"}
}
func (closedInput) Close() error { return nil }

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}
