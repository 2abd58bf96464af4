package localruntime

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/glassboxhq/glassbox/internal/sockets"
	"github.com/glassboxhq/glassbox/sandbox"
)

// door is the state socket: who is there, and whether it is still open.
//
//	open ─Drain─► shut to new connections ─all have gone─► drained
type door struct {
	listener *stateListener

	mu      sync.Mutex
	conns   map[net.Conn]presence
	serving int // requests, also those that took their connection over
	leases  int
	changed chan struct{} // closed when one of these changes
}

// openDoor makes the state socket.
func openDoor(path string) (*door, error) {
	l, err := sockets.Listen(path)
	if err != nil {
		return nil, err
	}
	made, err := os.Lstat(path)
	if err != nil {
		l.Close()
		return nil, fmt.Errorf("open state socket: %w", err)
	}
	return &door{
		listener: &stateListener{UnixListener: l, path: path, made: made},
		conns:    map[net.Conn]presence{}, changed: make(chan struct{}),
	}, nil
}

// Leases returns how many clients hold a lease: an open GET /glassbox/lease on
// the state socket, by which a client says that it needs this process.
func (rt *Runtime) Leases() int {
	rt.mu.Lock()
	d := rt.door
	rt.mu.Unlock()
	if d == nil {
		return 0
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.leases
}

// Drain turns new clients of the state socket away, as if nobody served it,
// and returns when those that are there have their answers and no lease is
// open, or with an error when ctx ends. Connections that are open may still ask
// until Run ends, which it does with its context.
func (rt *Runtime) Drain(ctx context.Context) error {
	const op = "drain state socket"
	if err := rt.wait(ctx); ctx.Err() != nil {
		return sandbox.FromContext(ctx, op)
	} else if err != nil {
		return nil // it is not served any more
	}
	rt.mu.Lock()
	d := rt.door
	rt.mu.Unlock()
	if err := d.listener.drain(); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("%s: %w", op, err)
	}
	changed, idle := d.listener.empty, false
	for !idle {
		select {
		case <-changed:
			changed, idle = d.state()
		case <-rt.done:
			return nil
		case <-ctx.Done():
			return sandbox.FromContext(ctx, op)
		}
	}
	return nil
}

// state reports whether nobody is there who waits for something, and returns
// a channel that is closed when that may have changed.
func (d *door) state() (changed chan struct{}, idle bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, how := range d.conns {
		if how != silent {
			return d.changed, false
		}
	}
	return d.changed, d.serving == 0
}

// counted counts the requests that a handler serves.
func (d *door) counted(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.change(func() { d.serving++ })
		defer d.change(func() { d.serving-- })
		h.ServeHTTP(w, r)
	})
}

// greeting is how long a new connection that sends nothing counts as one that
// is about to.
const greeting = 250 * time.Millisecond

// presence is what a connection without an answer to come is.
type presence int

const (
	fresh  presence = iota // about to send a request
	silent                 // new, and not about to
	busy                   // with a request
)

// note is told what becomes of each connection.
func (d *door) note(conn net.Conn, state http.ConnState) {
	d.change(func() {
		switch state {
		case http.StateNew:
			d.conns[conn] = fresh
			time.AfterFunc(greeting, func() { d.hush(conn) })
		case http.StateActive:
			d.conns[conn] = busy
		case http.StateIdle, http.StateHijacked, http.StateClosed:
			delete(d.conns, conn)
		}
	})
}

func (d *door) hush(conn net.Conn) {
	d.change(func() {
		if how, known := d.conns[conn]; known && how == fresh {
			d.conns[conn] = silent
		}
	})
}

// closeSilent closes the connections that send nothing: the end of the server
// would wait for them.
func (d *door) closeSilent() {
	d.mu.Lock()
	var list []net.Conn
	for conn, how := range d.conns {
		if how == silent {
			list = append(list, conn)
		}
	}
	d.mu.Unlock()
	for _, conn := range list {
		conn.Close() // with the lock free: note is told
	}
}

func (d *door) change(how func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	how()
	close(d.changed)
	d.changed = make(chan struct{})
}

// lease answers at once, and stays open until the client closes it or this
// process stops serving.
func (d *door) lease(ctx context.Context, w http.ResponseWriter, r *http.Request) {
	d.change(func() { d.leases++ })
	defer d.change(func() { d.leases-- })
	w.WriteHeader(http.StatusOK)
	if err := http.NewResponseController(w).Flush(); err != nil {
		return // the client has gone
	}
	select {
	case <-r.Context().Done():
	case <-ctx.Done():
	}
}

// errDrained ends the serving of a listener that takes no more connections.
var errDrained = errors.New("the state socket is shut to new clients")

// lastCalls is how long connections that came before the socket's file went are
// still taken. They wait in the kernel, so it need not be long.
const lastCalls = 50 * time.Millisecond

// stateListener takes the connections of the state socket.
type stateListener struct {
	*net.UnixListener
	path string
	made os.FileInfo // the file of the socket

	mu    sync.Mutex
	empty chan struct{} // closed when no more connections come; nil: not draining
}

// Accept takes the next connection.
func (l *stateListener) Accept() (net.Conn, error) {
	conn, err := l.UnixListener.Accept()
	if err == nil {
		return conn, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.empty == nil {
		return nil, err
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = errors.Join(errDrained, l.Close())
	}
	select {
	case <-l.empty:
	default:
		close(l.empty)
	}
	return nil, err
}

// drain begins to turn new connections away; what is in the queue is taken.
func (l *stateListener) drain() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.empty != nil {
		return nil // it has begun
	}
	l.empty = make(chan struct{})
	return errors.Join(l.remove(), l.SetDeadline(time.Now().Add(lastCalls)))
}

// remove removes the socket's file, unless another one stands in its place.
func (l *stateListener) remove() error {
	now, err := os.Lstat(l.path)
	if errors.Is(err, os.ErrNotExist) || err == nil && !os.SameFile(now, l.made) {
		return nil
	}
	if err != nil {
		return err
	}
	return os.Remove(l.path)
}
