package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/history/sqlite"
	"github.com/glassboxhq/glassbox/internal/console/act"
	"github.com/glassboxhq/glassbox/internal/console/connection"
	"github.com/glassboxhq/glassbox/internal/console/door"
	"github.com/glassboxhq/glassbox/internal/db"
	"github.com/glassboxhq/glassbox/internal/db/dbtest"
	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/internal/server"
	"github.com/glassboxhq/glassbox/internal/vault"
	"github.com/glassboxhq/glassbox/sandbox"
)

// runtime keeps sandboxes in memory, each with a real history.
type runtime struct {
	t    *testing.T
	dir  string
	mu   sync.Mutex
	list []*sandbox.Info
	// recorders are the addresses of the recorders, by sandbox.
	recorders map[string]string
	snapshots []*sandbox.Snapshot
	abandoned time.Duration // what a command has that nobody watches
}

func notThere(id string) error {
	return &sandbox.Error{Op: "find sandbox", Code: sandbox.CodeSandboxNotFound, Sandbox: id, Message: "there is no such sandbox"}
}

func (r *runtime) Create(_ context.Context, spec *sandbox.Spec) (*sandbox.Info, error) {
	if spec.Image == "missing" {
		return nil, &sandbox.Error{Op: "create sandbox", Code: sandbox.CodeImageNotFound, Message: "there is no such image"}
	}
	info := &sandbox.Info{ID: id.NewRandom(), Name: spec.Name, State: sandbox.Running, Image: spec.Image, CreatedAt: time.Now().UTC()}
	r.mu.Lock()
	defer r.mu.Unlock()
	info.CreatedAt = info.CreatedAt.Add(time.Duration(len(r.list)) * time.Millisecond) // one after the other
	r.list = append(r.list, info)
	return info, nil
}

func (r *runtime) Get(_ context.Context, id string) (*sandbox.Info, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, info := range r.list {
		if info.ID == id {
			copied := *info
			return &copied, nil
		}
	}
	return nil, notThere(id)
}

func (r *runtime) List(context.Context) ([]*sandbox.Info, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.list), nil
}

func (r *runtime) Delete(_ context.Context, id string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(r.list)
	r.list = slices.DeleteFunc(r.list, func(info *sandbox.Info) bool { return info.ID == id })
	if len(r.list) == n {
		return notThere(id)
	}
	return nil
}

func (r *runtime) change(id string, do func(*sandbox.Info)) (*sandbox.Info, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, info := range r.list {
		if info.ID == id {
			do(info)
			return info, nil
		}
	}
	return nil, notThere(id)
}

func (r *runtime) Pause(_ context.Context, id string) (*sandbox.Info, error) {
	return r.change(id, func(info *sandbox.Info) { info.State = sandbox.Paused })
}

func (r *runtime) Resume(_ context.Context, id string) (*sandbox.Info, error) {
	return r.change(id, func(info *sandbox.Info) { info.State = sandbox.Running })
}

func (r *runtime) Renew(_ context.Context, id string, at time.Time) (*sandbox.Info, error) {
	return r.change(id, func(info *sandbox.Info) { info.ExpiresAt = at })
}

func (r *runtime) store(boxID string) *sqlite.Store {
	s, err := sqlite.Open(filepath.Join(r.dir, boxID, "history.sqlite3"), &sqlite.Options{})
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

func (r *runtime) History(ctx context.Context, id string) (connection.History, error) {
	if _, err := r.Get(ctx, id); err != nil {
		return nil, err
	}
	return r.store(id), nil
}

// site is a server with its parts.
type site struct {
	t    *testing.T
	rt   *runtime
	door *door.Door
	acts *act.Log
	url  string
	now  func(time.Duration) // moves the clock
}

type options struct {
	db     *db.DB
	change func(*server.Options)
	life   http.Handler
	// service stands before the local runtime.
	service func(connection.Service) connection.Service
}

func start(t *testing.T, o *options) *site {
	t.Helper()
	if o == nil {
		o = &options{}
	}
	if o.db == nil {
		o.db = dbtest.Open(t, filepath.Join(t.TempDir(), "console.sqlite3"))
	}
	keys, err := vault.Open(filepath.Join(t.TempDir(), "key"))
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	ahead := time.Duration(0)
	now := func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return time.Now().Add(ahead)
	}
	s := &site{t: t, rt: &runtime{t: t, dir: t.TempDir()}, acts: act.New(o.db), door: door.New(o.db, &door.Options{Now: now})}
	s.now = func(d time.Duration) { mu.Lock(); defer mu.Unlock(); ahead += d }
	var local connection.Service = s.rt
	if o.service != nil {
		local = o.service(local)
	}
	fleet := connection.NewFleet(o.db, keys, &connection.Options{
		Local: local,
		Dial: func(*connection.Connection, vault.Secret, http.RoundTripper) (connection.Service, error) {
			return &runtime{t: t, dir: t.TempDir()}, nil
		},
	})
	t.Cleanup(fleet.Close)
	front := httptest.NewUnstartedServer(nil)
	_, port, _ := strings.Cut(strings.TrimPrefix(front.Listener.Addr().String(), "["), ":")
	opts := &server.Options{
		DB: o.db, Door: s.door, Acts: s.acts, Fleet: fleet, Lifecycle: o.life, Port: port, Version: "1.2.3", Now: now,
		Page: fstest.MapFS{
			"index.html": {Data: []byte("<!doctype html><title>page</title>")}, "app.js": {Data: []byte("// script")}, "style.css": {Data: []byte("/* */")},
		},
	}
	if o.change != nil {
		o.change(opts)
	}
	handler, err := server.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	front.Config.Handler, front.Config.MaxHeaderBytes = handler, 64<<10
	front.Start()
	t.Cleanup(front.Close)
	s.url = front.URL
	return s
}

