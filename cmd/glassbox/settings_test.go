package main_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// A file .env may have come with somebody else's work: it must not send the
// user's key where it likes.
func TestKeyGoesOnlyWithItsURL(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, dotEnv string // $URL stands for the service
		env          []string
		want         string
	}{
		{"both from the environment", "", []string{"GLASSBOX_URL=$URL", "GLASSBOX_API_KEY=mine"}, "mine"},
		{"both from the file", "GLASSBOX_URL=$URL\nGLASSBOX_API_KEY=theirs", nil, "theirs"},
		{"their key to my URL", "GLASSBOX_API_KEY=theirs", []string{"GLASSBOX_URL=$URL"}, "theirs"},
		{"my key, their URL", "GLASSBOX_URL=$URL", []string{"GLASSBOX_API_KEY=mine"}, ""},
		{"my key by the other name, their URL", "OPEN_SANDBOX_DOMAIN=$URL", []string{"OPEN_SANDBOX_API_KEY=mine"}, ""},
		{"my key, their URL and key", "GLASSBOX_URL=$URL\nOPEN_SANDBOX_API_KEY=theirs", []string{"GLASSBOX_API_KEY=mine"}, "theirs"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			asked, key := false, ""
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked, key = true, r.Header.Get("OPEN-SANDBOX-API-KEY")
				http.Error(w, "no", http.StatusForbidden)
			}))
			defer server.Close()
			dir := t.TempDir()
			set := func(text string) string { return os.Expand(text, func(string) string { return server.URL }) }
			if err := os.WriteFile(filepath.Join(dir, ".env"), []byte(set(tt.dotEnv)), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "glassbox"), "sandbox", "list")
			cmd.Dir, cmd.Env = dir, []string{"GLASSBOX_STATE_DIR=" + filepath.Join(dir, "state"), "HOME=" + dir}
			for _, v := range tt.env {
				cmd.Env = append(cmd.Env, set(v))
			}
			out, _ := cmd.CombinedOutput() // the service refuses
			server.Close()                 // waits for the handler
			if !asked || key != tt.want {
				t.Errorf("the service got the key %q (asked: %v), want %q\n%s", key, asked, tt.want, out)
			}
		})
	}
}
