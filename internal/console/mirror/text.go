package mirror

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"unicode/utf8"
)

// field is a text of an operation that can be found.
type field struct {
	name   string
	text   string
	offset int64 // in the stream, of output
}

// fields are the texts of an operation without its output. The keys of request
// and result are ours, so nobody looks for them.
func (k *kept) fields() []field {
	var list []field
	add := func(name, text string) {
		if text != "" {
			list = append(list, field{name: name, text: text})
		}
	}
	if k.Command != nil {
		add("command", k.Command.Line)
		add("cwd", k.Command.Dir)
	}
	if k.File != nil {
		add("path", k.File.Path)
		add("old_path", k.File.OldPath)
	}
	if k.Changes != nil {
		for change := range k.Changes.All() {
			add("changes", change.Path)
		}
	}
	if k.File != nil {
		add("diff", k.File.Diff)
	}
	eachValue(k.Request, func(text string) { add("request", text) })
	eachValue(k.Result, func(text string) { add("result", text) })
	return list
}

// eachValue calls do for each text and number of a document.
func eachValue(doc json.RawMessage, do func(string)) {
	if len(doc) == 0 {
		return
	}
	dec := json.NewDecoder(bytes.NewReader(doc))
	dec.UseNumber()
	var value any
	if dec.Decode(&value) == nil {
		walk(value, do)
	}
}

func walk(value any, do func(string)) {
	switch v := value.(type) {
	case string:
		do(v)
	case json.Number:
		do(v.String())
	case []any:
		for _, item := range v {
			walk(item, do)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			walk(v[key], do)
		}
	}
}

// Output is searched in parts, which overlap by the longest text that is
// looked for.
const (
	partSize = 64 << 10
	overlap  = 512
	maxParts = 1024 // what lies behind them, from 64 MiB on, is not searched
	partBits = 10
)

// parts is how many parts an operation has, at least one.
func (k *kept) parts() int64 {
	if !k.bodies {
		return 1
	}
	n := (max(k.stdout, k.stderr) + partSize - 1) / partSize
	return min(max(n, 1), maxParts)
}

// smallPart is a part that is searched whatever it holds.
const smallPart = 4 << 10

// binary reports whether a part of output is no text: more than a third of it
// is no UTF-8. What little it has of characters is chance, and would fill the
// index.
func binary(part string) bool {
	if len(part) <= smallPart {
		return false
	}
	bad := 0
	for i := 0; i < len(part); {
		r, n := utf8.DecodeRuneInString(part[i:])
		if r == utf8.RuneError && n == 1 {
			bad++
		}
		i += n
	}
	return bad > len(part)/3
}
