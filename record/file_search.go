package record

import (
	"context"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/sandbox"
)

// Glob implements sandbox.Searcher. The history keeps what was asked for and
// how much was found. The same id again searches again, and records nothing.
func (s *Session) Glob(ctx context.Context, query *sandbox.GlobQuery) (*sandbox.GlobResult, error) {
	const op = "find files"
	inner, ok := s.inner.(sandbox.Searcher)
	if !ok {
		return nil, unsupported(op)
	}
	fields := map[string]any{"pattern": query.Pattern, "hidden": query.Hidden, "limit": query.Limit}
	b, err := s.enact(ctx, &asked{op: op, kind: history.FileGlob, id: query.ID, path: orWorkdir(query.Path), fields: fields})
	if err != nil {
		return nil, err
	}
	defer b.leave()
	res, err := inner.Glob(ctx, query)
	if b.earlier != nil {
		return res, err
	}
	if err != nil {
		return nil, b.fail(ctx, err)
	}
	b.succeed(ctx, map[string]any{"path": b.file.Path, "count": len(res.Files), "truncated": res.Truncated, "skipped": res.Skipped})
	return res, nil
}

// Grep implements sandbox.Searcher, as Glob.
func (s *Session) Grep(ctx context.Context, query *sandbox.GrepQuery) (*sandbox.GrepResult, error) {
	const op = "search files"
	inner, ok := s.inner.(sandbox.Searcher)
	if !ok {
		return nil, unsupported(op)
	}
	fields := map[string]any{
		"pattern": query.Pattern, "regexp": query.Regexp, "ignore_case": query.IgnoreCase, "hidden": query.Hidden,
		"before": query.Before, "after": query.After, "limit": query.Limit, "file_limit": query.FileLimit,
	}
	if query.Glob != "" {
		fields["glob"] = query.Glob
	}
	b, err := s.enact(ctx, &asked{op: op, kind: history.FileGrep, id: query.ID, path: orWorkdir(query.Path), fields: fields})
	if err != nil {
		return nil, err
	}
	defer b.leave()
	res, err := inner.Grep(ctx, query)
	if b.earlier != nil {
		return res, err
	}
	if err != nil {
		return nil, b.fail(ctx, err)
	}
	b.succeed(ctx, map[string]any{
		"path": b.file.Path, "count": len(res.Matches), "files": res.Files, "binary": res.Binary,
		"skipped": res.Skipped, "truncated": res.Truncated,
	})
	return res, nil
}

func orWorkdir(name string) string {
	if name == "" {
		return "."
	}
	return name
}
