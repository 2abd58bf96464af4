package server

import (
	"encoding/base64"
	"encoding/json"
	"reflect"

	"github.com/glassboxhq/glassbox/sandbox"
)

var problemGoType = reflect.TypeFor[Problem]()

// Paging asks for a part of a list.
type Paging struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"200" default:"50" doc:"how many at most"`
	Cursor string `query:"cursor" maxLength:"1024" doc:"the next_cursor of the page before"`
}

// listed is a part of a list.
type listed[T any] struct{ Body Page[T] }

// Page is a part of a list.
type Page[T any] struct {
	Items []T    `json:"items" nullable:"false"`
	Next  string `json:"next_cursor,omitempty" doc:"asks for the next page; absent: this is the last"`
}

// pageOf reads one more than is asked for, to know whether there is more. The
// cursor is where the last one stands.
func pageOf[From, T any](p *Paging, read func(after string, limit int) ([]From, error), convert func(From) (T, string)) (*listed[T], error) {
	var after string
	if err := readCursor(p.Cursor, &after); err != nil {
		return nil, err
	}
	list, err := read(after, p.Limit+1)
	if err != nil {
		return nil, err
	}
	out := &listed[T]{Page[T]{Items: []T{}}}
	for i, from := range list {
		if i == p.Limit {
			out.Body.Next = cursor(after)
			break
		}
		var item T
		item, after = convert(from)
		out.Body.Items = append(out.Body.Items, item)
	}
	return out, nil
}

// cursor writes a place in a list, for nobody to look into.
func cursor(place any) string {
	text, err := json.Marshal(place)
	if err != nil {
		panic(err) // plain values only
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// readCursor reads a place back; an empty cursor leaves it as it is.
func readCursor(text string, place any) error {
	if text == "" {
		return nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(raw, place)
	}
	if s, ok := place.(*string); ok && clip(*s) != *s {
		err = sandbox.ErrInvalid
	}
	if err != nil {
		return &sandbox.Error{Code: codeCursor, Field: "cursor", Message: "is none of this list's"}
	}
	return nil
}
