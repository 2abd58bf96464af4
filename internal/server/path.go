package server

import (
	"encoding/base64"
	"mime"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/glassboxhq/glassbox/sandbox"
)

// A file's name is bytes, and JSON holds text: a name that is no UTF-8 comes a
// second time, in base64, and is asked for by that.

// FilePath names a file in a query.
type FilePath struct {
	Path      string `query:"path" maxLength:"4096" doc:"absolute, or below the working directory"`
	PathBytes string `query:"path_base64" maxLength:"8192" doc:"in the place of path: one that is no UTF-8"`
}

func (p *FilePath) name() (string, error) {
	raw, err := base64.StdEncoding.DecodeString(p.PathBytes)
	if err != nil {
		return "", sandbox.Invalid("path_base64", "must be base64, as path_base64 of a list is")
	}
	return nameOf("path", p.Path, raw)
}

// BodyPath names a file in a body.
type BodyPath struct {
	Path      string `json:"path,omitempty" maxLength:"4096" doc:"absolute, or below the working directory"`
	PathBytes []byte `json:"path_base64,omitempty" maxLength:"8192" doc:"in the place of path: one that is no UTF-8"`
}

func (p *BodyPath) name() (string, error) { return nameOf("path", p.Path, p.PathBytes) }

func nameOf(field, text string, raw []byte) (string, error) {
	switch {
	case text != "" && len(raw) > 0:
		return "", sandbox.Invalid(field, "is given twice")
	case text == "" && len(raw) == 0:
		return "", sandbox.Invalid(field, "must not be empty")
	case text == "":
		text = string(raw)
	}
	if strings.ContainsRune(text, 0) {
		return "", sandbox.Invalid(field, "must not contain NUL bytes")
	}
	return text, nil
}

// notText returns what JSON would not tell of a name.
func notText(name string) []byte {
	if utf8.ValidString(name) {
		return nil
	}
	return []byte(name)
}

// attachment is the Content-Disposition of a file: to be saved, whatever it
// says that it is.
func attachment(name string) string {
	base := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == utf8.RuneError || r == '/' || r == '\\' || 0x202a <= r && r <= 0x202e || 0x2066 <= r && r <= 0x2069 {
			return '_' // controls, and what turns the direction of writing
		}
		return r
	}, path.Base(name))
	if strings.Trim(base, "._ ") == "" {
		base = "file"
	}
	return mime.FormatMediaType("attachment", map[string]string{"filename": base})
}
