package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/glassboxhq/glassbox"
	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/sandbox"
)

func (a *app) terminalCommand() *cobra.Command {
	var c commandFlags
	var attach string
	var watch, take bool
	cmd := &cobra.Command{
		Use:   "terminal [flags] SANDBOX [-- PROGRAM [ARGUMENT...]]",
		Short: "Open a terminal in a sandbox, which stays when you go, or come back to one",
		Long: `Terminal opens a terminal in a sandbox, with a shell or a program of your own, and
records what it shows. It goes on when you leave it, or lose the connection:
--attach brings you back to it, shows the last of what it showed, and goes on.
Many may be attached to a terminal; one types at a time.

At the beginning of a line:  ~.  leaves   ~t  takes the keyboard   ~~  is a ~
Who only watches leaves by Ctrl-C, too.`,
		Example: `  glassbox terminal research
  glassbox terminal research -- top
  glassbox terminal research --attach 01a2297b-622b-71b0-9a0c-eff735886781
  glassbox terminal research --attach 01a2297b-622b-71b0-9a0c-eff735886781 --watch
  glassbox history export 01a2297b-622b-71b0-9a0c-eff735886781 --format asciicast > session.cast`,
		Annotations: map[string]string{passesCode: "yes", ownOutput: "what the terminal shows is passed on as it is"},
		Args:        cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch again := cmd.Flags().Changed("attach"); {
			case again && attach == "":
				return usage("--attach needs the id of a terminal's operation, or its beginning; history show --type terminal.session tells it")
			case again && (len(args) > 1 || c.line != ""):
				return usage("--attach goes on with what runs, so it takes no program")
			case watch && !again:
				return usage("--watch needs --attach")
			}
			ctx := a.asActor(cmd.Context())
			box, err := a.connect(ctx, args[0])
			if err != nil {
				return err
			}
			s := &seat{app: a, box: box, watch: watch, take: take, stays: true}
			p, err := a.openTerminal(ctx, box, &c, attach, args[1:])
			if err == nil {
				err = s.sit(ctx, p)
			}
			return errors.Join(err, box.Close(ctx))
		},
	}
	c.addWhere(cmd)
	a.actorFlags(cmd)
	cmd.Flags().StringVar(&attach, "attach", "", "`id` of the terminal's operation to come back to, or its beginning")
	cmd.Flags().BoolVar(&watch, "watch", false, "look on, and type nothing")
	cmd.Flags().BoolVar(&take, "take", false, "take the keyboard from who types")
	return cmd
}

// shownBefore is how much of what a terminal showed is shown to who comes back.
const shownBefore = 64 << 10

func (a *app) openTerminal(ctx context.Context, box *glassbox.Sandbox, c *commandFlags, attach string, args []string) (sandbox.Process, error) {
	if attach != "" {
		id, err := terminalID(ctx, box, attach)
		if err != nil {
			return nil, err
		}
		return box.Attach(ctx, id, glassbox.Offsets{Stdout: -shownBefore})
	}
	command, err := c.terminal(a, args)
	if err != nil {
		return nil, err
	}
	command.StdinPipe, command.Detached = true, true
	return box.Start(ctx, "", command)
}

// terminalID finds the terminal of a sandbox whose operation's id begins so.
func terminalID(ctx context.Context, box *glassbox.Sandbox, word string) (string, error) {
	if len(word) < minPrefix {
		return "", usage("--attach takes the id of a terminal, or its first %d characters or more, not %q", minPrefix, word)
	}
	if !isPrefix(word) {
		return word, nil // whole, or none; that is told when it is looked for
	}
	found := beginning{word: word}
	h := &opened{Reader: box.History()}
	err := h.operations(ctx, history.Filter{Types: []string{history.TerminalSession}}, found.look)
	if err != nil {
		return "", err
	}
	return found.pick("glassbox history show " + box.ID() + " --type " + history.TerminalSession + " shows what there is")
}

// sitIn runs a command on a terminal that ends when the person goes.
func (a *app) sitIn(ctx context.Context, box *glassbox.Sandbox, command *glassbox.Command, input bool) error {
	command.StdinPipe = input
	p, err := box.Start(ctx, "", command)
	if err != nil {
		return err
	}
	s := &seat{app: a, box: box, watch: !input}
	return s.sit(ctx, p)
}

// terminal is command for one that runs on a terminal of this one's size.
func (f *commandFlags) terminal(a *app, args []string) (*glassbox.Command, error) {
	env, err := parseEnv(f.env)
	if err != nil {
		return nil, err
	}
	if name := os.Getenv("TERM"); name != "" && env["TERM"] == "" {
		env["TERM"] = name
	}
	cmd := &glassbox.Command{Line: f.line, Args: args, Env: env, Dir: f.dir, Timeout: f.timeout, Terminal: a.terminalSize()}
	return cmd, cmd.Validate()
}

// terminalSize is the size of this terminal, or the usual one.
func (a *app) terminalSize() *glassbox.TerminalSize {
	size := &glassbox.TerminalSize{Columns: 80, Rows: 24}
	if f, ok := a.out.(*os.File); ok {
		if columns, rows, err := term.GetSize(int(f.Fd())); err == nil && columns > 0 && rows > 0 {
			size.Columns, size.Rows = uint16(min(columns, 10_000)), uint16(min(rows, 10_000))
		}
	}
	return size
}

