// Package gvisor drives gVisor's runsc as a separate program: one sandbox is
// one bundle, started from a private mount namespace so that no mount of ours
// is ever seen by the host.
//
// The launch is a program of its own, because a mount namespace belongs to a
// process: the runtime starts itself again with the word that leads to
// [Launch], in a new namespace, and that process binds what the sandbox sees
// and becomes runsc.
package gvisor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/glassboxhq/glassbox/internal/localruntime/cgroup"
	"github.com/glassboxhq/glassbox/internal/localruntime/proc"
	"github.com/glassboxhq/glassbox/internal/localruntime/userland"
)

// Engine starts and ends sandboxes.
type Engine struct {
	Runsc string
	// Self and SelfArgs lead, with one more argument, to [Launch].
	Self     string
	SelfArgs []string
}

// Sandbox says what to start. All paths are the host's, and absolute.
type Sandbox struct {
	ID       string
	Hostname string
	Dir      string // the engine's own folder of this sandbox; it must be there
	Args     []string
	Env      []string
	Workdir  string
	Rootfs   string // of an unpacked image; empty: this machine's userland
	Binds    []Mount
	Limits   cgroup.Limits
	DiskSize int64  // bytes of the writable layer
	Snapshot string // what the writable layer begins with; empty: nothing
}

// Mount is a file or folder of the host in a sandbox.
type Mount struct {
	Source, Target string
	File, Write    bool
}

const startTimeout = 30 * time.Second

// The engine's files below Sandbox.Dir.
const (
	bundleDir  = "bundle"
	overlayDir = "overlay"
	stateDir   = "runsc" // of runsc itself
	launchFile = "launch.json"
	lockFile   = "launch.lock" // held by the launch, whoever waits for it
	pidFile    = "pid"
	consoleLog = "console.log"
	runscLog   = "runsc.log"
)

// Start starts a sandbox. It returns when its first process runs; what cannot
// be held of the limits comes back as warnings.
func (e *Engine) Start(ctx context.Context, s *Sandbox) (proc.Ref, []string, error) {
	groups, warnings := cgroup.Machine.Make(s.ID, s.Limits)
	ref, err := e.start(ctx, s, groups)
	if err != nil {
		cleaning, cancel := context.WithTimeout(context.WithoutCancel(ctx), startTimeout)
		defer cancel()
		return proc.Ref{}, nil, errors.Join(err, e.Remove(cleaning, s.ID, s.Dir, proc.Ref{}))
	}
	return ref, warnings, nil
}

func (e *Engine) start(ctx context.Context, s *Sandbox, groups []string) (proc.Ref, error) {
	spec, err := e.prepare(s, groups)
	if err != nil {
		return proc.Ref{}, err
	}
	console, err := os.OpenFile(filepath.Join(s.Dir, consoleLog), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return proc.Ref{}, fmt.Errorf("open console: %w", err)
	}
	defer console.Close()
	held, err := holdLaunch(s.Dir)
	if err != nil {
		return proc.Ref{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, e.Self, append(slices.Clip(e.SelfArgs), spec)...)
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	cmd.Stdout, cmd.Stderr = console, console
	cmd.ExtraFiles = []*os.File{held} // and so runsc's, until that is done
	// A session of its own: a Ctrl-C in the server's terminal is not for the
	// sandbox.
	cmd.SysProcAttr = proc.Namespaces(os.Geteuid(), os.Getegid())
	cmd.SysProcAttr.Setsid = true
	err = cmd.Start()
	held.Close()
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		return proc.Ref{}, fmt.Errorf("start runsc: %w%s", err, said(filepath.Join(s.Dir, consoleLog)))
	}
	return findPID(filepath.Join(s.Dir, pidFile))
}

