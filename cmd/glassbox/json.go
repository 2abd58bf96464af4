package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// lineOfJSON writes a value as JSON in one line.
func lineOfJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return escapeJSON(b.Bytes()), nil
}

func indentedJSON(v any) ([]byte, error) {
	line, err := lineOfJSON(v)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = json.Indent(&b, line, "", "  ")
	return b.Bytes(), err
}

// hazardous reports whether a character is written as an escape: it could act
// on the terminal that shows it, or some reader refuses it.
func hazardous(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control) ||
		r == '\u2028' || r == '\u2029' || r == '\ufeff' ||
		r&0xfffe == 0xfffe || '\ufdd0' <= r && r <= '\ufdef' // no characters, as Unicode says
}

// escapeJSON writes the hazardous characters of a JSON text as escapes, and
// what is not UTF-8 as the replacement character. All of them stand in strings,
// but for the line break at the end.
func escapeJSON(text []byte) []byte {
	if ascii(text) {
		return text
	}
	out := make([]byte, 0, len(text)+len(text)/8)
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		switch {
		case r == utf8.RuneError && size == 1:
			out = append(out, `\ufffd`...)
		case r < 0x7f || !hazardous(r):
			out = append(out, text[:size]...)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		text = text[size:]
	}
	return out
}

// ascii reports whether a text holds nothing from DEL on.
func ascii(text []byte) bool {
	for _, b := range text {
		if b >= 0x7f {
			return false
		}
	}
	return true
}
