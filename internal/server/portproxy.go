package server

import (
	"errors"
	"maps"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"

	"github.com/glassboxhq/glassbox/sandbox"
)

// portPolicy lets a program's page do what pages do, but lead the browser away,
// and be shown within another page.
const portPolicy = "sandbox allow-downloads allow-forms allow-modals allow-popups allow-same-origin allow-scripts; frame-ancestors 'none'"

// servePort passes a request on to a port of a sandbox.
func (s *Server) servePort(w http.ResponseWriter, r *http.Request, v *visit, label string) {
	h := w.Header()
	portHeader(h)
	p := s.ports.find(label, s.opts.Now())
	switch {
	case s.around(v):
		http.Error(w, "this server is reached through its proxy only", http.StatusForbidden)
		return
	case p == nil:
		http.Error(w, "this address is no longer good: open the port anew from the console", http.StatusNotFound)
		return
	}
	if err := s.admitPort(r.Context(), p); err != nil {
		http.Error(w, "whoever opened this address may not see it any longer: sign in, and open the port anew", http.StatusForbidden)
		return
	}
	target, err := url.Parse(p.at.URL)
	if err != nil {
		http.Error(w, "the service answered with an address that is none", http.StatusFailedDependency)
		return
	}
	proxy := &httputil.ReverseProxy{
		Transport:     p.at.Transport,
		FlushInterval: -1,
		Rewrite: func(out *httputil.ProxyRequest) {
			out.SetURL(target)
			if !p.at.OwnHost {
				out.Out.Host = out.In.Host
			}
			s.withoutOurs(out.Out.Header)
			maps.Copy(out.Out.Header, p.at.Header)
			out.SetXForwarded()
		},
		ModifyResponse: func(resp *http.Response) error {
			s.taken(resp, target.Path)
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() != nil {
				panic(http.ErrAbortHandler) // nobody reads an answer
			}
			text := "the port cannot be reached"
			if e, ok := errors.AsType[*sandbox.Error](err); ok {
				text = publicText(e)
			}
			http.Error(w, text, http.StatusFailedDependency)
		},
	}
	proxy.ServeHTTP(w, r)
}

// portHeader sets what no program in a sandbox decides.
func portHeader(h http.Header) {
	h.Set("Content-Security-Policy", portPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin") // the page that opened it is out of its reach
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// withoutOurs takes out of a request what is for us. A browser has no reason to
// send our cookie to this name; somebody else may.
func (s *Server) withoutOurs(h http.Header) {
	if strings.Contains(h.Get("Authorization"), "gbt_") {
		h.Del("Authorization")
	}
	var kept []string
	for part := range strings.SplitSeq(strings.Join(h.Values("Cookie"), ";"), ";") {
		name, _, _ := strings.Cut(strings.TrimSpace(part), "=")
		if part = strings.TrimSpace(part); part != "" && !strings.HasPrefix(name, "glassbox") && !strings.HasPrefix(name, "__Host-glassbox") {
			kept = append(kept, part)
		}
	}
	if h.Del("Cookie"); len(kept) > 0 {
		h.Set("Cookie", strings.Join(kept, "; "))
	}
}

// taken takes out of an answer what would reach beyond its own name, and what
// we say ourselves.
func (s *Server) taken(resp *http.Response, base string) {
	h := resp.Header
	policies := h.Values("Content-Security-Policy")
	for _, name := range []string{"Strict-Transport-Security", "Clear-Site-Data", "Alt-Svc", "X-Content-Type-Options", "Referrer-Policy", "Cross-Origin-Opener-Policy", "Cross-Origin-Resource-Policy", "Content-Security-Policy"} {
		h.Del(name)
	}
	for _, policy := range policies { // theirs holds beside ours
		h.Add("Content-Security-Policy", policy)
	}
	cookies := h.Values("Set-Cookie")
	h.Del("Set-Cookie")
	for _, cookie := range cookies {
		if !strings.Contains(strings.ToLower(cookie), "domain") && !strings.HasPrefix(strings.TrimSpace(cookie), "glassbox") {
			h.Add("Set-Cookie", cookie)
		}
	}
	if to := h.Get("Location"); base != "" && strings.HasPrefix(to, base+"/") {
		h.Set("Location", strings.TrimPrefix(to, base))
	}
}
