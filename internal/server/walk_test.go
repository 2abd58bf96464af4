package server_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/glassboxhq/glassbox/internal/console/door"
	"github.com/glassboxhq/glassbox/internal/id"
)

type document struct {
	OpenAPI string                                `json:"openapi"`
	Paths   map[string]map[string]json.RawMessage `json:"paths"`
}

type operation struct {
	ID       string           `json:"operationId"`
	Role     door.Role        `json:"x-role"`
	Scope    door.Scope       `json:"x-scope"`
	Security []map[string]any `json:"security"`
}

// TestEveryRoute walks the OpenAPI document: with no token, with an old one,
// and with each role and scope. A new route is found here by itself.
func TestEveryRoute(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	roles := []door.Role{door.Viewer, door.Operator, door.Admin}
	people := map[door.Role]*client{}
	for _, role := range roles {
		people[role] = s.user(string(role), role)
	}
	var doc document
	people[door.Viewer].ask("GET", "/api/v1/openapi.json", "").read(t, &doc)
	if !strings.HasPrefix(doc.OpenAPI, "3.1") {
		t.Errorf("version %s", doc.OpenAPI)
	}
	users, err := s.door.Users(t.Context(), "", 10)
	if err != nil {
		t.Fatal(err)
	}
	admin := users[slices.IndexFunc(users, func(u *door.User) bool { return u.Role == door.Admin })]
	token := func(life time.Duration, scopes ...door.Scope) *client {
		_, secret, err := s.door.AddToken(t.Context(), admin.ID, "t", scopes, life)
		if err != nil {
			t.Fatal(err)
		}
		return &client{s: s, token: string(secret)}
	}
	old, all := token(time.Minute, door.Scopes...), token(time.Hour, door.Scopes...)
	s.now(2 * time.Minute)

	open := []string{"sign-in-by-link", "sign-in-by-password"}
	seen := 0
	for path, methods := range doc.Paths {
		for method, raw := range methods {
			var op operation
			if err := json.Unmarshal(raw, &op); err != nil {
				t.Fatal(err)
			}
			seen++
			method = strings.ToUpper(method)
			for _, part := range []string{"connection", "sandbox", "operation", "user", "token", "sign_in", "snapshot"} {
				path = strings.ReplaceAll(path, "{"+part+"}", id.New())
			}
			path = strings.ReplaceAll(path, "{port}", "80")
			try := func(c *client) int { return c.ask(method, path, "").status }
			if slices.Contains(open, op.ID) {
				if op.Role != "" || try(s.stranger()) == http.StatusForbidden {
					t.Errorf("%s is for everybody, and is not", op.ID)
				}
				continue
			}
			if op.Role == "" || op.Scope == "" || len(op.Security) == 0 {
				t.Errorf("%s says nothing of what it needs", op.ID)
			}
			for name, c := range map[string]*client{"nobody": s.stranger(), "an old token": old, "no token": {s: s, token: "gbt_AAAA"}, "basic": {s: s, headers: []string{"Authorization: Basic YTpi"}}} {
				if got := try(c); got != http.StatusUnauthorized {
					t.Errorf("%s %s by %s: %d", method, path, name, got)
				}
			}
			for _, role := range roles {
				if op.ID == "sign-out" {
					continue // ends who tries
				}
				got := try(people[role])
				if may := role.Includes(op.Role); may != (got != http.StatusForbidden && got != http.StatusUnauthorized) {
					t.Errorf("%s (%s) by %s: %d", op.ID, op.Role, role, got)
				}
			}
			for _, scope := range door.Scopes {
				got := try(token(time.Hour, scope))
				if may := op.Scope == scope || op.Scope == door.Any; may != (got != http.StatusForbidden && got != http.StatusUnauthorized) {
					t.Errorf("%s (%s) by a token for %s: %d", op.ID, op.Scope, scope, got)
				}
			}
			if got := try(all); (op.Scope == door.Account) != (got == http.StatusForbidden) {
				t.Errorf("%s (%s) by a token for everything: %d", op.ID, op.Scope, got)
			}
			if method != http.MethodGet { // a cookie alone does not act
				c := people[door.Admin]
				if got := c.ask(method, path, "", "Origin: ").status; got != http.StatusForbidden {
					t.Errorf("%s with a cookie and no origin: %d", op.ID, got)
				}
			}
		}
	}
	if seen < 30 {
		t.Errorf("the document has %d operations", seen)
	}
	for _, path := range []string{"/metrics", "/api/v1/openapi.json"} {
		for name, c := range map[string]*client{"nobody": s.stranger(), "an old token": old} {
			if got := c.ask("GET", path, "").status; got != http.StatusUnauthorized {
				t.Errorf("%s by %s: %d", path, name, got)
			}
		}
	}
	for role, want := range map[door.Role]int{door.Viewer: 403, door.Operator: 403, door.Admin: 200} {
		if got := people[role].ask("GET", "/metrics", ""); got.status != want {
			t.Errorf("/metrics by %s: %d %s", role, got.status, got.body)
		}
	}
	if a := all.ask("GET", "/metrics", ""); !strings.Contains(a.body, `glassbox_http_requests_total{operation="list-sandboxes",status="200"}`) {
		t.Errorf("metrics: %d %.300s", a.status, a.body)
	}
}