// client is somebody who asks.
type client struct {
	s       *site
	cookie  string
	token   string
	headers []string
}

type answer struct {
	status int
	header http.Header
	body   string
}

// ask sends a request; headers are "Name: value", and win.
func (c *client) ask(method, path, body string, headers ...string) answer {
	c.s.t.Helper()
	req, err := http.NewRequestWithContext(c.s.t.Context(), method, c.s.url+path, strings.NewReader(body))
	if err != nil {
		c.s.t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.cookie != "" {
		req.Header.Set("Cookie", c.cookie)
		req.Header.Set("Origin", c.s.url)
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	for _, h := range append(slices.Clone(c.headers), headers...) {
		name, value, _ := strings.Cut(h, ": ")
		switch {
		case name == "Host":
			req.Host = value
		case value == "":
			req.Header.Del(name)
		default:
			req.Header.Set(name, value)
		}
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		c.s.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		c.s.t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, string(text)}
}

func (a answer) read(t *testing.T, into any) {
	t.Helper()
	if a.status/100 != 2 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if err := json.Unmarshal([]byte(a.body), into); err != nil {
		t.Fatalf("%v: %s", err, a.body)
	}
}

func (a answer) want(t *testing.T, what string, status int, code sandbox.Code) {
	t.Helper()
	var p server.Problem
	if code != "" {
		if err := json.Unmarshal([]byte(a.body), &p); err != nil || p.Status != status || p.ID == "" || a.header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: no problem: %d %s", what, a.status, a.body)
			return
		}
	}
	if a.status != status || p.Code != string(code) {
		t.Errorf("%s: %d %s, want %d %s", what, a.status, a.body, status, code)
	}
}

// user signs somebody in, and makes the user first.
func (s *site) user(name string, role door.Role) *client {
	s.t.Helper()
	if _, err := s.door.AddUser(s.t.Context(), name, role, ""); err != nil {
		s.t.Fatal(err)
	}
	return s.signIn(name)
}

func (s *site) signIn(name string) *client {
	s.t.Helper()
	link, _, err := s.door.NewLink(s.t.Context(), name)
	if err != nil {
		s.t.Fatal(err)
	}
	a := (&client{s: s}).ask("POST", "/api/v1/auth/link", fmt.Sprintf(`{"link":%q}`, string(link)), "Origin: "+s.url)
	if a.status != http.StatusOK {
		s.t.Fatalf("%d %s", a.status, a.body)
	}
	cookie, _, _ := strings.Cut(a.header.Get("Set-Cookie"), ";")
	return &client{s: s, cookie: cookie}
}

func (s *site) stranger() *client { return &client{s: s} }

// box makes a sandbox with a command that was recorded.
func (s *site) box(name, output string) (boxID, opID string) {
	s.t.Helper()
	ctx := s.t.Context()
	info, err := s.rt.Create(ctx, &sandbox.Spec{Name: name, Image: "host"})
	if err != nil {
		s.t.Fatal(err)
	}
	return info.ID, s.record(info.ID, output)
}

// record adds a command to a history.
func (s *site) record(boxID, output string) string {
	s.t.Helper()
	store := s.rt.store(boxID)
	defer store.Close()
	ctx, code := s.t.Context(), 0
	op := &history.Operation{
		ID: id.New(), Type: history.CommandExecute, Status: sandbox.Started, Source: history.SourceSDK, StartedAt: time.Now(),
		Actor: history.Actor{Type: history.Agent, ID: "research-agent", Run: "run-1"}, Command: &history.Command{Line: "make\n\x1b[31mtest", Dir: "/w"},
	}
	if err := store.Begin(ctx, op); err != nil {
		s.t.Fatal(err)
	}
	err := store.Finish(ctx, op.ID, &history.End{
		Status: sandbox.Succeeded, ExitCode: &code, OutputComplete: true, Recording: sandbox.RecordedWhole,
		Chunks: []sandbox.Chunk{{Stream: sandbox.Stdout, Data: []byte(output)}},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return op.ID
}

// mustURL reads what a test wrote.
func mustURL(text string) *url.URL {
	u, err := url.Parse(text)
	if err != nil {
		panic(err)
	}
	return u
}

var loopback = netip.MustParsePrefix("127.0.0.0/8")
