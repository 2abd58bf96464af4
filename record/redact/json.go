package redact

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
)

// Documents say what in the JSON of an operation is not the text of who acts.
// Patterns leave that alone: a wide one would make a history unreadable.
var (
	// words are the values of ours, at any place.
	words = []string{
		"code", "command_id", "content_hash", "expected_hash", "history_storage_state", "network", "previous_hash", "sandbox_id", "signal", "state",
	}
	// named are the objects whose keys are names that who acts has chosen, and
	// in which no word is ours.
	named = []string{"env", "limits", "metadata"}
)

// JSON masks the texts in the JSON of an operation: values, and names that
// whoever acts has chosen. Numbers, and what is ours, stay. The document comes
// back as it was if there is nothing to mask, else compact and with sorted
// keys.
func (m *Masker) JSON(doc json.RawMessage) (json.RawMessage, int) { return m.document(doc) }

// End is JSON for the result of an act that the recorder did itself, whose
// reason is in its own words.
func (m *Masker) End(doc json.RawMessage) (json.RawMessage, int) { return m.document(doc, "reason") }

func (m *Masker) document(doc json.RawMessage, ours ...string) (json.RawMessage, int) {
	if m.Off() || len(doc) == 0 || !m.suspects(string(doc)) && !bytes.Contains(doc, []byte(`\u`)) {
		return doc, 0
	}
	dec := json.NewDecoder(bytes.NewReader(doc))
	dec.UseNumber()
	var value any
	if dec.Decode(&value) != nil { // no JSON: all of it is text
		text, n := m.Text(string(doc))
		return json.RawMessage(text), n
	}
	w := walk{text: m, own: m.own(), ours: append(ours, words...)}
	if value = w.value(value); w.masked == 0 {
		return doc, 0
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		panic(err) // it was JSON a moment ago
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), w.masked
}

// walk masks a document.
type walk struct {
	text, own *Masker // of what is the text of who acts, and of what is ours
	ours      []string
	masked    int
}

func (w *walk) mask(m *Masker, s string) string {
	s, n := m.Text(s)
	w.masked += n
	return s
}

func (w *walk) value(value any) any {
	switch v := value.(type) {
	case string:
		return w.mask(w.text, v)
	case []any:
		for i := range v {
			v[i] = w.value(v[i])
		}
	case map[string]any:
		return w.object(v)
	}
	return value
}

func (w *walk) object(fields map[string]any) map[string]any {
	masked := make(map[string]any, len(fields))
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		value := fields[key]
		text, isText := value.(string)
		switch names, isObject := value.(map[string]any); {
		case isText && slices.Contains(w.ours, key):
			value = w.mask(w.own, text)
		case isObject && slices.Contains(named, key):
			value = w.names(names)
		default:
			value = w.value(value)
		}
		masked[w.mask(w.own, key)] = value
	}
	return masked
}

// names masks an object whose keys were chosen by who acts. Of those that a
// mask makes the same one stays.
func (w *walk) names(fields map[string]any) map[string]any {
	masked := make(map[string]any, len(fields))
	for key, value := range fields {
		masked[w.mask(w.text, key)] = w.value(value)
	}
	return masked
}
