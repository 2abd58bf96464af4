package glassbox_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/glassboxhq/glassbox"
	"github.com/glassboxhq/glassbox/sandbox"
)

// The outcome of a creation whose answer was lost is not known: it is not told
// as one that made nothing.
func TestLostCreation(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		answer http.HandlerFunc
		want   sandbox.Status
	}{
		{"lost", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, sandbox.Lost},
		{"refused", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "{}", http.StatusBadRequest) }, sandbox.Unsuccessful},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(tt.answer)
			defer server.Close()
			dir := t.TempDir()
			if _, err := glassbox.Create(t.Context(), server.URL, &glassbox.Options{StateDir: dir}); err == nil {
				t.Fatal("got a sandbox, want none")
			}
			pending, err := glassbox.ListPending(dir)
			if err != nil || len(pending) != 1 || pending[0].Operation.Status != tt.want {
				t.Errorf("got %+v, %v, want one creation that is %s", pending, err, tt.want)
			}
		})
	}
}

// One record that cannot be read keeps nobody from the others.
func TestDamagedRecord(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	dir := t.TempDir()
	if _, err := glassbox.Create(t.Context(), server.URL, &glassbox.Options{StateDir: dir}); err == nil {
		t.Fatal("got a sandbox, want none")
	}
	damaged := filepath.Join(dir, "outbox", "01939f3e-7c1e-7b1a-8f43-3b0d1a2c4d5e.json")
	if err := os.WriteFile(damaged, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	pending, err := glassbox.ListPending(dir)
	if len(pending) != 1 || !errors.Is(err, glassbox.ErrHistory) || !strings.Contains(err.Error(), damaged) {
		t.Errorf("got %+v, %v, want the one that is whole, and the name of the other", pending, err)
	}
}
