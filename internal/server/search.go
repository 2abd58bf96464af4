package server

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/console/connection"
	"github.com/glassboxhq/glassbox/internal/console/mirror"
	"github.com/glassboxhq/glassbox/sandbox"
)

// searchQuery picks operations of every history.
type searchQuery struct {
	OperationFilter
	Paging
	Connection string `query:"connection" maxLength:"64" doc:"id of a connection"`
	Sandbox    string `query:"sandbox" maxLength:"128" doc:"id of a sandbox"`
}

// Hit is an operation that was found, and where a text stands in it.
type Hit struct {
	Connection string             `json:"connection" doc:"id of the connection"`
	Sandbox    string             `json:"sandbox" doc:"id of the sandbox"`
	Generation int64              `json:"generation" doc:"counts the histories of the sandbox: there is another one where it was removed or cut, or the container replaced"`
	Operation  *history.Operation `json:"operation"`
	Snippets   []Snippet          `json:"snippets" nullable:"false"`
}

// Snippet is a place at which a text was found.
type Snippet struct {
	Field  string `json:"field" doc:"command, cwd, path, old_path, changes, diff, request, result, stdout or stderr"`
	Offset int64  `json:"offset" doc:"where the text begins, in bytes; of output in its stream"`
	Text   string `json:"text"`
	Start  int    `json:"start" doc:"of what was looked for, in bytes of the text"`
	End    int    `json:"end"`
}

// Hits is a part of what was found.
type Hits struct {
	Page[Hit]
	Incomplete bool `json:"incomplete" doc:"the time was over before the page was full; the cursor goes on"`
}

func (s *Server) routeSearch() {
	route(s, huma.Operation{
		OperationID: "search-operations", Method: http.MethodGet, Path: "/operations", Tags: []string{"operations"},
		Summary: "Look for operations in the mirrored histories of all sandboxes, those that are gone among them, newest first",
	}, s.search)
}

func (s *Server) search(ctx context.Context, _ *visit, in *searchQuery) (*struct{ Body Hits }, error) {
	if s.opts.Mirror == nil {
		return nil, &sandbox.Error{Op: "search operations", Code: codeNoMirror, Message: "this server keeps no copy of the histories"}
	}
	q := &mirror.Query{Filter: *in.filter(), Connection: in.Connection, Sandbox: in.Sandbox, Cursor: in.Cursor}
	q.Limit = in.Limit
	found, err := s.opts.Mirror.List(ctx, q)
	if err != nil {
		return nil, err
	}
	out := &struct{ Body Hits }{Hits{Page: Page[Hit]{Items: []Hit{}, Next: found.Next}, Incomplete: found.Incomplete}}
	for _, h := range found.Hits {
		hit := Hit{Connection: h.Connection, Sandbox: h.Sandbox, Generation: h.Generation, Operation: h.Operation, Snippets: []Snippet{}}
		for _, at := range h.Snippets {
			hit.Snippets = append(hit.Snippets, Snippet(at))
		}
		out.Body.Items = append(out.Body.Items, hit)
	}
	return out, nil
}

// mirrored opens the copy of a history that cannot be opened itself, if there
// is one. What was wrong with the history is told where there is none.
func (s *Server) mirrored(ctx context.Context, in *SandboxPath, wrong error) (connection.History, error) {
	if s.opts.Mirror == nil || ctx.Err() != nil {
		return nil, wrong
	}
	list, err := s.opts.Mirror.Histories(ctx, in.Connection, in.Sandbox)
	if err != nil || len(list) == 0 {
		return nil, wrong
	}
	return s.opts.Mirror.Reader(list[0].No), nil
}
