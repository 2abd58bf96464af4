package main

import (
	"context"
	"errors"
	"maps"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/glassboxhq/glassbox"
	"github.com/glassboxhq/glassbox/internal/localruntime"
	"github.com/glassboxhq/glassbox/record/redact"
	"github.com/glassboxhq/glassbox/sandbox"
)

// commandFlags say how a command is run.
type commandFlags struct {
	line    string
	env     []string
	dir     string
	timeout time.Duration
	input   bool
}

func (f *commandFlags) add(cmd *cobra.Command) {
	f.addWhere(cmd)
	cmd.Flags().BoolVarP(&f.input, "interactive", "i", false, "pass standard input on to the command; without it there is none")
}

// addWhere adds all flags but that of the input.
func (f *commandFlags) addWhere(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVarP(&f.line, "command", "c", "", "shell `line` to run instead of a program and its arguments")
	flags.StringArrayVarP(&f.env, "env", "e", nil, "environment variable, as `NAME=value`; may be given again")
	flags.StringVarP(&f.dir, "workdir", "w", "", "`folder` to run in")
	flags.DurationVar(&f.timeout, "timeout", 0, "stop the command after this `time`, as in 90s or 5m: TERM, and KILL 3s later; the exit code is then 124")
}

func (f *commandFlags) command(a *app, args []string) (*glassbox.Command, error) {
	if (f.line == "") == (len(args) == 0) {
		return nil, usage("give a program after --, or a shell line with -c")
	}
	env, err := parseEnv(f.env)
	if err != nil {
		return nil, err
	}
	cmd := &glassbox.Command{
		Line: f.line, Args: args, Env: env, Dir: f.dir, Timeout: f.timeout,
		Stdout: a.out, Stderr: a.err, MaxOutput: 1, // it has been written as it came
	}
	if f.input {
		cmd.Stdin = a.in
	}
	return cmd, cmd.Validate()
}

func parseEnv(list []string) (map[string]string, error) {
	env := map[string]string{}
	for _, entry := range list {
		name, value, ok := strings.Cut(entry, "=")
		if !ok || name == "" {
			return nil, sandbox.Invalid("env", "must be given as NAME=value")
		}
		env[name] = value
	}
	return env, nil
}

// sandboxFlags say what sandbox to make.
type sandboxFlags struct {
	name, image, network, snapshot string
	memory, cpu, disk, pids        string
	labels                         []string
	ttl                            time.Duration
	commands                       int
	noHistory, bestEffort          bool
	noRedaction                    bool
	redact                         []string
	noFileChanges                  bool
}

func (f *sandboxFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.name, "name", "", "`name` to show, of any script")
	flags.StringVar(&f.image, "image", "", "`image`; on this machine host, its own programs, or one that is pulled when it is missing")
	flags.StringVar(&f.snapshot, "snapshot", "", "`snapshot` to begin from, by id or name, instead of an image")
	flags.StringVar(&f.network, "network", "", "none or proxy (`kind`, on this machine only; default proxy)")
	flags.StringVar(&f.memory, "memory", "", "memory `limit`, as in 512Mi")
	flags.StringVar(&f.cpu, "cpu", "", "processor `limit`, as in 500m or 2")
	flags.StringVar(&f.disk, "disk", "", "`limit` of what it may write, as in 2Gi; on this machine 4Gi if none is given")
	flags.StringVar(&f.pids, "pids", "", "`limit` of processes, as in 500; on this machine 2048 if none is given")
	flags.StringArrayVar(&f.labels, "label", nil, "metadata, as `key=value`; may be given again")
	flags.IntVar(&f.commands, "max-commands", 0, "commands that may run at once, `n`; others wait for their turn (default 4)")
	flags.DurationVar(&f.ttl, "ttl", 0, "`life` of the sandbox, at least 1m; default: as the service says")
	flags.BoolVar(&f.noHistory, "no-history", false, "record nothing")
	flags.BoolVar(&f.bestEffort, "best-effort", false, "run what cannot be recorded all the same")
	flags.BoolVar(&f.noFileChanges, "no-file-changes", false, "do not look for what commands do to files")
	flags.BoolVar(&f.noRedaction, "no-redaction", false, "keep secrets in the history as they are")
	flags.StringArrayVar(&f.redact, "redact", nil, "also mask in the history what matches this RE2 `pattern`; may be given again")
}

