package mirror

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/glassboxhq/glassbox/internal/db"
)

// What is searched for is cut into grams: two characters where one of them is
// of a script that is written without spaces, else three. A text that holds
// another one holds all of its grams, so the index finds every place where it
// may be, whatever stands before and behind it; what was found is then looked
// at. A gram is kept as a number: two that share one cost a second look.

// gramBits is the size of such a number.
const gramBits = 25

type gramSet map[uint32]struct{}

// add takes the grams of a text, which is folded. A byte that is no UTF-8 parts
// two texts: whoever looks for something looks for characters.
func (g gramSet) add(text string) {
	var a, b rune = -1, -1 // the two before
	var wideA, wideB bool
	for _, c := range text {
		if c == utf8.RuneError {
			a, b, wideA, wideB = -1, -1, false, false
			continue
		}
		wide := isWide(c)
		switch {
		case b >= 0 && (wide || wideB):
			g[gramOf(b, c, 0)] = struct{}{}
		case a >= 0 && !wideA:
			g[gramOf(a, b, c)] = struct{}{}
		}
		a, wideA, b, wideB = b, wideB, c, wide
	}
}

func gramOf(a, b, c rune) uint32 {
	const prime = 16777619 // FNV-1a, of runes
	h := uint32(2166136261)
	for _, r := range [...]rune{a, b, c} {
		h = (h ^ uint32(r)) * prime
		h ^= h >> 15
	}
	return h >> (32 - gramBits)
}

func isWide(r rune) bool {
	if r < 0x1100 {
		return false
	}
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar) ||
		r >= 0x3000 && r < 0x3040 || r >= 0xff00 && r < 0xfff0 // their punctuation, and wide forms
}

// list is the grams in a steady order, at most limit; 0: all.
func (g gramSet) list(limit int) []uint32 {
	list := make([]uint32, 0, len(g))
	for gram := range g {
		list = append(list, gram)
	}
	slices.Sort(list)
	if limit > 0 && len(list) > limit {
		list = list[:limit]
	}
	return list
}

// words is the grams as each database keeps or asks for them.
func words(d *db.DB, grams []uint32) string {
	var b strings.Builder
	base, between := 32, " "
	if d.Kind() == "postgres" {
		base, between = 10, ","
		b.WriteByte('{')
	}
	var buf [8]byte
	for i, gram := range grams {
		if i > 0 {
			b.WriteString(between)
		}
		b.Write(strconv.AppendUint(buf[:0], uint64(gram), base))
	}
	if base == 10 {
		b.WriteByte('}')
	}
	return b.String()
}

// fold puts letters into lower case, and keeps the place of every byte.
func fold(s string) string {
	plain := true
	for i := range len(s) {
		if c := s[i]; c >= utf8.RuneSelf || 'A' <= c && c <= 'Z' {
			plain = false
			break
		}
	}
	if plain {
		return s
	}
	b := []byte(s)
	for i := 0; i < len(b); {
		c := b[i]
		if c < utf8.RuneSelf {
			if 'A' <= c && c <= 'Z' {
				b[i] = c + 'a' - 'A'
			}
			i++
			continue
		}
		r, n := utf8.DecodeRune(b[i:])
		if low := unicode.ToLower(r); low != r && utf8.RuneLen(low) == n {
			utf8.EncodeRune(b[i:], low)
		}
		i += n
	}
	return string(b)
}
