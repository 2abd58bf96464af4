// Package version tells which version of Glassbox this is.
package version

import (
	"runtime/debug"
	"strings"
)

// Number is the version that this tree will be released as.
const Number = "0.1.0"

// String returns the version of the running program: that of the module if it
// was built as one, else Number with the commit it was built from.
func String() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return Number + "-dev"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" && !strings.Contains(v, "+dirty") {
		return strings.TrimPrefix(v, "v")
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return Number + "-dev+" + s.Value[:12]
		}
	}
	return Number + "-dev"
}