func (f *sandboxFlags) options(a *app) (*glassbox.Options, error) {
	opts := a.options()
	if f.image == "here" {
		return nil, usage("--image here means no isolation; say --here instead")
	}
	if f.snapshot != "" && (f.image != "" || a.flags.here) {
		return nil, usage("--snapshot brings its own image; leave out --image and --here")
	}
	opts.NoFileChanges, opts.Snapshot = f.noFileChanges, f.snapshot
	opts.Name, opts.Image, opts.Network, opts.TTL = f.name, f.image, f.network, f.ttl
	opts.Limits = map[string]string{"memory": f.memory, "cpu": f.cpu, "disk": f.disk, "pids": f.pids}
	maps.DeleteFunc(opts.Limits, func(_, limit string) bool { return limit == "" })
	if len(f.labels) > 0 {
		var err error
		if opts.Metadata, err = parseEnv(f.labels); err != nil {
			return nil, sandbox.Invalid("label", "must be given as key=value")
		}
	}
	if f.commands != 0 {
		opts.Concurrency = &glassbox.Concurrency{Commands: f.commands}
	}
	return opts, f.recording(opts)
}

// recording says how the sandbox is recorded.
func (f *sandboxFlags) recording(opts *glassbox.Options) error {
	if f.noRedaction || len(f.redact) > 0 {
		opts.History = &glassbox.HistoryConfig{Redaction: &redact.Rules{Off: f.noRedaction, Patterns: f.redact}}
	}
	switch {
	case f.noRedaction && len(f.redact) > 0:
		return usage("--no-redaction and --redact exclude each other")
	case f.noHistory && f.bestEffort:
		return usage("--no-history and --best-effort exclude each other")
	case f.noHistory:
		opts.HistoryMode = glassbox.NoHistory
	case f.bestEffort:
		opts.HistoryMode = glassbox.BestEffort
	}
	return nil
}

func (a *app) runCommand() *cobra.Command {
	var c commandFlags
	var s sandboxFlags
	var keep bool
	cmd := &cobra.Command{
		Use:   "run [flags] -- PROGRAM [ARGUMENT...]",
		Short: "Run one command in a new sandbox",
		Long: `Run makes a sandbox, runs one command in it, passes on what it prints and its
exit code, and deletes the sandbox. The record of it is kept: see history show.

The command has no standard input unless -i is given. A sandbox of this machine
begins empty: put a project in by -i and tar, as below.
` + exitCodes,
		Annotations: map[string]string{passesCode: "yes", ownOutput: "what the command prints is passed on as it is"},
		Example: `  glassbox run -- python3 -c 'print(6*7)'
  glassbox run -c 'echo $((6*7)) | tee answer; cat answer'
  tar c src | glassbox run -i -c 'tar x && make -C src test'
  glassbox run --here -- make test     on this very machine, without isolation`,
		RunE: func(cmd *cobra.Command, args []string) error {
			command, err := c.command(a, args)
			if err != nil {
				return err
			}
			opts, err := s.options(a)
			if err != nil {
				return err
			}
			if keep {
				opts.Cleanup = glassbox.Never
			}
			return a.runOnce(cmd.Context(), opts, command)
		},
	}
	c.add(cmd)
	s.add(cmd)
	a.actorFlags(cmd)
	cmd.Flags().Lookup("ttl").Usage = "`life` of the sandbox, at least 1m; default: as long as the command"
	cmd.Flags().BoolVar(&keep, "keep", false, "keep the sandbox")
	cmd.Flags().BoolVar(&a.flags.here, "here", false, "run on this very machine, without isolation: for containers and VMs that are themselves the boundary")
	return cmd
}

func (a *app) runOnce(ctx context.Context, opts *glassbox.Options, command *glassbox.Command) (err error) {
	if err := a.hereIn(opts); err != nil {
		return err
	}
	ctx = a.asActor(ctx)
	lives := opts.TTL == 0 && opts.Cleanup != glassbox.Never
	if lives {
		opts.TTL = runTTL
	}
	box, err := a.create(ctx, opts)
	if err != nil {
		return err
	}
	stopRenewing := func() {}
	if lives {
		stopRenewing = a.renew(ctx, box)
	}
	err = a.runIn(ctx, box, command)
	stopRenewing()
	if closeErr := box.Close(ctx); closeErr != nil {
		err = errors.Join(err, closeErr)
	} else if opts.Cleanup == glassbox.Never {
		a.say("kept sandbox %s", box.ID())
	}
	return errors.Join(err, a.serveGuests(ctx, box.ID()))
}

// create makes a sandbox, and says what of the options cannot be held.
func (a *app) create(ctx context.Context, opts *glassbox.Options) (*glassbox.Sandbox, error) {
	a.making = true
	url, err := a.service(ctx)
	if err != nil {
		return nil, err
	}
	if opts.Snapshot != "" {
		if opts.Snapshot, err = a.findSnapshot(ctx, url, opts.Snapshot); err != nil {
			return nil, err
		}
	}
	if err := a.haveImage(ctx, url, opts.Image); err != nil {
		return nil, err
	}
	done := a.progress("creating a sandbox")
	box, err := glassbox.Create(ctx, url, opts)
	done()
	if err != nil {
		return nil, err
	}
	for _, warning := range box.Info().Warnings {
		a.say("%s", plain(warning))
	}
	return box, nil
}

