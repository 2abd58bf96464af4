package marked_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/glassboxhq/glassbox/internal/marked"
)

func TestWrite(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, page, want string }{
		{"empty", "a\n<!-- bench -->\n<!-- /bench -->\nb\n", "a\n<!-- bench -->\ntable\n<!-- /bench -->\nb\n"},
		{"older table", "<!-- bench -->\nold\n<!-- /bench -->\n", "<!-- bench -->\ntable\n<!-- /bench -->\n"},
		{"another mark", "<!-- other -->\n<!-- /other -->\n", ""},
		{"no end", "<!-- bench -->\nold\n", ""},
		{"no marks", "old\n", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "page.md")
			if err := os.WriteFile(file, []byte(tt.page), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := marked.Write(file, "bench", "table\n", true); err == nil {
				t.Error("the check found nothing to change")
			}
			err := marked.Write(file, "bench", "table\n", false)
			got, _ := os.ReadFile(file)
			if tt.want == "" {
				if err == nil || string(got) != tt.page {
					t.Errorf("got %q, %v, want an error and the page as it was", got, err)
				}
				return
			}
			if string(got) != tt.want || err != nil {
				t.Errorf("got %q, %v, want %q", got, err, tt.want)
			}
			if err := marked.Write(file, "bench", "table\n", true); err != nil {
				t.Errorf("check of what was just written: %v", err)
			}
		})
	}
}

func TestWriteStale(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(file, []byte("<!-- x -->\nold\n<!-- /x -->\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := marked.Write(file, "x", "new\n", true); !errors.Is(err, marked.ErrStale) {
		t.Errorf("got %v, want %v", err, marked.ErrStale)
	}
}
