package id_test

import (
	"testing"

	"github.com/glassboxhq/glassbox/internal/id"
)

func TestNewSorts(t *testing.T) {
	last := ""
	for range 100_000 {
		next := id.New()
		if next <= last || !id.Valid(next) || next[14] != '7' {
			t.Fatalf("got %s after %s, want a later UUIDv7", next, last)
		}
		last = next
	}
}

func TestValid(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		want     bool
	}{
		{"random", id.NewRandom(), true},
		{"empty", "", false},
		{"upper case", "018F4E9C-0000-7000-8000-000000000000", false},
		{"no dashes", "018f4e9c000070008000000000000000", false},
		{"path", "../../../../../../../../../etc/passwd", false},
		{"colon is above the digits", "018f4e9:-0000-7000-8000-000000000000", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := id.Valid(tt.in); got != tt.want {
				t.Errorf("Valid(%q) = %v, want %v", tt.in, got, tt.want)
			}
		})
	}
}
