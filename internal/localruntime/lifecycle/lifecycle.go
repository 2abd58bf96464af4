// Package lifecycle is the OpenSandbox lifecycle API and server proxy over a
// runtime of this process: any OpenSandbox client can make, follow and reach
// its sandboxes.
//
//	handler := lifecycle.New(runtime, &lifecycle.Options{APIKey: key})
//
// It is served under /v1 and without a prefix. Every request is checked for
// its Host and its Origin: a page in a browser can reach nothing here.
package lifecycle

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"unicode"

	"github.com/glassboxhq/glassbox/internal/lock"
	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/sandbox"
)

// Runtime makes sandboxes and reaches them.
type Runtime interface {
	Keeper
	sandbox.Pauser
	sandbox.Renewer
	sandbox.Labeler
	sandbox.Snapshotter
	Reacher
	Diagnoser
	Recorder
}

// Keeper makes sandboxes and keeps them.
type Keeper interface {
	Create(ctx context.Context, spec *sandbox.Spec) (*sandbox.Info, error)
	Get(ctx context.Context, id string) (*sandbox.Info, error)
	List(ctx context.Context) ([]*sandbox.Info, error)
	Delete(ctx context.Context, id string) error
}

// Reacher reaches what runs in a sandbox.
type Reacher interface {
	Spec(ctx context.Context, id string) (*sandbox.Spec, error)
	Access(ctx context.Context, id string) (Access, error)
	Conn(id string) http.RoundTripper
	DialPort(ctx context.Context, id string, port int) (net.Conn, error)
}

// Access is what opens a sandbox's recorder. It is a secret.
type Access struct {
	Token      string // for our wire
	ExecdToken string // for execd's
}

// String keeps the tokens out of logs.
func (Access) String() string { return "***" }

// GoString keeps the tokens out of logs.
func (Access) GoString() string { return "***" }

// Options say who may use the API.
type Options struct {
	// APIKey is what a request must bear in OPEN-SANDBOX-API-KEY. Empty: no
	// request that needs a key is answered.
	APIKey string
	// Trusted takes every request without a key and under any Host: for a
	// socket that only this user can reach.
	Trusted bool
	// Hosts are names and addresses, besides those of the loopback, under
	// which a request may come: those of the listener.
	Hosts []string
	// Version is told at /version.
	Version string
	// Here lets requests that are not trusted ask for the image "here".
	Here bool
	// Own answers paths below /glassbox/ where Trusted; nil: not found.
	Own    http.Handler
	Logger *slog.Logger // nil: silent
}

const (
	headerKey       = "OPEN-SANDBOX-API-KEY"
	headerRequestID = "X-Request-ID"
	headerCode      = wire.HeaderCode
)

type api struct {
	rt    Runtime
	opts  Options
	hosts map[string]bool
	ports *http.Transport // to the ports inside sandboxes

	pieces bufferPool  // of what is proxied
	moves  *lock.Paths // of sandboxes that are paused or resumed

	renewals renewals
	claims   claims
}

// New returns the API over rt.
func New(rt Runtime, opts *Options) http.Handler {
	a := &api{rt: rt, hosts: map[string]bool{}, moves: lock.NewPaths(0)}
	if opts != nil {
		a.opts = *opts
	}
	if a.opts.Logger == nil {
		a.opts.Logger = slog.New(slog.DiscardHandler)
	}
	for _, host := range a.opts.Hosts {
		a.hosts[strings.ToLower(strings.Trim(host, "[]"))] = true
	}
	a.ports = a.newPorts()
	return a
}

// ServeHTTP implements http.Handler.
func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := requestID(r)
	w.Header().Set(headerRequestID, id)
	switch {
	case r.Header.Get("Origin") != "":
		writeError(w, http.StatusForbidden, "GLASSBOX::ORIGIN_NOT_ALLOWED", "a page in a browser may not use this API")
	case !a.opts.Trusted && !a.knownHost(r.Host):
		writeError(w, http.StatusForbidden, "GLASSBOX::HOST_NOT_ALLOWED",
			"this server does not answer under the name in the Host header; use a loopback address, or the address it listens at")
	default:
		a.route(w, r)
	}
}

