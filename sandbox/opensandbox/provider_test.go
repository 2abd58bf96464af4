package opensandbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/sandbox"
	"github.com/glassboxhq/glassbox/sandbox/opensandbox"
)

const key = "account-key-5f1c"

// newProvider talks to a service that answers as handle does.
func newProvider(t *testing.T, handle http.HandlerFunc, opts *opensandbox.Options) (*opensandbox.Provider, *httptest.Server) {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	mine := opensandbox.Options{}
	if opts != nil {
		mine = *opts
	}
	mine.Key = key
	p, err := opensandbox.New(server.URL, &mine)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p, server
}

func reply(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

const (
	snapshotID = "7c0e3a52-91c4-4f0a-8d1e-5a6b7c8d9e0f"

	boxID   = "0f6b2a34-7c1d-4f5e-9a55-3b2f6f1d2c11"
	running = `{"id":"` + boxID + `","image":{"uri":"python:3.12"},"status":{"state":"Running","reason":"CONTAINER_RUNNING"},
		"metadata":{"sandbox_instance_id":"i-1","agent_sandbox.name":"n"},"expiresAt":"2026-11-29T16:08:42.125615Z","createdAt":"2026-11-29T16:00:00Z"}`
)

// calls is one of every kind of call.
var calls = map[string]func(context.Context, *opensandbox.Provider) error{
	"create": func(ctx context.Context, p *opensandbox.Provider) error {
		_, err := p.Create(ctx, &sandbox.Spec{Image: "python:3.12", Env: map[string]string{"TOKEN": "s3cret-value"}})
		return err
	},
	"get":  func(ctx context.Context, p *opensandbox.Provider) error { _, err := p.Get(ctx, boxID); return err },
	"list": func(ctx context.Context, p *opensandbox.Provider) error { _, err := p.List(ctx); return err },
	"delete": func(ctx context.Context, p *opensandbox.Provider) error {
		return p.Delete(ctx, boxID)
	},
	"pause":  func(ctx context.Context, p *opensandbox.Provider) error { _, err := p.Pause(ctx, boxID); return err },
	"resume": func(ctx context.Context, p *opensandbox.Provider) error { _, err := p.Resume(ctx, boxID); return err },
	"renew": func(ctx context.Context, p *opensandbox.Provider) error {
		_, err := p.Renew(ctx, boxID, time.Now().Add(time.Hour))
		return err
	},
	"metadata": func(ctx context.Context, p *opensandbox.Provider) error {
		_, err := p.SetMetadata(ctx, boxID, map[string]*string{"a": nil})
		return err
	},
	"snapshot": func(ctx context.Context, p *opensandbox.Provider) error {
		_, err := p.TakeSnapshot(ctx, boxID, "n")
		return err
	},
	"get snapshot": func(ctx context.Context, p *opensandbox.Provider) error {
		_, err := p.GetSnapshot(ctx, snapshotID)
		return err
	},
	"list snapshots": func(ctx context.Context, p *opensandbox.Provider) error {
		_, err := p.ListSnapshots(ctx, "")
		return err
	},
	"delete snapshot": func(ctx context.Context, p *opensandbox.Provider) error { return p.DeleteSnapshot(ctx, snapshotID) },
	"endpoint": func(ctx context.Context, p *opensandbox.Provider) error {
		_, err := p.Endpoint(ctx, boxID, 44772)
		return err
	},
}

// Every shape that an error of a service has becomes one error of ours, that
// says what is wrong and repeats no secret.
func TestErrorShapes(t *testing.T) {
	for _, tt := range []struct {
		name, call string
		status     int
		body       string
		want       sandbox.Code
		text       []string
		retryable  bool
	}{
		{"code and message", "get", 404, `{"code":"DOCKER::SANDBOX_NOT_FOUND","message":"Sandbox x not found."}`, sandbox.CodeSandboxNotFound, []string{"get sandbox", "Sandbox x not found.", "DOCKER::SANDBOX_NOT_FOUND", "request r-1"}, false},
		{"Kubernetes", "delete", 404, `{"code":"KUBERNETES::SANDBOX_NOT_FOUND","message":"gone"}`, sandbox.CodeSandboxNotFound, []string{"gone"}, false},
		{"state", "delete", 409, `{"code":"DOCKER::SANDBOX_NOT_RUNNING","message":"not running"}`, sandbox.CodeSandboxState, []string{"not running"}, false},
		{"image", "create", 500, `{"code":"DOCKER::SANDBOX_IMAGE_PULL_FAILED","message":"no such image"}`, sandbox.CodeImageNotFound, []string{"no such image"}, false},
		{"bad request", "create", 400, `{"code":"SANDBOX::INVALID_METADATA_LABEL","message":"bad label"}`, sandbox.CodeInvalid, []string{"bad label"}, false},
		{"not implemented", "endpoint", 501, `{"code":"DOCKER::POOL_NOT_SUPPORTED","message":"no pools"}`, sandbox.CodeUnsupported, []string{"no pools"}, false},
		{"key missing", "list", 401, `{"code":"MISSING_API_KEY","message":"Authentication credentials are missing."}`, sandbox.CodeUnauthorized, []string{"missing", "GLASSBOX_API_KEY"}, false},
		{"key wrong", "create", 401, `{"code":"INVALID_API_KEY","message":"Authentication credentials are invalid."}`, sandbox.CodeUnauthorized, []string{"invalid", "OPEN_SANDBOX_API_KEY"}, false},
		{
			"validation", "create", 422, `{"detail":[{"type":"missing","loc":["body","image","uri"],"msg":"Field required","input":{"env":{"TOKEN":"s3cret-value"},"key":"` + key + `"}},
				{"type":"int","loc":["body","timeout"],"msg":"Input should be at least 60","input":"s3cret-value","ctx":{"ge":60}}]}`,
			sandbox.CodeInvalid,
			[]string{"image.uri: Field required", "timeout: Input should be at least 60"},
			false,
		},
		{
			"validation that quotes", "create", 422, `{"detail":[{"type":"x","loc":["body","env","TOKEN"],"msg":"Value 's3cret-value' is not good","input":"s3cret-value"}]}`,
			sandbox.CodeInvalid,
			[]string{"env.TOKEN", "***"},
			false,
		},
		{"message that quotes", "create", 400, `{"code":"X","message":"the key ` + key + ` may not set TOKEN=s3cret-value"}`, sandbox.CodeInvalid, []string{"the key *** may not set TOKEN=***"}, false},
		{"validation of a query", "list", 422, `{"detail":[{"type":"int_parsing","loc":["query","page"],"msg":"bad","input":"x"}]}`, sandbox.CodeInvalid, []string{"query.page: bad"}, false},
		{"odd detail", "create", 422, `{"detail":[1,{"loc":"x","msg":2},null]}`, sandbox.CodeInvalid, []string{"create sandbox"}, false},
		{"detail object", "create", 422, `{"detail":{"input":"s3cret-value"}}`, sandbox.CodeInvalid, []string{"422"}, false},
		{"unknown route", "create", 404, `{"detail":"Not Found"}`, sandbox.CodeProvider, []string{"Not Found", "is the URL right"}, false},
		{"no such snapshot", "get snapshot", 404, `{"code":"SNAPSHOT::NOT_FOUND","message":"gone"}`, sandbox.CodeSnapshotNotFound, []string{"gone"}, false},
		{"snapshot of a wrong state", "delete snapshot", 409, `{"code":"SNAPSHOT::INVALID_STATE","message":"creating"}`, sandbox.CodeSnapshotState, []string{"creating"}, false},
		{"source of a wrong state", "snapshot", 409, `{"code":"SNAPSHOT::INVALID_SOURCE_STATE","message":"paused"}`, sandbox.CodeSandboxState, []string{"paused"}, false},
		{"no snapshots at all", "list snapshots", 404, `{"detail":"Not Found"}`, sandbox.CodeUnsupported, []string{"does not offer"}, false},
		{"no snapshots of a sandbox", "snapshot", 404, `{"detail":"Not Found"}`, sandbox.CodeUnsupported, []string{"does not offer"}, false},
		{"no snapshots in this runtime", "snapshot", 501, `{"code":"SNAPSHOT::NOT_IMPLEMENTED","message":"not here"}`, sandbox.CodeUnsupported, []string{"not here"}, false},
		{"no patch", "metadata", 405, `{"detail":"Method Not Allowed"}`, sandbox.CodeUnsupported, []string{"does not offer"}, false},
		{"a snapshot without an id", "snapshot", 202, `{}`, sandbox.CodeProvider, []string{"without an id of the snapshot"}, false},
		{"unknown route of a list", "list", 404, `<html>nginx</html>`, sandbox.CodeProvider, []string{"404", "is the URL right"}, false},
		{"wrong method", "list", 405, `{"detail":"Method Not Allowed"}`, sandbox.CodeProvider, []string{"Method Not Allowed"}, false},
		{"plain text", "create", 500, "Internal Server Error: s3cret-value", sandbox.CodeProvider, []string{"500"}, false},
		{"overload", "list", 503, "Service Unavailable", sandbox.CodeProvider, []string{"503"}, true},
		{"a page", "get", 502, "<html><h1>502</h1> s3cret-value</html>", sandbox.CodeProvider, []string{"502"}, true},
		{"nothing", "get", 500, "", sandbox.CodeProvider, []string{"500"}, false},
		{"JSON of another kind", "get", 500, `["s3cret-value"]`, sandbox.CodeProvider, []string{"500"}, false},
		{"an answer that is none", "get", 200, "<html>welcome, s3cret-value</html>", sandbox.CodeProvider, []string{"is the URL right"}, false},
		{"an answer without an id", "create", 202, `{}`, sandbox.CodeProvider, []string{"without an id"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, _ := newProvider(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("X-Request-ID", "r-1")
				reply(w, tt.status, tt.body)
			}, nil)
			err := calls[tt.call](t.Context(), p)
			e, ok := errors.AsType[*sandbox.Error](err)
			if !ok || e.Code != tt.want || e.Retryable != tt.retryable || e.Provider != "opensandbox" {
				t.Fatalf("got %v (%+v), want the code %s", err, e, tt.want)
			}
			for _, text := range tt.text {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("got %q, want %q in it", err, text)
				}
			}
			for _, text := range []string{"s3cret-value", key, "<html"} {
				if strings.Contains(err.Error(), text) || strings.Contains(fmt.Sprintf("%#v", e), text) {
					t.Errorf("got %q, which tells %q", err, text)
				}
			}
		})
	}
}

