package server_test

import (
	"bufio"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/glassboxhq/glassbox/internal/console/act"
	"github.com/glassboxhq/glassbox/internal/console/door"
	"github.com/glassboxhq/glassbox/internal/db"
	"github.com/glassboxhq/glassbox/internal/db/dbtest"
	"github.com/glassboxhq/glassbox/internal/server"
)

func TestSignIn(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := start(t, &options{db: d})
		link, _, err := s.door.NewLink(t.Context(), door.FirstUser)
		if err != nil {
			t.Fatal(err)
		}
		body := `{"link":"` + string(link) + `"}`
		a := s.stranger().ask("POST", "/api/v1/auth/link", body)
		cookie := a.header.Get("Set-Cookie")
		if a.status != 200 || !strings.HasPrefix(cookie, "glassbox_") || !strings.Contains(cookie, "HttpOnly") || !strings.Contains(cookie, "SameSite=Strict") ||
			strings.Contains(a.body, "gbs_") {
			t.Fatalf("%d %s %s", a.status, cookie, a.body)
		}
		s.stranger().ask("POST", "/api/v1/auth/link", body).want(t, "the link again", 401, door.CodeSignIn)
		session, _, _ := strings.Cut(cookie, ";")
		c := &client{s: s, cookie: session}
		var me server.Me
		c.ask("GET", "/api/v1/auth/me", "").read(t, &me)
		if me.User.Name != "admin" || me.User.Role != door.Admin || me.Via != door.ViaLink {
			t.Errorf("%+v", me)
		}
		// A wrong token is not made good by a right cookie.
		c.ask("GET", "/api/v1/auth/me", "", "Authorization: Bearer gbt_x").want(t, "a wrong token", 401, door.CodeToken)
		var list server.Page[server.SignIn]
		c.ask("GET", "/api/v1/sign-ins", "").read(t, &list)
		if len(list.Items) != 1 || !list.Items[0].Current {
			t.Errorf("%+v", list)
		}
		if a := c.ask("POST", "/api/v1/auth/sign-out", ""); a.status != 204 || !strings.Contains(a.header.Get("Set-Cookie"), "Max-Age=0") {
			t.Errorf("%d %v", a.status, a.header)
		}
		c.ask("GET", "/api/v1/auth/me", "").want(t, "signed out", 401, door.CodeSignInNeeded)
		expired := s.signIn("admin")
		s.now(15 * 24 * time.Hour)
		expired.ask("GET", "/api/v1/auth/me", "").want(t, "expired", 401, door.CodeSignInNeeded)
	})
}