// seat is a person at a terminal of a sandbox.
type seat struct {
	app   *app
	box   *glassbox.Sandbox
	watch bool // types nothing
	take  bool // takes the keyboard first
	stays bool // the terminal goes on when the person leaves

	told sync.Once
	left chan struct{} // closed when the person leaves
}

// sit connects this terminal with that of the sandbox, until that one ends or
// the person leaves.
func (s *seat) sit(ctx context.Context, p sandbox.Process) error {
	defer p.Close()
	t, ok := p.(sandbox.Terminal)
	if !ok {
		return &sandbox.Error{Op: "open terminal", Code: sandbox.CodeUnsupported}
	}
	restore, err := s.raw()
	if err != nil {
		return err
	}
	defer restore()
	s.left = make(chan struct{})
	if s.take {
		if err := t.Take(ctx); err != nil {
			return err
		}
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	var behind sync.WaitGroup
	go s.listen(t) // a read of a terminal cannot be ended
	if !s.watch {
		behind.Go(func() { s.follow(watching, t) })
	}
	go func() {
		select {
		case <-s.left:
			stop()
		case <-watching.Done():
		}
	}()
	err = s.show(watching, p)
	left := watching.Err() != nil && ctx.Err() == nil
	stop()
	behind.Wait()
	restore()
	if left {
		return s.leave(ctx, p)
	}
	switch {
	case ctx.Err() != nil:
		return exitCode(interruptCode)
	case err != nil:
		return err
	}
	res, err := p.Wait(ctx)
	if err != nil {
		return err
	}
	return s.app.endOf(s.box, res)
}

// leave says what becomes of a terminal that a person leaves.
func (s *seat) leave(ctx context.Context, p sandbox.Process) error {
	switch {
	case !s.stays:
		return errors.Join(exitCode(interruptCode), p.Stop(ctx))
	case !s.watch:
		s.app.say("the terminal goes on; come back with glassbox terminal %s --attach %s", s.box.ID(), p.ID())
	}
	return nil
}

// raw hands every key to us: to a shell of this machine would go what is typed
// for the sandbox, and what this terminal answers to a program there.
func (s *seat) raw() (restore func(), err error) {
	f, ok := s.app.in.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return func() {}, nil
	}
	before, err := term.MakeRaw(int(f.Fd()))
	if err != nil {
		return nil, err
	}
	return sync.OnceFunc(func() { _ = term.Restore(int(f.Fd()), before) }), nil
}

// show passes on what the terminal shows.
func (s *seat) show(ctx context.Context, p sandbox.Process) error {
	for {
		c, err := p.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if _, err := s.app.out.Write(c.Data); err != nil {
			return err
		}
	}
}

// follow gives the terminal the size of this one, as it changes.
func (s *seat) follow(ctx context.Context, t sandbox.Terminal) {
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, syscall.SIGWINCH)
	defer signal.Stop(changed)
	if f, ok := s.app.out.(*os.File); !ok || !term.IsTerminal(int(f.Fd())) {
		return
	}
	for {
		_ = t.Resize(ctx, *s.app.terminalSize()) // whoever has the keyboard has the say
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// listen sends keys, and reads what is meant for us.
func (s *seat) listen(t sandbox.Terminal) {
	keys := &escapes{fresh: true}
	buf := make([]byte, 4<<10)
	for {
		n, err := s.app.in.Read(buf)
		text, asked := keys.read(buf[:n])
		if len(text) > 0 && !s.watch {
			s.send(t, text)
		}
		switch {
		case s.watch && asked != '.' && !bytes.Contains(text, []byte(ctrlC)):
			if err != nil {
				return
			}
		case asked == 't':
			if err := t.Take(context.Background()); err != nil {
				s.say("the keyboard cannot be taken: " + err.Error())
			}
		case asked == '.', s.watch, err != nil && s.stays:
			close(s.left)
			return
		case err != nil:
			_ = t.Stdin().Close() // it may have ended
			return
		}
	}
}

// ctrlC leaves a terminal at which nothing is typed.
const ctrlC = "\x03"

func (s *seat) send(t sandbox.Terminal, text []byte) {
	_, err := t.Stdin().Write(text)
	if errors.Is(err, sandbox.ErrConflict) {
		s.told.Do(func() { s.say("another types; ~t at the beginning of a line takes the keyboard") })
	}
}

// say tells something in between what the terminal shows.
func (s *seat) say(text string) {
	_, _ = io.WriteString(s.app.err, "\r\nglassbox: "+plain(text)+"\r\n")
}

// escapes finds what is typed for us: ~ and a letter at the beginning of a line.
type escapes struct {
	fresh  bool // at the beginning of a line
	marked bool // a ~ was typed there
}

// read takes what was typed, up to and with the first thing that is for us, and
// returns what is for the terminal.
func (e *escapes) read(typed []byte) (text []byte, asked byte) {
	for _, key := range typed {
		switch {
		case e.marked && (key == '.' || key == 't'):
			e.marked, e.fresh = false, true
			asked = key
			continue
		case e.marked:
			e.marked = false
			if key != '~' {
				text = append(text, '~')
			}
		case e.fresh && key == '~':
			e.marked = true
			continue
		}
		text = append(text, key)
		e.fresh = key == '\r' || key == '\n'
	}
	return text, asked
}
