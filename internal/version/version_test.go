package version_test

import (
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
