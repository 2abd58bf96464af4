package version_test

import (
	"runtime/debug"
	"testing"

	"github.com/glassboxhq/glassbox/internal/version"
)

func TestLess(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{"0.1.0", "0.1.1", true},
		{"0.9.0", "0.10.0", true},
		{"v0.1.0", "0.1.0", false},
		{"0.1.0-dev", "0.1.0", true},
		{"0.1.0", "0.1.0-dev", false},
		{"0.1.0-dev+aaaaaaaaaaaa", "0.1.0-dev+bbbbbbbbbbbb", false},
		{"0.1.1-0.20261101000000-aaaaaaaaaaaa", "0.1.1-0.20261201000000-000000000000", true},
		{"0.2.0", "0.1.9", false},
		{"", "0.1.0", true},
		{"nonsense", "0.1.0", true},
		{"0.1.0", "nonsense", false},
	} {
		if got := version.Less(tt.a, tt.b); got != tt.want {
			t.Errorf("%q before %q: got %v", tt.a, tt.b, got)
		}
	}
}

// A program that uses Glassbox has a version of its own, which says nothing.
func TestOf(t *testing.T) {
	ours := func(v string) debug.Module { return debug.Module{Path: "github.com/glassboxhq/glassbox", Version: v} }
	theirs := debug.Module{Path: "example.com/agent", Version: "v7.1.0"}
	commit := []debug.BuildSetting{{Key: "vcs.revision", Value: "0343ab98ab245f1644e07173423a36c0bd033ad2"}}
	replaced := ours("v0.1.0")
	replaced.Replace = &debug.Module{Path: "../glassbox"}
	for name, tt := range map[string]struct {
		info debug.BuildInfo
		want string
	}{
		"a release":        {debug.BuildInfo{Main: ours("v0.2.0")}, "0.2.0"},
		"of the proxy":     {debug.BuildInfo{Main: ours("v0.0.0-20261201090543-0343ab98ab24")}, "0.0.0-20261201090543-0343ab98ab24"},
		"a tree":           {debug.BuildInfo{Main: ours("(devel)")}, version.Number + "-dev"},
		"a stamped tree":   {debug.BuildInfo{Main: ours("v0.0.0-20261201090543-0343ab98ab24"), Settings: commit}, version.Number + "-dev+0343ab98ab24"},
		"a changed tree":   {debug.BuildInfo{Main: ours("v0.2.0+dirty"), Settings: commit}, version.Number + "-dev+0343ab98ab24"},
		"another's":        {debug.BuildInfo{Main: theirs, Deps: []*debug.Module{{Path: "example.com/x", Version: "v3.0.0"}, new(ours("v0.2.0"))}, Settings: commit}, "0.2.0"},
		"another's, local": {debug.BuildInfo{Main: theirs, Deps: []*debug.Module{&replaced}, Settings: commit}, version.Number + "-dev"},
	} {
		if got := version.Of(&tt.info); got != tt.want {
			t.Errorf("%s: got %s, want %s", name, got, tt.want)
		}
	}
}
