package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/glassboxhq/glassbox"
	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/version"
)

// app is one run of the program.
type app struct {
	in       io.Reader
	out, err io.Writer // as they come: what a command in a sandbox prints
	page     *output   // on out: what this program answers
	flags    globalFlags
	settings *settings
	making   bool          // sandboxes are to be made
	stays    bool          // it does not hand the local runtime over
	life     time.Duration // that serve gives a sandbox; 0: any
	mu       sync.Mutex
	owner    *ownRuntime // of the local runtime, if this process is it
	closing  bool
	closers  []context.CancelFunc // of what watches the owner
	watching sync.WaitGroup
	warned   bool   // of records that cannot be read
	unknown  error  // there is no command of which help was asked for
	day      string // of the entry that was shown last
}

type globalFlags struct {
	url, stateDir, output string
	config                string
	verbose, here         bool
	actor                 history.Actor
}

func (a *app) root() *cobra.Command {
	a.page = newOutput(a.out)
	root := &cobra.Command{
		Use:   "glassbox",
		Short: "Run an AI agent's work in a sandbox, and see exactly what it did",
		Long: `Glassbox runs commands and edits files in sandboxes and keeps an exact record
of every operation: who, what, when, the whole output, and what came of it.

Without --url it works on this machine, in sandboxes of its own local runtime;
with it, on an OpenSandbox service.

Settings, from the environment, a file .env in the working directory or the
configuration file ~/.config/glassbox/glassbox.toml; flags win (glassbox config
shows what is in force, and from where):
  GLASSBOX_URL        OpenSandbox service to work on, else this machine
  GLASSBOX_API_KEY    key of that service
  GLASSBOX_PORT       port of glassbox serve, default 7717
  GLASSBOX_STATE_DIR  folder of the local runtime's state and its histories,
                      default ~/.local/state/glassbox
  GLASSBOX_IMAGE_ALIAS
                      images given in place of others, as in
                      'python:3.12=host node:22=host'
  GLASSBOX_CONFIG     another configuration file, from the environment only
and, from the environment only, the programs that sandboxes need, which are
else looked for beside this one and in the cache, or built:
  GLASSBOX_RUNSC      gVisor's runsc
  GLASSBOX_RECORDER   the recorder`,
		Example: `  glassbox run -- python3 --version          one command in a new sandbox
  glassbox serve                             sandboxes for other programs
  glassbox history list                      what is kept
  glassbox history show                      the latest, operation by operation`,
		Version: version.String(), SilenceUsage: true, SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return a.configure(cmd) },
	}
	root.SetIn(a.in)
	root.SetOut(a.page)
	root.SetErr(a.err)
	root.SetFlagErrorFunc(wrongFlags)
	flags := root.PersistentFlags()
	flags.StringVar(&a.flags.url, "url", "", "OpenSandbox `service` to work on (GLASSBOX_URL, OPEN_SANDBOX_DOMAIN); default: this machine")
	flags.StringVar(&a.flags.stateDir, "state-dir", "", "`folder` of the local runtime's state (GLASSBOX_STATE_DIR)")
	flags.StringVar(&a.flags.config, "config", "", "configuration `file` (GLASSBOX_CONFIG); default: $XDG_CONFIG_HOME/glassbox/glassbox.toml, if it is there")
	flags.StringVarP(&a.flags.output, "output", "o", "table", "`format` of answers: table, json or yaml")
	flags.BoolVarP(&a.flags.verbose, "verbose", "v", false, "log what happens to stderr")
	root.AddCommand(
		a.runCommand(), a.execCommand(), a.terminalCommand(), a.copyCommand(), a.sandboxCommand(), a.imageCommand(), a.historyCommand(),
		a.serveCommand(), a.loginLinkCommand(), a.configCommand(), a.doctorCommand(), a.versionCommand(),
	)
	a.complete(root)
	root.InitDefaultCompletionCmd()
	tellWrongCalls(root)
	help := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		if a.unknown = noCommand(cmd, cmd.Flags().Args()); a.unknown == nil {
			help(cmd, args)
		}
	})
	return root
}

// ownOutput annotates a command whose output has a form of its own, and says
// which.
const ownOutput = "own_output"

func (a *app) configure(cmd *cobra.Command) error {
	var err error
	if a.settings, err = loadSettings(&a.flags); err != nil {
		return err
	}
	if a.settings.fault != "" && cmd.Name() != "config" { // which shows it
		a.say("%s is left out: it %s", dotEnvFile, a.settings.fault)
	}
	if a.settings.withheld != "" {
		a.say("%s", a.settings.withheld)
	}
	if why := cmd.Annotations[ownOutput]; why != "" && cmd.Flags().Changed("output") {
		return usage("--output has no use here: %s", why)
	}
	return oneOf("output", a.flags.output)
}

func (a *app) logger() *slog.Logger {
	level := slog.LevelWarn
	if a.flags.verbose {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: level}))
}

// actorFlags add who acts. Outside any it is this user.
func (a *app) actorFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&a.flags.actor.ID, "agent", "", "`id` of the agent for whom this is done")
	flags.StringVar(&a.flags.actor.Thread, "thread", "", "`id` of the thread that it belongs to")
	flags.StringVar(&a.flags.actor.Run, "run-id", "", "`id` of the agent run that it belongs to")
}

// asActor opens the scope of who acts.
func (a *app) asActor(ctx context.Context) context.Context {
	actor := a.flags.actor
	if actor.ID == "" {
		actor.Type = history.User
		if actor.ID = os.Getenv("USER"); actor.ID == "" {
			actor.ID = "root"
		}
	}
	return glassbox.WithActor(ctx, actor)
}

// close ends what this process served, after the last of its answer is out.
func (a *app) close(ctx context.Context) error {
	return errors.Join(a.page.flush(), a.leave(ctx))
}

func (a *app) leave(ctx context.Context) error {
	a.mu.Lock()
	a.closing = true
	for _, stop := range a.closers {
		stop()
	}
	a.mu.Unlock()
	a.watching.Wait()
	if o := a.owned(); o != nil {
		return o.close(ctx)
	}
	return nil
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.print(map[string]string{"version": version.String()}, func(t *table) { t.line(version.String()) })
		},
	}
}