// A message of a service is bounded.
func TestLongMessage(t *testing.T) {
	p, _ := newProvider(t, func(w http.ResponseWriter, _ *http.Request) {
		reply(w, 400, `{"code":"X","message":"`+strings.Repeat("研", 100_000)+`"}`)
	}, nil)
	if err := calls["get"](t.Context(), p); err == nil || len(err.Error()) > 8192 {
		t.Errorf("got an error of %d bytes", len(err.Error()))
	}
}

// The list is whole, over pages, and without doubles where a sandbox was made
// between two of them.
func TestListPages(t *testing.T) {
	const boxes = 450
	var asked []string
	p, _ := newProvider(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Path+"?"+r.URL.RawQuery)
		page, _ := strconv.Atoi(r.URL.Query().Get("page"))
		size, _ := strconv.Atoi(r.URL.Query().Get("pageSize"))
		first := (page - 1) * size
		if page > 1 {
			first-- // one more stands in front by now
		}
		items := []map[string]any{}
		for i := first; i < min(first+size, boxes); i++ {
			items = append(items, map[string]any{"id": fmt.Sprint("b", i), "status": map[string]any{"state": "Running"}})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"items": items, "pagination": map[string]any{"hasNextPage": first+size < boxes}})
	}, nil)
	list, err := p.List(t.Context())
	if err != nil || len(list) != boxes || len(asked) != 3 {
		t.Fatalf("got %d sandboxes from %v, %v, want %d from three pages", len(list), asked, err, boxes)
	}
	for i, info := range list {
		if info.ID != fmt.Sprint("b", i) {
			t.Fatalf("got %s at %d", info.ID, i)
		}
	}
}

