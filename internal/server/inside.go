package server

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/console/connection"
	"github.com/glassboxhq/glassbox/internal/idle"
	"github.com/glassboxhq/glassbox/sandbox"
)

// boxPath is where a sandbox is; what is in it lies below.
const boxPath = "/connections/{connection}/sandboxes/{sandbox}"

// idleClient is how long a client that sends or takes content may do nothing.
const idleClient = 5 * time.Minute

// inside is a sandbox in which somebody works.
type inside struct {
	connection.Inside
	v *visit
}

// open opens a sandbox for who visits. What is done with the returned context
// is recorded as done by that user.
func (s *Server) open(ctx context.Context, v *visit, in *SandboxPath) (context.Context, *inside, error) {
	service, err := s.opts.Fleet.Service(ctx, in.Connection)
	if err != nil {
		return nil, nil, err
	}
	opener, ok := service.(connection.Opener)
	if !ok {
		return nil, nil, &sandbox.Error{Op: "open sandbox", Code: sandbox.CodeUnsupported, Sandbox: in.Sandbox, Message: "in sandboxes of this service nothing can be done from here"}
	}
	box, err := opener.Open(ctx, in.Sandbox)
	if err != nil {
		return nil, nil, err
	}
	ctx = history.WithActor(ctx, history.Actor{
		Type: history.User, ID: v.visitor.User.Name, Correlation: v.id, Source: history.SourceConsole,
	})
	return ctx, &inside{box, v}, nil
}

// attach takes up a command or a terminal for one who stays, with a place among
// the streams. Where it cannot, the sandbox is left.
func (s *Server) attach(ctx context.Context, box *inside, operation string, from sandbox.Offsets) (sandbox.Process, error) {
	p, err := box.Attach(ctx, operation, from)
	if err == nil {
		if err = s.beginStream("attach to command"); err != nil {
			_ = p.Close() // it goes on
		}
	}
	if err != nil {
		box.leave()
		return nil, err
	}
	return p, nil
}

// leave lets go of the sandbox. What runs there goes on.
func (i *inside) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), recordTimeout)
	defer cancel()
	_ = i.Close(ctx) // it reads and writes nothing more
}

// within is a request for something in a sandbox.
type within[I any] interface {
	*I
	box() *SandboxPath
}

func (p *SandboxPath) box() *SandboxPath { return p }

// work serves what is done in a sandbox and over with its answer.
func work[I, O any, P within[I]](s *Server, op huma.Operation, serve func(ctx context.Context, box *inside, in *I) (*O, error)) {
	route(s, op, func(ctx context.Context, v *visit, in *I) (*O, error) {
		ctx, box, err := s.open(ctx, v, P(in).box())
		if err != nil {
			return nil, err
		}
		defer box.leave()
		return serve(ctx, box, in)
	})
}

// stream answers with what serve writes, and leaves the sandbox then. An error
// that comes after the answer has begun cuts it, so that nobody takes it for
// whole.
func (s *Server) stream(box *inside, content io.Closer, serve func(w http.ResponseWriter, r *http.Request) error) *huma.StreamResponse {
	return &huma.StreamResponse{Body: func(c huma.Context) {
		defer box.leave()
		defer content.Close()
		r, w := humachi.Unwrap(c)
		if err := serve(w, r); err != nil {
			if r.Context().Err() != nil {
				err = sandbox.FromContext(r.Context(), "send content")
			}
			_ = s.fail(box.v, err) // noted in the visit
			panic(http.ErrAbortHandler)
		}
	}}
}

// send writes content as long as the client goes on taking it.
func send(w http.ResponseWriter, content io.Reader) error {
	_, err := io.CopyBuffer(idle.Answer(w, idleClient), struct{ io.Reader }{content}, make([]byte, sendBytes))
	if err != nil && sandbox.CodeOf(err) == sandbox.CodeInternal {
		err = &sandbox.Error{Op: "send content", Code: sandbox.CodeCancelled, Message: "the client has gone", Err: err}
	}
	return err
}

const sendBytes = 128 << 10

// Content takes the body of a request as it comes.
type Content struct {
	body io.ReadCloser
	w    http.ResponseWriter
}

// Resolve implements huma.Resolver.
func (b *Content) Resolve(c huma.Context) []error {
	r, w := humachi.Unwrap(c)
	b.body, b.w = idle.Body(w, r.Body, idleClient), w
	return nil
}

// done is told how the body was used.
func (b *Content) done(err error) { idle.Done(b.w, err) }

// raw describes a body that is no JSON.
func raw(what, mediaType string) *huma.RequestBody {
	return &huma.RequestBody{Description: what, Content: map[string]*huma.MediaType{mediaType: {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}}}
}

// bytesOf describes answers that are no JSON.
func bytesOf(mediaType string, answers map[string]string) map[string]*huma.Response {
	list := map[string]*huma.Response{}
	for status, what := range answers {
		list[status] = &huma.Response{Description: what, Content: map[string]*huma.MediaType{mediaType: {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}}}
	}
	return list
}
