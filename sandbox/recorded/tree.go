package recorded

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/sandbox"
)

// walkTimeout bounds an act that goes through a whole tree.
const walkTimeout = 15 * time.Minute

// ask makes a request for a JSON answer that may be repeated: it changes
// nothing, or carries the id of its operation.
func (s *Session) ask(ctx context.Context, r *request, body, into any) error {
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return &sandbox.Error{Op: r.op, Code: sandbox.CodeInvalid, Err: err}
		}
	}
	return s.again(ctx, func(ctx context.Context) error {
		mine := *r
		if text != nil {
			mine.body, mine.size = bytes.NewReader(text), int64(len(text))
		}
		return s.onceWithin(ctx, max(walkTimeout, s.opts.RequestTimeout), &mine, into)
	})
}

// Append implements sandbox.Editor.
func (s *Session) Append(ctx context.Context, name string, content io.Reader, opts *sandbox.WriteOptions) (*sandbox.FileInfo, error) {
	return s.bring(ctx, &request{op: "append to file", method: http.MethodPost, path: wire.PathAppend}, name, content, opts)
}

// Edit implements sandbox.Editor.
func (s *Session) Edit(ctx context.Context, name string, edit *sandbox.Edit) (*sandbox.Edited, error) {
	if err := edit.Validate(); err != nil {
		return nil, err
	}
	opID, err := operationID(edit.ID)
	if err != nil {
		return nil, err
	}
	query := offsetQuery(map[string]int64{"max_bytes": edit.MaxBytes})
	query.Set("path", name)
	var done wire.Edited
	r := &request{op: "edit file", method: http.MethodPost, path: wire.PathEdit, query: query, id: opID}
	if err := s.ask(ctx, r, edit, &done); err != nil {
		return nil, err
	}
	return &sandbox.Edited{FileInfo: *done.Info(), Replaced: done.Replaced}, nil
}

// Stat implements sandbox.Tree.
func (s *Session) Stat(ctx context.Context, name string) (*sandbox.FileInfo, error) {
	var f wire.File
	if err := s.get(ctx, "stat file", wire.PathStat, url.Values{"path": {name}}, &f); err != nil {
		return nil, err
	}
	return f.Info(), nil
}

// MakeDir implements sandbox.Tree.
func (s *Session) MakeDir(ctx context.Context, name string, opts *sandbox.MakeDirOptions) (*sandbox.FileInfo, error) {
	if opts == nil {
		opts = &sandbox.MakeDirOptions{}
	}
	query := url.Values{"path": {name}}
	switch {
	case opts.Mode&^fs.ModePerm != 0:
		return nil, sandbox.Invalid("mode", "must be permission bits, as in 0755")
	case opts.Mode != 0:
		query.Set("mode", wire.FormatMode(opts.Mode))
	}
	return s.arrange(ctx, &request{op: "make directory", method: http.MethodPut, path: wire.PathDir, query: query, id: opts.ID})
}

// Move implements sandbox.Tree.
func (s *Session) Move(ctx context.Context, from, to string, opts *sandbox.MoveOptions) (*sandbox.FileInfo, error) {
	if opts == nil {
		opts = &sandbox.MoveOptions{}
	}
	query := url.Values{"from": {from}, "to": {to}}
	if opts.Replace {
		query.Set("replace", "1")
	}
	return s.arrange(ctx, &request{op: "move", method: http.MethodPost, path: wire.PathMove, query: query, id: opts.ID})
}

// SetMode implements sandbox.Tree.
func (s *Session) SetMode(ctx context.Context, name string, opts *sandbox.ModeOptions) (*sandbox.FileInfo, error) {
	if opts == nil {
		opts = &sandbox.ModeOptions{}
	}
	query := url.Values{"path": {name}}
	if opts.Mode != nil {
		if err := wire.CheckMode(*opts.Mode); err != nil {
			return nil, err
		}
		query.Set("mode", wire.FormatMode(*opts.Mode))
	}
	for key, value := range map[string]string{"owner": opts.Owner, "group": opts.Group} {
		if value != "" {
			query.Set(key, value)
		}
	}
	if opts.Recursive {
		query.Set("recursive", "1")
	}
	return s.arrange(ctx, &request{op: "set mode", method: http.MethodPut, path: wire.PathMode, query: query, id: opts.ID})
}

func (s *Session) arrange(ctx context.Context, r *request) (*sandbox.FileInfo, error) {
	var err error
	if r.id, err = operationID(r.id); err != nil {
		return nil, err
	}
	var f wire.File
	if err := s.ask(ctx, r, nil, &f); err != nil {
		return nil, err
	}
	return f.Info(), nil
}

// Glob implements sandbox.Searcher.
func (s *Session) Glob(ctx context.Context, query *sandbox.GlobQuery) (*sandbox.GlobResult, error) {
	if err := query.Validate(); err != nil {
		return nil, err
	}
	opID, err := operationID(query.ID)
	if err != nil {
		return nil, err
	}
	var res wire.GlobResult
	r := &request{op: "find files", method: http.MethodPost, path: wire.PathGlob, query: url.Values{"path": {query.Path}}, id: opID}
	if err := s.ask(ctx, r, query, &res); err != nil {
		return nil, err
	}
	return &sandbox.GlobResult{Files: wire.Infos(res.Files), Truncated: res.Truncated, Skipped: res.Skipped}, nil
}

// Grep implements sandbox.Searcher.
func (s *Session) Grep(ctx context.Context, query *sandbox.GrepQuery) (*sandbox.GrepResult, error) {
	if err := query.Validate(); err != nil {
		return nil, err
	}
	opID, err := operationID(query.ID)
	if err != nil {
		return nil, err
	}
	var res wire.GrepResult
	r := &request{op: "search files", method: http.MethodPost, path: wire.PathGrep, query: url.Values{"path": {query.Path}}, id: opID}
	if err := s.ask(ctx, r, query, &res); err != nil {
		return nil, err
	}
	return res.Result(), nil
}

// Upload implements sandbox.Archiver. It is repeated after a fault only where
// the tar can be read again.
func (s *Session) Upload(ctx context.Context, name string, tar io.Reader, opts *sandbox.UploadOptions) (*sandbox.Uploaded, error) {
	if opts == nil {
		opts = &sandbox.UploadOptions{}
	}
	switch {
	case opts.MaxFiles < 0:
		return nil, sandbox.Invalid("max_files", "must not be negative")
	case opts.MaxBytes < 0:
		return nil, sandbox.Invalid("max_bytes", "must not be negative")
	}
	opID, err := operationID(opts.ID)
	if err != nil {
		return nil, err
	}
	query := offsetQuery(map[string]int64{"max_bytes": opts.MaxBytes})
	query.Set("path", name)
	if opts.MaxFiles > 0 {
		query.Set("max_files", strconv.Itoa(opts.MaxFiles))
	}
	r := &request{op: "upload", method: http.MethodPut, path: wire.PathTree, query: query, id: opID, size: -1}
	var done sandbox.Uploaded
	c := &carried{given: opts.ID != "", into: &done}
	if err := s.carry(ctx, r, tar, c); err != nil {
		return c.done, err
	}
	return &done, nil
}