// A service that always has another page does not keep us for ever.
func TestListEndless(t *testing.T) {
	var asked atomic.Int64
	p, _ := newProvider(t, func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		reply(w, 200, `{"items":[{"id":"same"}],"pagination":{"hasNextPage":true}}`)
	}, nil)
	list, err := p.List(t.Context())
	if err != nil || len(list) != 1 || asked.Load() > 3 {
		t.Errorf("got %d sandboxes after %d pages, %v", len(list), asked.Load(), err)
	}
}

// An endpoint is where the service itself is, or where the caller allowed it.
func TestEndpoint(t *testing.T) {
	for _, tt := range []struct {
		name, endpoint string
		want           string // "": refused
		hosts          []string
	}{
		{"through the service", "HOST/sandboxes/x/proxy/44772", "http://HOST/sandboxes/x/proxy/44772", nil},
		{"another port of its host", "127.0.0.1:49152", "http://127.0.0.1:49152", nil},
		{"another name of this machine", "localhost:49152/proxy/44772", "http://localhost:49152/proxy/44772", nil},
		{"IPv6", "[::1]:8080", "http://[::1]:8080", nil},
		{"trailing slash", "HOST/p/", "http://HOST/p", nil},
		{"elsewhere", "evil.example:80/x", "", nil},
		{"elsewhere, allowed", "10.0.0.7:80/x", "http://10.0.0.7:80/x", []string{"10.0.0.7"}},
		{"elsewhere, another one allowed", "10.0.0.8:80/x", "", []string{"10.0.0.7"}},
		{"a name that begins alike", "127.0.0.1.evil.example", "", nil},
		{"metadata service", "169.254.169.254/latest", "", nil},
		{"credentials", "user:pw@HOST/p", "", nil},
		{"credentials that look like the host", "127.0.0.1@evil.example", "", nil},
		{"a query", "HOST/p?x=1", "", nil},
		{"an empty query", "HOST/p?", "", nil},
		{"a fragment", "HOST/p#x", "", nil},
		{"a scheme of its own", "http://HOST/p", "", nil},
		{"a file", "/etc/passwd", "", nil},
		{"nothing", "", "", nil},
		{"control characters", "HOST/\r\nX: y", "", nil},
		{"backslash", `HOST\@evil.example`, "", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var host string
			p, server := newProvider(t, func(w http.ResponseWriter, _ *http.Request) {
				_ = json.NewEncoder(w).Encode(map[string]any{
					"endpoint": strings.ReplaceAll(tt.endpoint, "HOST", host), "headers": map[string]string{"X-Door": "door"},
				})
			}, &opensandbox.Options{Hosts: tt.hosts})
			host = strings.TrimPrefix(server.URL, "http://")
			e, err := p.Endpoint(t.Context(), boxID, wire.ExecdPort)
			want := strings.ReplaceAll(tt.want, "HOST", host)
			switch {
			case want == "" && (err == nil || sandbox.CodeOf(err) != sandbox.CodeProvider || strings.Contains(err.Error(), "pw")):
				t.Errorf("got %+v, %v, want it refused", e, err)
			case want != "" && (err != nil || e.URL != want || e.Header.Get("X-Door") != "door"):
				t.Errorf("got %+v, %v, want %s", e, err, want)
			}
		})
	}
}

