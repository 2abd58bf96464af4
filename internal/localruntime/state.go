package localruntime

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/glassboxhq/glassbox/internal/localruntime/lifecycle"
	"github.com/glassboxhq/glassbox/internal/owner"
)

// SetListen tells at which TCP address this process serves the API.
func (rt *Runtime) SetListen(address string) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	rt.listen = address
}

// Answer lets a handler answer other processes of this user at a path of the
// state socket, below /glassbox/.
func (rt *Runtime) Answer(path string, handler http.Handler) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	rt.answers[path] = handler
}

// serveOther finds who answers at a path that is none of ours.
func (rt *Runtime) serveOther(w http.ResponseWriter, r *http.Request) {
	rt.mu.Lock()
	handler := rt.answers[r.URL.Path]
	rt.mu.Unlock()
	if handler == nil {
		http.NotFound(w, r)
		return
	}
	handler.ServeHTTP(w, r)
}

func (rt *Runtime) serveStateOf(w http.ResponseWriter, _ *http.Request) {
	rt.mu.Lock()
	state := owner.State{PID: os.Getpid(), Version: rt.opts.Version, Listen: rt.listen}
	rt.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(state) // the client may have gone
}

// serveHandOver answers a process that asks to own the state folder.
func (rt *Runtime) serveHandOver(w http.ResponseWriter, _ *http.Request) {
	if rt.opts.HandOver == nil {
		w.WriteHeader(http.StatusConflict)
		return
	}
	rt.opts.HandOver()
	w.WriteHeader(http.StatusAccepted)
}

const (
	headerTimeout   = 10 * time.Second
	shutdownTimeout = 3 * time.Second
)

// serveState serves the lifecycle API on the state socket until ctx ends.
func (rt *Runtime) serveState(ctx context.Context) {
	own := http.NewServeMux()
	own.HandleFunc("/", rt.serveOther)
	own.HandleFunc("GET "+owner.PathState, rt.serveStateOf)
	own.HandleFunc("GET "+owner.PathHistories, rt.serveHistories)
	own.HandleFunc("POST "+owner.PathHandOver, rt.serveHandOver)
	own.HandleFunc("GET "+owner.PathLease, func(w http.ResponseWriter, r *http.Request) { rt.door.lease(ctx, w, r) })
	rt.serveImages(own)
	handler := lifecycle.New(patient{rt}, &lifecycle.Options{
		Trusted: true, Version: rt.opts.Version, Logger: rt.opts.Logger, Own: own,
	})
	server := &http.Server{
		Handler: rt.door.counted(handler), ConnState: rt.door.note, ReadHeaderTimeout: headerTimeout,
		MaxHeaderBytes: 64 << 10, Protocols: new(http.Protocols),
		ErrorLog: slog.NewLogLogger(rt.opts.Logger.Handler(), slog.LevelDebug),
	}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetUnencryptedHTTP2(true)
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
		defer cancel()
		rt.door.closeSilent()
		if server.Shutdown(ending) != nil {
			server.Close() // streams that do not end by themselves
		}
	})
	err := server.Serve(rt.door.listener)
	if errors.Is(err, errDrained) {
		<-ctx.Done() // connections that are there are served until then
		err = http.ErrServerClosed
	}
	if !errors.Is(err, http.ErrServerClosed) {
		rt.opts.Logger.ErrorContext(ctx, "state socket is not served any more", "error", err)
	}
	if !stop() {
		<-ended
	}
	if err := rt.door.listener.remove(); err != nil {
		rt.opts.Logger.WarnContext(ctx, "state socket is left behind", "error", err)
	}
}
