package mirror

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Snippet is a place at which a text was found.
type Snippet struct {
	Field string // command, cwd, path, old_path, changes, diff, request, result, stdout or stderr
	// Offset is where the text begins, in bytes: of output in its stream.
	Offset     int64
	Text       string
	Start, End int // of what was looked for, in bytes of Text
}

const around = 80 // bytes before and behind

// snip finds each term in the first field that has it, and returns the terms
// that none has.
func snip(fields []field, terms []string) (found []Snippet, missing []string) {
	folded := make([]string, len(fields))
	for _, term := range terms {
		at := -1
		for i, f := range fields {
			if folded[i] == "" {
				folded[i] = fold(f.text)
			}
			if at = strings.Index(folded[i], term); at >= 0 {
				found = append(found, cut(&f, at, len(term)))
				break
			}
		}
		if at < 0 {
			missing = append(missing, term)
		}
	}
	return found, missing
}

// cut takes what stands around a place out of a text.
func cut(f *field, at, length int) Snippet {
	from, to := max(at-around, 0), min(at+length+around, len(f.text))
	for from > 0 && from < at && !utf8.RuneStart(f.text[from]) {
		from++
	}
	for to < len(f.text) && to > at+length && !utf8.RuneStart(f.text[to]) {
		to--
	}
	before, hit := visible(f.text[from:at]), visible(f.text[at:at+length])
	return Snippet{
		Field: f.name, Offset: f.offset + int64(at), Text: before + hit + visible(f.text[at+length:to]),
		Start: len(before), End: len(before) + len(hit),
	}
}

// visible is text without what would move a cursor.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}