// FB-075: a create whose answer is lost is sent once, and told as something
// whose outcome is not known.
func TestFB075LostCreate(t *testing.T) {
	drop := func(t *testing.T, w http.ResponseWriter) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_ = conn.(*net.TCPConn).SetLinger(0)
		conn.Close()
	}
	for name, answer := range map[string]func(t *testing.T, w http.ResponseWriter){
		"dropped": drop,
		"half an answer": func(_ *testing.T, w http.ResponseWriter) {
			_, _ = io.WriteString(w, `{"id":"`)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		},
		"a proxy's page": func(_ *testing.T, w http.ResponseWriter) { reply(w, 502, "<html>502</html>") },
		"too late":       func(_ *testing.T, w http.ResponseWriter) { reply(w, 504, "upstream request timeout") },
	} {
		t.Run(name, func(t *testing.T) {
			var made atomic.Int64
			p, _ := newProvider(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				if r.Method == http.MethodPost {
					made.Add(1)
				}
				answer(t, w)
			}, nil)
			err := calls["create"](t.Context(), p)
			e, ok := errors.AsType[*sandbox.Error](err)
			if !ok || !errors.Is(err, sandbox.ErrInterrupted) || e.Retryable {
				t.Errorf("got %v (%+v), want that the outcome is not known", err, e)
			}
			if made.Load() != 1 {
				t.Errorf("%d sandboxes were asked for, want one", made.Load())
			}
		})
	}
	t.Run("cancelled", func(t *testing.T) {
		p, _ := newProvider(t, func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		}, nil)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if err := calls["create"](ctx, p); !errors.Is(err, sandbox.ErrTimeout) || !strings.Contains(err.Error(), "may have been made") {
			t.Errorf("got %v, want a timeout that warns of a sandbox", err)
		}
	})
	t.Run("nobody listens", func(t *testing.T) {
		p, server := newProvider(t, nil, nil)
		server.Close()
		err := calls["create"](t.Context(), p)
		if e, ok := errors.AsType[*sandbox.Error](err); !ok || !errors.Is(err, sandbox.ErrUnavailable) || !e.Retryable || !strings.Contains(err.Error(), "glassbox serve") {
			t.Errorf("got %v, want that no service answers", err)
		}
	})
}

