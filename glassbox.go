// Package glassbox runs an AI agent's work in a sandbox and keeps an exact
// record of it.
//
//	ctx = glassbox.WithActor(ctx, glassbox.Actor{ID: "research-agent", Thread: "thread-1", Run: "run-1"})
//	box, err := glassbox.Create(ctx, "http://localhost:7717", &glassbox.Options{Name: "research-workspace"})
//	if err != nil {
//		return err
//	}
//	defer box.Close(ctx) // deletes the sandbox; Cleanup: glassbox.Never keeps it
//	res, err := box.Run(ctx, "python3 --version", nil)
//	if err != nil {
//		return err
//	}
//	fmt.Println(string(res.Stdout), res.ExitCode)
//
// Open the scope of the actor first: what is done outside one, as the creation,
// is recorded without its name.
//
// The URL is the root of an OpenSandbox service: a real one, or our own local
// runtime as `glassbox serve` starts it. A [Sandbox] may be used by many
// goroutines at once. Errors are [*Error]; ask for their kind with errors.Is.
package glassbox

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/owner"
	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/sandbox"
	"github.com/glassboxhq/glassbox/sandbox/opensandbox"
	"github.com/glassboxhq/glassbox/sandbox/recorded"
)

// Create makes a sandbox on a service and waits until it answers.
func Create(ctx context.Context, url string, o *Options) (*Sandbox, error) {
	if err := validateCreate(url, o); err != nil {
		return nil, err
	}
	s, err := dial(ctx, url, o)
	if err != nil {
		return nil, err
	}
	spec := s.spec()
	s.hold(ctx)
	entry, err := s.outbox.begin(ctx, s.opts.Source, history.SandboxCreate, "", createRequest(spec))
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	info, err := s.provider.Create(wire.WithRecorded(ctx, entry.Operation.ID), spec)
	if err != nil {
		return nil, errors.Join(err, entry.failed(err), s.close())
	}
	box, err := s.ready(ctx, info)
	if err != nil {
		// Nobody has its id but this call.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.opts.RequestTimeout)
		defer cancel()
		return nil, errors.Join(err, s.provider.Delete(ctx, info.ID), entry.failed(err), s.close())
	}
	box.created = true
	s.keeper.start(ctx, box)
	if err := entry.done(ctx, box); err != nil {
		return nil, errors.Join(err, box.Close(ctx))
	}
	return box, nil
}

// Connect opens a sandbox that exists. Close leaves it as it is.
func Connect(ctx context.Context, url, id string, o *Options) (*Sandbox, error) {
	s, err := dial(ctx, url, o)
	if err != nil {
		return nil, err
	}
	s.hold(ctx)
	info, err := s.provider.Get(ctx, id)
	if err == nil && info.State != sandbox.Running {
		err = resting(info)
	}
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	box, err := s.ready(ctx, info)
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	s.keeper.start(ctx, box)
	return box, s.outbox.deliver(ctx, box)
}

// Get describes a sandbox.
func Get(ctx context.Context, url, id string, o *Options) (*Info, error) {
	s, err := dial(ctx, url, o)
	if err != nil {
		return nil, err
	}
	defer s.close()
	return s.provider.Get(ctx, id)
}

// List describes every sandbox of a service, newest first.
func List(ctx context.Context, url string, o *Options) ([]*Info, error) {
	s, err := dial(ctx, url, o)
	if err != nil {
		return nil, err
	}
	defer s.close()
	return s.provider.List(ctx)
}

// Delete deletes a sandbox.
func Delete(ctx context.Context, url, id string, o *Options) error {
	s, err := dial(ctx, url, o)
	if err != nil {
		return err
	}
	return errors.Join(s.delete(ctx, id), s.close())
}

// delete deletes a sandbox and records that.
func (s *service) delete(ctx context.Context, id string) error {
	entry, err := s.outbox.begin(ctx, s.opts.Source, history.SandboxDelete, id, history.EncodeRequest(map[string]any{"sandbox_id": id}))
	if err != nil { // what cannot be recorded is deleted all the same: it may be the way out
		return errors.Join(s.provider.Delete(ctx, id), err)
	}
	deleteErr := s.provider.Delete(wire.WithRecorded(ctx, entry.Operation.ID), id)
	return errors.Join(deleteErr, entry.ended(nil, deleteErr))
}

// service is a connection to an OpenSandbox service.
type service struct {
	provider *opensandbox.Provider
	opts     *Options
	local    bool         // our own local runtime
	lease    *owner.Lease // nil: none is held
	outbox   *outbox
	keeper   *keeper // nil: nothing is renewed
}

// hold asks the owner of a local runtime to stay until close, for longer than
// the call that asks. Without its promise, requests tell what is wrong.
func (s *service) hold(ctx context.Context) {
	if s.local {
		s.lease, _ = owner.Take(context.WithoutCancel(ctx), s.opts.StateDir)
	}
}

func (s *service) close() (err error) {
	if s.lease != nil {
		err = s.lease.Close()
	}
	return errors.Join(err, s.provider.Close())
}

func (s *service) spec() *sandbox.Spec {
	spec := &sandbox.Spec{
		Image: s.opts.Image, Snapshot: s.opts.Snapshot, Name: s.opts.Name, Env: s.opts.Env, Metadata: s.opts.Metadata, Timeout: s.opts.life(),
		Limits: s.opts.Limits, Network: s.opts.Network, Workdir: s.opts.Workdir, History: string(s.opts.HistoryMode),
		Concurrency:   s.opts.Concurrency,
		NoFileChanges: s.opts.NoFileChanges,
	}
	if s.opts.History != nil {
		config, err := json.Marshal(s.opts.History)
		if err != nil {
			panic(err) // plain values only
		}
		spec.HistoryConfig = config
	}
	if spec.Snapshot != "" {
		return spec // which brings them
	}
	if spec.Workdir == "" {
		spec.Workdir = wire.DefaultWorkdir
	}
	if spec.Image == "" {
		if spec.Image = "python:3.12"; s.local {
			spec.Image = "host"
		}
	}
	return spec
}

// ready waits until a sandbox answers.
func (s *service) ready(ctx context.Context, info *sandbox.Info) (*Sandbox, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.opts.ReadyTimeout, &sandbox.Error{
		Op: "wait for sandbox", Code: sandbox.CodeTimeout, Sandbox: info.ID,
		Message: "it did not answer within " + s.opts.ReadyTimeout.String() + "; if the service runs elsewhere, see that its proxy is used and its host_ip is right",
	})
	defer cancel()
	for wait := readyMin; ; wait = min(2*wait, readyMax) {
		session, err := s.provider.Open(ctx, info.ID)
		if err == nil {
			return &Sandbox{service: s, info: info, session: session.(*recorded.Session)}, nil
		}
		if e, ok := errors.AsType[*sandbox.Error](err); ok && !e.Retryable && ctx.Err() == nil {
			return nil, err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

const (
	readyMin = 5 * time.Millisecond
	readyMax = 200 * time.Millisecond
)

// WithActor opens a scope: what is done with the returned context is recorded
// as done by this actor.
func WithActor(ctx context.Context, actor Actor) context.Context {
	return history.WithActor(ctx, actor)
}
