package main

import "testing"

func TestReplace(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"empty", "a\n<!-- bench -->\n<!-- /bench -->\nb\n", "a\n<!-- bench -->\ntable\n<!-- /bench -->\nb\n"},
		{"older table", "<!-- bench -->\nold\n<!-- /bench -->\n", "<!-- bench -->\ntable\n<!-- /bench -->\n"},
		{"no end", "<!-- bench -->\nold\n", ""},
		{"no markers", "old\n", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := replace(tt.text, "table\n")
			if got != tt.want || (err != nil) != (tt.want == "") {
				t.Errorf("got %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}
