package localruntime

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/glassboxhq/glassbox/internal/localruntime/proc"
	"github.com/glassboxhq/glassbox/sandbox"
)

// here is the engine without isolation: the recorder runs as a plain process
// of this machine, for machines that are themselves the boundary.
type here struct{}

func (here) start(ctx context.Context, l *launch) (proc.Ref, []string, error) {
	if err := os.MkdirAll(l.record.Spec.Workdir, 0o755); err != nil {
		return proc.Ref{}, nil, fmt.Errorf("make working directory: %w", err)
	}
	boot := bootOf(&launch{record: l.record})
	boot.Env = maps.Clone(l.env) // the machine's own comes with the process
	boot.HistoryDir = l.dir.history()
	boot.Socket, boot.ExpiryFile = l.dir.socket(), l.dir.expiry()
	boot.Egress, boot.EgressPort = "", 0
	if err := l.dir.writeBoot(boot); err != nil {
		return proc.Ref{}, nil, err
	}
	console, err := os.OpenFile(l.dir.file("console.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return proc.Ref{}, nil, fmt.Errorf("open console: %w", err)
	}
	defer console.Close()
	// It outlives this process, as an isolated sandbox does, so it is no
	// command of a context.
	cmd := exec.Command(l.record.Recorder, "serve", "--boot", l.dir.boot()) //nolint:noctx // see above
	cmd.Stdout, cmd.Stderr = console, console
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return proc.Ref{}, nil, fmt.Errorf("start recorder: %w", err)
	}
	ref, err := proc.Find(cmd.Process.Pid)
	go func() { _ = cmd.Wait() }() // reaps it; whoever wants to know of its end watches the Ref
	warnings := []string{"no isolation: commands run on this very machine, with the rights of this user"}
	for name := range l.record.Spec.Limits {
		warnings = append(warnings, "the limit "+name+" is not held: there is no isolation")
	}
	if l.record.Spec.Network == NetworkNone {
		warnings = append(warnings, "the network is this machine's: there is no isolation")
	}
	return ref, warnings, err
}

func (here) pause(context.Context, *record, dir) error {
	return &sandbox.Error{Op: "pause sandbox", Code: sandbox.CodeUnsupported, Message: "a sandbox without isolation cannot be paused"}
}

func (here) resume(context.Context, *record, dir) error {
	return &sandbox.Error{Op: "resume sandbox", Code: sandbox.CodeUnsupported, Message: "a sandbox without isolation cannot be paused"}
}

func (here) snapshot(_ context.Context, r *record, _ dir, _ string) error {
	return errNothingToKeep(r.Info.ID)
}

func errNothingToKeep(id string) error {
	return &sandbox.Error{
		Op: "take snapshot", Sandbox: id, Code: sandbox.CodeUnsupported,
		Message: "a sandbox without isolation works on the files of this very machine; there is nothing to keep",
	}
}

func (here) fault(*record) string { return "the recorder ended" }

// finish leaves it to remove, which asks before it kills.
func (here) finish(context.Context, *record) error { return nil }

// processes finds the recorder by the boot file that it was started with: the
// name of a sandbox's folder is its id, which no other has.
func (here) processes(d dir) ([]proc.Ref, error) {
	boot := strings.TrimPrefix(d.boot(), filepath.Dir(string(d)))
	return proc.Search(func(args []string) bool {
		n := len(args)
		return n > 2 && args[n-2] == "--boot" && strings.HasSuffix(args[n-1], boot)
	})
}

// remove asks the recorder to end, which ends the commands that it runs, and
// kills it when it does not. An owner that died in the middle of a creation
// has left no record of the process, so it is also looked for.
func (e here) remove(ctx context.Context, r *record, d dir) error {
	found, err := e.processes(d)
	if err != nil {
		return err
	}
	for _, ref := range append(found, r.Process) {
		if err := endSession(ctx, ref); err != nil {
			return err
		}
	}
	if err := os.Remove(d.file("console.log")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// endSession ends a recorder, with patience.
func endSession(ctx context.Context, ref proc.Ref) error {
	patient, cancel := context.WithTimeout(ctx, finishTimeout)
	defer cancel()
	if ref.Ask(patient) == nil {
		return nil
	}
	return ref.End(ctx)
}
