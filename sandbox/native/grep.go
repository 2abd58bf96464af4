package native

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/glassboxhq/glassbox/sandbox"
)

// Grep implements sandbox.Searcher.
func (s *Session) Grep(ctx context.Context, query *sandbox.GrepQuery) (*sandbox.GrepResult, error) {
	const op = "search files"
	g, err := newSearch(ctx, query)
	if err != nil {
		return nil, err
	}
	full, err := s.resolve(orWorkdir(query.Path))
	if err != nil {
		return nil, err
	}
	dir, err := s.openTree(op, full)
	if errors.Is(err, sandbox.ErrNotDirectory) {
		if err := g.one(op, full); err != nil && !errors.Is(err, errStop) {
			return nil, fault(op, err)
		}
		return g.res, nil
	}
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	t, enter := newTrack(g.names), false
	w := s.newWalker(ctx, full)
	w.enter = func(*node) bool { return enter }
	w.visit = func(n *node) error {
		var matched bool
		matched, enter = t.at(n.rel, n.name)
		if !matched || !n.mode.IsRegular() {
			return nil
		}
		return g.in(n)
	}
	if err := w.walk(dir, "", 0); err != nil && !errors.Is(err, errStop) {
		return nil, fault(op, err)
	}
	g.res.Skipped += w.skipped
	return g.res, nil
}

// search is one search under way.
type search struct {
	ctx    context.Context //nolint:containedctx // of the one act that searches
	query  *sandbox.GrepQuery
	limit  int
	names  *pattern
	find   func(line []byte) []int // where in a line the first match is; nil: nowhere
	lines  *lineReader
	res    *sandbox.GrepResult
	weight int
}

func newSearch(ctx context.Context, query *sandbox.GrepQuery) (*search, error) {
	g := &search{ctx: ctx, query: query, res: &sandbox.GrepResult{Matches: []*sandbox.Match{}}, lines: newLineReader()}
	err := query.Validate()
	if err != nil {
		return nil, err
	}
	g.limit = cmp.Or(query.Limit, sandbox.DefaultGrepLimit)
	if g.find, err = finder(query); err != nil {
		return nil, err
	}
	glob := "**"
	if query.Glob != "" {
		if _, err := newPattern("glob", query.Glob, query.Hidden); err != nil {
			return nil, err
		}
		glob = query.Glob
		if !strings.Contains(glob, "/") {
			glob = "**/" + glob // a name, wherever the file is
		}
	}
	g.names, err = newPattern("glob", glob, query.Hidden)
	return g, err
}

