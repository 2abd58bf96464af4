package server

import (
	"context"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

type inputQuery struct {
	OperationPath
	Content
	Offset OptionalInt `query:"offset" doc:"where the body begins in all of the input, as an answer told it: what the command has taken of it is left out, so that a request may be repeated. Absent: it comes after what was taken"`
	Close  bool        `query:"close" doc:"this is the last of the input"`
}

// Taken tells how much input a command has taken in all.
type Taken struct {
	Offset int64 `json:"offset"`
}

func (s *Server) routeInput() {
	work(s, huma.Operation{
		OperationID: "feed-command", Method: http.MethodPost, Path: boxPath + "/commands/{operation}/input",
		Summary:     "Give input to a command that was started with stdin",
		Description: "The body is taken as it is, as fast as the command reads it.", Tags: []string{"commands"},
		RequestBody: raw("the input", octets),
	}, s.feedCommand)
}

func (s *Server) feedCommand(ctx context.Context, box *inside, in *inputQuery) (*struct{ Body Taken }, error) {
	offset := int64(in.Offset.Value)
	if !in.Offset.Set {
		// Two who come at once must not both begin at one place.
		unlock, err := s.inputs.Write(ctx, "/"+in.Operation)
		if err != nil {
			return nil, err
		}
		defer unlock()
		if offset, err = box.Feed(ctx, in.Operation, 0, strings.NewReader(""), false); err != nil {
			return nil, err
		}
	}
	offset, err := box.Feed(ctx, in.Operation, offset, in.body, in.Close)
	in.done(err)
	if err != nil {
		return nil, err
	}
	return &struct{ Body Taken }{Taken{offset}}, nil
}
