package localruntime

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/glassboxhq/glassbox/internal/localruntime/cgroup"
	"github.com/glassboxhq/glassbox/internal/localruntime/gvisor"
	"github.com/glassboxhq/glassbox/internal/localruntime/image"
	"github.com/glassboxhq/glassbox/internal/localruntime/proc"
	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/sandbox"
)

// engine starts and ends the processes of sandboxes. Its calls for one
// sandbox never overlap.
type engine interface {
	// start starts the sandbox of a launch, and returns its process and what
	// cannot be held of what was asked.
	start(ctx context.Context, l *launch) (proc.Ref, []string, error)
	pause(ctx context.Context, r *record, d dir) error
	resume(ctx context.Context, r *record, d dir) error
	// snapshot writes the files of a living sandbox to a new folder.
	snapshot(ctx context.Context, r *record, d dir, into string) error
	// fault tells why the process may have ended, if that can be known.
	fault(r *record) string
	// finish asks a running sandbox to write down how its commands end, and to
	// end itself. It returns when the sandbox has ended, or with an error when it
	// did not while ctx lasted.
	finish(ctx context.Context, r *record) error
	// processes returns what of a sandbox runs on this machine, whatever its
	// record says.
	processes(d dir) ([]proc.Ref, error)
	// remove ends what still runs and removes what start made. It may be
	// called at any time, also again.
	remove(ctx context.Context, r *record, d dir) error
}

// launch is what an engine is told of a sandbox.
type launch struct {
	record   *record
	dir      dir
	limits   *limits
	env      map[string]string // the owner's
	image    *image.Image      // nil: this machine's programs
	anywhere bool              // the image may say where commands run
	// snapshot is the folder that snapshot wrote for it to begin from; empty:
	// none.
	snapshot string
	auth     *sandbox.RegistryAuth // of its owner, for the image
	patience time.Duration         // how long its owner waits for the image to come
}

// isolated is the engine of the image host, and of all that are unpacked.
type isolated struct {
	runsc *gvisor.Engine
}

func (e *isolated) start(ctx context.Context, l *launch) (proc.Ref, []string, error) {
	if e.runsc.Runsc == "" {
		return proc.Ref{}, nil, noIsolation("gVisor's runsc was not found", nil)
	}
	if err := l.dir.writeBoot(bootOf(l)); err != nil {
		return proc.Ref{}, nil, err
	}
	s := &gvisor.Sandbox{
		ID: l.record.Info.ID, Hostname: guestHostname, Dir: string(l.dir), Workdir: l.record.Spec.Workdir,
		Args: []string{guestRecorder, "init"}, Env: environ(hostEnv(l.record.Spec.Workdir)),
		Binds: []gvisor.Mount{
			{Source: l.dir.run(), Target: wire.GuestRun},
			{Source: l.dir.history(), Target: wire.GuestHistory, Write: true},
			{Source: l.record.Recorder, Target: guestRecorder, File: true},
		},
		Limits: l.limits.Limits, DiskSize: cmp.Or(l.limits.disk, defaultDisk), Snapshot: l.snapshot,
	}
	if l.image != nil {
		s.Rootfs = l.image.Root()
		if file := certificates(); file != "" {
			s.Binds = append(s.Binds, gvisor.Mount{Source: file, Target: guestCertificates, File: true})
		}
	}
	ref, warnings, err := e.runsc.Start(ctx, s)
	switch {
	case err == nil || ctx.Err() != nil:
	case l.snapshot != "":
		err = noIsolation("gVisor could not start a sandbox from the snapshot, which may be damaged or of another version of gVisor", err)
	default:
		err = noIsolation("gVisor could not start a sandbox; glassbox doctor tells what this machine lacks", err)
	}
	return ref, warnings, err
}

func (e *isolated) pause(ctx context.Context, r *record, d dir) error {
	return e.runsc.Pause(ctx, r.Info.ID, string(d))
}

func (e *isolated) resume(ctx context.Context, r *record, d dir) error {
	return e.runsc.Resume(ctx, r.Info.ID, string(d))
}

func (e *isolated) snapshot(ctx context.Context, r *record, d dir, into string) error {
	return e.runsc.Snapshot(ctx, r.Info.ID, string(d), into)
}

func (e *isolated) fault(r *record) string {
	switch {
	case cgroup.Machine.Killed(r.Info.ID):
		return "the sandbox reached its memory limit and was ended"
	case cgroup.Machine.Full(r.Info.ID):
		return "the sandbox reached its limit of processes (pids) and ended"
	}
	return "the sandbox's first process ended: it was killed from inside, or the machine ran out of memory"
}

func (e *isolated) finish(ctx context.Context, r *record) error {
	return e.runsc.Finish(ctx, r.Process)
}

func (e *isolated) processes(d dir) ([]proc.Ref, error) { return e.runsc.Processes(string(d)) }

func (e *isolated) remove(ctx context.Context, r *record, d dir) error {
	return e.runsc.Remove(ctx, r.Info.ID, string(d), r.Process)
}

func noIsolation(why string, err error) error {
	return &sandbox.Error{Op: "start sandbox", Code: sandbox.CodeIsolation, Message: why, Err: err}
}

// Launch is what the program does when it was started with Options.SelfArgs
// and one more argument. It returns only when it could not start a sandbox.
func Launch(args []string) error {
	if len(args) != 1 {
		return errors.New("launch: this command is for the local runtime's own use")
	}
	return gvisor.Launch(args[0])
}
