package connection_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/glassboxhq/glassbox/internal/console/connection"
	"github.com/glassboxhq/glassbox/internal/db"
	"github.com/glassboxhq/glassbox/internal/db/dbtest"
	"github.com/glassboxhq/glassbox/internal/vault"
	"github.com/glassboxhq/glassbox/sandbox"
)

// client speaks to a service over HTTP, as far as these tests go.
type client struct {
	connection.Service
	url  string
	key  vault.Secret
	http http.Client
}

func dial(c *connection.Connection, key vault.Secret, transport http.RoundTripper) (connection.Service, error) {
	return &client{url: c.Endpoint, key: key, http: http.Client{Transport: transport}}, nil
}

func (c *client) List(ctx context.Context) ([]*sandbox.Info, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+"/v1/sandboxes", nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Key", string(c.key))
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var list []*sandbox.Info
	return list, json.NewDecoder(resp.Body).Decode(&list)
}

func (c *client) Version(context.Context) (string, error) { return "1.1.1", nil }

// serve is a service with one sandbox.
func serve(t *testing.T, id string, before func(r *http.Request)) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if before != nil {
			before(r)
		}
		fmt.Fprintf(w, `[{"id":%q,"state":"Running","created_at":"2026-01-02T03:04:05Z"}]`, id)
	}))
	t.Cleanup(s.Close)
	return s
}

type fixture struct {
	*connection.Fleet
	db   *db.DB
	file string // of the keys
	t    *testing.T
}

func each(t *testing.T, test func(t *testing.T, f *fixture)) {
	t.Helper()
	dbtest.Each(t, func(t *testing.T, d *db.DB) { test(t, newFixture(t, d, filepath.Join(t.TempDir(), "key"))) })
}

func newFixture(t *testing.T, d *db.DB, file string) *fixture {
	t.Helper()
	v, err := vault.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{connection.NewFleet(d, v, &connection.Options{Dial: dial, Timeout: 20 * time.Second, Patience: 300 * time.Millisecond}), d, file, t}
	t.Cleanup(f.Close)
	return f
}

func (f *fixture) add(name, endpoint string, key vault.Secret) *connection.Connection {
	f.t.Helper()
	c, err := f.Add(f.t.Context(), &connection.New{Name: name, Endpoint: endpoint, Key: key, ServerProxy: true, Enabled: true})
	if err != nil {
		f.t.Fatal(err)
	}
	return c
}

func want(t *testing.T, what string, err error, code sandbox.Code) {
	t.Helper()
	if code == "" && err != nil || code != "" && sandbox.CodeOf(err) != code {
		t.Errorf("%s: %v, want code %q", what, err, code)
	}
}

func TestConnections(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		c := f.add("研究所", "LOCALHOST:8080", "k-3y-5f1c")
		got, err := f.Connection(ctx, c.ID)
		if err != nil || got.Name != "研究所" || got.Endpoint != "http://localhost:8080" || !got.HasKey || !got.Enabled || got.Revision != 1 {
			t.Fatalf("%+v, %v", got, err)
		}
		_, err = f.Add(ctx, &connection.New{Name: "研究所", Endpoint: "h:1"})
		want(t, "the same name", err, connection.CodeExists)
		for _, name := range []string{"", " a", "a\nb", "local", "LOCAL", strings.Repeat("x", 65), "\xff"} {
			_, err := f.Add(ctx, &connection.New{Name: name, Endpoint: "h:1"})
			want(t, "name "+name, err, sandbox.CodeInvalid)
		}
		_, err = f.Add(ctx, &connection.New{Name: "k", Endpoint: "h:1", Key: "a\r\nX: y"})
		want(t, "a key with lines", err, sandbox.CodeInvalid)

		name, off := "lab", false
		changed, err := f.Alter(ctx, c.ID, 1, &connection.Change{Name: &name, Enabled: &off})
		if err != nil || changed.Name != "lab" || changed.Enabled || !changed.HasKey || changed.Revision != 2 {
			t.Fatalf("%+v, %v", changed, err)
		}
		_, err = f.Alter(ctx, c.ID, 1, &connection.Change{Name: &name})
		want(t, "an old revision", err, connection.CodeChanged)
		_, err = f.Service(ctx, c.ID)
		want(t, "disabled", err, connection.CodeDisabled)
		elsewhere := "https://evil.example"
		_, err = f.Alter(ctx, c.ID, 0, &connection.Change{Endpoint: &elsewhere})
		want(t, "the key would go elsewhere", err, sandbox.CodeInvalid)
		key := vault.Secret("other")
		if changed, err = f.Alter(ctx, c.ID, 2, &connection.Change{Endpoint: &elsewhere, Key: &key}); err != nil || changed.Endpoint != elsewhere {
			t.Errorf("%+v, %v", changed, err)
		}
		_, err = f.Alter(ctx, connection.Local, 0, &connection.Change{Name: &name})
		want(t, "local", err, connection.CodeBuiltIn)
		want(t, "remove", f.Remove(ctx, c.ID), "")
		want(t, "remove again", f.Remove(ctx, c.ID), connection.CodeNotFound)
		_, err = f.Connection(ctx, c.ID)
		want(t, "gone", err, connection.CodeNotFound)
	})
}

