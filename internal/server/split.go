package server

import (
	"net/http"
	"slices"
	"strings"
)

// bare are the first parts of paths that OpenSandbox clients use without /v1.
var bare = []string{"sandboxes", "snapshots", "pools", "templates", "health"}

// forLifecycle reports whether a request is for the OpenSandbox API: all under
// /v1, whatever bears its key, and of the bare paths what no person opens in a
// browser. A port of a sandbox is never a page of ours.
func forLifecycle(r *http.Request) bool {
	path := r.URL.Path
	first, rest, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	switch {
	case first == "v1":
		return true
	case first == "api":
		return false
	case r.Header.Get("OPEN-SANDBOX-API-KEY") != "" || path == "/metrics/events":
		return true
	case !slices.Contains(bare, first):
		return false
	}
	return !navigation(r) || first != "sandboxes" || !ofPage(rest)
}

// tabs are the parts of a sandbox's page that have a path of their own.
var tabs = []string{"overview", "files", "commands", "terminal", "history"}

// ofPage reports whether what stands behind /sandboxes/ is a view of the page:
// a sandbox, or a tab of one. A port of a sandbox is a number, and no tab.
func ofPage(rest string) bool {
	parts := strings.Split(rest, "/")
	return len(parts) < 3 || len(parts) == 3 && slices.Contains(tabs, parts[2])
}

// serveLifecycle passes a request on. What sandboxes serve on their ports is
// written by agents: opened as a page it is in an origin of its own, without
// our cookie, which is no business of a sandbox either.
func (s *Server) serveLifecycle(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Security-Policy", "sandbox")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if s.around(visitOf(r.Context())) {
		http.Error(w, "this server is reached through its proxy only", http.StatusForbidden)
		return
	}
	s.opts.Lifecycle.ServeHTTP(w, r)
}
