package redact

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
)

// detectStage masks what the detectors find.
type detectStage struct {
	table *table
	held  []byte
	prev  []byte // the last bytes before held, as they came out
	run   *set   // what is being masked
	body  int    // bytes that may still belong to the body of a key; 0: none
	after byte   // in a body: the byte before, as it was written
	cut   bool   // the end is not that of the stream
	fresh bool   // nothing of the body has been masked yet
	found int    // secrets masked by this write
}

// telling is how much of a secret is worth to be masked when its end is not
// known.
const telling = 8

func (d *detectStage) write(dst, p []byte, last bool) (out []byte, masked int) {
	if last && d.cut {
		dst, masked = d.write(dst, p, false)
		if len(d.held) >= telling {
			cover(d.held)
			masked++
		}
		return append(dst, d.held...), masked
	}
	b := p
	if len(d.held) > 0 {
		b = append(d.held, p...)
	}
	i := 0
	d.found = 0
	for i < len(b) {
		if i = d.goOn(b, i); i == len(b) {
			break
		}
		j := d.table.next(b, i, last)
		if j == len(b) {
			i = j
			break
		}
		f := d.try(b, j, last)
		if f.verdict == more {
			i = j
			break
		}
		if i = j + 1; f.verdict == miss {
			continue
		}
		cover(b[j+f.start : j+f.end])
		i, d.run = j+f.end, f.run
		if f.body {
			d.body, d.after, d.fresh = maxBody, '-', true
		} else {
			d.found++
		}
	}
	if i > 0 {
		d.prev = append(d.prev, b[max(i-maxEscape, 0):i]...)
		d.prev = append(d.prev[:0], d.prev[max(len(d.prev)-maxEscape, 0):]...)
	}
	dst = append(dst, b[:i]...)
	d.held = append(d.held[:0], b[i:]...)
	return dst, d.found
}

func (d *detectStage) try(b []byte, at int, last bool) finding {
	prev := d.before(b, at)
	for _, r := range d.table.candidates(b[at:]) {
		if f := r.try(b[at:], prev, last); f.verdict != miss {
			return f
		}
	}
	return finding{}
}

// maxEscape is how far back an escape is looked for.
const maxEscape = 16

// before returns the byte before a place, or a space where that byte ends an
// escape: a letter there is no part of the word behind it.
func (d *detectStage) before(b []byte, at int) byte {
	seen := b[max(at-maxEscape, 0):at]
	if len(seen) < maxEscape {
		seen = append(slices.Clone(d.prev), seen...)
	}
	n := len(seen)
	switch {
	case n == 0:
		return '\n'
	case !alnum.has(seen[n-1]):
	case n >= 2 && seen[n-2] == '\\' && strings.IndexByte("nrtbfv", seen[n-1]) >= 0, // of a string
		n >= 3 && seen[n-3] == '%' && isHex(seen[n-2]) && isHex(seen[n-1]), // of a URL
		colour.Match(seen):
		return ' '
	}
	return seen[n-1]
}

// colour is the end of a control sequence of a terminal.
var colour = regexp.MustCompile(`\x1b\[[0-9;]*[A-Za-z]$`)

func isHex(b byte) bool { return b >= '0' && b <= '9' || b >= 'a' && b <= 'f' || b >= 'A' && b <= 'F' }

// goOn masks the rest of a secret whose beginning has been masked.
func (d *detectStage) goOn(b []byte, i int) int {
	if d.run != nil {
		end := until(b, i, d.run, len(b))
		cover(b[i:end])
		if i = end; i < len(b) {
			d.run = nil
		}
	}
	for ; d.body > 0 && i < len(b); i++ {
		c := b[i]
		if d.body--; !keyBody.has(c) || c == '-' && !alnum.has(d.after) {
			d.body = 0
			break
		}
		if d.after = c; keyText.has(c) {
			b[i] = Mask
			if d.fresh {
				d.found, d.fresh = d.found+1, false
			}
		}
	}
	return i
}

var (
	keyText = setOf("azAZ09++//==--")                     // of the body of a key, masked
	keyBody = setOf("azAZ09++//==--  ,,::\"\"''\\\\\t\r") // with what may stand between
)

func cover(b []byte) {
	for i := range b {
		b[i] = Mask
	}
}

// window is how far a pattern sees in a line. Of a longer line each half is
// looked at with the one that follows, so no match of up to half a window is
// cut.
const window = 8 << 10

// patternStage masks what patterns match, line by line.
type patternStage struct {
	patterns []*regexp.Regexp
	held     []byte
}

func (s *patternStage) write(dst, p []byte, last bool) (out []byte, masked int) {
	b := append(s.held, p...)
	for len(b) > 0 {
		end := bytes.IndexByte(b[:min(len(b), window)], '\n') + 1
		decided := end
		switch {
		case end > 0:
		case len(b) >= window:
			end, decided = window, window/2
		case last:
			end, decided = len(b), len(b)
		default:
			s.held = append([]byte(nil), b...)
			return dst, masked
		}
		n, reached := s.mask(b[:end], decided)
		masked += n
		reached = max(reached, decided)
		dst = append(dst, b[:reached]...)
		b = b[reached:]
	}
	s.held = nil
	return dst, masked
}

// mask masks the matches that begin before a place, and returns how far they
// reach.
func (s *patternStage) mask(line []byte, before int) (masked, reached int) {
	var spans [][]int
	for _, re := range s.patterns {
		for _, m := range re.FindAllIndex(line, -1) {
			if m[0] < before && m[1] > m[0] {
				spans = append(spans, m)
			}
		}
	}
	for _, m := range spans {
		reached = max(reached, m[1])
		for i := m[0]; i < m[1]; i++ {
			if line[i] != '\n' {
				line[i] = Mask
			}
		}
	}
	return len(spans), reached
}
