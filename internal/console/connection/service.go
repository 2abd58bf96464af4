package connection

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/vault"
	"github.com/glassboxhq/glassbox/sandbox"
)

// Service makes sandboxes and keeps them.
type Service interface {
	Create(ctx context.Context, spec *sandbox.Spec) (*sandbox.Info, error)
	Get(ctx context.Context, id string) (*sandbox.Info, error)
	List(ctx context.Context) ([]*sandbox.Info, error)
	Delete(ctx context.Context, id string) error
	Pause(ctx context.Context, id string) (*sandbox.Info, error)
	Resume(ctx context.Context, id string) (*sandbox.Info, error)
	Renew(ctx context.Context, id string, at time.Time) (*sandbox.Info, error)
}

// Historian is a Service whose sandboxes have histories.
type Historian interface {
	// History opens the history of a sandbox: of one that lives through its
	// recorder. It installs nothing there.
	History(ctx context.Context, id string) (History, error)
}

// History is a history that is open.
type History interface {
	history.Reader
	io.Closer
}

// Opener is a Service whose sandboxes can be worked in.
type Opener interface {
	// Open returns the inside of a sandbox that runs. What is done there is
	// recorded as done through the console.
	Open(ctx context.Context, id string) (Inside, error)
}

// Inside is the data plane of a sandbox, with all that the console does there.
type Inside interface {
	sandbox.Session
	sandbox.Starter
	sandbox.Attacher
	sandbox.Files
	// Feed gives a command input that begins at an offset of all that it is
	// given, and ends the input after the last. It returns how much was taken in
	// all.
	Feed(ctx context.Context, operation string, offset int64, content io.Reader, last bool) (int64, error)
}

// Porter is a Service that leads to what programs in its sandboxes serve.
type Porter interface {
	// Port returns the way to a port of a sandbox. Nothing need listen there.
	Port(ctx context.Context, id string, port int) (*Port, error)
}

// Port is the way to a port of a sandbox.
type Port struct {
	URL       string      // of its root, without a trailing slash
	Header    http.Header // for every request; it may hold tokens
	Transport http.RoundTripper
	// OwnHost tells that requests must name the host of URL, else they may name
	// the one that the browser sees.
	OwnHost bool
}

// Archive is a Service that keeps the histories of sandboxes that are gone.
type Archive interface {
	// Gone lists sandboxes that have ended and whose history is kept.
	Gone(ctx context.Context) ([]*Sandbox, error)
}

// Versioned is a Service that says what it is.
type Versioned interface {
	Version(ctx context.Context) (string, error)
}

// Dial makes the client of a service. The transport checks what it dials, and
// is the only way out that the client may take.
type Dial func(c *Connection, key vault.Secret, transport http.RoundTripper) (Service, error)

// Sandbox is a sandbox of a connection.
type Sandbox struct {
	sandbox.Info
	Connection string    // id
	GoneAt     time.Time // zero: it is there
}
