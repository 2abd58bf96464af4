// Package execd serves a recorded session on the wire of OpenSandbox's execd,
// so that any OpenSandbox client works in a sandbox unchanged, and each of its
// acts is an operation in the history:
//
//	handler := execd.New(session, store, &execd.Options{Token: token})
//
// What it speaks, and where it differs from execd and why, stands in
// docs/compatibility.md.
package execd

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/idle"
	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/sandbox"
)

// Session is what is served.
type Session interface {
	sandbox.Session
	sandbox.Starter
	sandbox.Attacher
	sandbox.Files
	// WriteWith and MakeDirWith also set mode and owner, as one act; with may
	// be nil.
	WriteWith(ctx context.Context, path string, content io.Reader, opts *sandbox.WriteOptions, with *sandbox.ModeOptions) (*sandbox.FileInfo, error)
	MakeDirWith(ctx context.Context, path string, opts *sandbox.MakeDirOptions, with *sandbox.ModeOptions) (*sandbox.FileInfo, error)
}

// Options set up a Handler.
type Options struct {
	// Token is what every request carries in wire.HeaderExecdToken. Empty:
	// nobody is let in, unless Open.
	Token string
	// Workdir is where relative paths begin, as the session has it.
	Workdir string
	// Open lets everyone in where there is no Token, as execd does.
	Open bool
	// Home is what ~ stands for in a path; empty: /root.
	Home string
	// Dir is a directory for what shells keep between their runs, which may be
	// secrets, so that it should be private and not be the temporary directory,
	// which programs empty. Empty: that all the same.
	Dir string
	// Spool is a directory for the output of background commands and terminals,
	// in files without names; empty: the temporary directory.
	Spool string
	// MemoryBytes and CPUMilli (thousandths of a processor) are limits of the
	// sandbox, if there are any; else what the kernel knows is told.
	MemoryBytes, CPUMilli int64
	// EnvFile holds variables, a KEY=VALUE a line, that every command gets.
	// Empty: there is none.
	EnvFile string
	// Idle is how long a client that sends or takes something may do nothing;
	// 0: five minutes.
	Idle time.Duration
	// Abandoned is how long a foreground command goes on after its client was
	// lost; 0: five minutes.
	Abandoned time.Duration
	// Whose tells whose history it is; nil: the calls of the Python package
	// agent-sandbox-backends are commands as any others.
	Whose  func(ctx context.Context) (*Identity, error)
	Logger *slog.Logger // nil: silent
}

// Handler answers execd's wire.
type Handler struct {
	session Session
	store   history.Reader // nil: the history is off
	opts    Options
	jobs    *jobs
	shells  *shells
	ptys    *ptys
	helper  *helper // nil: the history's helper is not known
	meter   meter
	ports   http.Handler
	mux     *http.ServeMux
}

// New returns a handler of a session. The history tells of commands that ended
// long ago; it may be nil.
func New(session Session, store history.Reader, opts *Options) *Handler {
	h := &Handler{session: session, store: store, opts: *opts, jobs: newJobs(), shells: newShells(), ptys: newPTYs(), ports: newPorts(), mux: http.NewServeMux()}
	h.meter.memory, h.meter.cpus = float64(h.opts.MemoryBytes), float64(h.opts.CPUMilli)/1000
	if h.opts.Home == "" {
		h.opts.Home = "/root"
	}
	if h.opts.Idle == 0 {
		h.opts.Idle = 5 * time.Minute
	}
	h.helper = newHelper(session, store, &h.opts)
	if h.opts.Abandoned == 0 {
		h.opts.Abandoned = 5 * time.Minute
	}
	if h.opts.Logger == nil {
		h.opts.Logger = slog.New(slog.DiscardHandler)
	}
	for route, handle := range map[string]func(http.ResponseWriter, *http.Request) error{
		"GET /ping":                     func(http.ResponseWriter, *http.Request) error { return nil },
		"POST /command":                 h.runCommand,
		"DELETE /command":               h.interrupt,
		"GET /command/{first}/{second}": h.askCommand,
		"POST /session":                 h.openShell,
		"POST /session/{id}/run":        h.runInShell,
		"DELETE /session/{id}":          h.closeShell,
		"GET /files/info":               h.fileInfo,
		"GET /files/search":             h.searchFiles,
		"GET /files/download":           h.downloadFile,
		"POST /files/upload":            h.uploadFiles,
		"POST /files/replace":           h.replaceText,
		"POST /files/permissions":       h.setPermissions,
		"POST /files/mv":                h.moveFiles,
		"DELETE /files":                 h.removeFiles,
		"GET /directories/list":         h.listDirectory,
		"POST /directories":             h.makeDirectories,
		"DELETE /directories":           h.removeDirectories,
		"GET /metrics":                  h.readMetrics,
		"GET /metrics/watch":            h.watchMetrics,
		"POST /code":                    h.runCode,
		"DELETE /code":                  h.interrupt,
		"POST /code/context":            h.makeContext,
		"GET /code/contexts":            h.listContexts,
		"DELETE /code/contexts":         h.removeContexts,
		"GET /code/contexts/{id}":       h.findContext,
		"DELETE /code/contexts/{id}":    h.findContext,
		"POST /pty":                     h.openPTY,
		"GET /pty/{id}":                 h.ptyStatus,
		"DELETE /pty/{id}":              h.closePTY,
		"GET /pty/{id}/ws":              h.viewPTY,
		"GET /v1/isolated/capabilities": h.isolation,
		"/v1/isolated/":                 notIsolated,
	} {
		h.mux.Handle(route, h.telling(handle))
	}
	return h
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !h.lets(r) {
		idle.Refused(w)
		const text = "Unauthorized: invalid or missing header " + wire.HeaderExecdToken
		answerStatus(w, http.StatusUnauthorized, map[string]string{"error": text, "code": "UNAUTHORIZED", "message": text})
		return
	}
	// The mux would clean the path, which is the business of what listens there.
	if rest, ok := strings.CutPrefix(r.URL.Path, proxyPrefix); ok {
		h.proxy(w, r, rest)
		return
	}
	h.mux.ServeHTTP(w, r)
}