// What is safe is tried again, what is not is sent once.
func TestRetries(t *testing.T) {
	for name, want := range map[string]int64{
		"get": 3, "list": 3, "endpoint": 3, "create": 1, "delete": 3,
		"pause": 1, "resume": 1, "renew": 3, "metadata": 3, "snapshot": 1, "get snapshot": 3, "list snapshots": 3, "delete snapshot": 1,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var n atomic.Int64
			p, _ := newProvider(t, func(w http.ResponseWriter, _ *http.Request) {
				n.Add(1)
				reply(w, 503, "busy")
			}, nil)
			if err := calls[name](t.Context(), p); err == nil || n.Load() != want {
				t.Errorf("got %v after %d requests, want %d", err, n.Load(), want)
			}
		})
	}
}

// silent is a service that takes requests and never answers.
type silent struct{ n int }

// RoundTrip implements http.RoundTripper.
func (s *silent) RoundTrip(r *http.Request) (*http.Response, error) {
	s.n++
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// Tries come to an end, however long each takes.
func TestTriesWithin(t *testing.T) {
	for limit, want := range map[time.Duration]struct {
		tries int
		most  time.Duration
	}{30 * time.Second: {1, 31 * time.Second}, 20 * time.Second: {2, 41 * time.Second}, time.Second: {3, 5 * time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			way := &silent{}
			p, err := opensandbox.New("h", &opensandbox.Options{Transport: way, RequestTimeout: limit})
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			_, err = p.Get(t.Context(), boxID)
			if took := time.Since(began); !errors.Is(err, sandbox.ErrTimeout) || way.n != want.tries || took > want.most {
				t.Errorf("%v each: %v after %d tries and %v", limit, err, way.n, took)
			}
		})
	}
}

// A deletion whose answer was lost has deleted it: that nothing is there any
// more is no fault then.
func TestLostDelete(t *testing.T) {
	t.Parallel()
	var n atomic.Int64
	p, _ := newProvider(t, func(w http.ResponseWriter, _ *http.Request) {
		if n.Add(1) == 1 {
			panic(http.ErrAbortHandler)
		}
		reply(w, 404, `{"code":"DOCKER::SANDBOX_NOT_FOUND","message":"no"}`)
	}, nil)
	if err := p.Delete(t.Context(), boxID); err != nil || n.Load() != 2 {
		t.Errorf("got %v after %d requests", err, n.Load())
	}
	if err := p.Delete(t.Context(), boxID); !errors.Is(err, sandbox.ErrNotFound) {
		t.Errorf("got %v, want that there is none", err)
	}
}