// The key is sent as it was given, and stands nowhere in the database.
func TestKeys(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		var sent atomic.Value
		s := serve(t, "a", func(r *http.Request) { sent.Store(r.Header.Get("Key")) })
		c := f.add("a", s.URL, "k-3y-5f1c")
		asks := func(f *fixture, key string) {
			t.Helper()
			sent.Store("")
			if r, err := f.Test(ctx, c.ID); err != nil || !r.OK || r.Sandboxes != 1 || r.Version != "1.1.1" || r.Latency <= 0 {
				t.Fatalf("%+v %v", r, err)
			}
			if sent.Load() != key {
				t.Errorf("sent %q", sent.Load())
			}
		}
		asks(f, "k-3y-5f1c")
		sealed := func() []byte {
			var b []byte
			if err := f.db.QueryRow(ctx, `select sealed_key from connections`).Scan(&b); err != nil || len(b) == 0 {
				t.Fatal(err)
			}
			return b
		}
		before := sealed()
		if strings.Contains(string(before), "5f1c") {
			t.Error("the key is kept as it is")
		}
		if err := f.Rotate(ctx); err != nil {
			t.Fatal(err)
		}
		if string(sealed()) == string(before) {
			t.Error("the rotation has sealed nothing anew")
		}
		asks(newFixture(t, f.db, f.file), "k-3y-5f1c") // as after a restart

		lost := newFixture(t, f.db, filepath.Join(t.TempDir(), "other"))
		r, err := lost.Test(ctx, c.ID)
		if err != nil || r.OK || sandbox.CodeOf(r.Problem) != connection.CodeSealed {
			t.Errorf("without the key file: %+v %v", r, err)
		}
		list, err := lost.List(ctx)
		if err != nil || len(list) != 1 || sandbox.CodeOf(list[0].Problem) != connection.CodeSealed {
			t.Errorf("without the key file: %v", err)
		}
		c2 := f.add("b", s.URL, "")
		// A row's key put into another row does not open there.
		if _, err := f.db.Exec(ctx, `update connections set sealed_key = (select sealed_key from connections where id = ?) where id = ?`, c.ID, c2.ID); err != nil {
			t.Fatal(err)
		}
		if r, _ := f.Test(ctx, c2.ID); r.OK || sandbox.CodeOf(r.Problem) != connection.CodeSealed {
			t.Errorf("a moved key: %+v", r)
		}
	})
}

// One that hangs and one that is not there slow nobody.
func TestSlowServices(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		var hang atomic.Bool
		release := make(chan struct{})
		let := sync.OnceFunc(func() { close(release) })
		t.Cleanup(let)
		slow := serve(t, "slow", func(r *http.Request) {
			if hang.Load() {
				select {
				case <-release:
				case <-r.Context().Done():
				}
			}
		})
		f.add("a", slow.URL, "")
		f.add("b", serve(t, "quick", nil).URL, "")
		f.add("c", "http://127.0.0.1:1", "")
		all := func() (map[string]*connection.Seen, time.Duration) {
			t.Helper()
			began := time.Now()
			list, err := f.List(ctx)
			if err != nil || len(list) != 3 {
				t.Fatal(len(list), err)
			}
			seen := map[string]*connection.Seen{}
			for _, s := range list {
				seen[s.Connection.Name] = s
			}
			return seen, time.Since(began)
		}
		has := func(s *connection.Seen, id string) bool { return len(s.Sandboxes) == 1 && s.Sandboxes[0].ID == id }
		seen, _ := all()
		for ; !has(seen["a"], "slow") || !has(seen["b"], "quick"); seen, _ = all() { // on a loaded machine
			if ctx.Err() != nil {
				t.Fatal(ctx.Err())
			}
		}
		if seen["c"].Problem == nil || seen["c"].NotAnsweringSince.IsZero() {
			t.Errorf("nobody listens: %+v", seen["c"])
		}
		hang.Store(true)
		all() // waits for its patience
		seen, took := all()
		if took > 250*time.Millisecond {
			t.Errorf("the second list took %v: who hung before is waited for again", took)
		}
		if s := seen["a"]; !has(s, "slow") || s.NotAnsweringSince.IsZero() || s.Problem == nil || s.SeenAt.IsZero() {
			t.Errorf("what hangs: %+v", s)
		}
		if !has(seen["b"], "quick") || !seen["b"].NotAnsweringSince.IsZero() {
			t.Errorf("what answers: %+v", seen["b"])
		}
		// No request pins a connection: the database is free while a service hangs.
		var n int
		for range 40 {
			if err := f.db.QueryRow(ctx, `select count(*) from connections`).Scan(&n); err != nil || n != 3 {
				t.Fatal(n, err)
			}
		}
		if _, err := f.db.Exec(ctx, `update connections set updated_at = 1`); err != nil {
			t.Error(err)
		}
		hang.Store(false)
		let()
		deadline := time.Now().Add(20 * time.Second)
		for seen, _ = all(); !seen["a"].NotAnsweringSince.IsZero(); seen, _ = all() {
			if time.Now().After(deadline) {
				t.Fatal("it answers again, and nobody notices")
			}
		}
	})
}