// lets reports whether a client may come in.
func (h *Handler) lets(r *http.Request) bool {
	if h.opts.Token == "" {
		return h.opts.Open
	}
	return subtle.ConstantTimeCompare([]byte(r.Header.Get(wire.HeaderExecdToken)), []byte(h.opts.Token)) == 1
}

// telling puts the actor into the context, and tells errors.
func (h *Handler) telling(handle func(http.ResponseWriter, *http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, err := withClient(r)
		if err == nil {
			err = handle(w, r.WithContext(ctx))
		}
		if err != nil {
			h.opts.Logger.DebugContext(r.Context(), "request refused", "path", r.URL.Path, "error", err)
			tell(w, err)
		}
	})
}

// withClient tells who acts: the headers, or else the program that asks.
func withClient(r *http.Request) (context.Context, error) {
	actor, err := wire.ReadActor(r.Header)
	if err != nil {
		return nil, err
	}
	actor.Source = history.SourceExecd
	if actor.ID == "" {
		client, _, _ := strings.Cut(r.UserAgent(), " ")
		named := history.Actor{ID: client}
		if named.Validate() == nil { // else it is nobody's name
			actor.ID = client
		}
	}
	return history.WithActor(r.Context(), actor), nil
}

func notIsolated(http.ResponseWriter, *http.Request) error {
	return &sandbox.Error{Code: sandbox.CodeUnsupported, Message: noIsolation}
}

// fault is an error as execd's clients know it.
type fault struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// refusal is an error that execd has and we have not.
type refusal struct {
	status int
	fault
}

// Error implements error.
func (r *refusal) Error() string { return r.Message }

// codes are execd's own, where it has one; what is not here is RUNTIME_ERROR.
var codes = map[sandbox.Code]string{
	sandbox.CodeInvalid:           "INVALID_REQUEST_BODY",
	sandbox.CodeFileNotFound:      "FILE_NOT_FOUND",
	sandbox.CodeOperationNotFound: "COMMAND_NOT_FOUND",
	sandbox.CodeUnsupported:       "NOT_SUPPORTED",
	sandbox.CodeIsDirectory:       "INVALID_FILE",
	sandbox.CodeNotDirectory:      "INVALID_FILE",
	sandbox.CodeNotEmpty:          "INVALID_FILE",
	sandbox.CodeFileExists:        "INVALID_FILE",
	sandbox.CodePathNotAllowed:    "INVALID_FILE",
	sandbox.CodePermission:        "INVALID_FILE",
}

func newFault(err error) *fault {
	code := "RUNTIME_ERROR"
	if theirs, ok := codes[sandbox.CodeOf(err)]; ok {
		code = theirs
	}
	return &fault{code, err.Error()}
}

// tell answers with an error; our own code stands in a header.
func tell(w http.ResponseWriter, err error) {
	if r, ok := errors.AsType[*refusal](err); ok {
		answerStatus(w, r.status, &r.fault)
		return
	}
	code := sandbox.CodeOf(err)
	w.Header().Set(wire.HeaderCode, string(code))
	answerStatus(w, wire.StatusOf(code), newFault(err))
}

func answer(w http.ResponseWriter, v any) error {
	answerStatus(w, http.StatusOK, v)
	return nil
}

func answerStatus(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client may have gone
}

// maxJSON bounds a body of JSON.
const maxJSON = wire.MaxRequestBytes

// decode reads a body of JSON, whatever its type is said to be.
func (h *Handler) decode(w http.ResponseWriter, r *http.Request, v any) error {
	body := http.MaxBytesReader(w, idle.Body(w, r.Body, h.opts.Idle), maxJSON)
	err := json.NewDecoder(body).Decode(v)
	idle.Done(w, err)
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &sandbox.Error{Op: "read request", Code: sandbox.CodeTooLarge, Field: "body", Message: "must be at most 32 MiB"}
	}
	if err != nil {
		return &sandbox.Error{Op: "read request", Code: sandbox.CodeInvalid, Field: "body", Err: err}
	}
	return nil
}