// haveImage pulls an image that this machine does not have, while the user sees
// how far it is.
func (a *app) haveImage(ctx context.Context, url, name string) error {
	if url != glassbox.Local || name == "" || name == localruntime.ImageHost || name == localruntime.ImageHere {
		return nil
	}
	_, err := a.localImages().pull(ctx, name, true)
	return err
}

// The sandbox of a run lives as long as the run: it expires soon after one
// that was killed.
const (
	runTTL     = 2 * time.Hour
	renewEvery = 10 * time.Minute
)

// renew keeps a sandbox alive until the returned function is called.
func (a *app) renew(ctx context.Context, box *glassbox.Sandbox) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var renewing sync.WaitGroup
	renewing.Go(func() {
		tick := time.NewTicker(renewEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				if err := box.Renew(ctx, runTTL); err != nil && ctx.Err() == nil {
					a.say("the life of sandbox %s could not be renewed: %v", box.ID(), err)
				}
			case <-ctx.Done():
				return
			}
		}
	})
	return func() { cancel(); renewing.Wait() }
}

// hereIn asks for no isolation where that was said. The sandbox's warnings say
// so again.
func (a *app) hereIn(opts *glassbox.Options) error {
	if !a.flags.here {
		return nil
	}
	if opts.Image != "" {
		return usage("--here and --image exclude each other")
	}
	opts.Image = "here"
	if opts.Workdir == "" {
		dir, err := os.Getwd()
		if err != nil {
			return err
		}
		opts.Workdir = dir
	}
	return nil
}

// runIn runs a command, and turns its end into this program's.
func (a *app) runIn(ctx context.Context, box *glassbox.Sandbox, command *glassbox.Command) error {
	res, err := box.Run(ctx, "", command)
	switch {
	case ctx.Err() != nil:
		return exitCode(interruptCode)
	case err != nil:
		// It was lost on the way and looked for again: no word for a user.
		if e, ok := errors.AsType[*sandbox.Error](err); ok && e.Op == "attach to command" {
			e.Op = "run command"
		}
		return err
	}
	return a.endOf(box, res)
}

// endOf turns a command's end into this program's.
func (a *app) endOf(box *glassbox.Sandbox, res *glassbox.Result) error {
	switch res.Status {
	case sandbox.TimedOut:
		a.say("stopped at its timeout")
		return exitCode(timeoutCode)
	case sandbox.Lost:
		return &sandbox.Error{Op: "run command", Code: sandbox.CodeInterrupted, Sandbox: box.ID(), Message: res.Reason}
	}
	if res.Recording == sandbox.RecordedPart {
		a.say("the history does not hold all of this command (operation %s); what is missing and why: glassbox history show %s", res.OperationID, box.ID())
	}
	if res.ExitCode != 0 {
		return exitCode(res.ExitCode)
	}
	return nil
}

func (a *app) execCommand() *cobra.Command {
	var c commandFlags
	var terminal bool
	cmd := &cobra.Command{
		Use:   "exec [flags] SANDBOX -- PROGRAM [ARGUMENT...]",
		Short: "Run a command in a sandbox that exists",
		Long: `Exec runs a command in a sandbox, named by its id, the beginning of its id, or
a name that only one has. The command has no standard input unless -i is given.
` + exitCodes,
		Annotations: map[string]string{passesCode: "yes", ownOutput: "what the command prints is passed on as it is"},
		Example: `  glassbox exec research -- ls -l
  glassbox exec 0b9c -c 'cat report.md | wc -l'
  glassbox exec -it research -- python3`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			command, err := c.command(a, args[1:])
			if err == nil && terminal {
				command, err = c.terminal(a, args[1:])
			}
			if err != nil {
				return err
			}
			ctx := a.asActor(cmd.Context())
			box, err := a.connect(ctx, args[0])
			if err != nil {
				return err
			}
			if terminal {
				err = a.sitIn(ctx, box, command, c.input)
			} else {
				err = a.runIn(ctx, box, command)
			}
			return errors.Join(err, box.Close(ctx))
		},
	}
	c.add(cmd)
	cmd.Flags().BoolVarP(&terminal, "tty", "t", false, "run it on a terminal, which ends when you go; with -i what you type goes there")
	a.actorFlags(cmd)
	return cmd
}

// connect opens the sandbox that a word names.
func (a *app) connect(ctx context.Context, word string) (*glassbox.Sandbox, error) {
	url, err := a.service(ctx)
	if err != nil {
		return nil, err
	}
	info, err := a.find(ctx, url, word)
	if err != nil {
		return nil, err
	}
	return glassbox.Connect(ctx, url, info.ID, a.options())
}