// FB-081: the key goes to the service, and neither to an endpoint nor to where
// a redirect leads.
func TestFB081Key(t *testing.T) {
	var mu sync.Mutex
	var seen []http.Header
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, r.Header.Clone())
	}))
	defer elsewhere.Close()
	redirecting, _ := newProvider(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("OPEN-SANDBOX-API-KEY") != key {
			t.Errorf("%s: the service did not get its key", r.URL)
		}
		http.Redirect(w, r, elsewhere.URL+"/there", http.StatusTemporaryRedirect)
	}, nil)
	for name, do := range calls {
		if err := do(t.Context(), redirecting); err == nil {
			t.Errorf("%s: a redirect was followed", name)
		}
	}
	mu.Lock()
	if len(seen) > 0 {
		t.Errorf("%d requests were led elsewhere", len(seen))
	}
	mu.Unlock()

	direct, _ := newProvider(t, func(w http.ResponseWriter, _ *http.Request) {
		reply(w, 200, `{"endpoint":"`+strings.TrimPrefix(elsewhere.URL, "http://")+`","headers":{"X-EXECD-ACCESS-TOKEN":"of this sandbox"}}`)
	}, &opensandbox.Options{Direct: true, Opener: func(context.Context, *opensandbox.Endpoint) (sandbox.Session, error) {
		return nil, errors.New("opened")
	}})
	e, err := direct.Endpoint(t.Context(), boxID, wire.ExecdPort)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, e.URL+"/ping", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header = e.Header.Clone()
	resp, err := direct.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	mu.Lock()
	defer mu.Unlock()
	if len(seen) != 1 || seen[0].Get("X-EXECD-ACCESS-TOKEN") != "of this sandbox" {
		t.Fatalf("got %v, want one request with the token of the sandbox", seen)
	}
	for name, values := range seen[0] {
		if strings.Contains(strings.Join(values, " "), key) {
			t.Errorf("the header %s holds the account's key", name)
		}
	}
	if _, err := direct.Open(t.Context(), boxID); err == nil || err.Error() != "opened" {
		t.Errorf("got %v, want what the opener said", err)
	}
}

func TestParseURL(t *testing.T) {
	for address, want := range map[string]string{
		"http://localhost:7717": "http://localhost:7717", "https://h.example": "https://h.example", "localhost:7717": "http://localhost:7717",
		"h.example": "http://h.example", " http://h:1/ ": "http://h:1", "http://h//": "http://h", "[::1]:7717": "http://[::1]:7717",
		"HTTP://H.example:80": "http://H.example:80", "http://127.0.0.1": "http://127.0.0.1",
		"": "", "   ": "", "http://": "", "http:///x": "", "http://:80": "", "ftp://h": "", "unix:///run/x.sock": "", "javascript:alert(1)": "", "http://u@h": "",
		"http://u:pw@h": "", "u:pw@h": "", "http://h/v1": "", "h/v1": "", "http://h?x=1": "", "http://h?": "", "http://h#f": "", "http://h:port": "", "http://%zz:pw@h": "",
		"http://h\n": "http://h", "http://h\x00": "", "http://h h": "", "//h": "",
	} {
		u, err := opensandbox.ParseURL(address)
		switch {
		case want == "" && (!errors.Is(err, sandbox.ErrInvalid) || strings.Contains(err.Error(), "pw")):
			t.Errorf("%q: got %v, %v, want it refused", address, u, err)
		case want != "" && (err != nil || u.String() != want):
			t.Errorf("%q: got %v, %v, want %s", address, u, err, want)
		}
	}
}

// Names are of any script; the service gets them where it takes them, and
// where it does not, beside.
func TestNames(t *testing.T) {
	for name, tt := range map[string]struct{ ok, label bool }{
		"research-workspace": {true, true}, "研究员的工作区": {true, false}, "with spaces": {true, false}, strings.Repeat("研", 128): {true, false},
		strings.Repeat("a", 63): {true, true}, strings.Repeat("a", 64): {true, false}, strings.Repeat("a", 128): {true, false}, "a.b_c-d": {true, true},
		"-a": {true, false}, "a.": {true, false}, "a/b:c@d": {true, false}, "😀 e\u0301": {true, false}, "עברית": {true, false}, "x'\"<>&": {true, false},
		strings.Repeat("研", 129): {}, strings.Repeat("a", 129): {}, "a\nb": {}, "a\x00": {}, "a\u0085b": {}, "\x7f": {}, "\xff": {},
	} {
		var body struct {
			Metadata   map[string]string `json:"metadata"`
			Extensions map[string]string `json:"extensions"`
		}
		p, _ := newProvider(t, func(w http.ResponseWriter, r *http.Request) {
			if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
				t.Error(err)
			}
			_ = json.NewEncoder(w).Encode(map[string]any{"id": boxID, "metadata": body.Metadata}) // as Docker's: no extensions
		}, nil)
		info, err := p.Create(t.Context(), &sandbox.Spec{Image: "i", Name: name})
		if !tt.ok {
			if e, ok := errors.AsType[*sandbox.Error](err); !ok || e.Field != "name" {
				t.Errorf("%q: got %v, %v, want the name refused", name, info, err)
			}
			continue
		}
		if err != nil || info.Name != name || body.Extensions[wire.ExtName] != name {
			t.Errorf("%q: got %+v, %v with %v", name, info, err, body.Extensions)
		}
		if label, ok := body.Metadata[wire.MetaName]; ok != tt.label || ok && label != name {
			t.Errorf("%q: got the label %q, %v", name, label, ok)
		}
		if text, ok := info.Metadata[wire.MetaExactName]; ok {
			t.Errorf("%q: the metadata shows how the name is kept, %q", name, text)
		}
		for key, value := range body.Metadata {
			if len(value) > 63 || strings.Trim(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") != "" {
				t.Errorf("%q: no service takes %s: %q", name, key, value)
			}
		}
		if body.Metadata[wire.MetaInstance] == "" {
			t.Errorf("%q: no instance id", name)
		}
	}
}

