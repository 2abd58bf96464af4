// Package proc names processes of this machine so that a number that was
// given out again is never taken for the process that had it before.
package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Ref names a process by its number and the time at which it started.
type Ref struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // clock ticks since the machine started
}

// Find returns the Ref of the process that has the number pid now.
func Find(pid int) (Ref, error) {
	if pid <= 0 {
		return Ref{}, fmt.Errorf("find process %d: no such number", pid)
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return Ref{}, fmt.Errorf("find process: %w", err)
	}
	// The name in parentheses may hold anything; the fields stand after the
	// last one. The state is the first of them, the start time the twentieth.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 20 {
		return Ref{}, fmt.Errorf("find process %d: unknown form of stat", pid)
	}
	if fields[0] == "Z" || fields[0] == "X" {
		return Ref{}, fmt.Errorf("find process %d: %w", pid, os.ErrProcessDone)
	}
	start, err := strconv.ParseUint(fields[19], 10, 64)
	if err != nil {
		return Ref{}, fmt.Errorf("find process %d: start time: %w", pid, err)
	}
	return Ref{PID: pid, Start: start}, nil
}

// Search returns the processes of this user whose command line matches. One
// that is just becoming another program may have none for a moment: who must
// not miss it asks again.
func Search(match func(args []string) bool) ([]Ref, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, fmt.Errorf("search processes: %w", err)
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("search processes: %w", err)
	}
	var found []Ref
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == os.Getpid() {
			continue
		}
		ref, err := Find(pid)
		if err != nil {
			continue // it has ended
		}
		if args, ours := commandLine(pid); ours && match(args) {
			found = append(found, ref)
		}
	}
	return found, nil
}

// commandLine returns the arguments of a process of this user.
func commandLine(pid int) (args []string, ours bool) {
	folder := "/proc/" + strconv.Itoa(pid)
	var stat unix.Stat_t
	if err := unix.Lstat(folder, &stat); err != nil || int(stat.Uid) != os.Geteuid() {
		return nil, false
	}
	text, err := os.ReadFile(folder + "/cmdline")
	if err != nil || len(text) == 0 {
		return nil, false
	}
	return strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00"), true
}

// Alive reports whether the process still runs.
func (r Ref) Alive() bool {
	now, err := Find(r.PID)
	return err == nil && now == r
}

// Handle holds on to a process: its number is not given out again to another
// while signals go to the handle.
type Handle struct {
	fd *os.File
}

// Open returns a handle of the process, or os.ErrProcessDone.
func (r Ref) Open() (*Handle, error) {
	fd, err := unix.PidfdOpen(r.PID, unix.PIDFD_NONBLOCK)
	if err != nil {
		return nil, os.ErrProcessDone
	}
	// The number is ours only if the process still is the one we mean.
	if !r.Alive() {
		unix.Close(fd)
		return nil, os.ErrProcessDone
	}
	return &Handle{fd: os.NewFile(uintptr(fd), "pidfd")}, nil
}

// Wait waits for the end of the process, without a thread of its own.
func (h *Handle) Wait(ctx context.Context) error {
	raw, err := h.fd.SyscallConn()
	if err != nil {
		return fmt.Errorf("wait for process: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { h.fd.Close() })
	defer stop()
	err = raw.Read(func(fd uintptr) bool {
		poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(poll, 0)
		return n > 0 || err != nil && !errors.Is(err, unix.EINTR)
	})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("wait for process: %w", err)
	}
	return nil
}

// Signal sends a signal; to a process that has ended it does nothing.
func (h *Handle) Signal(sig unix.Signal) error {
	raw, err := h.fd.SyscallConn()
	if err != nil {
		return fmt.Errorf("signal process: %w", err)
	}
	var sent error
	err = raw.Control(func(fd uintptr) { sent = unix.PidfdSendSignal(int(fd), sig, nil, 0) })
	if err = errors.Join(err, sent); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("signal process: %w", err)
	}
	return nil
}

// Close lets go of the process.
func (h *Handle) Close() error { return h.fd.Close() }

// Ask asks the process to end, and waits for its end.
func (r Ref) Ask(ctx context.Context) error { return r.endWith(ctx, unix.SIGTERM) }

// End kills the process and waits for its end.
func (r Ref) End(ctx context.Context) error { return r.endWith(ctx, unix.SIGKILL) }

func (r Ref) endWith(ctx context.Context, sig unix.Signal) error {
	h, err := r.Open()
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	if err != nil {
		return err
	}
	defer h.Close()
	if err := h.Signal(sig); err != nil {
		return err
	}
	return h.Wait(ctx)
}