func TestPasswordsOverHTTP(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	admin := s.user("admin", door.Admin)
	admin.ask("POST", "/api/v1/users", `{"name":"ann","role":"viewer","password":"correct horse battery"}`).want(t, "create", 201, "")
	signIn := func(name, password string) answer {
		return s.stranger().ask("POST", "/api/v1/auth/password", `{"name":"`+name+`","password":"`+password+`"}`)
	}
	signIn("ann", "correct horse battery").want(t, "right", 200, "")
	wrong, nobody := signIn("ann", "wrong horse battery"), signIn("nobody", "wrong horse battery")
	wrong.want(t, "wrong", 401, door.CodeSignIn)
	if id := strings.LastIndex(wrong.body, "request_id"); wrong.body[:id] != nobody.body[:id] {
		t.Errorf("the answers tell who is there:\n%s\n%s", wrong.body, nobody.body)
	}
	limited := 0
	for range 20 {
		if a := signIn("ann", "wrong horse battery"); a.status == http.StatusTooManyRequests {
			if limited++; a.header.Get("Retry-After") == "" {
				t.Error("no Retry-After")
			}
		}
	}
	if limited < 8 {
		t.Errorf("%d of 20 attempts were refused", limited)
	}
	// Who knows the old password changes it, and is signed out elsewhere.
	c := s.signIn("ann")
	c.ask("PUT", "/api/v1/auth/password", `{"current":"no","new":"another horse battery"}`).want(t, "without the old one", 429, door.CodeTooMany)
	s.now(10 * time.Minute)
	other := s.signIn("ann")
	c.ask("PUT", "/api/v1/auth/password", `{"current":"no","new":"another horse battery"}`).want(t, "with a wrong one", 400, "invalid_argument")
	c.ask("PUT", "/api/v1/auth/password", `{"current":"correct horse battery","new":"another horse battery"}`).want(t, "with the old one", 200, "")
	c.ask("GET", "/api/v1/auth/me", "").want(t, "still here", 200, "")
	other.ask("GET", "/api/v1/auth/me", "").want(t, "elsewhere", 401, door.CodeSignInNeeded)
	// What was sent is not told back.
	a := admin.ask("POST", "/api/v1/users", `{"name":"bob","role":"king","password":"hunter22hunter22"}`)
	if a.status != 422 || strings.Contains(a.body, "hunter22") {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// TestForeign sends what pages of others, names of others and programs in
// their names can send. FB-085 among them.
func TestForeign(t *testing.T) {
	t.Parallel()
	life := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(299) })
	s := start(t, &options{life: life})
	c := s.user("admin", door.Admin)
	box, _ := s.box("a", "x")
	events := "/api/v1/connections/local/sandboxes/" + box + "/events"
	const multipart = "Content-Type: multipart/form-data; boundary=x"
	host := strings.TrimPrefix(s.url, "http://")
	for _, tt := range []struct {
		name, method, path string
		headers            []string
		status             int
		code               string
	}{
		{"own page", "GET", "/api/v1/auth/me", []string{"Sec-Fetch-Site: same-origin"}, 200, ""},
		{"own page acts", "POST", "/api/v1/connections/local/test", []string{"Sec-Fetch-Site: same-origin", "Origin: "}, 200, ""},
		{"localhost", "GET", "/", []string{"Host: localhost:1", "Origin: "}, 200, ""},
		{"rebinding", "GET", "/api/v1/auth/me", []string{"Host: evil.example", "Origin: "}, 403, "host_not_allowed"},
		{"rebinding, the page", "GET", "/", []string{"Host: evil.example", "Origin: "}, 403, "host_not_allowed"},
		{"rebinding with its origin", "GET", "/api/v1/auth/me", []string{"Host: evil.example", "Origin: http://evil.example"}, 403, "host_not_allowed"},
		{"rebinding to health", "GET", "/healthz", []string{"Host: evil.example:80", "Origin: "}, 403, "host_not_allowed"},
		{"like localhost", "GET", "/", []string{"Host: localhost.evil.example", "Origin: "}, 403, "host_not_allowed"},
		{"other origin reads", "GET", "/api/v1/auth/me", []string{"Origin: https://evil.example"}, 403, "origin_not_allowed"},
		{"other origin posts", "POST", "/api/v1/connections/local/test", []string{"Origin: https://evil.example"}, 403, "origin_not_allowed"},
		{"other port posts", "POST", "/api/v1/connections/local/test", []string{"Origin: http://127.0.0.1:1"}, 403, "origin_not_allowed"},
		{"other scheme posts", "POST", "/api/v1/connections/local/test", []string{"Origin: https://" + host}, 403, "origin_not_allowed"},
		{"null posts", "POST", "/api/v1/connections/local/test", []string{"Origin: null"}, 403, "origin_not_allowed"},
		{"nobody knows who posts", "POST", "/api/v1/connections/local/test", []string{"Origin: "}, 403, "origin_not_allowed"},
		{"cross-site post without origin", "POST", "/api/v1/connections/local/test", []string{"Origin: ", "Sec-Fetch-Site: cross-site"}, 403, "origin_not_allowed"},
		{"same-site post", "POST", "/api/v1/connections/local/test", []string{"Origin: ", "Sec-Fetch-Site: same-site"}, 403, "origin_not_allowed"},
		{"multipart from elsewhere", "POST", "/api/v1/connections", []string{"Origin: https://evil.example", multipart}, 403, "origin_not_allowed"},
		{"multipart", "POST", "/api/v1/connections", []string{multipart}, 415, "invalid_argument"},
		{"text as JSON", "POST", "/api/v1/connections", []string{"Content-Type: text/plain"}, 415, "invalid_argument"},
		{"cross-site image", "GET", "/icon.svg", []string{"Origin: ", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors"}, 403, "origin_not_allowed"},
		{"a link elsewhere leads here", "GET", "/sandboxes", []string{"Origin: ", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"}, 200, ""},
		{"a frame elsewhere", "GET", "/sandboxes", []string{"Origin: ", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: iframe"}, 403, "origin_not_allowed"},
		{"a form elsewhere", "POST", "/api/v1/auth/sign-out", []string{"Origin: ", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"}, 403, "origin_not_allowed"},
		{"a link elsewhere to the API", "GET", "/api/v1/auth/me", []string{"Origin: ", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"}, 403, "origin_not_allowed"},
		{"stream from elsewhere", "GET", events, []string{"Origin: https://evil.example", "Accept: text/event-stream"}, 403, "origin_not_allowed"},
		{"stream from null", "GET", events, []string{"Origin: null"}, 403, "origin_not_allowed"},
		{"stream from another port", "GET", events, []string{"Origin: http://127.0.0.1:1"}, 403, "origin_not_allowed"},
		{"stream under another name", "GET", events, []string{"Host: evil.example"}, 403, "host_not_allowed"},
		{"socket from elsewhere", "GET", events, []string{"Origin: https://evil.example", "Connection: Upgrade", "Upgrade: websocket"}, 403, "origin_not_allowed"},
		{"login from elsewhere", "POST", "/api/v1/auth/link", []string{"Origin: https://evil.example"}, 403, "origin_not_allowed"},
		{"preflight", "OPTIONS", "/api/v1/auth/me", []string{"Origin: https://evil.example", "Access-Control-Request-Method: POST"}, 403, "origin_not_allowed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			body := ""
			if tt.method == "POST" && strings.HasSuffix(tt.path, "/connections") {
				body = "--x"
			}
			a := c.ask(tt.method, tt.path, body, tt.headers...)
			if tt.code == "" {
				if a.status != tt.status {
					t.Errorf("%d %s", a.status, a.body)
				}
			} else {
				a.want(t, tt.name, tt.status, sandboxCode(tt.code))
			}
			for name := range a.header {
				if strings.HasPrefix(name, "Access-Control-") {
					t.Errorf("answers with %s", name)
				}
			}
		})
	}
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	c := s.user("admin", door.Admin)
	for path, policy := range map[string]string{"/": "script-src 'self'", "/app.js": "script-src 'self'", "/api/v1/auth/me": "sandbox", "/nothing": "sandbox"} {
		h := c.ask("GET", path, "").header
		csp := strings.Replace(h.Get("Content-Security-Policy"), "style-src 'self' 'unsafe-inline'", "", 1) // styles may stand in the page, scripts never
		if !strings.Contains(csp, policy) || !strings.Contains(csp, "frame-ancestors 'none'") || strings.Contains(csp, "unsafe") ||
			h.Get("X-Content-Type-Options") != "nosniff" || h.Get("X-Frame-Options") != "DENY" || h.Get("Referrer-Policy") != "no-referrer" || h.Get("X-Request-ID") == "" {
			t.Errorf("%s: %v", path, h)
		}
	}
	h := c.ask("GET", "/app.js", "").header
	if h.Get("ETag") == "" || c.ask("GET", "/app.js", "", "If-None-Match: "+h.Get("ETag")).status != http.StatusNotModified {
		t.Errorf("no tag: %v", h)
	}
}

// What is larger than anything we take is refused, and does not hang.
func TestSizes(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	c := s.user("admin", door.Admin)
	c.ask("POST", "/api/v1/users", `{"name":"`+strings.Repeat("x", 1<<20)+`","role":"viewer"}`).want(t, "a huge body", 413, "invalid_argument")
	if a := s.stranger().ask("GET", "/", "", "X: "+strings.Repeat("x", 100<<10)); a.status != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("huge headers: %d", a.status)
	}
	c.ask("GET", "/api/v1/sandboxes?limit=100000", "").want(t, "a huge page", 422, "invalid_argument")
	c.ask("GET", "/api/v1/sandboxes?cursor=abc", "").want(t, "no cursor", 400, "cursor_invalid")
	c.ask("GET", "/api/v1/acts?cursor=IlwwMCI", "").want(t, "no cursor", 400, "cursor_invalid")
	c.ask("GET", "/api/v1/users/%00", "").want(t, "no id", 422, "invalid_argument")
	c.ask("GET", "/api/v1/users/"+strings.Repeat("x", 4096), "").want(t, "a long id", 422, "invalid_argument")
	c.ask("POST", "/api/v1/users", `{"name":"`, "").want(t, "half a body", 400, "invalid_argument")
}

func TestStatic(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for _, path := range []string{
		"/../../etc/passwd", "/..%2f..%2fetc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "//etc/passwd", "/app.js/../../../etc/passwd", `/..\..\etc\passwd`,
		"/index.html%00.js", "/.git/config", "/%c0%ae%c0%ae/etc/passwd", "/index.html/", "/api/v2/x", "/etc/passwd",
	} {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := conn.Write([]byte("GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(path, err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusNotFound && resp.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %s", path, resp.Status)
		}
	}
	if a := s.stranger().ask("GET", "/app.js", ""); a.body != "// script" || a.header.Get("Content-Type") != "text/javascript; charset=utf-8" {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := s.stranger().ask("POST", "/app.js", ""); a.status != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", a.status)
	}
}

// A name goes into headers and pages as text.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	c := s.user("admin", door.Admin)
	for _, name := range []string{`a\r\nSet-Cookie: x=y`, `<img src=x onerror=alert(1)>`, `a\u0000b`, `\u202egnp.exe`} {
		c.ask("POST", "/api/v1/users", `{"name":"`+name+`","role":"viewer"}`).want(t, name, 400, "invalid_argument")
	}
	a := c.ask("POST", "/api/v1/connections", `{"name":"<script>alert(1)</script>","endpoint":"http://localhost:1"}`)
	a.want(t, "a connection", 201, "")
	if got := a.header.Get("Content-Type"); !strings.HasPrefix(got, "application/json") {
		t.Error(got)
	}
	c.ask("GET", "/api/v1/sandboxes", "", "X-Request-ID: a\tb").want(t, "a foreign id", 200, "")
}

func TestActs(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	admin, viewer := s.user("admin", door.Admin), s.user("ann", door.Viewer)
	box, op := s.box("a", "secret output")
	base := "/api/v1/connections/local/sandboxes/" + box
	viewer.ask("DELETE", base, "").want(t, "delete by a viewer", 403, "forbidden")
	viewer.ask("GET", base+"/operations/"+op+"/output", "").want(t, "read", 200, "")
	admin.ask("POST", base+"/pause", "").want(t, "pause", 200, "")
	admin.ask("POST", "/api/v1/connections/local/sandboxes", `{"image":"missing","env":{"TOKEN":"hunter22"}}`).want(t, "create", 404, "image_not_found")
	admin.ask("DELETE", base, "").want(t, "delete", 204, "")
	s.stranger().ask("POST", "/api/v1/auth/password", `{"name":"ann","password":"x"}`).want(t, "wrong password", 401, door.CodeSignIn)
	var list server.Page[server.Act]
	admin.ask("GET", "/api/v1/acts?limit=200", "").read(t, &list)
	var got []string
	for _, a := range list.Items {
		if a.Address != "127.0.0.1" || a.RequestID == "" || strings.Contains(a.Detail, "hunter22") {
			t.Errorf("%+v", a)
		}
		got = append(got, strings.Join([]string{a.UserName, a.Action, a.Target, a.Outcome, a.Code}, " "))
	}
	want := []string{
		" auth.sign_in ann denied sign_in_failed",
		"admin sandbox.delete local/" + box + " done ",
		"admin sandbox.create local failed image_not_found",
		"admin sandbox.pause local/" + box + " done ",
		"ann history.read_output local/" + box + "/" + op + " done ",
		"ann sandbox.delete local/" + box + " denied forbidden",
	}
	for i, line := range want {
		if i >= len(got) || got[i] != line {
			t.Fatalf("act %d is not %q:\n%s", i, line, strings.Join(got, "\n"))
		}
	}
	admin.ask("GET", "/api/v1/acts?target=local/"+box+"/"+op, "").read(t, &list)
	if len(list.Items) != 1 || list.Items[0].Outcome != string(act.Done) {
		t.Errorf("%+v", list)
	}
}

// Behind a proxy the browser's address and name count, and nobody comes around.
func TestBehindProxy(t *testing.T) {
	t.Parallel()
	s := start(t, &options{change: func(o *server.Options) {
		o.Public, o.Proxies, o.OnlyProxies = mustURL("https://glass.example"), []netip.Prefix{loopback, netip.MustParsePrefix("10.0.0.0/8")}, true
	}})
	link, _, err := s.door.NewLink(t.Context(), door.FirstUser)
	if err != nil {
		t.Fatal(err)
	}
	front := []string{"Host: glass.example", "X-Forwarded-Proto: https", "X-Forwarded-For: 203.0.113.66, 198.51.100.7, 10.1.1.1"}
	c := &client{s: s, headers: front}
	a := c.ask("POST", "/api/v1/auth/link", `{"link":"`+string(link)+`"}`, "Origin: https://glass.example")
	cookie := a.header.Get("Set-Cookie")
	if a.status != 200 || !strings.HasPrefix(cookie, "__Host-glassbox=") || !strings.Contains(cookie, "Secure") || a.header.Get("Strict-Transport-Security") == "" {
		t.Fatalf("%d %s %v", a.status, a.body, a.header)
	}
	c.cookie, _, _ = strings.Cut(cookie, ";")
	c.headers = append(front, "Origin: https://glass.example")
	c.ask("POST", "/api/v1/connections/local/test", "").want(t, "own page", 200, "")
	c.ask("POST", "/api/v1/connections/local/test", "", "Origin: http://glass.example").want(t, "without TLS", 403, "origin_not_allowed")
	var list server.Page[server.SignIn]
	c.ask("GET", "/api/v1/sign-ins", "").read(t, &list)
	if len(list.Items) != 1 || list.Items[0].Address != "198.51.100.7" {
		t.Errorf("%+v: the last address that is no proxy is the browser's", list.Items)
	}
}
