package wire_test

import (
	"maps"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/glassboxhq/glassbox/internal/wire"
)

// label is what an OpenSandbox service takes as a value of metadata.
var label = regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?$`)

func TestNameLabels(t *testing.T) {
	for _, name := range []string{
		"", "a", "研究员", "with spaces", strings.Repeat("𠀀", 128), strings.Repeat("研", 128), strings.Repeat("a", 128),
		"עברית 😀 e\u0301", strings.Repeat("x", 39), strings.Repeat("x", 40), strings.Repeat("x", 78), "-a.", "x'\"<>&",
	} {
		labels := wire.NameLabels(name)
		for key, value := range labels {
			if !label.MatchString(value) || !label.MatchString(key) {
				t.Errorf("%q: %s: %q is no label", name, key, value)
			}
		}
		labels["team"] = "red"
		rest, got := wire.TakeName(labels)
		if diff := cmp.Diff(map[string]string{"team": "red"}, rest); diff != "" || got != name {
			t.Errorf("%q: got %q beside %v", name, got, rest)
		}
	}
}

// What is in the metadata may have been written by others.
func TestTakeName(t *testing.T) {
	long := wire.NameLabels(strings.Repeat("研", 100))
	maps.Copy(long, wire.NameLabels("short"))
	for name, tt := range map[string]struct {
		metadata map[string]string
		want     string
	}{
		"nothing":                     {nil, ""},
		"no base32":                   {map[string]string{wire.MetaExactName: "not!"}, ""},
		"no text":                     {map[string]string{wire.MetaExactName: "vvvvvvvv"}, ""},
		"a shorter one over a longer": {long, "short"},
		"no beginning":                {map[string]string{wire.MetaExactName + ".1": "64"}, ""},
	} {
		if _, got := wire.TakeName(tt.metadata); got != tt.want {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}
