package server

import (
	"context"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/glassboxhq/glassbox/sandbox"
)

type findQuery struct {
	FileQuery
	Name       string `query:"name" maxLength:"4096" doc:"a pattern with *, ?, [a-z], {a,b} and **; without a slash it is the name at any depth, else the path below path"`
	Content    string `query:"content" maxLength:"65536" doc:"looks for lines, in files whose name matches if name is given"`
	Regexp     bool   `query:"regexp" doc:"content is a regular expression (RE2)"`
	IgnoreCase bool   `query:"ignore_case" doc:"of content"`
	Hidden     bool   `query:"hidden" doc:"also names that begin with a dot"`
	Context    int    `query:"context" minimum:"0" maximum:"100" doc:"lines around each that is found"`
	Limit      int    `query:"limit" minimum:"1" maximum:"10000" default:"1000"`
}

// Found is what a search in a sandbox's files has found.
type Found struct {
	Entries   []FileEntry `json:"entries,omitempty" doc:"by name"`
	Matches   []Line      `json:"matches,omitempty" doc:"by content"`
	Truncated bool        `json:"truncated" doc:"there are more"`
	Files     int         `json:"files,omitempty" doc:"that were looked into"`
	Binary    int         `json:"binary,omitempty" doc:"files that were left out as they are no text"`
	Skipped   int         `json:"skipped,omitempty" doc:"what could not be read"`
}

// Line is a line that was found.
type Line struct {
	sandbox.Match
	PathBytes []byte `json:"path_base64,omitempty" doc:"the path as it is, where it is no UTF-8"`
}

func (s *Server) routeFind() {
	work(s, huma.Operation{
		OperationID: "search-files", Method: http.MethodGet, Path: boxPath + "/files/search", Summary: "Find files by name, or lines by content", Tags: []string{"files"},
		Description: "Without a path, below the working directory. Links to directories are not entered.",
	}, findFiles)
}

func findFiles(ctx context.Context, box *inside, in *findQuery) (*struct{ Body Found }, error) {
	if in.Path == "" && in.PathBytes == "" {
		in.Path = "."
	}
	name, err := in.name()
	if err != nil {
		return nil, err
	}
	box.about(name)
	switch {
	case in.Content != "":
		return findLines(ctx, box, name, in)
	case in.Name == "":
		return nil, sandbox.Invalid("name", "or content must be given")
	}
	pattern := in.Name
	if !strings.Contains(pattern, "/") {
		pattern = "**/" + pattern
	}
	res, err := box.Glob(ctx, &sandbox.GlobQuery{Path: name, Pattern: pattern, Hidden: in.Hidden, Limit: in.Limit})
	if err != nil {
		return nil, err
	}
	out := &struct{ Body Found }{Found{Truncated: res.Truncated, Skipped: res.Skipped}}
	for _, f := range res.Files {
		out.Body.Entries = append(out.Body.Entries, entryOf(f))
	}
	return out, nil
}

func findLines(ctx context.Context, box *inside, name string, in *findQuery) (*struct{ Body Found }, error) {
	res, err := box.Grep(ctx, &sandbox.GrepQuery{
		Path: name, Pattern: in.Content, Regexp: in.Regexp, IgnoreCase: in.IgnoreCase, Glob: in.Name, Hidden: in.Hidden,
		Before: in.Context, After: in.Context, Limit: in.Limit,
	})
	if err != nil {
		return nil, err
	}
	out := &struct{ Body Found }{Found{Truncated: res.Truncated, Files: res.Files, Binary: res.Binary, Skipped: res.Skipped}}
	for _, m := range res.Matches {
		out.Body.Matches = append(out.Body.Matches, Line{*m, notText(m.Path)})
	}
	return out, nil
}
