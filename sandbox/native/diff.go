package native

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"

	"github.com/glassboxhq/glassbox/sandbox"
)

// A diff is made of texts up to maxDiffText, and cut at maxDiff.
const (
	maxDiffText = 1 << 20
	maxDiff     = 256 << 10
	diffContext = 3
)

// prefix keeps the beginning of what is written to it, for a diff.
type prefix struct {
	kept []byte
	more bool // than is kept
}

// Write implements io.Writer.
func (p *prefix) Write(b []byte) (int, error) {
	n := min(len(b), maxDiffText-len(p.kept))
	p.kept = append(p.kept, b[:n]...)
	p.more = p.more || n < len(b)
	return len(b), nil
}

// text reports whether what is kept may be shown as text.
func (p *prefix) text() bool {
	kept := p.kept
	for i := 0; p.more && i < utf8.UTFMax && len(kept) > 0 && !utf8.Valid(kept); i++ {
		kept = kept[:len(kept)-1] // a character was cut
	}
	return utf8.Valid(kept) && bytes.IndexByte(kept, 0) < 0
}

// tell puts into info what a write changed.
func (s *Session) tell(info *sandbox.FileInfo, old *version, now *prefix) {
	before := &old.prefix
	if !before.text() || !now.text() {
		return
	}
	if before.more || now.more {
		info.DiffTruncated = true
		return
	}
	// A secret is known by what stands around it, which a diff leaves out.
	texts := [2]string{string(before.kept), string(now.kept)}
	for i := range texts {
		if s.opts.Mask != nil {
			texts[i] = s.opts.Mask(texts[i])
		}
	}
	info.Diff, info.DiffTruncated = unified(info.Path, old.exists, texts[0], texts[1])
}

// unified makes the diff of two texts. The library bounds its search, so that
// texts which have nothing in common do not take long.
func unified(name string, existed bool, before, after string) (diff string, truncated bool) {
	label := name
	if strconv.Quote(name) != `"`+name+`"` {
		label = strconv.Quote(name) // a line end in a name would end the label
	}
	from := label
	if !existed {
		from = "/dev/null"
	}
	diff, err := udiff.ToUnified(from, label, before, udiff.Lines(before, after), diffContext)
	if err != nil {
		return "", true
	}
	if len(diff) <= maxDiff {
		return diff, false
	}
	diff = diff[:maxDiff]
	if end := strings.LastIndexByte(diff, '\n'); end >= 0 {
		return diff[:end+1], true
	}
	return strings.ToValidUTF8(diff, ""), true
}
