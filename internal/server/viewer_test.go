package server_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/glassboxhq/glassbox/internal/console/door"
)

// The viewer comes from this server alone, behind the door, with no script in
// its page.
func TestViewer(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	c := s.user("ann", door.Viewer)
	s.stranger().ask("GET", "/api/v1/docs", "").want(t, "nobody", 401, "sign_in_needed")
	page := c.ask("GET", "/api/v1/docs", "", "Origin: ")
	if page.status != http.StatusOK || page.header.Get("Content-Type") != "text/html; charset=utf-8" {
		t.Fatalf("%d %v", page.status, page.header)
	}
	policy := page.header.Get("Content-Security-Policy")
	if strings.Contains(policy, "unsafe") || !strings.Contains(policy, "script-src 'self';") || !strings.Contains(policy, "frame-ancestors 'none'") {
		t.Errorf("policy: %s", policy)
	}
	if strings.Contains(page.body, "://") || regexp.MustCompile(`<script[^>]*>[^<]|<style| style=| on[a-z]+=`).MatchString(page.body) {
		t.Errorf("it leads out, or has a script in it: %s", page.body)
	}
	sizes := map[string]int{}
	for _, found := range regexp.MustCompile(`(?:src|href)="(docs/[^"]+|openapi.json)"`).FindAllStringSubmatch(page.body, -1) {
		a := c.ask("GET", "/api/v1/"+found[1], "", "Origin: ", "Accept-Encoding: identity")
		sizes[found[1]] = len(a.body)
		if a.status != http.StatusOK || a.header.Get("Content-Encoding") != "" {
			t.Errorf("%s: %d %v", found[1], a.status, a.header)
		}
		packed := c.ask("GET", "/api/v1/"+found[1], "", "Origin: ", "Accept-Encoding: gzip")
		if strings.HasPrefix(found[1], "docs/swagger-ui") && (packed.header.Get("Content-Encoding") != "gzip" || packed.header.Get("ETag") == a.header.Get("ETag")) {
			t.Errorf("%s packed: %v", found[1], packed.header)
		}
		if a = c.ask("GET", "/api/v1/"+found[1], "", "Origin: ", "Accept-Encoding: gzip", "If-None-Match: "+packed.header.Get("ETag")); found[1] != "openapi.json" && a.status != http.StatusNotModified {
			t.Errorf("%s again: %d", found[1], a.status)
		}
	}
	if sizes["docs/swagger-ui-bundle.js"] < 1<<20 || sizes["docs/viewer.js"] == 0 || sizes["docs/swagger-ui.css"] < 1<<15 || sizes["openapi.json"] == 0 {
		t.Errorf("%v", sizes)
	}
}
