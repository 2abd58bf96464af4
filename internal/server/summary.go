package server

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/console/mirror"
	"github.com/glassboxhq/glassbox/sandbox"
)

// SummaryQuery says what is counted.
type SummaryQuery struct {
	OperationFilter
	Bins  int             `query:"bins" minimum:"1" maximum:"2000" default:"240" doc:"parts that the time is cut into"`
	Group mirror.Grouping `query:"group" enum:"run,thread,actor" doc:"none: no groups"`
}

type allSummaryQuery struct {
	SummaryQuery
	Connection string `query:"connection" maxLength:"64" doc:"id of a connection"`
	Sandbox    string `query:"sandbox" maxLength:"128" doc:"id of a sandbox"`
}

type boxSummaryQuery struct {
	SandboxPath
	SummaryQuery
}

// Summary tells of many operations at once.
type Summary struct {
	Operations int64     `json:"operations"`
	Failed     int64     `json:"failed" doc:"failed, timeout or unknown"`
	From       time.Time `json:"from,omitzero" doc:"the first beginning"`
	To         time.Time `json:"to,omitzero" doc:"the last end"`
	Bins       []Bin     `json:"bins" nullable:"false" doc:"those that hold something"`
	Groups     []Group   `json:"groups" nullable:"false" doc:"that were at work last stand first; at most 1000"`
	More       bool      `json:"more" doc:"there are more groups"`
}

// Bin counts the operations of a type that began in a part of the time.
type Bin struct {
	No         int    `json:"no" doc:"of the parts, from 0"`
	Type       string `json:"type"`
	Operations int64  `json:"operations"`
	Failed     int64  `json:"failed"`
}

// Group counts operations that belong together.
type Group struct {
	Connection string        `json:"connection,omitempty" doc:"of a run"`
	Sandbox    string        `json:"sandbox,omitempty" doc:"of a run"`
	Actor      history.Actor `json:"actor" doc:"of whom the grouping tells"`
	Source     string        `json:"source,omitempty" doc:"of operations without a run"`
	Operations int64         `json:"operations"`
	Failed     int64         `json:"failed"`
	From       time.Time     `json:"from"`
	To         time.Time     `json:"to"`
}

func (s *Server) routeSummaries() {
	tag := []string{"operations"}
	route(s, huma.Operation{
		OperationID: "summarize-sandbox", Method: http.MethodGet, Path: "/connections/{connection}/sandboxes/{sandbox}/summary", Tags: tag,
		Summary: "Count the operations of a sandbox, over time and in groups, as its mirrored history has them",
	}, func(ctx context.Context, _ *visit, in *boxSummaryQuery) (*struct{ Body Summary }, error) {
		return s.summarize(ctx, &in.SummaryQuery, in.Connection, in.Sandbox)
	})
	route(s, huma.Operation{
		OperationID: "summarize-operations", Method: http.MethodGet, Path: "/summary", Tags: tag,
		Summary: "Count the operations of all mirrored histories, over time and in groups",
	}, func(ctx context.Context, _ *visit, in *allSummaryQuery) (*struct{ Body Summary }, error) {
		return s.summarize(ctx, &in.SummaryQuery, in.Connection, in.Sandbox)
	})
}

func (s *Server) summarize(ctx context.Context, in *SummaryQuery, connectionID, sandboxID string) (*struct{ Body Summary }, error) {
	if s.opts.Mirror == nil {
		return nil, &sandbox.Error{Op: "summarize operations", Code: codeNoMirror, Message: "this server keeps no copy of the histories"}
	}
	counted, err := s.opts.Mirror.Summarize(ctx, &mirror.Query{Filter: *in.filter(), Connection: connectionID, Sandbox: sandboxID}, in.Bins, in.Group)
	if err != nil {
		return nil, err
	}
	out := &struct{ Body Summary }{Summary{
		Operations: counted.Operations, Failed: counted.Failed, From: counted.From, To: counted.To, More: counted.More,
		Bins: []Bin{}, Groups: []Group{},
	}}
	for _, b := range counted.Bins {
		out.Body.Bins = append(out.Body.Bins, Bin(b))
	}
	for _, g := range counted.Groups {
		out.Body.Groups = append(out.Body.Groups, Group{
			Connection: g.Connection, Sandbox: g.Sandbox, Actor: g.Actor, Source: g.Source, Operations: g.Operations, Failed: g.Failed, From: g.From, To: g.To,
		})
	}
	return out, nil
}
