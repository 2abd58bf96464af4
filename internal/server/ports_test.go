package server_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/glassboxhq/glassbox/internal/console/door"
	"github.com/glassboxhq/glassbox/internal/server"
	"github.com/glassboxhq/glassbox/sandbox"
)

// TestPorts shows what a hostile program serves.
func TestPorts(t *testing.T) {
	t.Parallel()
	r := start(t, nil).room()
	seen := make(chan *http.Request, 10)
	program := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case seen <- r:
		default:
		}
		if r.Header.Get("Upgrade") != "" {
			conn, err := websocket.Accept(w, r, nil) // it looks at the origin
			if err != nil {
				return
			}
			defer conn.CloseNow()
			kind, data, err := conn.Read(r.Context())
			if err == nil {
				_ = conn.Write(r.Context(), kind, append([]byte("echo "), data...))
			}
			return
		}
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("Content-Security-Policy", "img-src 'none'")
		w.Header().Set("Strict-Transport-Security", "max-age=1")
		w.Header().Set("Clear-Site-Data", "*")
		w.Header().Set("Cross-Origin-Opener-Policy", "unsafe-none")
		w.Header().Add("Set-Cookie", "mine=1")
		w.Header().Add("Set-Cookie", "wide=1; Domain=localhost")
		w.Header().Add("Set-Cookie", "glassbox_1=1")
		fmt.Fprintf(w, "<script>%s %s</script>", r.Method, r.URL)
	}))
	t.Cleanup(program.Close)
	_, port, err := net.SplitHostPort(program.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	var at, again server.PortAt
	r.ask("GET", r.base+"/ports/"+port, "").read(t, &at)
	r.ask("GET", r.base+"/ports/"+port, "").read(t, &again)
	u, err := url.Parse(at.URL)
	if err != nil || !strings.HasSuffix(u.Hostname(), ".localhost") || u.Port() == "" || at.URL != again.URL || time.Until(at.ExpiresAt) > 13*time.Hour {
		t.Fatalf("%+v %+v", at, again)
	}
	other := r.s.user("ann", door.Operator)
	other.ask("GET", r.base+"/ports/"+port, "").read(t, &again)
	if again.URL == at.URL {
		t.Error("two users share an address")
	}

	// A browser has no cookie for that name. If somebody sends it, it stops here.
	browser := &client{s: r.s, headers: []string{"Host: " + u.Host, "Cookie: " + r.cookie + "; theirs=1; __Host-glassbox=x", "Authorization: Bearer gbt_X", "Sec-Fetch-Site: cross-site", "Origin: http://x.example"}}
	a := browser.ask("POST", "/v1/sandboxes?q=1", "body")
	if a.status != 200 || a.body != "<script>POST /v1/sandboxes?q=1</script>" {
		t.Fatalf("%d %s", a.status, a.body)
	}
	for name, want := range map[string]string{
		"Cross-Origin-Opener-Policy": "same-origin", "X-Content-Type-Options": "nosniff", "Strict-Transport-Security": "", "Clear-Site-Data": "", "Set-Cookie": "mine=1",
	} {
		if got := strings.Join(a.header.Values(name), " "); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if p := a.header.Values("Content-Security-Policy"); len(p) != 2 || !strings.HasPrefix(p[0], "sandbox ") || strings.Contains(p[0], "top-navigation") || p[1] != "img-src 'none'" {
		t.Errorf("%q", p)
	}
	if got := <-seen; got.Header.Get("Cookie") != "theirs=1" || got.Header.Get("Authorization") != "" || got.Host != u.Host || got.Header.Get("X-Forwarded-Host") != u.Host {
		t.Errorf("%v %s", got.Header, got.Host)
	}

	conn, resp, err := websocket.Dial(t.Context(), r.s.url+"/ws", &websocket.DialOptions{Host: u.Host, HTTPHeader: http.Header{"Origin": {"http://" + u.Host}}})
	if err != nil {
		t.Fatalf("%v %v", err, resp)
	}
	defer conn.CloseNow()
	if err := conn.Write(t.Context(), websocket.MessageText, []byte("hello")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, data, err := conn.Read(ctx); err != nil || string(data) != "echo hello" {
		t.Errorf("%q %v", data, err)
	}

	// The address is of the one who signed in.
	stranger := &client{s: r.s, headers: []string{"Host: port-" + strings.Repeat("a", 26) + ".localhost"}}
	if a := stranger.ask("GET", "/", ""); a.status != 404 {
		t.Errorf("no such address: %d %s", a.status, a.body)
	}
	r.ask("POST", "/api/v1/auth/sign-out", "").want(t, "sign out", 204, "")
	r.eventually("the address is no longer good", func() bool { return browser.ask("GET", "/", "").status == 403 })
	r.s.now(13 * time.Hour)
	if a := (&client{s: r.s, headers: []string{"Host: " + strings.TrimPrefix(strings.TrimSuffix(again.URL, "/"), "http://")}}).ask("GET", "/", ""); a.status != 404 {
		t.Errorf("expired: %d %s", a.status, a.body)
	}
}

func TestPortsRefused(t *testing.T) {
	t.Parallel()
	r := start(t, &options{change: func(o *server.Options) { o.Hosts = []string{"glass.example"} }}).room()
	r.ask("GET", r.base+"/ports/44780", "").want(t, "the recorder's", 403, sandbox.CodePathNotAllowed)
	r.ask("GET", r.base+"/ports/44772", "").want(t, "the recorder's", 403, sandbox.CodePathNotAllowed)
	r.ask("GET", r.base+"/ports/0", "").want(t, "no port", 422, sandbox.CodeInvalid)
	r.ask("GET", r.base+"/ports/65536", "").want(t, "no port", 422, sandbox.CodeInvalid)
	r.ask("GET", r.base+"/ports/80", "", "Host: glass.example", "Origin: http://glass.example").want(t, "from elsewhere", 409, "ports_not_available")
	r.ask("GET", "/api/v1/connections/local/sandboxes/none/ports/80", "").want(t, "no sandbox", 404, sandbox.CodeSandboxNotFound)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	l.Close()
	var at server.PortAt
	r.ask("GET", r.base+"/ports/"+port, "").read(t, &at)
	host := strings.TrimSuffix(strings.TrimPrefix(at.URL, "http://"), "/")
	if a := (&client{s: r.s, headers: []string{"Host: " + host}}).ask("GET", "/", ""); a.status != 424 || !strings.Contains(a.header.Get("Content-Security-Policy"), "sandbox") {
		t.Errorf("nothing listens: %d %s", a.status, a.body)
	}
	if _, err := r.s.rt.Pause(t.Context(), r.box); err != nil {
		t.Fatal(err)
	}
	r.ask("GET", r.base+"/ports/80", "").want(t, "paused", 409, sandbox.CodeSandboxState)
}
