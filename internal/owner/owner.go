// Package owner reaches the process that owns a state directory, which serves
// the sandboxes of this machine to the other processes of its user, at a
// socket in that directory.
//
//	state, err := owner.Ask(ctx, dir)
//	client := &http.Client{Transport: owner.Transport(dir)}
//
// Beside the lifecycle API of OpenSandbox the socket answers the routes below.
package owner

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/glassboxhq/glassbox/internal/sockets"
	"github.com/glassboxhq/glassbox/sandbox"
)

// The routes of an owner.
const (
	PathState     = "/glassbox/state"      // GET → State
	PathHistories = "/glassbox/histories"  // GET → every history, of ended sandboxes too
	PathImages    = "/glassbox/images"     // GET → the images that are kept; and POST below it
	PathLoginLink = "/glassbox/login-link" // POST ?user= → Link, of a server
	PathLease     = "/glassbox/lease"      // GET, an answer that ends with the owner
	PathHandOver  = "/glassbox/hand-over"  // POST → 202 if the owner makes way for another, 409 if it stays
)

// State is what an owner says of itself.
type State struct {
	PID     int    `json:"pid"`
	Version string `json:"version"`
	Listen  string `json:"listen"` // address of the TCP listener; empty: none
}

// Link signs in to the console of a server, once.
type Link struct {
	URL       string    `json:"url"`
	ExpiresAt time.Time `json:"expires_at"`
}

// Refusal is how a server says why not.
type Refusal struct {
	Code    sandbox.Code `json:"code"`
	Message string       `json:"message"`
}

// LoginLink asks the server that owns the directory for a link.
func LoginLink(ctx context.Context, dir, user string) (*Link, error) {
	resp, err := ask(ctx, dir, http.MethodPost, PathLoginLink+"?"+url.Values{"user": {user}}.Encode())
	if err != nil {
		return nil, err
	}
	defer resp.Close()
	if resp.status == http.StatusNotFound {
		return nil, &sandbox.Error{Op: op, Code: sandbox.CodeUnavailable, Message: "what runs on " + dir + " is no server; start one with glassbox serve"}
	}
	var link struct {
		Link
		Refusal
	}
	if err := json.NewDecoder(resp).Decode(&link); err != nil {
		return nil, answered(dir, resp.status)
	}
	if link.Code != "" {
		return nil, &sandbox.Error{Op: "make sign-in link", Code: link.Code, Message: link.Message}
	}
	return &link.Link, nil
}

const op = "reach the local runtime"

// answerTimeout bounds the wait for an answer to begin.
const answerTimeout = 5 * time.Second

// Socket returns the path of the socket.
func Socket(dir string) string { return filepath.Join(dir, "state.sock") }

// Dial connects to the owner, if the socket is this user's. It takes paths
// that are longer than the kernel takes.
func Dial(ctx context.Context, dir string) (net.Conn, error) {
	ours, err := sockets.Own(Socket(dir))
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, nobody(dir, err)
	case err != nil:
		return nil, &sandbox.Error{Op: op, Code: sandbox.CodeUnavailable, Err: err}
	case !ours:
		return nil, &sandbox.Error{Op: op, Code: sandbox.CodeUnauthorized, Message: Socket(dir) + " is not a socket of this user"}
	}
	conn, err := sockets.Dial(ctx, Socket(dir))
	if err != nil && sockets.Refused(err) {
		return nil, nobody(dir, err)
	}
	return conn, err
}

func nobody(dir string, err error) error {
	return &sandbox.Error{
		Op: op, Code: sandbox.CodeUnavailable, Err: err, Retryable: true, // nothing was sent, and another may take its place
		Message: "no server runs on " + dir + "; start one with glassbox serve",
	}
}

// Transport sends every request to the owner. When that one has ended, a
// request waits some moments for the one that takes its place.
func Transport(dir string) *http.Transport {
	return transport(func(ctx context.Context) (net.Conn, error) { return dialNext(ctx, dir) })
}

func transport(dial func(context.Context) (net.Conn, error)) *http.Transport {
	return &http.Transport{
		DialContext:         func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
		MaxIdleConnsPerHost: 64, IdleConnTimeout: 10 * time.Second,
		WriteBufferSize: 64 << 10, ReadBufferSize: 64 << 10,
	}
}

