package native

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/glassboxhq/glassbox/sandbox"
)

// terminal is the end of a terminal that a person has: what is written is
// typed, what is read is shown.
type terminal struct {
	f    *os.File
	once sync.Once
	err  error
}

// endOfInput is Ctrl-D.
const endOfInput = "\x04"

// Write implements io.Writer.
func (t *terminal) Write(b []byte) (int, error) { return t.f.Write(b) }

// Close types the end of the input. The terminal stays.
func (t *terminal) Close() error {
	t.once.Do(func() { _, t.err = t.f.WriteString(endOfInput) })
	return t.err
}

// control does something with the descriptor, which stays open meanwhile.
func (t *terminal) control(do func(fd int)) error {
	conn, err := t.f.SyscallConn()
	if err != nil {
		return err
	}
	return conn.Control(func(fd uintptr) { do(int(fd)) })
}

// startTerminal is start for a command on a terminal.
func (p *process) startTerminal(cmd *sandbox.Command) error {
	ours, theirs, err := openTerminal(*cmd.Terminal)
	if err != nil {
		return err
	}
	defer theirs.Close()
	if c := p.cmd.SysProcAttr.Credential; c != nil {
		if err := theirs.Chown(int(c.Uid), int(c.Gid)); err != nil {
			ours.Close()
			return err
		}
	}
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = theirs, theirs, theirs
	p.cmd.SysProcAttr.Setctty = true
	p.started = time.Now()
	if err := p.cmd.Start(); err != nil {
		ours.Close()
		return err
	}
	p.terminal = &terminal{f: ours}
	p.stdin = p.terminal
	if cmd.Stdin != nil {
		go p.feed(cmd.Stdin)
	}
	var readers sync.WaitGroup
	readers.Go(func() { p.read(ours, sandbox.Stdout) })
	go p.wait([]*os.File{ours}, &readers)
	return nil
}

// What a terminal shows passes through the kernel's hands after it was
// written, so what is left when the leader has exited cannot be counted.
const (
	shownWait = 100 * time.Millisecond // for more to be shown
	shownMost = 1 << 20                // by those who keep the terminal and go on
)

// readShown reads what a terminal still shows after the leader's exit, and lets
// the terminal go.
func (p *process) readShown(r *os.File) {
	defer r.Close()
	for n, rest := 0, shownMost; rest > 0; rest -= n {
		if r.SetReadDeadline(time.Now().Add(shownWait)) != nil {
			return
		}
		buffer := buffers.Get().(*[]byte)
		var err error
		if n, err = r.Read(*buffer); err != nil { // EIO: nobody has it open
			buffers.Put(buffer)
			return
		}
		p.pass(sandbox.Stdout, buffer, n)
	}
}

// Resize implements sandbox.Terminal.
func (p *process) Resize(_ context.Context, size sandbox.TerminalSize) error {
	if err := size.Validate(); err != nil {
		return err
	}
	if p.terminal == nil {
		return &sandbox.Error{Op: "resize terminal", Code: sandbox.CodeSandboxState, Message: "the command runs on no terminal"}
	}
	var err error
	if controlErr := p.terminal.control(func(fd int) { err = setSize(fd, size) }); err == nil {
		err = controlErr
	}
	if err != nil {
		return &sandbox.Error{Op: "resize terminal", Code: sandbox.CodeSandboxState, Message: "the terminal is gone", Err: err}
	}
	return nil
}

// Take implements sandbox.Terminal: there is one client, who has the keyboard.
func (p *process) Take(context.Context) error { return nil }

// Hidden reports whether what is typed now is not to be seen, as a password:
// the terminal reads lines and does not show them. A shell's own line editor
// reads keys.
func (p *process) Hidden() bool {
	if p.terminal == nil {
		return false
	}
	hidden := false
	_ = p.terminal.control(func(fd int) { // one that is gone takes no input
		t, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		hidden = err == nil && t.Lflag&unix.ICANON != 0 && t.Lflag&unix.ECHO == 0
	})
	return hidden
}

// killForeground sends a signal to the job that runs in the foreground of a
// terminal, as Ctrl-C does.
func (p *process) killForeground(sig unix.Signal) error {
	group, key := 0, byte(0)
	if err := p.terminal.control(func(fd int) {
		group, _ = unix.IoctlGetInt(fd, unix.TIOCGPGRP)
		if t, err := unix.IoctlGetTermios(fd, unix.TCGETS); err == nil && t.Lflag&unix.ISIG != 0 {
			key = keyOf(sig, t)
		}
	}); err != nil {
		return err
	}
	switch {
	case group > 0:
		return unix.Kill(-group, sig)
	case key != 0: // gVisor does not tell the group, and knows the key
		_, err := p.terminal.Write([]byte{key})
		return err
	}
	return p.killSession(sig)
}

// keyOf is the key that sends a signal on a terminal, or 0.
func keyOf(sig unix.Signal, t *unix.Termios) byte {
	switch sig {
	case unix.SIGINT:
		return t.Cc[unix.VINTR]
	case unix.SIGQUIT:
		return t.Cc[unix.VQUIT]
	case unix.SIGTSTP:
		return t.Cc[unix.VSUSP]
	}
	return 0
}

// killSession sends a signal to every process of a terminal: an interactive
// shell gives each job a group of its own. It returns ESRCH when there is none.
func (p *process) killSession(sig unix.Signal) error {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return unix.Kill(-p.cmd.Process.Pid, sig)
	}
	err = unix.ESRCH
	for _, entry := range entries {
		pid, notPID := strconv.Atoi(entry.Name())
		if notPID == nil && sessionOf(pid) == p.cmd.Process.Pid {
			if killErr := unix.Kill(pid, sig); !errors.Is(killErr, unix.ESRCH) {
				err = killErr
			}
		}
	}
	return err
}

// sessionOf returns the session of a process that lives, or 0.
func sessionOf(pid int) int {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	// pid (name) state parent group session …, and the name may hold anything.
	_, rest, _ := strings.Cut(string(text[strings.LastIndexByte(string(text), ')')+1:]), " ")
	fields := strings.Fields(rest)
	if len(fields) < 4 || fields[0] == "Z" {
		return 0
	}
	session, err := strconv.Atoi(fields[3])
	if err != nil {
		return 0
	}
	return session
}
