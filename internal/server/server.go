// Package server is the console's door to the network: the REST API under
// /api/v1 with its OpenAPI document, the page, and beside them the OpenSandbox
// API of the local runtime, on one listener.
//
//	handler, err := server.New(&server.Options{Door: door, Acts: acts, Fleet: fleet, Lifecycle: lifecycle, Page: page})
//	err = (&http.Server{Handler: handler, …}).Serve(listener)
//
// Every request is checked for the name it came under and the page it came
// from, before anything else looks at it. What each route needs stands in one
// table, and a route that is not in it is not served.
package server

import (
	"bytes"
	"io/fs"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"
	"github.com/go-chi/chi/v5"

	"github.com/glassboxhq/glassbox/internal/console/act"
	"github.com/glassboxhq/glassbox/internal/console/connection"
	"github.com/glassboxhq/glassbox/internal/console/door"
	"github.com/glassboxhq/glassbox/internal/console/mirror"
	"github.com/glassboxhq/glassbox/internal/console/replay"
	"github.com/glassboxhq/glassbox/internal/db"
	"github.com/glassboxhq/glassbox/internal/lock"
	"github.com/glassboxhq/glassbox/internal/syncer"
)

// Options are what the server joins.
type Options struct {
	DB    *db.DB
	Door  *door.Door
	Acts  *act.Log
	Fleet *connection.Fleet
	// Mirror is the copy of the histories, and Syncer fills it; nil: there is
	// none.
	Mirror *mirror.Mirror
	Syncer *syncer.Syncer
	// Lifecycle answers OpenSandbox clients; nil: nobody does.
	Lifecycle http.Handler
	// Page holds the page's files, index.html among them.
	Page fs.FS
	// Hosts are names and addresses, besides those of the loopback, under
	// which the server is reached.
	Hosts []string
	// Public is the address that browsers see where a proxy stands before the
	// server; nil: they see the server itself.
	Public *url.URL
	// Proxies are where such a proxy may be: what it says of a client's
	// address is believed. With OnlyProxies nobody else may come, but from
	// this machine.
	Proxies     []netip.Prefix
	OnlyProxies bool
	// TLS tells that the listener speaks it.
	TLS bool
	// Port is the listener's; it tells the cookies of two servers apart.
	Port    string
	Version string
	Logger  *slog.Logger     // nil: silent
	Now     func() time.Time // nil: time.Now
}

// Server answers requests.
type Server struct {
	opts    Options
	hosts   map[string]bool
	router  chi.Router
	api     huma.API
	metrics *metrics
	replies *replay.Log
	streams chan struct{} // bounds how many are open
	inputs  *lock.Paths   // of commands
	ports   ports
}

// Prefix is where the REST API is.
const Prefix = "/api/v1"

// The limits of requests.
const (
	maxBody    = 64 << 10
	maxStreams = 256
)

// New returns a server.
func New(opts *Options) (*Server, error) {
	s := &Server{opts: *opts, hosts: map[string]bool{}, router: chi.NewRouter(), streams: make(chan struct{}, maxStreams), inputs: lock.NewPaths(0)}
	if s.opts.Logger == nil {
		s.opts.Logger = slog.New(slog.DiscardHandler)
	}
	if s.opts.Now == nil {
		s.opts.Now = time.Now
	}
	for _, host := range s.opts.Hosts {
		s.hosts[hostName(host)] = true
	}
	if s.opts.Public != nil {
		s.hosts[hostName(s.opts.Public.Host)] = true
	}
	s.replies = replay.New(s.opts.DB, s.opts.Now)
	s.metrics = newMetrics(s)
	page, err := newPage(s.opts.Page)
	if err != nil {
		return nil, err
	}
	s.router.Use(s.recover)
	s.router.NotFound(s.notFound)
	s.router.MethodNotAllowed(s.wrongMethod)
	s.health()
	page.routes(s.router)
	s.api = humachi.New(s.router, s.config())
	s.api.UseMiddleware(s.enter)
	s.routeAuth()
	s.routeUsers()
	s.routeTokens()
	s.routeActs()
	s.routeConnections()
	s.routeSandboxes()
	s.routeOperations()
	s.routeSearch()
	s.routeSummaries()
	s.routeMirror()
	s.routeEvents()
	s.routeFollowAll()
	s.routeFiles()
	s.routeCommands()
	s.routeTerminals()
	s.routePorts()
	s.routeSnapshots()
	return s, s.complete()
}

func (s *Server) config() huma.Config {
	config := huma.DefaultConfig("Glassbox", s.opts.Version)
	config.CreateHooks = nil // no links to schemas in answers
	config.DocsPath, config.SchemasPath, config.OpenAPIPath = "", "", ""
	config.Info.Description = "Sandboxes of AI agents, and the exact record of what was done in them."
	config.Transformers = []huma.Transformer{s.problems}
	config.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		"token":   {Type: "http", Scheme: "bearer", Description: "a token of POST " + Prefix + "/tokens"},
		"session": {Type: "apiKey", In: "cookie", Name: s.cookieName(), Description: "of a browser that has signed in"},
	}
	return config
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r, v := s.visit(r)
	began := time.Now()
	answer := &answered{ResponseWriter: w}
	v.answer = answer
	defer func() { s.metrics.note(v, answer.status, time.Since(began)) }()
	if label, ok := portLabel(r.Host); ok {
		v.operation = "port"
		s.servePort(answer, r, v, label)
		return
	}
	if s.opts.Lifecycle != nil && forLifecycle(r) {
		v.operation = "opensandbox"
		s.serveLifecycle(answer, r)
		return
	}
	s.protect(answer.Header(), r)
	answer.Header().Set("X-Request-ID", v.id)
	if err := s.checkOrigin(r, v); err != nil {
		s.refuse(answer, r, err)
		return
	}
	s.router.ServeHTTP(answer, r)
}

// answered notes the status of an answer, and what it says where that is kept.
type answered struct {
	http.ResponseWriter
	status int
	copy   *bytes.Buffer // nil: it is not
}

// WriteHeader implements http.ResponseWriter.
func (a *answered) WriteHeader(status int) {
	if a.status == 0 || a.status < 200 {
		a.status = status
	}
	a.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (a *answered) Write(p []byte) (int, error) {
	if a.status == 0 {
		a.status = http.StatusOK
	}
	if a.copy != nil {
		a.copy.Write(p)
	}
	return a.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController reach what is beneath.
func (a *answered) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// recover turns a panic into an answer, as far as none was begun.
func (s *Server) recover(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			cause := recover()
			if cause == nil {
				return
			}
			if cause == http.ErrAbortHandler { //nolint:errorlint // as net/http compares it
				panic(cause)
			}
			s.opts.Logger.ErrorContext(r.Context(), "request panicked", "request_id", visitOf(r.Context()).id, "path", r.URL.Path, "cause", cause)
			s.refuse(w, r, errPanic)
		}()
		next.ServeHTTP(w, r)
	})
}
