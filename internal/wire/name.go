package wire

import (
	"encoding/base32"
	"maps"
	"strconv"
	"strings"
	"unicode/utf8"
)

// MetaExactName begins the keys under which a name stands in the metadata of a
// service that keeps no extensions, where a label cannot hold it: in base32, cut
// into labels.
//
//	glassbox.name, glassbox.name.1, glassbox.name.2 …
const MetaExactName = "glassbox.name"

// maxLabel is the longest value of a label, in characters.
const maxLabel = 63

// nameEncoding has letters and digits only, at which a label must begin and end.
var nameEncoding = base32.HexEncoding.WithPadding(base32.NoPadding)

// NameLabels returns the metadata that holds a name of any script.
func NameLabels(name string) map[string]string {
	labels := map[string]string{}
	text := strings.ToLower(nameEncoding.EncodeToString([]byte(name)))
	for i := 0; i == 0 || text != ""; i++ {
		n := min(len(text), maxLabel)
		labels[nameKey(i)], text = text[:n], text[n:]
	}
	return labels
}

func nameKey(i int) string {
	if i == 0 {
		return MetaExactName
	}
	return MetaExactName + "." + strconv.Itoa(i)
}

// TakeName returns a sandbox's metadata without what holds its name, and the
// name; none if there is none, or what is there is none.
func TakeName(metadata map[string]string) (rest map[string]string, name string) {
	if _, ok := metadata[MetaExactName]; !ok {
		return metadata, ""
	}
	var text strings.Builder
	rest = maps.Clone(metadata)
	whole := false
	for i := 0; ; i++ {
		piece, ok := metadata[nameKey(i)]
		if !ok {
			break
		}
		delete(rest, nameKey(i))
		// What follows a piece that is not full is of an image that the sandbox
		// was made from.
		if !whole {
			text.WriteString(piece)
			whole = len(piece) < maxLabel
		}
	}
	decoded, err := nameEncoding.DecodeString(strings.ToUpper(text.String()))
	if err != nil || !utf8.Valid(decoded) {
		return rest, ""
	}
	return rest, string(decoded)
}