// What no service can be asked for is refused before one is asked.
func TestInvalid(t *testing.T) {
	p, _ := newProvider(t, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s %s was sent", r.Method, r.URL) }, nil)
	const secret = "s3cret-value"
	for name, tt := range map[string]struct {
		spec  *sandbox.Spec
		field string
	}{
		"nothing":          {nil, "image"},
		"no image":         {&sandbox.Spec{Image: " "}, "image"},
		"short life":       {&sandbox.Spec{Image: "i", Timeout: time.Second}, "timeout"},
		"negative life":    {&sandbox.Spec{Image: "i", Timeout: -1}, "timeout"},
		"endless life":     {&sandbox.Spec{Image: "i", Timeout: 1 << 62}, "timeout"},
		"relative workdir": {&sandbox.Spec{Image: "i", Workdir: "w"}, "workdir"},
		"an odd image":     {&sandbox.Spec{Image: "a b"}, "image"},
		"an odd snapshot":  {&sandbox.Spec{Snapshot: "../x"}, "snapshot"},
		"odd memory":       {&sandbox.Spec{Image: "i", Limits: map[string]string{"memory": "1.5Gi"}}, "limits.memory"},
		"no memory":        {&sandbox.Spec{Image: "i", Limits: map[string]string{"memory": "0"}}, "limits.memory"},
		"odd processors":   {&sandbox.Spec{Image: "i", Limits: map[string]string{"cpu": "half"}}, "limits.cpu"},
		"an empty limit":   {&sandbox.Spec{Image: "i", Limits: map[string]string{"gpu": ""}}, "limits.gpu"},
		"no label":         {&sandbox.Spec{Image: "i", Metadata: map[string]string{"a": "x y"}}, "metadata"},
		"a new line":       {&sandbox.Spec{Image: "i", Metadata: map[string]string{"a": "x\n"}}, "metadata"},
		"no key":           {&sandbox.Spec{Image: "i", Metadata: map[string]string{"a b": "x"}}, "metadata"},
		"a reserved key":   {&sandbox.Spec{Image: "i", Metadata: map[string]string{"opensandbox.io/id": "x"}}, "metadata"},
		"no domain":        {&sandbox.Spec{Image: "i", Metadata: map[string]string{"A_b/c": "x"}}, "metadata"},
		"= in a name":      {&sandbox.Spec{Image: "i", Env: map[string]string{"A=B": secret}}, "env"},
		"NUL in a value":   {&sandbox.Spec{Image: "i", Env: map[string]string{"A": secret + "\x00"}}, "env"},
		"not UTF-8":        {&sandbox.Spec{Image: "i", Env: map[string]string{"A": secret + "\xff"}}, "env"},
		"empty name":       {&sandbox.Spec{Image: "i", Env: map[string]string{"": secret}}, "env"},
		"much":             {&sandbox.Spec{Image: "i", Env: map[string]string{"A": strings.Repeat(secret, 100_000)}}, "env"},
	} {
		_, err := p.Create(t.Context(), tt.spec)
		e, ok := errors.AsType[*sandbox.Error](err)
		if !ok || !errors.Is(err, sandbox.ErrInvalid) || e.Field != tt.field || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: got %v, want an invalid %s", name, err, tt.field)
		}
	}
	for _, id := range []string{"", "..", "a/b", "a?b", "a#b", "a b", "../../etc", "研", strings.Repeat("a", 129), "a%2fb"} {
		for name, err := range map[string]error{
			"get": second(p.Get(t.Context(), id)), "delete": p.Delete(t.Context(), id), "endpoint": second(p.Endpoint(t.Context(), id, 80)),
		} {
			if !errors.Is(err, sandbox.ErrInvalid) {
				t.Errorf("%s %q: got %v, want it refused", name, id, err)
			}
		}
	}
}