func TestEndpoints(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		for _, tt := range []struct {
			endpoint string
			code     sandbox.Code
		}{
			{"https://sandboxes.example", ""},
			{"10.1.2.3:8080", ""},
			{"[::1]:8080", ""},
			{"", sandbox.CodeInvalid},
			{"ftp://h", sandbox.CodeInvalid},
			{"file:///etc/passwd", sandbox.CodeInvalid},
			{"http://u:hunter22@h", sandbox.CodeInvalid},
			{"http://h/v1", sandbox.CodeInvalid},
			{"http://h?x=1", sandbox.CodeInvalid},
			{"http://h#x", sandbox.CodeInvalid},
			{"http://h\r\nX: y", sandbox.CodeInvalid},
			{"http://" + strings.Repeat("h", 600), sandbox.CodeInvalid},
			{"http://169.254.169.254", connection.CodeAddress},
			{"http://[::ffff:169.254.169.254]:80", connection.CodeAddress},
			{"http://[fe80::1]", connection.CodeAddress},
			{"http://0.0.0.0:8080", connection.CodeAddress},
			{"http://100.100.100.200", connection.CodeAddress},
		} {
			_, err := f.Add(t.Context(), &connection.New{Name: "x" + fmt.Sprint(len(tt.endpoint)) + tt.endpoint[:min(5, len(tt.endpoint))], Endpoint: tt.endpoint})
			want(t, tt.endpoint, err, tt.code)
			if err != nil && strings.Contains(err.Error(), "hunter22") {
				t.Errorf("the error tells the password: %v", err)
			}
		}
	})
}

// What a name leads to is checked when it is dialled, and after a redirect.
func TestDialledAddresses(t *testing.T) {
	t.Parallel()
	d := dbtest.Open(t, filepath.Join(t.TempDir(), "console.sqlite3"))
	v, err := vault.Open(filepath.Join(t.TempDir(), "key"))
	if err != nil {
		t.Fatal(err)
	}
	reach := func(endpoint, ask string, allowed ...netip.Prefix) error {
		t.Helper()
		var out http.RoundTripper
		f := connection.NewFleet(d, v, &connection.Options{
			Allowed: allowed,
			Dial: func(_ *connection.Connection, _ vault.Secret, transport http.RoundTripper) (connection.Service, error) {
				out = transport
				return &client{}, nil
			},
		})
		c, err := f.Add(t.Context(), &connection.New{Name: "n" + fmt.Sprint(time.Now().UnixNano()), Endpoint: endpoint, Enabled: true})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Service(t.Context(), c.ID); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		req, _ := http.NewRequestWithContext(ctx, http.MethodGet, ask, nil)
		resp, err := out.RoundTrip(req)
		if err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
		return err
	}
	s := serve(t, "a", nil)
	port := s.URL[strings.LastIndex(s.URL, ":"):]
	refused := func(err error) bool {
		e, ok := errors.AsType[*sandbox.Error](err)
		return ok && e.Code == connection.CodeAddress
	}
	if err := reach("http://localhost"+port, "http://localhost"+port); err != nil {
		t.Errorf("localhost, named: %v", err)
	}
	// The name of this machine stands for one that a stranger's DNS answers.
	if err := reach("http://service.example", s.URL); !refused(err) {
		t.Errorf("a name that leads to the loopback: %v", err)
	}
	if err := reach("http://service.example", "http://169.254.169.254/latest"); !refused(err) {
		t.Errorf("a name that leads to the metadata service: %v", err)
	}
	if err := reach("http://service.example", "http://[fe80::1%25lo]:1/"); !refused(err) {
		t.Errorf("a name that leads to a link-local address: %v", err)
	}
	if err := reach("http://service.example", "http://169.254.0.1:1/", netip.MustParsePrefix("169.254.0.0/24")); refused(err) {
		t.Errorf("an allowed network: %v", err)
	}
}
