package history

import (
	"encoding/json"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/glassboxhq/glassbox/sandbox"
)

// timeFormat is UTC with six digits always: times sort as text.
const timeFormat = "2006-01-02T15:04:05.000000Z"

// FormatTime writes a time as the history's files hold it.
func FormatTime(t time.Time) string { return t.UTC().Format(timeFormat) }

// ParseTime reads a time as any writer of the format may have written it.
func ParseTime(s string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return time.Time{}, &sandbox.Error{Op: "read time", Code: sandbox.CodeHistory, Err: err}
	}
	return t.UTC(), nil
}

// Encode writes request or result fields as the history's files hold them:
// compact, keys sorted, text other than ASCII kept.
func Encode(fields map[string]any) json.RawMessage {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(fields); err != nil {
		panic(err) // fields hold only plain values
	}
	return json.RawMessage(strings.TrimSuffix(b.String(), "\n"))
}

// EncodeRequest is Encode with the marker by which [Ours] knows our rows.
func EncodeRequest(fields map[string]any) json.RawMessage {
	fields[marker] = RecorderProtocol
	return Encode(fields)
}

// Ours reports whether a request was written by a recorder of ours, not by
// the Python SDK.
func Ours(request json.RawMessage) bool {
	var fields struct {
		Recorder int `json:"recorder"`
	}
	return json.Unmarshal(request, &fields) == nil && fields.Recorder > 0
}

// Final reports whether a status ends an operation.
func Final(s sandbox.Status) bool { return s != sandbox.Started }

func printable(s string) bool {
	return utf8.ValidString(s) && strings.IndexFunc(s, unicode.IsControl) < 0
}