const (
	nextPatience = 3 * time.Second // who takes over waits up to 2 s for the lock
	nextEvery    = 20 * time.Millisecond
)

// dialNext dials, and if nobody is there waits for the next owner.
func dialNext(ctx context.Context, dir string) (net.Conn, error) {
	for until := time.Now().Add(nextPatience); ; {
		conn, err := Dial(ctx, dir)
		if e, ok := errors.AsType[*sandbox.Error](err); !ok || !e.Retryable || time.Now().After(until) {
			return conn, err
		}
		select {
		case <-time.After(nextEvery):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// Ask asks who owns the directory.
func Ask(ctx context.Context, dir string) (*State, error) {
	state := &State{}
	if err := Get(ctx, dir, PathState, state); err != nil {
		return nil, err
	}
	return state, nil
}

// Get reads what the owner answers at a route.
func Get(ctx context.Context, dir, route string, into any) error {
	resp, err := get(ctx, dir, route)
	if err != nil {
		return err
	}
	defer resp.Close()
	if err := json.NewDecoder(resp).Decode(into); err != nil {
		return &sandbox.Error{Op: op, Code: sandbox.CodeUnavailable, Err: err}
	}
	return nil
}

// Lease tells the owner that this program works with it: it stays for as long
// as it can.
type Lease struct{ body *body }

// Take takes a lease, until it is closed or ctx ends.
func Take(ctx context.Context, dir string) (*Lease, error) {
	body, err := get(ctx, dir, PathLease)
	if err != nil {
		return nil, err
	}
	return &Lease{body}, nil
}

// Wait waits for the end of the lease: the owner's, or our own.
func (l *Lease) Wait() { _, _ = io.Copy(io.Discard, l.body) }

// Close gives the lease back.
func (l *Lease) Close() error { return l.body.Close() }

// body is an answer on a connection of its own.
type body struct {
	io.ReadCloser
	status    int
	transport *http.Transport
}

func (b *body) Close() error {
	err := b.ReadCloser.Close()
	b.transport.CloseIdleConnections()
	return err
}

// HandOver asks the owner to make way for this process. It does if it owns the
// directory only because nobody else did; a server stays.
func HandOver(ctx context.Context, dir string) (makesWay bool, err error) {
	resp, err := ask(ctx, dir, http.MethodPost, PathHandOver)
	if err != nil {
		return false, err
	}
	defer resp.Close()
	switch resp.status {
	case http.StatusAccepted, http.StatusConflict, http.StatusNotFound: // the last is older than the question
		return resp.status == http.StatusAccepted, nil
	}
	return false, answered(dir, resp.status)
}

func answered(dir string, status int) error {
	return &sandbox.Error{Op: op, Code: sandbox.CodeUnavailable, Message: Socket(dir) + " answers " + strconv.Itoa(status)}
}

func get(ctx context.Context, dir, route string) (*body, error) {
	b, err := ask(ctx, dir, http.MethodGet, route)
	if err == nil && b.status != http.StatusOK {
		b.Close()
		return nil, answered(dir, b.status)
	}
	return b, err
}

// ask asks who owns the directory now.
func ask(ctx context.Context, dir, method, route string) (*body, error) {
	transport := transport(func(ctx context.Context) (net.Conn, error) { return Dial(ctx, dir) })
	transport.ResponseHeaderTimeout = answerTimeout
	req, err := http.NewRequestWithContext(ctx, method, "http://localhost"+route, http.NoBody)
	if err != nil {
		return nil, &sandbox.Error{Op: op, Code: sandbox.CodeInternal, Err: err}
	}
	resp, err := transport.RoundTrip(req) //nolint:bodyclose // who asked closes it
	if err != nil {
		if _, ok := errors.AsType[*sandbox.Error](err); ok {
			return nil, err
		}
		return nil, &sandbox.Error{Op: op, Code: sandbox.CodeUnavailable, Message: "nobody answers at " + Socket(dir), Err: err}
	}
	return &body{resp.Body, resp.StatusCode, transport}, nil
}