// prepare writes the bundle and the launch file, and returns the latter's path.
func (e *Engine) prepare(s *Sandbox, groups []string) (string, error) {
	for _, name := range []string{overlayDir, stateDir} {
		if err := os.Mkdir(filepath.Join(s.Dir, name), 0o700); err != nil {
			return "", fmt.Errorf("prepare sandbox: %w", err)
		}
	}
	opts := &userland.Options{Hostname: s.Hostname, Workdir: s.Workdir}
	for _, m := range s.Binds {
		if m.File {
			opts.Files = append(opts.Files, m.Target)
		} else {
			opts.Dirs = append(opts.Dirs, m.Target)
		}
	}
	bundle := filepath.Join(s.Dir, bundleDir)
	root := filepath.Join(bundle, "root")
	if err := os.MkdirAll(root, 0o700); err != nil {
		return "", fmt.Errorf("prepare sandbox: %w", err)
	}
	if err := writeJSON(filepath.Join(bundle, "config.json"), config(s)); err != nil {
		return "", err
	}
	outside, err := mountNamespace()
	if err != nil {
		return "", fmt.Errorf("prepare sandbox: %w", err)
	}
	run := []string{"run", "--detach", "--bundle=" + bundle, "--pid-file=" + filepath.Join(s.Dir, pidFile)}
	if s.Snapshot != "" {
		run = append(run, "--fs-restore-image-path="+s.Snapshot)
	}
	file := filepath.Join(s.Dir, launchFile)
	args := append(
		e.command(s.Dir),
		"--network=none", "--host-uds=open", "--ignore-cgroups",
		"--overlay2=root:dir="+filepath.Join(s.Dir, overlayDir)+",size="+strconv.FormatInt(s.DiskSize, 10),
	)
	args = append(append(args, run...), s.ID)
	return file, writeJSON(file, &launch{Outside: outside, Root: root, Image: s.Rootfs, Userland: opts, Cgroups: groups, Args: args})
}

// command is runsc with the flags of every call for one sandbox. Each sandbox
// has a state folder of its own, so that removing the folder removes it all,
// and a network namespace of its own for the gofer: the one that runsc shares
// by default stays mounted.
func (e *Engine) command(dir string) []string {
	return []string{
		e.Runsc, "--root=" + filepath.Join(dir, stateDir), "--log=" + filepath.Join(dir, runscLog),
		"--gofer-network-namespace=new",
	}
}

// Pause stops all processes of a sandbox, Resume lets them go on.
func (e *Engine) Pause(ctx context.Context, id, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return e.call(ctx, dir, "pause", id)
}

// Resume is the contrary of Pause.
func (e *Engine) Resume(ctx context.Context, id, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return e.call(ctx, dir, "resume", id)
}

// Snapshot writes the writable layer of a sandbox to a new folder, as it is at
// one moment. The sandbox stands still meanwhile, also when it is paused.
//
// A tar of the layer ("runsc tar rootfs-upper") would do, too, but the sandbox's
// kernel has the largest file in its memory while it writes it, holes and all,
// and every file when it reads it: a sandbox would die of its memory limit.
func (e *Engine) Snapshot(ctx context.Context, id, dir, into string) error {
	return e.call(ctx, dir, "fscheckpoint", "--leave-running", "--image-path="+into, id)
}

func (e *Engine) call(ctx context.Context, dir string, args ...string) error {
	all := append(e.command(dir)[1:], args...)
	out, err := exec.CommandContext(ctx, e.Runsc, all...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("runsc %s: %w: %s", args[0], err, bytes.TrimSpace(out))
	}
	return nil
}

func findPID(file string) (proc.Ref, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return proc.Ref{}, fmt.Errorf("read process number: %w", err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return proc.Ref{}, fmt.Errorf("read process number: %w", err)
	}
	return proc.Find(pid)
}

// said returns the last lines of a log, for an error's text.
func said(file string) string {
	text, err := os.ReadFile(file)
	text = bytes.TrimSpace(text)
	if err != nil || len(text) == 0 {
		return ""
	}
	if len(text) > 2048 {
		text = text[len(text)-2048:]
	}
	return ": " + string(text)
}
