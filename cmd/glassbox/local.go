package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/glassboxhq/glassbox"
	"github.com/glassboxhq/glassbox/internal/localruntime"
	"github.com/glassboxhq/glassbox/internal/program"
	"github.com/glassboxhq/glassbox/internal/version"
	"github.com/glassboxhq/glassbox/sandbox"
)

// ownRuntime is the local runtime in this process, which holds its state folder.
type ownRuntime struct {
	rt    *localruntime.Runtime
	stop  context.CancelFunc
	ended chan struct{}
	// before holds the sandboxes that were there: they go on without a server.
	before map[string]bool
	err    error
}

// service returns the URL to work on. Without one given, that is the local
// runtime of this machine: whoever owns it serves it, and if nobody does, this
// process does until it ends.
func (a *app) service(ctx context.Context) (string, error) {
	if a.settings.url != "" {
		return a.settings.url, nil
	}
	return glassbox.Local, a.takeOver(ctx)
}

// runtimeOptions finds the programs that sandboxes need. They are built if they
// are not at hand only where a sandbox is to be made.
func (a *app) runtimeOptions(ctx context.Context) (*localruntime.Options, error) {
	find := func(p *program.Program, needed bool) (string, error) {
		path, err := p.Look()
		switch {
		case err == nil:
			return path, nil
		case !needed:
			return "", nil
		}
		return p.Find(ctx, func(what string) { a.say("%s", what) })
	}
	recorder, err := find(program.Recorder(), a.making)
	if err != nil {
		return nil, err
	}
	runsc, err := find(program.Runsc(), a.making && !a.flags.here)
	if err != nil {
		return nil, err
	}
	return &localruntime.Options{
		StateDir: a.settings.stateDir, Runsc: runsc, Recorder: recorder, SelfArgs: []string{launchArg},
		Version: version.String(), Here: true, Logger: a.logger(),
		ImageAliases:   a.settings.aliases,
		DefaultTimeout: a.life,
	}, nil
}

// own makes this process the owner of the state folder.
func (a *app) own(ctx context.Context) error {
	opts, err := a.runtimeOptions(ctx)
	if err != nil {
		return err
	}
	seen := newConnections(opts.Logger)
	opts.OnConnect = seen.note
	if !a.stays {
		opts.HandOver = a.handOver
	}
	rt, err := localruntime.New(opts)
	if err != nil {
		return err
	}
	seen.rt = rt
	// It ends by close, after what this process did has been cleaned up.
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	o := &ownRuntime{rt: rt, stop: stop, ended: make(chan struct{}), before: map[string]bool{}}
	go func() {
		defer close(o.ended)
		var recording sync.WaitGroup
		recording.Go(func() { seen.run(running) })
		o.err = rt.Run(running)
		recording.Wait()
	}()
	list, err := rt.List(ctx) // waits until it serves
	if err != nil {
		return errors.Join(err, o.close(ctx))
	}
	for _, info := range list {
		o.before[info.ID] = true
	}
	a.mu.Lock()
	a.owner = o
	a.mu.Unlock()
	return nil
}

// owned returns the runtime that this process serves, or nil.
func (a *app) owned() *ownRuntime {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.owner
}

// drainTimeout is for requests that are under way when the owner ends. Streams
// go on with who takes its place.
const drainTimeout = 2 * time.Second

// close stops serving. Sandboxes go on.
func (o *ownRuntime) close(ctx context.Context) error {
	draining, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	_ = o.rt.Drain(draining) // who is still there finds the next owner
	o.stop()
	<-o.ended
	return o.err
}

const (
	guestsEvery = 50 * time.Millisecond
	guestsSoon  = 500 * time.Millisecond // who is just leaving is not told of
)

// serveGuests goes on serving while other programs work with what this one
// serves, and while the sandboxes that they made run. The one called ours is
// not theirs.
func (a *app) serveGuests(ctx context.Context, ours string) error {
	o := a.owned()
	if o == nil {
		return nil
	}
	for began, told := time.Now(), false; ; {
		list, err := o.rt.List(ctx)
		if err != nil {
			return nil // told to end
		}
		guests := 0
		for _, info := range list {
			if info.ID != ours && !o.before[info.ID] && (info.State == sandbox.Running || info.State == sandbox.Pending) {
				guests++
			}
		}
		if guests == 0 && o.rt.Leases() == 0 {
			return nil
		}
		if !told && time.Since(began) > guestsSoon {
			told = true
			a.say("still serving other programs on this machine; Ctrl-C ends this, and their sandboxes go on")
		}
		select {
		case <-time.After(guestsEvery):
		case <-ctx.Done():
			return nil
		}
	}
}

// options are those of the SDK.
func (a *app) options() *glassbox.Options {
	return &glassbox.Options{APIKey: a.settings.apiKey, StateDir: a.settings.stateDir, Logger: a.logger()}
}

// find resolves what a person calls a sandbox: its id, the beginning of one,
// or a name that only one has.
func (a *app) find(ctx context.Context, url, word string) (*glassbox.Info, error) {
	list, err := glassbox.List(ctx, url, a.options())
	if err != nil {
		return nil, err
	}
	names := make([]known, len(list))
	for i, info := range list {
		names[i] = known{info.ID, info.Name, info.State, info.CreatedAt}
	}
	i, err := pick(word, names)
	if errors.Is(err, sandbox.ErrNotFound) {
		return nil, a.notThere(ctx, url, word)
	}
	if err != nil {
		return nil, err
	}
	return list[i], nil
}

// notThere tells where to look for a sandbox that is not there: its history
// may be kept.
func (a *app) notThere(ctx context.Context, url, word string) error {
	hint := "glassbox sandbox list shows what there is"
	if list, err := a.histories(ctx, url); err == nil {
		if i, err := pick(word, knownOf(list)); err == nil {
			hint = "it was deleted or has ended, and its history is kept: glassbox history show " + list[i].ID
		} else if !errors.Is(err, sandbox.ErrNotFound) {
			hint = "some of that name were deleted or have ended, and their histories are kept: glassbox history list"
		}
	}
	return noneCalled(word, hint)
}

func noneCalled(word, hint string) error {
	return &sandbox.Error{Op: "find sandbox", Code: sandbox.CodeSandboxNotFound, Message: fmt.Sprintf("none is called %q; %s", word, hint)}
}

type known struct {
	id, name string
	state    sandbox.State
	created  time.Time
}

// ended reports whether a sandbox is gone for good.
func (k known) ended() bool { return k.state == sandbox.Terminated || k.state == sandbox.Failed }

// pick finds the one that is meant, or lists those that may be. Of several that
// fit, the only one that lives is meant.
func pick(word string, list []known) (int, error) {
	var found, living []int
	for i, k := range list {
		switch {
		case k.id == word:
			return i, nil
		case k.name == word || len(word) >= 4 && len(word) < len(k.id) && k.id[:len(word)] == word:
			if found = append(found, i); !k.ended() {
				living = append(living, i)
			}
		}
	}
	if len(living) == 1 {
		return living[0], nil
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return 0, noneCalled(word, "glassbox sandbox list and glassbox history list show what there is")
	}
	var ids strings.Builder
	for _, i := range found {
		k := list[i]
		fmt.Fprintf(&ids, "\n  %s  %-10s  %s  %s", k.id, k.state, moment(k.created), plain(k.name))
	}
	return 0, &sandbox.Error{
		Code: sandbox.CodeInvalid, Field: "sandbox",
		Message: fmt.Sprintf("%q may be any of these; give an id, or the beginning of one:%s", word, ids.String()),
	}
}