// All that is wrong is told at once: field, value and rule.
func TestAllFaults(t *testing.T) {
	err := opensandbox.ValidateSpec(&sandbox.Spec{
		Image: " ", Name: "a\nb", Timeout: time.Second, Workdir: "w", Limits: map[string]string{"cpu": "half", "memory": "1.5Gi"},
		Metadata: map[string]string{"a": "x y", "b c": ""}, Env: map[string]string{"A=B": "s3cret-value"},
	})
	for _, want := range []string{
		`image: is " "`, `name: is "a\nb"`, `timeout: is "1s"`, `workdir: is "w"`, `limits.cpu: is "half"`, `limits.memory: is "1.5Gi"`,
		`metadata: the value of "a" is "x y"`, `metadata: is "b c"`, `env: the name`,
	} {
		if !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("got\n%v\nwant %s in it", err, want)
		}
	}
	if strings.Contains(err.Error(), "s3cret-value") {
		t.Errorf("it tells a value of the environment: %v", err)
	}
	if err := opensandbox.ValidateSpec(&sandbox.Spec{
		Image: "registry.example:5000/a/b@sha256:0123", Name: "研究员", Timeout: time.Hour, Workdir: "/w", Metadata: map[string]string{"a.example/b": "", "team": "red"},
		Limits: map[string]string{"cpu": "0.5", "memory": "512Mi", "gpu": "all", "pids": "100"}, Env: map[string]string{"A": "b"},
	}); err != nil {
		t.Error(err)
	}
}

func second[T any](_ T, err error) error { return err }

// What a service tells of a sandbox is read whole.
func TestGet(t *testing.T) {
	p, _ := newProvider(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/sandboxes/"+boxID || r.Header.Get("User-Agent") == "" {
			t.Errorf("got %s %v", r.URL, r.Header)
		}
		reply(w, 200, running)
	}, nil)
	info, err := p.Get(t.Context(), boxID)
	if err != nil {
		t.Fatal(err)
	}
	if info.ID != boxID || info.Name != "n" || info.InstanceID != "i-1" || info.State != sandbox.Running || info.Image != "python:3.12" ||
		info.ExpiresAt.Nanosecond() != 125_615_000 || info.CreatedAt.IsZero() {
		t.Errorf("got %+v", info)
	}
}

// FB-055: a service that says nothing does not hold its caller for ever.
func TestFB055Silent(t *testing.T) {
	for _, name := range []string{"get", "list", "delete", "endpoint"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, _ := newProvider(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, &opensandbox.Options{RequestTimeout: 200 * time.Millisecond})
			began := time.Now()
			err := calls[name](t.Context(), p)
			if took := time.Since(began); !errors.Is(err, sandbox.ErrTimeout) || took > 3*time.Second {
				t.Errorf("got %v after %v, want a timeout", err, took)
			}
		})
	}
}

// A key does not print itself.
func TestSecret(t *testing.T) {
	opts := opensandbox.Options{Key: key}
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		for _, value := range []any{opts, opts.Key, &opts} {
			if text := fmt.Sprintf(format, value); strings.Contains(text, key) || strings.Contains(text, "6163636f756e74") {
				t.Errorf("%s of %T is %s", format, value, text)
			}
		}
	}
	if text, err := json.Marshal(opts.Key); err != nil || strings.Contains(string(text), key) {
		t.Errorf("as JSON it is %s, %v", text, err)
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		status     int
		body, want string
		fails      bool
	}{
		{200, `{"version":"1.1.1"}`, "1.1.1", false},
		{404, `{"detail":"Not Found"}`, "", false},
		{401, `{"code":"INVALID_API_KEY","message":"no"}`, "", true},
	} {
		p, _ := newProvider(t, func(w http.ResponseWriter, _ *http.Request) { reply(w, tt.status, tt.body) }, nil)
		got, err := p.Version(t.Context())
		if got != tt.want || (err != nil) != tt.fails {
			t.Errorf("%d: %q, %v", tt.status, got, err)
		}
	}
}
