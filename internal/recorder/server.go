// Package recorder serves a recorded session on the recorder's own wire, and
// keeps it served: over a socket of the host that it dials, after the death of
// the recorder before it, and until it is told to end.
package recorder

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"log/slog"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/execd"
	"github.com/glassboxhq/glassbox/internal/idle"
	"github.com/glassboxhq/glassbox/internal/version"
	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/sandbox"
)

// Session is what a recorder serves.
type Session interface {
	sandbox.Session
	sandbox.Starter
	sandbox.Attacher
	// Import records an operation that has ended elsewhere.
	Import(ctx context.Context, op *history.Operation) error
	// ImportUntold is Import unless another program has told of the same act.
	ImportUntold(ctx context.Context, op *history.Operation) error
}

// Options set up a Server.
type Options struct {
	// Token is what every request but a ping carries. It must not be empty.
	Token string
	// Execd sets up execd's wire, for every path that is not ours; nil: it is
	// not spoken.
	Execd     *execd.Options
	SandboxID string
	Workdir   string
	// Abandoned is how long a command goes on after its client was lost;
	// 0: five minutes.
	Abandoned time.Duration
	// Idle is how long a client that sends or takes the content of files may
	// do nothing; 0: five minutes.
	Idle   time.Duration
	Logger *slog.Logger // nil: silent
}

// Server answers the recorder's wire.
type Server struct {
	session Session
	store   history.Store // nil: the history is off
	opts    Options
	started time.Time
	mux     *http.ServeMux
	stopped stopped
	execd   http.Handler // nil: not spoken
}

// New returns a server of a session and of the history it is recorded in.
func New(session Session, store history.Store, opts *Options) *Server {
	s := &Server{session: session, store: store, opts: *opts, started: time.Now(), mux: http.NewServeMux()}
	if s.opts.Abandoned == 0 {
		s.opts.Abandoned = 5 * time.Minute
	}
	if s.opts.Idle == 0 {
		s.opts.Idle = idleClient
	}
	if s.opts.Logger == nil {
		s.opts.Logger = slog.New(slog.DiscardHandler)
	}
	s.mux.HandleFunc("GET "+wire.PathPing, func(http.ResponseWriter, *http.Request) {})
	for route, handle := range map[string]func(http.ResponseWriter, *http.Request) error{
		"GET " + wire.PathInfo:       s.info,
		"POST " + wire.PathCommands:  s.runCommand,
		"GET " + wire.PathCommand:    s.attachCommand,
		"DELETE " + wire.PathCommand: s.stopCommand,
		"POST " + wire.PathStdin:     s.feedCommand,
		"POST " + wire.PathSignal:    s.signalCommand,
		"POST " + wire.PathTerminal:  s.steerTerminal,
		"GET " + wire.PathMoments:    s.readMoments,
		"GET " + wire.PathFile:       s.readFile,
		"PUT " + wire.PathFile:       s.taking(s.writeFile),
		"POST " + wire.PathAppend:    s.taking(s.appendFile),
		"POST " + wire.PathEdit:      s.editFile,
		"GET " + wire.PathStat:       s.statFile,
		"PUT " + wire.PathDir:        s.makeDir,
		"POST " + wire.PathMove:      s.moveFile,
		"PUT " + wire.PathMode:       s.setMode,
		"POST " + wire.PathGlob:      s.glob,
		"POST " + wire.PathGrep:      s.grep,
		"GET " + wire.PathTree:       s.downloadTree,
		"PUT " + wire.PathTree:       s.taking(s.uploadTree),
		"DELETE " + wire.PathFile:    s.removeFile,
		"GET " + wire.PathList:       s.listFiles,
		"GET " + wire.PathOps:        s.listOperations,
		"POST " + wire.PathOps:       s.importOperation,
		"GET " + wire.PathOp:         s.getOperation,
		"GET " + wire.PathOutput:     s.readOutput,
		"GET " + wire.PathChanges:    s.readChanges,
		"GET " + wire.PathReaders:    s.listConsumers,
		"PUT " + wire.PathAck:        s.acknowledge,
		"POST " + wire.PathPrune:     s.prune,
		"GET " + wire.PathConfig:     s.getConfig,
		"PUT " + wire.PathConfig:     s.setConfig,
		"POST " + wire.PathPort:      s.dialPort,
		"GET " + wire.PathTunnel:     s.tunnel,
	} {
		s.mux.Handle(route, s.guarded(handle))
	}
	if whole, ok := session.(execd.Session); ok && s.opts.Execd != nil {
		s.execd = execd.New(whole, store, s.opts.Execd)
	}
	return s
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set(wire.HeaderRecorder, strconv.Itoa(wire.Protocol))
	if s.execd != nil && r.URL.Path != wire.PathPing && !strings.HasPrefix(r.URL.Path, wire.Root+"/") {
		s.execd.ServeHTTP(w, r)
		return
	}
	s.mux.ServeHTTP(w, r)
}

// guarded lets in who has the token, and puts the actor into the context.
func (s *Server) guarded(handle func(http.ResponseWriter, *http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token := r.Header.Get(wire.HeaderToken)
		if s.opts.Token == "" || subtle.ConstantTimeCompare([]byte(token), []byte(s.opts.Token)) != 1 {
			idle.Refused(w)
			wire.WriteError(w, &sandbox.Error{
				Code: sandbox.CodeUnauthorized, Message: "the header " + wire.HeaderToken + " is missing or wrong",
			})
			return
		}
		actor, err := wire.ReadActor(r.Header)
		if err == nil {
			err = handle(w, r.WithContext(withActor(r.Context(), actor)))
		}
		if err != nil {
			s.opts.Logger.DebugContext(r.Context(), "request refused", "path", r.URL.Path, "error", err)
			wire.WriteError(w, err)
		}
	})
}

// withActor opens the scope that a client is in. One without headers acts as
// the system, as the SDK does outside any scope.
func withActor(ctx context.Context, actor history.Actor) context.Context {
	if actor.Type == "" && actor.ID == "" {
		actor.Type = history.System
	}
	return history.WithActor(ctx, actor)
}

func (s *Server) info(w http.ResponseWriter, _ *http.Request) error {
	info := &wire.Info{
		Protocol: wire.Protocol, Version: version.String(), PID: os.Getpid(), OS: runtime.GOOS, Arch: runtime.GOARCH,
		Workdir: s.opts.Workdir, StartedAt: s.started.UTC(), Recording: s.store != nil, SandboxID: s.opts.SandboxID,
	}
	if r, ok := s.session.(interface{ Running() int }); ok {
		info.Running = r.Running()
	}
	return answer(w, info)
}

func answer(w http.ResponseWriter, v any) error {
	w.Header().Set("Content-Type", "application/json")
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // the client may have gone
	return nil
}

// decode reads a JSON body of at most limit bytes.
func decode(w http.ResponseWriter, r *http.Request, limit int64, v any) error {
	err := json.NewDecoder(http.MaxBytesReader(w, idle.Body(w, r.Body, idleClient), limit)).Decode(v)
	idle.Done(w, err)
	if err != nil {
		return &sandbox.Error{Op: "read request", Code: sandbox.CodeInvalid, Field: "body", Err: err}
	}
	return nil
}