// route finds what answers a path. The path is split as it came, because the
// rest of a proxied one must reach the sandbox as it is.
func (a *api) route(w http.ResponseWriter, r *http.Request) {
	escaped := r.URL.EscapedPath()
	prefix := ""
	if rest, ok := strings.CutPrefix(escaped, "/v1/"); ok {
		prefix, escaped = "/v1", "/"+rest
	}
	parts := strings.SplitN(strings.TrimPrefix(escaped, "/"), "/", 5)
	if len(parts) >= 4 && parts[0] == "sandboxes" && parts[2] == "proxy" {
		a.proxy(w, r, &target{prefix: prefix, id: parts[1], port: parts[3], rest: strings.Join(parts[4:], "")})
		return
	}
	if open := a.open(r, escaped); open != nil {
		open.ServeHTTP(w, r)
		return
	}
	if !a.authorized(w, r) {
		return
	}
	if noun := parts[0]; noun == "sandboxes" || noun == "snapshots" {
		a.act(w, r, &route{prefix: prefix, noun: noun, parts: parts[1:]})
		return
	}
	if escaped == "/metrics/events" && r.Method == http.MethodPost {
		w.WriteHeader(http.StatusNoContent) // clients report how long a creation took
		return
	}
	if first := parts[0]; first == "pools" || first == "templates" {
		notSupported(w, first)
		return
	}
	notFound(w)
}

// open returns what answers a path that needs no key.
func (a *api) open(r *http.Request, path string) http.Handler {
	var answer any
	if strings.HasPrefix(path, "/glassbox/") && a.opts.Trusted && a.opts.Own != nil {
		return a.opts.Own
	}
	switch path {
	case "/health", "/healthz":
		answer = map[string]string{"status": "healthy"}
	case "/version":
		answer = map[string]string{"version": a.opts.Version}
	default:
		return nil
	}
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			wrongMethod(w)
			return
		}
		writeJSON(w, http.StatusOK, answer)
	})
}

// authorized reports whether the request bears the key, and answers it if not.
func (a *api) authorized(w http.ResponseWriter, r *http.Request) bool {
	if a.opts.Trusted || a.bearsKey(r) {
		return true
	}
	if r.Header.Get(headerKey) == "" {
		writeError(w, http.StatusUnauthorized, "MISSING_API_KEY",
			"the header "+headerKey+" is missing; the key lies in this server's state folder, where the SDK and the command "+
				"find it if GLASSBOX_STATE_DIR or --state-dir names that folder; glassbox config get local.api_key prints it")
		return false
	}
	writeError(w, http.StatusUnauthorized, "INVALID_API_KEY", "the key in "+headerKey+" is not this server's")
	return false
}

func (a *api) bearsKey(r *http.Request) bool {
	return same(r.Header.Get(headerKey), a.opts.APIKey)
}

// same compares secrets in a time that does not tell how much of them agrees.
func same(given, secret string) bool {
	return secret != "" && subtle.ConstantTimeCompare([]byte(given), []byte(secret)) == 1
}

// knownHost keeps out requests that a foreign name was pointed at us for.
func (a *api) knownHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.Trim(host, "[]"))
	if addr, err := netip.ParseAddr(host); err == nil && addr.Unmap().IsLoopback() {
		return true
	}
	return host == "localhost" || a.hosts[host]
}

func requestID(r *http.Request) string {
	id := strings.TrimSpace(r.Header.Get(headerRequestID))
	if id != "" && len(id) <= 128 && strings.IndexFunc(id, func(c rune) bool { return c > unicode.MaxASCII || !unicode.IsPrint(c) }) < 0 {
		return id
	}
	var b [16]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}
