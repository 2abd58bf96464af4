package lifecycle

import (
	"testing"
	"time"
)

func TestRenewals(t *testing.T) {
	var n renewals
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, tt := range []struct {
		name  string
		who   string
		after time.Duration
		left  time.Duration
		news  bool
	}{
		{"the first", "a", 0, 10 * time.Minute, true},
		{"the same again", "a", time.Second, 10*time.Minute + time.Second, false},
		{"another client", "b", time.Second, 10 * time.Minute, true},
		{"a longer life", "a", 2 * time.Second, time.Hour, true},
		{"a shorter life", "a", 3 * time.Second, time.Minute, true},
		{"the same in a minute", "a", 63 * time.Second, time.Minute, true},
	} {
		now := start.Add(tt.after)
		if got := n.news(tt.who, now.Add(tt.left), now); got != tt.news {
			t.Errorf("%s: got %t, want %t", tt.name, got, tt.news)
		}
	}
}
