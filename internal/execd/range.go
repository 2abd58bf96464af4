package execd

import (
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"

	"github.com/glassboxhq/glassbox/sandbox"
)

// part is what of a file was asked for.
type part struct {
	sandbox.ReadOptions
	ranged bool // by the header Range
	lines  bool
	empty  bool // a range of the last 0 bytes
}

// askedPart reads the header Range (the first range of it) or the lines of
// the query.
func (h *Handler) askedPart(r *http.Request, name string) (*part, error) {
	p := &part{}
	query := r.URL.Query()
	for field, to := range map[string]*int64{"offset": &p.Line, "limit": &p.Lines} {
		if text := query.Get(field); text != "" {
			var err error
			if *to, err = strconv.ParseInt(text, 10, 64); err != nil || *to < 1 {
				return nil, sandbox.Invalid(field, "must be a whole number, 1 or more")
			}
			p.lines = true
		}
	}
	text, given := strings.CutPrefix(r.Header.Get("Range"), "bytes=")
	switch {
	case p.lines && r.Header.Get("Range") != "":
		return nil, sandbox.Invalid("range", "is given in bytes or in lines, not in both")
	case !given || strings.Contains(text, ","): // several ranges may be answered by all
		return p, nil
	}
	p.ranged = true
	return p, p.parse(h, name, strings.TrimSpace(text))
}

func (p *part) parse(h *Handler, name, text string) error {
	bad := sandbox.Invalid("range", "must be bytes=FIRST-LAST, bytes=FIRST- or bytes=-COUNT")
	first, last, ok := strings.Cut(text, "-")
	if !ok {
		return bad
	}
	if first == "" {
		n, err := strconv.ParseInt(last, 10, 64)
		if err != nil || n < 0 {
			return bad
		}
		// A look that is a part of the read. What is not there is told by that.
		if info, err := os.Stat(sandbox.Resolve(h.opts.Workdir, name)); err == nil {
			p.Offset, p.empty = max(info.Size()-n, 0), n == 0
		}
		return nil
	}
	var err error
	if p.Offset, err = strconv.ParseInt(first, 10, 64); err != nil || p.Offset < 0 {
		return bad
	}
	if last == "" {
		return nil
	}
	end, err := strconv.ParseInt(last, 10, 64)
	if err != nil || end < p.Offset {
		return bad
	}
	p.Length = end - p.Offset + 1
	return nil
}

// describe writes what is known of an open file into headers.
func (p *part) describe(head http.Header, f io.Reader) int {
	var info *sandbox.FileInfo
	if d, ok := f.(sandbox.Described); ok {
		info = d.Info()
	}
	length := int64(-1)
	if in, ok := f.(sandbox.Ranged); ok {
		_, length = in.Range()
	}
	head.Set("Content-Type", "application/octet-stream")
	if p.lines {
		head.Set("Content-Type", "text/plain; charset=utf-8")
	}
	if info != nil {
		head.Set("Content-Disposition", disposition(info.Path))
		head.Set("Last-Modified", info.Modified.UTC().Format(http.TimeFormat))
	}
	head.Set("Accept-Ranges", "bytes")
	if !p.ranged || info == nil {
		if length >= 0 && !p.growing(info, length) {
			head.Set("Content-Length", strconv.FormatInt(length, 10))
		}
		return http.StatusOK
	}
	size := strconv.FormatInt(info.Size, 10)
	if p.empty || length <= 0 {
		head.Set("Content-Range", "bytes */"+size)
		head.Del("Content-Disposition")
		return http.StatusRequestedRangeNotSatisfiable
	}
	head.Set("Content-Length", strconv.FormatInt(length, 10))
	head.Set("Content-Range", "bytes "+strconv.FormatInt(p.Offset, 10)+"-"+strconv.FormatInt(p.Offset+length-1, 10)+"/"+size)
	return http.StatusPartialContent
}

// growing tells of a file of the kernel, which has more than it says.
func (p *part) growing(info *sandbox.FileInfo, length int64) bool {
	return length == 0 && !p.lines && info != nil && strings.HasPrefix(info.Path, "/proc/")
}
