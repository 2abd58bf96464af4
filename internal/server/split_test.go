package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/glassboxhq/glassbox/internal/console/door"
)

// One listener serves people and OpenSandbox clients: each gets its own.
func TestSplit(t *testing.T) {
	t.Parallel()
	life := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Origin") != "" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		w.Header().Set("X-Answers", "lifecycle")
		w.WriteHeader(http.StatusOK)
	})
	s := start(t, &options{life: life})
	const key, html = "OPEN-SANDBOX-API-KEY: k", "Accept: text/html,application/xhtml+xml,*/*;q=0.8"
	navigate := []string{"Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document", "Sec-Fetch-Site: none", html}
	for _, tt := range []struct {
		name, method, path string
		headers            []string
		lifecycle          bool
		status             int
	}{
		{"client", "GET", "/v1/sandboxes", []string{key}, true, 200},
		{"client, bare", "GET", "/sandboxes", []string{key}, true, 200},
		{"client, bare, without a key", "GET", "/sandboxes", []string{"Accept: application/json"}, true, 200},
		{"client that takes anything", "GET", "/sandboxes", []string{"Accept: */*"}, true, 200},
		{"client without Accept", "GET", "/sandboxes/1", nil, true, 200},
		{"client makes one", "POST", "/sandboxes", []string{key}, true, 200},
		{"client makes one, says html", "POST", "/sandboxes", []string{html}, true, 200},
		{"client with a key says html", "GET", "/sandboxes", []string{key, html}, true, 200},
		{"health", "GET", "/health", nil, true, 200},
		{"metrics events", "POST", "/metrics/events", nil, true, 200},
		{"unknown with a key", "GET", "/whatever", []string{key}, true, 200},
		{"browser", "GET", "/sandboxes", navigate, false, 200},
		{"browser, one", "GET", "/sandboxes/local/0f6b2a34", navigate, false, 200},
		{"browser, a tab of one", "GET", "/sandboxes/local/0f6b2a34/history", navigate, false, 200},
		{"browser at an endpoint", "GET", "/sandboxes/0f6b/endpoints/8080", navigate, true, 200},
		{"older browser", "GET", "/sandboxes", []string{html}, false, 200},
		{"browser fetches", "GET", "/sandboxes", []string{"Sec-Fetch-Mode: cors", "Sec-Fetch-Site: same-origin"}, true, 200},
		{"browser at /v1", "GET", "/v1/sandboxes", navigate, true, 200},
		{"page of another origin", "GET", "/v1/sandboxes", []string{"Origin: https://evil.example"}, true, 403},
		{"our own page", "GET", "/v1/sandboxes", []string{"Origin: http://127.0.0.1"}, true, 403},
		{"browser at a port", "GET", "/sandboxes/0f6b/proxy/8080/", navigate, true, 200},
		{"browser at a port of v1", "GET", "/v1/sandboxes/0f6b/proxy/8080/", navigate, true, 200},
		{"API", "GET", "/api/v1/auth/me", nil, false, 401},
		{"API with a key", "GET", "/api/v1/auth/me", []string{key}, false, 401},
		{"like v1", "GET", "/v10/sandboxes", nil, false, 404},
		{"root", "GET", "/", navigate, false, 200},
		{"healthz", "GET", "/healthz", nil, false, 200},
		{"readyz", "GET", "/readyz", nil, false, 200},
		{"version", "GET", "/version", nil, false, 200},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := s.stranger().ask(tt.method, tt.path, "", tt.headers...)
			if got := a.header.Get("X-Answers") == "lifecycle"; a.status != tt.status || got != tt.lifecycle && a.status != 403 {
				t.Errorf("%d by the lifecycle API: %v, %s", a.status, got, a.body)
			}
			// What an agent serves on a port is in an origin of its own.
			if tt.lifecycle && a.header.Get("Content-Security-Policy") != "sandbox" {
				t.Errorf("policy %q", a.header.Get("Content-Security-Policy"))
			}
			for name := range a.header {
				if strings.HasPrefix(name, "Access-Control-") {
					t.Errorf("answers with %s", name)
				}
			}
		})
	}
	// A cookie of the console opens nothing there: it is the handler's to refuse.
	if c := s.user("admin", door.Admin); c.ask("GET", "/v1/sandboxes", "").status != http.StatusForbidden {
		t.Error("a page with a cookie reaches the lifecycle API")
	}
}
