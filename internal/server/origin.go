package server

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/glassboxhq/glassbox/sandbox"
)

// The codes of refusals before a route is found.
const (
	codeHost   sandbox.Code = "host_not_allowed"
	codeOrigin sandbox.Code = "origin_not_allowed"
	codePlain  sandbox.Code = "not_secure"
)

// checkOrigin refuses what comes under a foreign name (a stranger's name that
// was pointed at us), from a foreign page, or around the proxy.
func (s *Server) checkOrigin(r *http.Request, v *visit) error {
	if s.around(v) {
		return &sandbox.Error{Code: codePlain, Message: "this server is reached through its proxy only"}
	}
	if !s.knownHost(r.Host) {
		return &sandbox.Error{Code: codeHost, Message: "this server does not answer under the name in the Host header"}
	}
	site, origin := r.Header.Get("Sec-Fetch-Site"), r.Header.Values("Origin")
	foreign := &sandbox.Error{Code: codeOrigin, Message: "a page of another origin may not use this server"}
	switch {
	case len(origin) > 1 || len(origin) == 1 && !s.ownOrigin(origin[0], r, v):
		return foreign
	case site == "" || site == "same-origin" || site == "none":
		return nil
	case navigation(r) && len(origin) == 0 && r.Header.Get("Sec-Fetch-Dest") == "document" && !strings.HasPrefix(r.URL.Path, "/api/"):
		return nil // a link on another page leads here; the page itself holds nothing
	}
	return foreign
}

// around reports whether a request came around the proxy that has to speak TLS.
func (s *Server) around(v *visit) bool {
	return s.opts.OnlyProxies && !s.opts.TLS && !v.peer.IsLoopback() && !s.isProxy(v.peer)
}

// knownHost reports whether the server is meant.
func (s *Server) knownHost(host string) bool {
	name := hostName(host)
	if addr, err := netip.ParseAddr(name); err == nil && addr.Unmap().IsLoopback() {
		return true
	}
	return name == "localhost" || s.hosts[name]
}

// hostName is a host without its port, as it is compared.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.Trim(host, "[]"))
}

// ownOrigin reports whether an Origin is that of our own page.
func (s *Server) ownOrigin(origin string, r *http.Request, v *visit) bool {
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" {
		return false // "null", too
	}
	if p := s.opts.Public; p != nil && u.Scheme == p.Scheme && strings.EqualFold(u.Host, p.Host) {
		return true
	}
	scheme := "http"
	if v.secure {
		scheme = "https"
	}
	return u.Scheme == scheme && strings.EqualFold(u.Host, r.Host)
}

// navigation reports whether a person opens a page with this request.
func navigation(r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	if mode := r.Header.Get("Sec-Fetch-Mode"); mode != "" {
		return mode == "navigate"
	}
	return strings.Contains(r.Header.Get("Accept"), "text/html")
}

// pagePolicy lets the page load what the server itself serves, and run no
// script that stands in the page. Styles may stand in it: the editor, the
// terminal and the menus write theirs there.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; " +
	"font-src 'self'; worker-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// apiPolicy makes of an answer that is opened as a page a page that does nothing.
const apiPolicy = "default-src 'none'; frame-ancestors 'none'; sandbox"

// protect sets the headers that every answer has.
func (s *Server) protect(h http.Header, r *http.Request) {
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), microphone=(), geolocation=(), payment=(), usb=()")
	h.Set("Content-Security-Policy", apiPolicy)
	h.Set("Cache-Control", "no-store")
	if v := visitOf(r.Context()); v.secure {
		h.Set("Strict-Transport-Security", "max-age=31536000")
	}
}