func finder(query *sandbox.GrepQuery) (func([]byte) []int, error) {
	if !query.Regexp && !query.IgnoreCase {
		want := []byte(query.Pattern)
		return func(line []byte) []int {
			at := bytes.Index(line, want)
			if at < 0 {
				return nil
			}
			return []int{at, at + len(want)}
		}, nil
	}
	expr := query.Pattern
	if !query.Regexp {
		expr = regexp.QuoteMeta(expr)
	}
	if query.IgnoreCase {
		expr = "(?i)" + expr
	}
	re, err := regexp.Compile(expr)
	if err != nil {
		return nil, sandbox.Invalid("pattern", "is not a regular expression of RE2: "+strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	return re.FindIndex, nil
}

// one searches a file that was named.
func (g *search) one(op, full string) error {
	f, _, err := openRegular(op, unix.AT_FDCWD, full)
	if err != nil {
		return err
	}
	defer f.Close()
	return g.file(f, full)
}

// in searches a file of a tree. One that cannot be read is counted. A search
// opens many files, so it asks the system for no more than it needs.
func (g *search) in(n *node) error {
	fd, err := openName(n.fd(), n.name)
	if errors.Is(err, unix.ENOENT) {
		return nil // removed while we looked
	}
	if err != nil {
		g.res.Skipped++
		return nil
	}
	f := &plainFile{fd: fd}
	defer f.close()
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil || stat.Mode&unix.S_IFMT != unix.S_IFREG {
		g.res.Skipped++ // it has become something else
		return nil
	}
	f.size = stat.Size
	err = g.file(f, n.path())
	if errors.Is(err, errRead) {
		g.res.Skipped++
		return nil
	}
	return err
}

// errRead is the error of a file that could not be read to its end.
var errRead = errors.New("cannot be read")

// plainFile reads a regular file, up to the size that it had.
type plainFile struct {
	fd       int
	at, size int64
}

func (f *plainFile) Read(p []byte) (int, error) {
	if f.at >= f.size && f.size > 0 {
		return 0, io.EOF
	}
	for {
		n, err := unix.Read(f.fd, p)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return 0, fmt.Errorf("%w: %w", errRead, err)
		case n == 0:
			return 0, io.EOF
		}
		f.at += int64(n)
		return n, nil
	}
}

func (f *plainFile) close() { _ = unix.Close(f.fd) } // it was only read

// openName opens a name of an open directory for reading, and no link.
func openName(dir int, name string) (fd int, err error) {
	for range openTries {
		fd, err = unix.Openat(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
		if !errors.Is(err, unix.EINTR) && !errors.Is(err, unix.EAGAIN) {
			break
		}
	}
	return fd, err
}

// errBinary ends the search of a file that is no text.
var errBinary = errors.New("holds a NUL byte")

func (g *search) file(r io.Reader, name string) error {
	g.res.Files++
	before, weight := len(g.res.Matches), g.weight
	g.lines.reset(reading(g.ctx, r))
	f := &fileSearch{search: g, name: name}
	err := f.run()
	if errors.Is(err, errBinary) {
		g.res.Matches, g.weight = g.res.Matches[:before], weight
		g.res.Binary++
		return nil
	}
	return err
}

// fileSearch is the search of one file.
type fileSearch struct {
	*search
	name   string
	number int              // of the line
	found  int              // matches
	last   []string         // lines before, as many as are asked for
	open   []*sandbox.Match // which want lines after them
}

func (f *fileSearch) run() error {
	for {
		line, err := f.lines.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		f.number++
		if done, err := f.line(line); done || err != nil {
			return err
		}
	}
}

// line looks at a line; done tells that no more of the file is wanted.
func (f *fileSearch) line(line []byte) (done bool, err error) {
	full := f.query.FileLimit > 0 && f.found >= f.query.FileLimit
	var at []int
	if !full {
		at = f.find(line)
	}
	var context string
	if len(f.open) > 0 || f.query.Before > 0 {
		context, _ = cut(line, 0)
	}
	for _, m := range f.open {
		m.After = append(m.After, context)
		f.weight += weigh(context)
	}
	if len(f.open) > 0 && len(f.open[0].After) == f.query.After {
		f.open = f.open[1:]
	}
	if at != nil {
		if err := f.match(line, at[0]); err != nil {
			return false, err
		}
	}
	if f.query.Before > 0 {
		if len(f.last) == f.query.Before {
			f.last = f.last[1:]
		}
		f.last = append(f.last, context)
	}
	full = f.query.FileLimit > 0 && f.found >= f.query.FileLimit
	return full && len(f.open) == 0, nil
}

func (f *fileSearch) match(line []byte, at int) error {
	m := &sandbox.Match{Path: f.name, Line: f.number, Column: at + 1}
	m.Text, m.Cut = cut(line, at)
	m.Before = append(m.Before, f.last...)
	f.weight += entryWeight + weigh(m.Path) + weigh(m.Text)
	for _, line := range m.Before {
		f.weight += weigh(line)
	}
	if len(f.res.Matches) == f.limit || f.weight > maxAnswer {
		f.res.Truncated = true
		return errStop
	}
	f.res.Matches = append(f.res.Matches, m)
	f.found++
	if f.query.After > 0 {
		f.open = append(f.open, m)
	}
	return nil
}

// lineReader reads lines, of which it holds at most maxLine bytes.
type lineReader struct {
	r    *bufio.Reader
	long []byte
}

const (
	lineBuffer = 128 << 10
	maxLine    = 16 << 20
)

func newLineReader() *lineReader { return &lineReader{r: bufio.NewReaderSize(nil, lineBuffer)} }

func (l *lineReader) reset(r io.Reader) { l.r.Reset(r) }

// next returns a line without its end, until the next call.
func (l *lineReader) next() ([]byte, error) {
	line, err := l.r.ReadSlice('\n')
	if bytes.IndexByte(line, 0) >= 0 {
		return nil, errBinary
	}
	l.long = l.long[:0]
	for errors.Is(err, bufio.ErrBufferFull) {
		l.long = append(l.long, line[:min(len(line), maxLine-len(l.long))]...)
		line, err = l.r.ReadSlice('\n')
		if bytes.IndexByte(line, 0) >= 0 {
			return nil, errBinary
		}
	}
	if len(l.long) > 0 {
		l.long = append(l.long, line[:min(len(line), maxLine-len(l.long))]...)
		line = l.long
	}
	if err != nil && (!errors.Is(err, io.EOF) || len(line) == 0) {
		return nil, err
	}
	return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r")), nil
}

// A line that is longer than maxShown is shown around its match.
const (
	maxShown   = 4 << 10
	shownAhead = 1 << 10
)

// cut makes text of a line.
func cut(line []byte, at int) (text string, cut bool) {
	if len(line) > maxShown {
		from := min(max(0, at-shownAhead), len(line)-maxShown)
		line, cut = line[from:from+maxShown], true
		for range 3 { // not in the middle of a character
			if len(line) > 0 && line[0]&0xC0 == 0x80 && from > 0 {
				line = line[1:]
			}
		}
		for i := 1; i <= 3 && i <= len(line); i++ {
			if c := line[len(line)-i]; c >= 0xC0 {
				line = line[:len(line)-i]
				break
			} else if c < 0x80 {
				break
			}
		}
	}
	return strings.ToValidUTF8(string(line), "\uFFFD"), cut
}
