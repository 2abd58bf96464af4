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
	"log/slog"
	"net/http"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/owner"
	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/sandbox"
	"github.com/glassboxhq/glassbox/sandbox/opensandbox"
	"github.com/glassboxhq/glassbox/sandbox/recorded"
)

// Cleanup says what Close does with a sandbox that this handle created.
type Cleanup string

// The ways to clean up.
const (
	OnClose Cleanup = "on_close" // deletes it
	Never   Cleanup = "never"    // keeps it
)

// HistoryMode says how a sandbox is recorded.
type HistoryMode string

// The ways to record.
const (
	Recorded   HistoryMode = ""            // what cannot be recorded is refused
	BestEffort HistoryMode = "best_effort" // what cannot be recorded runs all the same, and is counted
	NoHistory  HistoryMode = "none"        // nothing is recorded
)

// Options set up a sandbox, or the way to one. The zero value of a field is
// its default.
type Options struct {
	// APIKey opens the service; empty: GLASSBOX_API_KEY or
	// OPEN_SANDBOX_API_KEY, and none is needed for our own local runtime on
	// this machine. It is never recorded, logged or told in an error.
	APIKey Secret
	// Name is shown to people: up to 128 characters of any script. Two
	// sandboxes may share one.
	Name string
	// Image to run; empty: python:3.12, and host on our local runtime.
	Image string
	// Snapshot is the id of one to begin from, instead of an image; its working
	// directory is the default.
	Snapshot string
	// Workdir is where commands run and relative paths begin, made if it is
	// not there; empty: /workspace.
	Workdir string
	// Env is the environment of every command. Values are not recorded.
	Env map[string]string
	// Metadata is kept by the service: values of up to 63 letters, digits,
	// dots, dashes and underscores.
	Metadata map[string]string
	// Limits, as memory: "512Mi" or cpu: "500m".
	Limits map[string]string
	// Network is none or proxy on our local runtime; empty: proxy.
	Network string
	// TTL is how long the sandbox lives; 0: as the service says.
	TTL time.Duration
	// Cleanup; empty: OnClose.
	Cleanup Cleanup
	// HistoryMode; empty: Recorded.
	HistoryMode HistoryMode
	// History says what is kept, for how long and in which form; nil: the
	// defaults.
	History *history.Config
	// Concurrency bounds what works at once in the sandbox, whoever asks for
	// it; nil: 4 commands, 32 reads, 8 writes and 1 upload.
	Concurrency *Concurrency
	// NoFileChanges does not look for what commands do to files; else each
	// command's operation tells it.
	NoFileChanges bool
	// Direct goes to the sandbox around the service's proxy.
	Direct bool
	// Transport carries every request to the service and its sandboxes. With
	// one, neither a key of the environment nor the socket of our own local
	// runtime is used. Nil: an ordinary one.
	Transport http.RoundTripper
	// NoInstall works with the recorder that a sandbox has, and puts none there:
	// where there is none, it cannot be opened.
	NoInstall bool
	// RequestTimeout bounds one ordinary request, not a stream, a transfer or
	// a command; 0: 30 s. ReadyTimeout bounds the wait for a new sandbox to
	// answer; 0: 30 s.
	RequestTimeout, ReadyTimeout time.Duration
	// StateDir is where our local runtime keeps its state; empty:
	// GLASSBOX_STATE_DIR, or glassbox below XDG_STATE_HOME or ~/.local/state.
	StateDir string
	// Source is the door that the history names; empty: sdk.
	Source string
	// Logger is for the operator; nil: silent.
	Logger *slog.Logger
}

func (o *Options) withDefaults() (*Options, error) {
	opts := Options{}
	if o != nil {
		opts = *o
	}
	if opts.Cleanup == "" {
		opts.Cleanup = OnClose
	}
	for field, d := range map[string]*time.Duration{"request_timeout": &opts.RequestTimeout, "ready_timeout": &opts.ReadyTimeout} {
		if *d < 0 {
			return nil, sandbox.Invalid(field, "must be positive, or 0 for 30 s")
		}
		if *d == 0 {
			*d = 30 * time.Second
		}
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if err := errors.Join(opts.Concurrency.Validate(), opts.History.Validate()); err != nil {
		return nil, err
	}
	if opts.HistoryMode == Recorded && opts.History.Filled().Consistency == history.BestEffort {
		opts.HistoryMode = BestEffort
	}
	return &opts, opts.validate()
}

func (o *Options) validate() error {
	switch {
	case o.Cleanup != OnClose && o.Cleanup != Never:
		return sandbox.Invalid("cleanup", "must be on_close or never")
	case o.HistoryMode != Recorded && o.HistoryMode != BestEffort && o.HistoryMode != NoHistory:
		return sandbox.Invalid("history", "must be empty, best_effort or none")
	case o.TTL < 0:
		return sandbox.Invalid("ttl", "must be positive, or 0 for as long as the service says")
	}
	return nil
}

// Create makes a sandbox on a service and waits until it answers.
func Create(ctx context.Context, url string, o *Options) (*Sandbox, error) {
	s, err := dial(ctx, url, o)
	if err != nil {
		return nil, err
	}
	spec := s.spec()
	if err := opensandbox.ValidateSpec(spec); err != nil {
		return nil, errors.Join(err, s.close())
	}
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
		err = &sandbox.Error{
			Op: "connect", Code: sandbox.CodeSandboxState, Sandbox: id,
			Message: "the sandbox is " + string(info.State) + ": " + info.Message,
		}
	}
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	box, err := s.ready(ctx, info)
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
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
		Image: s.opts.Image, Snapshot: s.opts.Snapshot, Name: s.opts.Name, Env: s.opts.Env, Metadata: s.opts.Metadata, Timeout: s.opts.TTL,
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
