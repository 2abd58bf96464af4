package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/glassboxhq/glassbox"
	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/console/door"
	"github.com/glassboxhq/glassbox/internal/localruntime"
	"github.com/glassboxhq/glassbox/sandbox"
)

const listenHost = "127.0.0.1"

func (a *app) serveCommand() *cobra.Command {
	var port int
	var sample bool
	var aliases []string
	var how serving
	cmd := &cobra.Command{
		Use: "serve", Short: "Serve sandboxes on this machine, and the console to look at them", Args: cobra.NoArgs,
		Long: `Serve offers the OpenSandbox lifecycle API on the loopback address, and keeps
the sandboxes of this machine. Sandboxes go on when it ends, and are found
again when it is started. Other programs need the API key, which
"glassbox config get local.api_key" prints; the SDK and this program, run by
the same user, need none.

It prints a link that signs in to the console, where sandboxes are listed with
all that was done in them; glassbox login-link prints another one.

Many clients ask for an image by name. --image-alias python:3.12=host gives who
asks for python:3.12 this machine's programs instead, and says so in a warning;
'*=host' does for every image that this machine does not have.`,
		Example: `  glassbox serve
  glassbox serve --port 8080
  glassbox serve --image-alias python:3.12=host
  GLASSBOX_CONNECTION_LAB_KEY_FILE=key.txt glassbox serve --connect lab=https://sandboxes.example`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("port") {
				if port < 0 || port > 65535 {
					return usage("--port must be from 0 (any free one) to 65535")
				}
				a.settings.port = port
			}
			if cmd.Flags().Changed("image-alias") {
				var err error
				if a.settings.aliases, err = parseAliases(aliases); err != nil {
					return &usageError{err}
				}
			}
			if err := a.settings.fill(cmd.Flags()); err != nil {
				return err
			}
			if how.life != 0 && how.life < time.Minute || how.life == 0 && cmd.Flags().Changed("default-timeout") {
				return usage("--default-timeout must be at least a minute")
			}
			a.life = how.life
			err := a.serve(cmd.Context(), &how, sample)
			if cmd.Context().Err() != nil && errors.Is(err, context.Canceled) {
				return nil // it was ended while it started
			}
			return err
		},
	}
	cmd.Flags().IntVar(&port, "port", defaultPort, "port to listen at on 127.0.0.1 (GLASSBOX_PORT)")
	cmd.Flags().BoolVar(&sample, "sample", false, "record a sample run and show it, if none is kept yet")
	cmd.Flags().StringArrayVar(&aliases, "image-alias", nil, "give another image to who asks for one, as `IMAGE=host`; may be given again (GLASSBOX_IMAGE_ALIAS)")
	how.flags(cmd.Flags())
	cmd.Flags().BoolVar(&a.flags.here, "here", false, "also allow sandboxes on this very machine, without isolation")
	return cmd
}

func (a *app) serve(ctx context.Context, how *serving, sample bool) (err error) {
	if a.settings.url != "" {
		return usage("serve works on this machine; leave the url out (it comes from %s)", a.settings.values["url"].origin)
	}
	services, err := a.settings.configured()
	if err != nil {
		return err
	}
	key, err := a.settings.localKey()
	if err != nil {
		return err
	}
	reach, err := how.reach(a.settings.port)
	if err != nil {
		return err
	}
	listener, err := reach.open(ctx)
	if err != nil {
		return err
	}
	defer listener.Close()
	a.making = true
	if err := a.ownForGood(ctx); err != nil {
		return err
	}
	a.owned().rt.SetListen(listener.Addr().String())
	console, err := a.newConsole(ctx, how, reach, listener, string(key))
	if err != nil {
		return err
	}
	sweeping, stop := context.WithCancel(ctx)
	defer func() {
		stop()
		err = errors.Join(err, console.close())
	}()
	if err := console.connectAll(ctx, services); err != nil {
		return err
	}
	console.run(sweeping, a)
	server := &http.Server{
		Handler: console.handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(a.logger().Handler(), slog.LevelDebug),
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	if sample {
		if err := a.sampleOnce(ctx); err != nil {
			a.say("the sample run did not work: %v", err)
		}
	}
	a.say("serving OpenSandbox at %s; Ctrl-C ends it, sandboxes go on", console.base)
	a.say("key for other clients: glassbox config get local.api_key%s", a.stateFlag())
	a.sayLink(ctx, console)
	select {
	case err := <-ended:
		return err
	case <-a.owned().ended:
		return errors.Join(errors.New("the local runtime has ended"), a.owned().err)
	case <-ctx.Done():
	}
	return shutDown(ctx, server)
}

func (a *app) sayLink(ctx context.Context, console *console) {
	link, err := console.newLink(ctx, door.FirstUser)
	if err != nil {
		a.say("no sign-in link could be made: %v", err) // it may have been given another name
	} else {
		a.say("console, for 15 minutes and one browser; glassbox login-link%s prints a new one:", a.stateFlag())
		a.say("  %s", link.URL)
	}
}

func shutDown(ctx context.Context, server *http.Server) error {
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	if err := server.Shutdown(closing); err != nil {
		return errors.Join(server.Close()) // streams that are open end now
	}
	return nil
}

// stateFlag is what a call needs to find the same state folder.
func (a *app) stateFlag() string {
	if a.flags.stateDir == "" {
		return ""
	}
	return " --state-dir " + sandbox.Join([]string{a.settings.stateDir})
}

const shutdownTimeout = 2 * time.Second

// sampleName is the name of the sandbox in which the sample is recorded.
const sampleName = "sample"

// sampleOnce records a sample run if none is kept yet, and shows it.
func (a *app) sampleOnce(ctx context.Context) error {
	list, err := a.localHistories(ctx)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(list, func(ref *localruntime.History) bool { return ref.Name == sampleName && holds(ref) })
	if at >= 0 {
		a.say("a sample was recorded before; it is shown by: glassbox history show %s%s", list[at].ID, a.stateFlag())
		return nil
	}
	opts := a.options()
	opts.Name = sampleName
	if a.flags.here {
		dir, err := os.MkdirTemp("", "glassbox-sample-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		opts.Image, opts.Workdir = "here", dir
	}
	acting := glassbox.WithActor(ctx, sampleActor())
	box, err := glassbox.Create(acting, glassbox.Local, opts)
	if err != nil {
		return err
	}
	err = errors.Join(runSample(acting, box), box.Close(acting))
	if err != nil {
		return err
	}
	h, _, err := a.choose(ctx, box.ID())
	if err != nil {
		return err
	}
	err = errors.Join(a.showTimeline(ctx, h, history.Filter{}), h.close())
	fmt.Fprintln(a.page)
	return errors.Join(err, a.page.flush())
}
