package execd

import "strings"

// shellWords splits a line of plain and quoted words, as Python's shlex.join
// and nothing else writes it. A line with anything that a shell would read
// differently is none.
func shellWords(line string) (words []string, ok bool) {
	for rest := line; ; {
		var word strings.Builder
		for len(rest) > 0 && rest[0] != ' ' {
			switch c := rest[0]; {
			case c == '\'':
				text, after, closed := strings.Cut(rest[1:], "'")
				if !closed {
					return nil, false
				}
				word.WriteString(text)
				rest = after
			case strings.HasPrefix(rest, `"'"`): // a quote in a quoted word
				word.WriteByte('\'')
				rest = rest[3:]
			case plainByte(c):
				word.WriteByte(c)
				rest = rest[1:]
			default:
				return nil, false
			}
		}
		words = append(words, word.String())
		if rest == "" {
			return words, true
		}
		rest = rest[1:]
	}
}

// plainByte is what shlex.join leaves without quotes.
func plainByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("_@%+=:,./-", c) >= 0
}
