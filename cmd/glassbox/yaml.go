package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// toYAML writes what a value is as JSON in YAML: one set of names for both.
// Every string is quoted, so that no reader takes it for another type, and
// holds only characters that both versions 1.1 and 1.2 of YAML allow.
func toYAML(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	tree, err := readTree(dec)
	if err != nil {
		return nil, err
	}
	y := &yamlWriter{}
	y.root(tree)
	return y.b.Bytes(), nil
}

// object is a JSON object in its order.
type object []member

type member struct {
	key   string
	value any
}

// readTree reads a value: an object, a []any, or a scalar.
func readTree(dec *json.Decoder) (any, error) {
	token, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('['):
		list := []any{}
		for dec.More() {
			item, err := readTree(dec)
			if err != nil {
				return nil, err
			}
			list = append(list, item)
		}
		_, err = dec.Token()
		return list, err
	case json.Delim('{'):
		return readObject(dec)
	}
	return token, nil
}

// readObject keeps the last value of a key that stands twice, as readers of
// JSON do; YAML has no such objects.
func readObject(dec *json.Decoder) (object, error) {
	o, at := object{}, map[string]int{}
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return nil, err
		}
		key, _ := token.(string) // no other can be a key
		value, err := readTree(dec)
		if err != nil {
			return nil, err
		}
		if i, ok := at[key]; ok {
			o[i].value = value
			continue
		}
		at[key] = len(o)
		o = append(o, member{key, value})
	}
	_, err := dec.Token()
	return o, err
}

type yamlWriter struct{ b bytes.Buffer }

// What lies deeper than maxBlock levels is written in one line: each level of
// a block makes every line of it longer.
const maxBlock = 16

func (y *yamlWriter) root(v any) {
	switch v := v.(type) {
	case object:
		if len(v) > 0 {
			y.members(v, 0, false)
			return
		}
	case []any:
		if len(v) > 0 {
			y.items(v, 0, false)
			return
		}
	}
	y.flow(v)
	y.b.WriteByte('\n')
}

// node writes a value after "key:" or "-". In a list it may begin in the same
// line.
func (y *yamlWriter) node(v any, level int, inList bool) {
	if level < maxBlock {
		switch v := v.(type) {
		case object:
			if len(v) > 0 {
				y.begin(inList)
				y.members(v, level, inList)
				return
			}
		case []any:
			if len(v) > 0 {
				y.begin(inList)
				y.items(v, level, inList)
				return
			}
		}
	}
	y.b.WriteByte(' ')
	y.flow(v)
	y.b.WriteByte('\n')
}

func (y *yamlWriter) begin(sameLine bool) {
	if sameLine {
		y.b.WriteByte(' ')
	} else {
		y.b.WriteByte('\n')
	}
}

func (y *yamlWriter) members(o object, level int, sameLine bool) {
	for i, m := range o {
		if i > 0 || !sameLine {
			y.indent(level)
		}
		key := yamlKey(m.key)
		if len(key) > maxKey {
			y.b.WriteString("? " + key + "\n")
			y.indent(level)
			y.b.WriteByte(':')
		} else {
			y.b.WriteString(key + ":")
		}
		y.node(m.value, level+1, false)
	}
}

func (y *yamlWriter) items(list []any, level int, sameLine bool) {
	for i, item := range list {
		if i > 0 || !sameLine {
			y.indent(level)
		}
		y.b.WriteByte('-')
		y.node(item, level+1, true)
	}
}

func (y *yamlWriter) indent(level int) { y.b.WriteString(strings.Repeat("  ", level)) }

// flow writes a value in one line.
func (y *yamlWriter) flow(v any) {
	switch v := v.(type) {
	case object:
		y.b.WriteByte('{')
		for i, m := range v {
			if i > 0 {
				y.b.WriteString(", ")
			}
			key := yamlQuote(m.key)
			if len(key) > maxKey {
				key = "? " + key + " "
			}
			y.b.WriteString(key + ": ")
			y.flow(m.value)
		}
		y.b.WriteByte('}')
	case []any:
		y.b.WriteByte('[')
		for i, item := range v {
			if i > 0 {
				y.b.WriteString(", ")
			}
			y.flow(item)
		}
		y.b.WriteByte(']')
	case string:
		y.b.WriteString(yamlQuote(v))
	case json.Number:
		y.b.WriteString(yamlNumber(v.String()))
	case nil:
		y.b.WriteString("null")
	default:
		fmt.Fprint(&y.b, v) // a bool
	}
}

// maxKey is the longest key that may stand before its colon, in bytes; YAML's
// limit is 1024 characters.
const maxKey = 1000

// yamlKey writes a key without quotes where it can be nothing but a name.
func yamlKey(key string) string {
	switch key {
	case "", "y", "n", "yes", "no", "on", "off", "true", "false", "null":
		return yamlQuote(key)
	}
	for _, r := range key {
		if r != '_' && (r < 'a' || 'z' < r) {
			return yamlQuote(key)
		}
	}
	return key
}

func yamlQuote(s string) string {
	b := make([]byte, 0, len(s)+2)
	b = append(b, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, `\n`...)
		case r == '\r':
			b = append(b, `\r`...)
		case r == '\t':
			b = append(b, `\t`...)
		case !hazardous(r):
			b = append(b, string(r)...)
		case r > 0xffff:
			b = fmt.Appendf(b, `\U%08x`, r)
		default:
			b = fmt.Appendf(b, `\u%04x`, r)
		}
	}
	return string(append(b, '"'))
}

// yamlNumber writes an exponent so that YAML 1.1 does not read it as a string:
// there it needs a point before it and a sign.
func yamlNumber(text string) string {
	at := strings.IndexAny(text, "eE")
	if at < 0 {
		return text
	}
	mantissa, exponent := text[:at], text[at+1:]
	if !strings.Contains(mantissa, ".") {
		mantissa += ".0"
	}
	if exponent[0] != '+' && exponent[0] != '-' {
		exponent = "+" + exponent
	}
	return mantissa + "e" + exponent
}
