package main

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/glassboxhq/glassbox/internal/console/connection"
	"github.com/glassboxhq/glassbox/internal/localruntime"
	"github.com/glassboxhq/glassbox/internal/vault"
	"github.com/glassboxhq/glassbox/internal/version"
	"github.com/glassboxhq/glassbox/internal/wire"
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
type remoteService struct{ *opensandbox.Provider }

var _ interface {
	connection.Service
	connection.Historian
	connection.Opener
	connection.Versioned
} = (*remoteService)(nil)

func dialService(c *connection.Connection, key vault.Secret, transport http.RoundTripper) (connection.Service, error) {
	p, err := opensandbox.New(c.Endpoint, &opensandbox.Options{Key: opensandbox.Secret(key), Transport: transport, Direct: !c.ServerProxy})
	if err != nil {
		return nil, err
	}
	return &remoteService{p}, nil
}

// Version implements connection.Versioned.
func (s *remoteService) Version(ctx context.Context) (string, error) { return s.Provider.Version(ctx) }

// History implements connection.Historian. It installs nothing: what has no
// recorder is told as such.
func (s *remoteService) History(ctx context.Context, id string) (connection.History, error) {
	session, err := s.recorder(ctx, "open history", id)
	if err != nil {
		return nil, err
	}
	return &living{session.History(), session}, nil
}

// Open implements connection.Opener, where there is a recorder.
func (s *remoteService) Open(ctx context.Context, id string) (connection.Inside, error) {
	session, err := s.recorder(ctx, "open sandbox", id)
	if err != nil {
		return nil, err
	}
	return session, nil
}

// recorder opens the recorder of a sandbox that runs.
func (s *remoteService) recorder(ctx context.Context, op, id string) (*recorded.Session, error) {
	info, err := s.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	if info.State != sandbox.Running {
		return nil, &sandbox.Error{Op: op, Code: sandbox.CodeSandboxState, Sandbox: id, Message: "the sandbox is " + string(info.State) + ": what is inside it cannot be reached"}
	}
	endpoint, err := s.Endpoint(ctx, id, wire.ExecdPort)
	if err != nil {
		return nil, err
	}
	session := recorded.New(endpoint.URL, &recorded.Options{
		Token: endpoint.Header.Get(wire.HeaderToken), Header: endpoint.Header, Client: s.Client(), Sandbox: id,
	})
	protocol, err := session.Ping(ctx)
	if err == nil && (protocol == 0 || protocol > wire.Protocol) {
		err = &sandbox.Error{Op: op, Code: sandbox.CodeUnsupported, Sandbox: id, Message: "there is no recorder in this sandbox: what is done there is not recorded"}
	}
	if err != nil {
		return nil, errors.Join(err, session.Close(context.WithoutCancel(ctx)))
	}
	return session, nil
}
