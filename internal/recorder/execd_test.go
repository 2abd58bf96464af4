package recorder_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/glassboxhq/glassbox/internal/execd"
	"github.com/glassboxhq/glassbox/internal/recorder"
	"github.com/glassboxhq/glassbox/internal/wire"
)

// Both wires are served by one recorder, each opened by its own token only.
func TestExecd(t *testing.T) {
	s := newServer(t, recorder.Options{Execd: &execd.Options{Token: "execd's own"}})
	for _, tt := range []struct {
		name, route, body string
		header, token     string
		status            int
		holds             string
	}{
		{"execd's", "POST /command", `{"command":"echo hi"}`, wire.HeaderExecdToken, "execd's own", 200, `"text":"hi"`},
		{"execd's by our token", "POST /command", `{"command":"echo hi"}`, wire.HeaderToken, token, 401, ""},
		{"execd's by our token in its header", "POST /command", `{"command":"echo hi"}`, wire.HeaderExecdToken, token, 401, ""},
		{"ours", "GET /glassbox/v1/info", "", wire.HeaderToken, token, 200, `"protocol"`},
		{"ours by execd's token", "GET /glassbox/v1/info", "", wire.HeaderExecdToken, "execd's own", 401, ""},
		{"ping", "GET /ping", "", "X-Nothing", "x", 200, ""},
		{"unknown", "GET /nothing", "", wire.HeaderExecdToken, "execd's own", 404, "404 page not found"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			method, path, _ := strings.Cut(tt.route, " ")
			req, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(tt.body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set(tt.header, tt.token)
			resp, err := http.DefaultTransport.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			if err != nil || resp.StatusCode != tt.status || !bytes.Contains(body, []byte(tt.holds)) {
				t.Errorf("got %d %s, %v, want %d with %s", resp.StatusCode, body, err, tt.status, tt.holds)
			}
		})
	}
}
