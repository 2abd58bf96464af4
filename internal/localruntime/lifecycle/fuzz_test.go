package lifecycle_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/glassboxhq/glassbox/internal/localruntime/lifecycle"
	"github.com/glassboxhq/glassbox/sandbox"
)

// FuzzAPI asks with any method, path, query and body, as a client that has the
// key. Every answer is one of this API: JSON with a status of its own, no fault
// of the server but where the runtime has one, and what was made is described
// as it is kept. What is read here is what can be wrong, so no sandbox stands
// behind it.
func FuzzAPI(f *testing.F) {
	const all = `{"image":{"uri":"host"},"entrypoint":["sleep"],"resourceLimits":{"memory":"1Mi"},"timeout":600,"env":{"A":null},"metadata":{"a":"b"},
		"extensions":{"glassbox.name":"x","glassbox.history_config":"{}","glassbox.concurrency":"{}","glassbox.file_changes":"off"},"platform":{"os":"linux"}}`
	for _, seed := range [][4]string{
		{"POST", "/v1/sandboxes", "", all},
		{"POST", "/sandboxes", "", `{"image":{"uri":"here"},"extensions":{"glassbox.here":"true"},"resource_limits":{},"resourceLimits":null}`},
		{"POST", "/v1/sandboxes", "", `{"snapshot_id":"x","timeout":9223372036854775807,"__":1,"é_é":2}`},
		{"GET", "/v1/sandboxes", "page=2&pageSize=3&state=running&metadata=a%3Db%26c%3D%2525", ""},
		{"GET", "/v1/sandboxes", "metadata=%25&page=-1", ""},
		{"POST", "/v1/sandboxes/ID/renew-expiration", "", `{"expiresAt":1e11}`},
		{"POST", "/v1/sandboxes/ID/renew-expiration", "", `{"expires_at":"9999-12-31T23:59:59-23:59"}`},
		{"PATCH", "/v1/sandboxes/ID/metadata", "", `{"a":null,"b":"c"}`},
		{"POST", "/v1/sandboxes/ID/snapshots", "", `{"name":"s"}`},
		{"GET", "/v1/snapshots", "state=Ready&page=1", ""},
		{"GET", "/v1/sandboxes/ID/endpoints/44772", "expires=1", ""},
		{"GET", "/v1/sandboxes/ID/diagnostics/logs", "tail=9&x", ""},
		{"GET", "/v1/sandboxes/ID/proxy/44780/a%2fb", "c", ""},
		{"DELETE", "/v1/sandboxes/%2e%2e/x", "", ""},
	} {
		f.Add(seed[0], seed[1], seed[2], seed[3])
	}
	f.Fuzz(func(t *testing.T, method, path, query, body string) {
		rt := &fake{server: httptest.NewServer(http.HandlerFunc(echo)), specs: map[string]*sandbox.Spec{}}
		defer rt.server.Close()
		info, err := rt.Create(t.Context(), &sandbox.Spec{Image: "host", Metadata: map[string]string{}})
		if err != nil {
			t.Fatal(err)
		}
		at, err := url.Parse("http://localhost" + strings.ReplaceAll(path, "ID", info.ID))
		if err != nil || at.Host != "localhost" || !strings.HasPrefix(at.Path, "/") {
			return // no client and no server of HTTP lets that by
		}
		at.RawQuery = query
		req, err := http.NewRequestWithContext(t.Context(), method, at.String(), strings.NewReader(body))
		if err != nil {
			return
		}
		req.Header.Set("OPEN-SANDBOX-API-KEY", key)
		w := httptest.NewRecorder()
		lifecycle.New(rt, &lifecycle.Options{APIKey: key, Here: true}).ServeHTTP(w, req)
		if w.Code < 200 || w.Code >= 500 && w.Code != http.StatusNotImplemented && w.Code != http.StatusBadGateway && !strings.Contains(w.Body.String(), "there is no image") {
			t.Errorf("%s %s: %d %s", method, at, w.Code, w.Body)
		}
		if w.Header().Get("Content-Type") == "application/json" && !json.Valid(w.Body.Bytes()) {
			t.Errorf("%s %s: no JSON: %s", method, at, w.Body)
		}
		for _, box := range rt.infos {
			if box.ExpiresAt.Year() > 9999 || box.ExpiresAt.Before(time.Time{}) {
				t.Errorf("a time that JSON cannot hold: %v", box.ExpiresAt)
			}
			if spec := rt.specs[box.ID]; spec.Timeout < 0 || spec.Image == "here" && !strings.Contains(body, "here") {
				t.Errorf("%s became %+v", body, spec)
			}
		}
	})
}
