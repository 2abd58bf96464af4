package main

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/glassboxhq/glassbox"
	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/console/connection"
	"github.com/glassboxhq/glassbox/internal/localruntime"
	"github.com/glassboxhq/glassbox/internal/vault"
	"github.com/glassboxhq/glassbox/internal/version"
	"github.com/glassboxhq/glassbox/sandbox"
	"github.com/glassboxhq/glassbox/sandbox/opensandbox"
	"github.com/glassboxhq/glassbox/sandbox/recorded"
)

// localService is the local runtime as the console sees it.
type localService struct{ *localruntime.Runtime }

var _ interface {
	connection.Service
	connection.Historian
	connection.Opener
	connection.Archive
	connection.Versioned
} = (*localService)(nil)

// Version implements connection.Versioned.
func (*localService) Version(context.Context) (string, error) { return version.String(), nil }

// Gone implements connection.Archive.
func (s *localService) Gone(ctx context.Context) ([]*connection.Sandbox, error) {
	refs, err := s.Histories(ctx)
	if err != nil {
		return nil, err
	}
	var list []*connection.Sandbox
	for _, ref := range refs {
		if ref.Deleted.IsZero() {
			continue // it is listed as it is
		}
		list = append(list, &connection.Sandbox{
			Info:   sandbox.Info{ID: ref.ID, Name: ref.Name, State: sandbox.Terminated, Message: ref.Message, CreatedAt: ref.Created},
			GoneAt: ref.Deleted,
		})
	}
	return list, nil
}

// History implements connection.Historian: of a sandbox that lives through its
// recorder, of one that is gone from the file that it left.
func (s *localService) History(ctx context.Context, id string) (connection.History, error) {
	refs, err := s.Histories(ctx)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(refs, func(ref *localruntime.History) bool { return ref.ID == id })
	if at < 0 {
		return nil, &sandbox.Error{Op: "open history", Code: sandbox.CodeSandboxNotFound, Sandbox: id, Message: "there is no such sandbox, and no history of one"}
	}
	if !refs[at].Live {
		return openEnded(refs[at])
	}
	session, err := recorderOf(ctx, s.Runtime, id)
	if err != nil {
		return nil, err
	}
	return &living{session.History(), session}, nil
}

// Open implements connection.Opener.
func (s *localService) Open(ctx context.Context, id string) (connection.Inside, error) {
	info, err := s.Get(ctx, id)
	if err == nil && info.State != sandbox.Running {
		err = &sandbox.Error{Op: "open sandbox", Code: sandbox.CodeSandboxState, Sandbox: id, Message: "the sandbox is " + string(info.State)}
	}
	if err != nil {
		return nil, err
	}
	session, err := recorderOf(ctx, s.Runtime, id)
	if err != nil {
		return nil, err
	}
	return session, nil
}

// living is the history of a sandbox that lives.
type living struct {
	*recorded.History
	session *recorded.Session
}

// Close implements io.Closer.
func (l *living) Close() error { return l.session.Close(context.Background()) }

// recorderOf opens the recorder of a sandbox of this process.
func recorderOf(ctx context.Context, rt *localruntime.Runtime, id string) (*recorded.Session, error) {
	access, err := rt.Access(ctx, id)
	if err != nil {
		return nil, err
	}
	return recorded.New("http://sandbox", &recorded.Options{
		Token: access.Token, Client: &http.Client{Transport: rt.Conn(id)}, Sandbox: id,
	}), nil
}

// remoteService is an OpenSandbox service as the console sees it.
type remoteService struct {
	*opensandbox.Provider
	endpoint string
	opts     *glassbox.Options // by which a person works in its sandboxes
}

var _ interface {
	connection.Service
	connection.Historian
	connection.Opener
	connection.Versioned
} = (*remoteService)(nil)

// remotePatience is how long a sandbox of another service may take to answer.
const remotePatience = 5 * time.Second

// dialer makes clients of services. What the SDK has still to tell their
// sandboxes waits in a state folder.
func dialer(stateDir string) connection.Dial {
	return func(c *connection.Connection, key vault.Secret, transport http.RoundTripper) (connection.Service, error) {
		p, err := opensandbox.New(c.Endpoint, &opensandbox.Options{Key: opensandbox.Secret(key), Transport: transport, Direct: !c.ServerProxy})
		if err != nil {
			return nil, err
		}
		return &remoteService{p, c.Endpoint, &glassbox.Options{
			APIKey: glassbox.Secret(key), Direct: !c.ServerProxy, Transport: transport, Source: history.SourceConsole, StateDir: stateDir, ReadyTimeout: remotePatience,
		}}, nil
	}
}

// Open implements connection.Opener. Where there is no recorder, one is put:
// somebody acts there, and that is to be recorded.
func (s *remoteService) Open(ctx context.Context, id string) (connection.Inside, error) {
	session, box, err := s.connect(ctx, id, false)
	if err != nil {
		return nil, err
	}
	return &remoteInside{session, box}, nil
}

// remoteInside is the inside of a sandbox of another service.
type remoteInside struct {
	*recorded.Session
	box *glassbox.Sandbox
}

// Close lets go of the sandbox.
func (i *remoteInside) Close(ctx context.Context) error { return i.box.Close(ctx) }

// Version implements connection.Versioned.
func (s *remoteService) Version(ctx context.Context) (string, error) { return s.Provider.Version(ctx) }

// History implements connection.Historian. It installs nothing: what has no
// recorder is told as such.
func (s *remoteService) History(ctx context.Context, id string) (connection.History, error) {
	session, box, err := s.connect(ctx, id, true)
	if err != nil {
		return nil, err
	}
	return &remoteHistory{session.History(), box}, nil
}

// remoteHistory is the history of a sandbox of another service.
type remoteHistory struct {
	*recorded.History
	box *glassbox.Sandbox
}

// Close implements io.Closer.
func (h *remoteHistory) Close() error { return h.box.Close(context.Background()) }

// connect opens a sandbox that runs.
func (s *remoteService) connect(ctx context.Context, id string, asItIs bool) (*recorded.Session, *glassbox.Sandbox, error) {
	opts := *s.opts
	opts.NoInstall = asItIs
	box, err := glassbox.Connect(ctx, s.endpoint, id, &opts)
	if err != nil {
		if box != nil { // what waited for it could not be delivered
			err = errors.Join(err, box.Close(ctx))
		}
		return nil, nil, err
	}
	session, ok := box.Session().(*recorded.Session)
	if !ok {
		return nil, nil, errors.Join(&sandbox.Error{Op: "open sandbox", Code: sandbox.CodeUnsupported, Sandbox: id}, box.Close(ctx))
	}
	return session, box, nil
}
