package native

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/glassboxhq/glassbox/sandbox"
)

// An answer of Glob or Grep has to fit into the memory of whoever asked, in
// JSON.
const (
	maxAnswer   = 20 << 20
	entryWeight = 200 // what an entry weighs beside its text
)

// Glob implements sandbox.Searcher.
func (s *Session) Glob(ctx context.Context, query *sandbox.GlobQuery) (*sandbox.GlobResult, error) {
	const op = "find files"
	if err := query.Validate(); err != nil {
		return nil, err
	}
	limit := cmp.Or(query.Limit, sandbox.DefaultGlobLimit)
	p, err := newPattern("pattern", query.Pattern, query.Hidden)
	if err != nil {
		return nil, err
	}
	full, err := s.resolve(orWorkdir(query.Path))
	if err != nil {
		return nil, err
	}
	dir, err := s.openTree(op, full)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	res, weight := &sandbox.GlobResult{Files: []*sandbox.FileInfo{}}, 0
	t, enter := newTrack(p), false
	w := s.newWalker(ctx, full)
	w.enter = func(*node) bool { return enter }
	w.visit = func(n *node) error {
		var matched bool
		matched, enter = t.at(n.rel, n.name)
		if !matched || p.dirs && !n.mode.IsDir() {
			return nil
		}
		info, err := s.statAt(n.fd(), n.name, "/")
		if errors.Is(err, fs.ErrNotExist) {
			return nil // removed while we looked
		}
		if err != nil {
			return renamed(err, n.path())
		}
		info.Path = n.path()
		weight += entryWeight + weigh(info.Path) + weigh(info.Target)
		if len(res.Files) == limit || weight > maxAnswer {
			res.Truncated = true
			return errStop
		}
		res.Files = append(res.Files, info)
		return nil
	}
	if err := w.walk(dir, "", 0); err != nil && !errors.Is(err, errStop) {
		return nil, fault(op, err)
	}
	res.Skipped = w.skipped
	slices.SortFunc(res.Files, func(a, b *sandbox.FileInfo) int { return strings.Compare(a.Path, b.Path) })
	return res, nil
}

// orWorkdir is where a search begins.
func orWorkdir(name string) string {
	if name == "" {
		return "."
	}
	return name
}

// weigh is about how long a text is in JSON, where some bytes become six.
func weigh(text string) int {
	n := len(text)
	for i := 0; i < len(text); i++ {
		if c := text[i]; c < ' ' || c == '"' || c == '\\' || c == 0x7f {
			n += 5
		}
	}
	if !utf8.ValidString(text) {
		n += 4 * len(text) // it is told in base64 as well
	}
	return n
}
