package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/console/connection"
	"github.com/glassboxhq/glassbox/sandbox"
)

// operationQuery picks operations of one sandbox.
type operationQuery struct {
	SandboxPath
	OperationFilter
	Paging
	Order string `query:"order" enum:"newest,oldest" default:"newest"`
}

// OperationFilter is history.Filter as a query.
type OperationFilter struct {
	Types       []string         `query:"type,explode" maxItems:"32" doc:"as command.execute"`
	Statuses    []sandbox.Status `query:"status,explode" maxItems:"8" doc:"started, succeeded, failed, cancelled, timeout, unknown"`
	Sources     []string         `query:"source,explode" maxItems:"8" doc:"sdk, console, gateway, mcp, execd, proxy"`
	ActorType   string           `query:"actor_type" maxLength:"64"`
	ActorID     string           `query:"actor" maxLength:"256"`
	Thread      string           `query:"thread" maxLength:"256"`
	Run         string           `query:"run" maxLength:"256"`
	Correlation string           `query:"correlation" maxLength:"256"`
	Since       time.Time        `query:"since" doc:"begun at or after"`
	Until       time.Time        `query:"until" doc:"begun before"`
	Path        string           `query:"path" maxLength:"4096" doc:"acts on this file, or on what lies below this directory"`
	ExitCode    OptionalInt      `query:"exit_code"`
	Text        string           `query:"q" maxLength:"1024" doc:"in commands, paths, requests, results and kept output"`
}

// OptionalInt is a number in a query that may be absent.
type OptionalInt struct {
	Value int
	Set   bool
}

// Schema implements huma.SchemaProvider.
func (OptionalInt) Schema(huma.Registry) *huma.Schema { return &huma.Schema{Type: huma.TypeInteger} }

// Receiver implements huma.ParamWrapper.
func (o *OptionalInt) Receiver() reflect.Value { return reflect.ValueOf(&o.Value).Elem() }

// OnParamSet implements huma.ParamReactor.
func (o *OptionalInt) OnParamSet(isSet bool, _ any) { o.Set = isSet }

func (q *OperationFilter) filter() *history.Filter {
	f := &history.Filter{
		Types: q.Types, Statuses: q.Statuses, Sources: q.Sources, ActorType: q.ActorType, ActorID: q.ActorID, Thread: q.Thread, Run: q.Run,
		Correlation: q.Correlation, Since: q.Since, Until: q.Until, Path: q.Path, Text: q.Text,
	}
	if q.ExitCode.Set {
		f.ExitCode = &q.ExitCode.Value
	}
	return f
}

func (q *operationQuery) filter() (*history.Filter, moment, error) {
	f := q.OperationFilter.filter()
	f.Limit, f.Newest = q.Limit, q.Order != "oldest"
	var after moment
	if err := readCursor(q.Cursor, &after); err != nil {
		return nil, after, err
	}
	if f.Newest {
		f.Before = after.Seq
	} else {
		f.After = after.Seq
	}
	return f, after, nil
}

// OperationPath names an operation.
type OperationPath struct {
	SandboxPath
	Operation string `path:"operation" pattern:"^[A-Za-z0-9_-]{1,128}$"`
}

func (s *Server) routeOperations() {
	tag := []string{"operations"}
	const all = "/connections/{connection}/sandboxes/{sandbox}/operations"
	route(s, huma.Operation{OperationID: "list-operations", Method: http.MethodGet, Path: all, Summary: "List what was done in a sandbox, and with it through this server", Tags: tag}, s.listOperations)
	route(s, huma.Operation{OperationID: "get-operation", Method: http.MethodGet, Path: all + "/{operation}", Summary: "Describe an operation", Tags: tag},
		func(ctx context.Context, _ *visit, in *OperationPath) (*struct{ Body history.Operation }, error) {
			op, err := s.operation(ctx, in)
			if err != nil {
				return nil, err
			}
			return &struct{ Body history.Operation }{*op}, nil
		})
	route(s, huma.Operation{
		OperationID: "get-output", Method: http.MethodGet, Path: all + "/{operation}/output", Summary: "Read the kept output of a command, exactly",
		Description: "Range asks for a part; what is kept of a command that runs may grow.", Tags: tag,
		Responses: map[string]*huma.Response{
			"200": {Description: "the output", Content: map[string]*huma.MediaType{"application/octet-stream": {}}},
			"206": {Description: "a part of it", Content: map[string]*huma.MediaType{"application/octet-stream": {}}},
			"416": {Description: "there is no such part"},
		},
	}, s.output)
}

// history opens the history of a sandbox, or the copy of it where that cannot
// be opened.
func (s *Server) history(ctx context.Context, in *SandboxPath) (connection.History, error) {
	h, err := s.ownHistory(ctx, in)
	if err != nil {
		return s.mirrored(ctx, in, err)
	}
	return h, nil
}

func (s *Server) ownHistory(ctx context.Context, in *SandboxPath) (connection.History, error) {
	service, err := s.opts.Fleet.Service(ctx, in.Connection)
	if err != nil {
		return nil, err
	}
	historian, ok := service.(connection.Historian)
	if !ok {
		return nil, &sandbox.Error{Op: "open history", Code: codeNotKept, Sandbox: in.Sandbox, Message: "this service keeps no history"}
	}
	return historian.History(ctx, in.Sandbox)
}

type outputQuery struct {
	OperationPath
	Stream sandbox.Stream `query:"stream" enum:"stdout,stderr" default:"stdout"`
}

func (s *Server) output(ctx context.Context, _ *visit, in *outputQuery) (*huma.StreamResponse, error) {
	h, err := s.history(ctx, &in.SandboxPath)
	if err != nil {
		return nil, err
	}
	op, err := h.Get(ctx, in.Operation)
	if err != nil {
		return nil, errors.Join(err, h.Close())
	}
	out := &outputReader{ctx: ctx, from: h, id: op.ID, stream: in.Stream}
	if op.Command != nil {
		out.size = op.Command.StdoutBytes
		if in.Stream == sandbox.Stderr {
			out.size = op.Command.StderrBytes
		}
	}
	return &huma.StreamResponse{Body: func(c huma.Context) {
		defer h.Close()
		r, w := humachi.Unwrap(c)
		w.Header().Set("Content-Type", "application/octet-stream") // whatever an agent printed, it is no page
		http.ServeContent(w, r, "", time.Time{}, out)
	}}, nil
}

// outputReader reads a stream from anywhere.
type outputReader struct {
	ctx    context.Context //nolint:containedctx // of the one request that it lives for
	from   history.Reader
	id     string
	stream sandbox.Stream
	at     int64
	size   int64
}

// maxPiece is what is asked for at once.
const maxPiece = 256 << 10

// Read implements io.Reader.
func (o *outputReader) Read(p []byte) (int, error) {
	if o.at >= o.size {
		return 0, io.EOF
	}
	data, err := o.from.Output(o.ctx, o.id, o.stream, o.at, min(int64(len(p)), maxPiece, o.size-o.at))
	if err == nil && len(data) == 0 {
		err = io.ErrUnexpectedEOF // it was cleaned up meanwhile
	}
	n := copy(p, data)
	o.at += int64(n)
	return n, err
}

// Seek implements io.Seeker.
func (o *outputReader) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += o.at
	case io.SeekEnd:
		offset += o.size
	}
	if offset < 0 {
		return o.at, errors.New("seek before the beginning")
	}
	o.at = offset
	return offset, nil
}
