package server

import (
	"context"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/sandbox"
)

// FileEntry is a file in a sandbox.
type FileEntry struct {
	Name        string    `json:"name" doc:"the last part of the path"`
	Path        string    `json:"path" doc:"absolute"`
	PathBytes   []byte    `json:"path_base64,omitempty" doc:"the path as it is, where it is no UTF-8"`
	Type        string    `json:"type" enum:"file,directory,link,fifo,socket,device"`
	Size        int64     `json:"size"`
	Mode        string    `json:"mode" doc:"in octal, as 0644"`
	ModifiedAt  time.Time `json:"modified_at"`
	Owner       string    `json:"owner,omitempty"`
	Group       string    `json:"group,omitempty"`
	LinkTarget  string    `json:"link_target,omitempty"`
	TargetBytes []byte    `json:"link_target_base64,omitempty"`
}

func entryOf(f *sandbox.FileInfo) FileEntry {
	return FileEntry{
		Name: path.Base(f.Path), Path: f.Path, PathBytes: notText(f.Path), Type: typeOf(f.Mode), Size: f.Size,
		Mode: fmt.Sprintf("%04s", wire.FormatMode(f.Mode)), ModifiedAt: f.Modified.UTC(), Owner: f.Owner, Group: f.Group,
		LinkTarget: f.Target, TargetBytes: notText(f.Target),
	}
}

func typeOf(mode fs.FileMode) string {
	switch mode.Type() {
	case 0:
		return "file"
	case fs.ModeDir:
		return "directory"
	case fs.ModeSymlink:
		return "link"
	case fs.ModeNamedPipe:
		return "fifo"
	case fs.ModeSocket:
		return "socket"
	}
	return "device"
}

// FileList is a part of what a directory holds.
type FileList struct {
	Entries   []FileEntry `json:"entries" nullable:"false"`
	Next      string      `json:"next_cursor,omitempty" doc:"asks for the next page; absent: this is the last"`
	Truncated bool        `json:"truncated,omitempty" doc:"the tree is too large to be listed whole"`
	Skipped   int         `json:"skipped,omitempty" doc:"directories that could not be read"`
}

// FileQuery names a file of a sandbox.
type FileQuery struct {
	SandboxPath
	FilePath
}

type oneFile struct {
	ETag string `header:"ETag"`
	Body FileEntry
}

func (s *Server) routeFiles() {
	tag := []string{"files"}
	work(s, huma.Operation{
		OperationID: "list-files", Method: http.MethodGet, Path: boxPath + "/files", Summary: "List what a directory holds, by path", Tags: tag,
		Description: "Links are listed, not followed. Without a path it is the working directory.",
	}, listFiles)
	work(s, huma.Operation{OperationID: "stat-file", Method: http.MethodGet, Path: boxPath + "/files/stat", Summary: "Describe a file; a link is not followed", Tags: tag},
		func(ctx context.Context, box *inside, in *FileQuery) (*oneFile, error) {
			name, err := in.name()
			if err != nil {
				return nil, err
			}
			box.about(name)
			return asFile(box.Stat(ctx, name))
		})
	s.routeContent()
	s.routeTree()
}

func asFile(f *sandbox.FileInfo, err error) (*oneFile, error) {
	if err != nil {
		return nil, err
	}
	return &oneFile{tagOf(f), entryOf(f)}, nil
}

// about notes in the act which file it is about.
func (i *inside) about(name string) { i.v.detail = detail(map[string]any{"path": clip(name)}) }

type listQuery struct {
	FileQuery
	Depth  int    `query:"depth" minimum:"1" maximum:"8" default:"1" doc:"how many levels"`
	Limit  int    `query:"limit" minimum:"1" maximum:"100000" default:"1000" doc:"how many at most"`
	Cursor string `query:"cursor" maxLength:"8192" doc:"the next_cursor of the page before"`
}

func listFiles(ctx context.Context, box *inside, in *listQuery) (*struct{ Body FileList }, error) {
	var after []byte // a path, as bytes
	if err := readCursor(in.Cursor, &after); err != nil {
		return nil, err
	}
	if in.Path == "" && in.PathBytes == "" {
		in.Path = "."
	}
	name, err := in.name()
	if err != nil {
		return nil, err
	}
	box.about(name)
	out := &struct{ Body FileList }{FileList{Entries: []FileEntry{}}}
	files, err := list(ctx, box, name, in.Depth, &out.Body)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		if len(after) > 0 && sandbox.ComparePaths(f.Path, string(after)) <= 0 {
			continue
		}
		if n := len(out.Body.Entries); n == in.Limit {
			out.Body.Next = cursor(after)
			break
		}
		out.Body.Entries, after = append(out.Body.Entries, entryOf(f)), []byte(f.Path)
	}
	return out, nil
}

// list lists a directory, or a tree as one act.
func list(ctx context.Context, box *inside, name string, depth int, page *FileList) (files []*sandbox.FileInfo, err error) {
	if depth == 1 {
		files, err = box.List(ctx, name)
	} else {
		levels := make([]string, depth)
		for i := range levels {
			levels[i] = "*" + strings.Repeat("/*", i)
		}
		var found *sandbox.GlobResult
		found, err = box.Glob(ctx, &sandbox.GlobQuery{Path: name, Pattern: "{" + strings.Join(levels, ",") + "}", Hidden: true, Limit: sandbox.MaxFound})
		if err == nil {
			files, page.Truncated, page.Skipped = found.Files, found.Truncated, found.Skipped
		}
	}
	slices.SortFunc(files, func(a, b *sandbox.FileInfo) int { return sandbox.ComparePaths(a.Path, b.Path) })
	return files, err
}
