package redact

import (
	"bytes"
	"encoding/json"
)

// JSON masks the texts in a JSON document; its keys and numbers stay. The
// document comes back as it was if there is nothing to mask, else compact and
// with sorted keys.
func (m *Masker) JSON(doc json.RawMessage) (json.RawMessage, int) {
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
	value, n := m.value(value)
	if n == 0 {
		return doc, 0
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		panic(err) // it was JSON a moment ago
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), n
}

func (m *Masker) value(value any) (any, int) {
	masked := 0
	switch v := value.(type) {
	case string:
		return m.Text(v)
	case []any:
		for i := range v {
			var n int
			v[i], n = m.value(v[i])
			masked += n
		}
	case map[string]any:
		for key := range v {
			var n int
			v[key], n = m.value(v[key])
			masked += n
		}
	}
	return value, masked
}
