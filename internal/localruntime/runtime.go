package localruntime

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/glassboxhq/glassbox/internal/localruntime/gvisor"
	"github.com/glassboxhq/glassbox/internal/localruntime/image"
	"github.com/glassboxhq/glassbox/internal/localruntime/lifecycle"
	"github.com/glassboxhq/glassbox/internal/owner"
	"github.com/glassboxhq/glassbox/sandbox"
)

// Runtime runs the sandboxes of one state folder. Its methods may be called
// from any goroutine; they wait until [Runtime.Run] has taken up what was left.
type Runtime struct {
	opts    *Options
	lock    *os.File
	images  *image.Store
	engines map[string]engine // by image

	ready   chan struct{} // closed by Run when the sandboxes are taken up
	done    chan struct{} // closed when Run has ended
	started chan *box     // new sandboxes, for Run to serve
	jobs    chan func(context.Context)
	once    sync.Once // gives the lock back

	mu        sync.Mutex
	running   bool
	boxes     map[string]*box
	snapshots map[string]*snapshot
	copies    map[string]recorderCopy
	listen    string
	answers   map[string]http.Handler // at the state socket, by path
	door      *door                   // from the beginning of Run
	hereOne   bool                    // a sandbox without isolation exists or is being made
}

// New takes the lock of the state folder. It starts nothing; Run does.
func New(opts *Options) (*Runtime, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	for _, name := range []*string{&opts.Runsc, &opts.Recorder, &opts.Self} {
		if *name == "" {
			continue // not found; said when it is needed
		}
		if *name, err = filepath.Abs(*name); err != nil {
			return nil, fmt.Errorf("find program: %w", err)
		}
	}
	if opts.StateDir, err = openFolder(opts.StateDir); err != nil {
		return nil, err
	}
	lock, err := takeLock(opts.StateDir)
	if err != nil {
		return nil, err
	}
	rt := &Runtime{
		opts: opts, lock: lock,
		engines: map[string]engine{
			ImageHost: &isolated{&gvisor.Engine{Runsc: opts.Runsc, Self: opts.Self, SelfArgs: opts.SelfArgs}},
			ImageHere: here{},
		},
		ready: make(chan struct{}), done: make(chan struct{}), started: make(chan *box), jobs: make(chan func(context.Context)),
		boxes: map[string]*box{}, snapshots: map[string]*snapshot{}, copies: map[string]recorderCopy{}, answers: map[string]http.Handler{},
	}
	rt.images, err = image.Open(filepath.Join(opts.StateDir, "images"), &image.Options{
		Points: guestPoints(), Hostname: guestHostname, InUse: rt.usersOf, Logger: opts.Logger, Now: opts.Now,
	})
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return rt, nil
}

// Close gives the state folder back. It is for a runtime whose Run was never
// called; Run does it by itself.
func (rt *Runtime) Close() error {
	var err error
	rt.once.Do(func() { err = rt.lock.Close() })
	return err
}

// Run takes up the sandboxes of the state folder and serves them until ctx
// ends. They go on without it.
func (rt *Runtime) Run(ctx context.Context) error {
	rt.mu.Lock()
	again := rt.running
	rt.running = true
	rt.mu.Unlock()
	if again {
		return errors.New("run local runtime: it was run already")
	}
	defer rt.Close()
	defer close(rt.done)
	defer rt.images.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var serving sync.WaitGroup
	defer serving.Wait()
	defer cancel()
	// Who finds the lock taken finds the socket soon; requests there wait until
	// the sandboxes are taken up.
	door, err := openDoor(owner.Socket(rt.opts.StateDir))
	if err != nil {
		return err
	}
	rt.mu.Lock()
	rt.door = door
	rt.mu.Unlock()
	serving.Go(func() { rt.serveState(ctx) })
	rt.takeUpSnapshots(ctx)
	for _, b := range rt.takeUp(ctx) {
		serving.Go(func() { b.serve(ctx) })
	}
	serving.Go(func() { rt.purgeLoop(ctx) })
	close(rt.ready)
	for {
		select {
		case <-ctx.Done():
			return nil
		case b := <-rt.started:
			serving.Go(func() { b.serve(ctx) })
		case job := <-rt.jobs:
			serving.Go(func() { job(ctx) })
		}
	}
}

// now is the time as records tell it.
func (rt *Runtime) now() time.Time { return rt.opts.Now().UTC().Truncate(time.Microsecond) }

// wait waits until sandboxes can be worked with.
func (rt *Runtime) wait(ctx context.Context) error {
	select {
	case <-rt.done:
		return errStopped()
	default:
	}
	select {
	case <-rt.ready:
		return nil
	case <-rt.done:
		return errStopped()
	case <-ctx.Done():
		return sandbox.FromContext(ctx, "wait for the local runtime")
	}
}

func errStopped() error {
	return &sandbox.Error{Op: "use local runtime", Code: sandbox.CodeUnavailable, Message: "the server is stopping"}
}

// find returns a sandbox that was not deleted.
func (rt *Runtime) find(ctx context.Context, id string) (*box, error) {
	if err := rt.wait(ctx); err != nil {
		return nil, err
	}
	rt.mu.Lock()
	defer rt.mu.Unlock()
	b, ok := rt.boxes[id]
	if !ok {
		return nil, &sandbox.Error{
			Op: "find sandbox", Sandbox: clip(id), Code: sandbox.CodeSandboxNotFound,
			Message: "there is no sandbox " + clip(id) + "; it was deleted, has expired, or never was",
		}
	}
	return b, nil
}

// Get describes a sandbox.
func (rt *Runtime) Get(ctx context.Context, id string) (*sandbox.Info, error) {
	b, err := rt.find(ctx, id)
	if err != nil {
		return nil, err
	}
	return b.info(), nil
}

// List describes all sandboxes, the newest first.
func (rt *Runtime) List(ctx context.Context) ([]*sandbox.Info, error) {
	if err := rt.wait(ctx); err != nil {
		return nil, err
	}
	rt.mu.Lock()
	list := make([]*sandbox.Info, 0, len(rt.boxes))
	for _, b := range rt.boxes {
		list = append(list, b.info())
	}
	rt.mu.Unlock()
	slices.SortFunc(list, func(a, b *sandbox.Info) int { return b.CreatedAt.Compare(a.CreatedAt) })
	return list, nil
}

// Access is what opens a sandbox's recorder. It is a secret.
type Access = lifecycle.Access

// Access returns the tokens of a sandbox.
func (rt *Runtime) Access(ctx context.Context, id string) (Access, error) {
	b, err := rt.find(ctx, id)
	if err != nil {
		return Access{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return Access{Token: b.rec.Token, ExecdToken: b.rec.ExecdToken}, nil
}

// Spec returns what a sandbox was created from, without its environment.
func (rt *Runtime) Spec(ctx context.Context, id string) (*sandbox.Spec, error) {
	b, err := rt.find(ctx, id)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	spec := b.rec.Spec
	return &spec, nil
}
