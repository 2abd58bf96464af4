// Package version tells which version of Glassbox this is.
package version

import (
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
)

// Number is the version that this tree will be released as.
const Number = "0.1.0"

// module is ours, which is the main one of our own programs only.
const module = "github.com/glassboxhq/glassbox"

// String returns the version of Glassbox in the running program: that of the
// module if it was built as one, else Number with the commit it was built from.
func String() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return Number + "-dev"
	}
	return Of(info)
}

// Of returns the version of Glassbox in a program.
func Of(info *debug.BuildInfo) string {
	v, commit := info.Main.Version, ""
	if info.Main.Path != module {
		v = used(info)
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 && info.Main.Path == module {
			commit = "+" + s.Value[:12]
		}
	}
	// Go stamps a tree without tags as older than any release.
	tree := v == "" || v == "(devel)" || strings.Contains(v, "+dirty") || commit != "" && strings.HasPrefix(v, "v0.0.0-")
	if tree {
		return Number + "-dev" + commit
	}
	return strings.TrimPrefix(v, "v")
}

// used is the version of our module that another's program uses.
func used(info *debug.BuildInfo) string {
	for _, dep := range info.Deps {
		if dep.Path == module && dep.Replace == nil {
			return dep.Version
		}
	}
	return ""
}

// Less reports whether version a is older than b. Builds of a tree that was
// not released are all the same age, before its release.
func Less(a, b string) bool {
	numbersA, preA := split(a)
	numbersB, preB := split(b)
	if c := slices.Compare(numbersA, numbersB); c != 0 {
		return c < 0
	}
	if (preA == "") != (preB == "") {
		return preA != ""
	}
	if strings.HasPrefix(preA, "dev") || strings.HasPrefix(preB, "dev") {
		return false
	}
	return preA < preB // of the module proxy's versions, the time comes first
}

// split takes a version apart into its numbers and what is before a release.
func split(v string) (numbers []int, pre string) {
	v, _, _ = strings.Cut(strings.TrimPrefix(v, "v"), "+")
	v, pre, _ = strings.Cut(v, "-")
	for part := range strings.SplitSeq(v, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			return nil, pre // older than any
		}
		numbers = append(numbers, n)
	}
	return numbers, pre
}
