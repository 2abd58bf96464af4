package glassbox_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/glassboxhq/glassbox"
	"github.com/glassboxhq/glassbox/internal/wire"
)

const fakeID = "0f6b2a34-7c1d-4f5e-9a55-3b2f6f1d2c11"

// lifeService is a service with one sandbox, within the process, so that its
// time can be made to pass.
type lifeService struct {
	mu       sync.Mutex
	timeout  any       // that was asked for at the creation
	expires  time.Time // zero: never
	renewals []time.Time
	deleted  bool
	running  int           // commands that nobody is attached to
	slow     time.Duration // that reading a file takes
}

// RoundTrip implements http.RoundTripper.
func (l *lifeService) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set(wire.HeaderRecorder, fmt.Sprint(wire.Protocol))
	w.Header().Set("Date", time.Now().UTC().Format(http.TimeFormat))
	slow := l.answer(w, r)
	resp := w.Result()
	resp.Request = r
	if slow > 0 {
		resp.Body = &slowBody{resp.Body, slow}
	}
	return resp, nil
}

type slowBody struct {
	io.ReadCloser
	wait time.Duration
}

func (b *slowBody) Read(p []byte) (int, error) {
	<-time.After(b.wait)
	b.wait = 0
	return b.ReadCloser.Read(p)
}

func (l *lifeService) answer(w http.ResponseWriter, r *http.Request) (slow time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.expires.IsZero() && time.Now().After(l.expires) {
		w.WriteHeader(http.StatusNotFound)
		return 0
	}
	switch path := strings.TrimPrefix(r.URL.Path, "/v1/sandboxes"); {
	case path == "" && r.Method == http.MethodPost:
		var body map[string]any
		_ = json.NewDecoder(r.Body).Decode(&body)
		if l.timeout = body["timeout"]; l.timeout != nil {
			l.expires = time.Now().Add(time.Duration(l.timeout.(float64)) * time.Second)
		}
		l.describe(w)
	case strings.HasSuffix(path, "/renew-expiration"):
		var body struct{ ExpiresAt time.Time }
		_ = json.NewDecoder(r.Body).Decode(&body)
		l.expires, l.renewals = body.ExpiresAt, append(l.renewals, body.ExpiresAt)
	case strings.Contains(path, "/endpoints/"):
		fmt.Fprintf(w, `{"endpoint":"service.example/recorder","headers":{%q:"t"}}`, wire.HeaderToken)
	case r.Method == http.MethodDelete:
		l.deleted = true
	case strings.HasSuffix(path, wire.PathInfo):
		_ = json.NewEncoder(w).Encode(&wire.Info{Protocol: wire.Protocol, Running: l.running})
	case strings.HasSuffix(path, wire.PathFile):
		return l.slow
	case strings.HasSuffix(path, wire.PathList), strings.HasSuffix(path, wire.PathReaders):
		_, _ = io.WriteString(w, "[]")
	case path == "/"+fakeID:
		l.describe(w)
	}
	return 0
}

func (l *lifeService) describe(w io.Writer) {
	answer := map[string]any{"id": fakeID, "status": map[string]string{"state": "Running"}}
	if !l.expires.IsZero() {
		answer["expiresAt"] = l.expires
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// set changes what the service does.
func (l *lifeService) set(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
}

// end is when the sandbox ends, and whether it was deleted.
func (l *lifeService) end() (time.Time, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.expires, l.deleted
}

// take returns the renewals since it was last called.
func (l *lifeService) take() []time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := l.renewals
	l.renewals = nil
	return list
}

// open makes the sandbox.
func (l *lifeService) open(t *testing.T, o glassbox.Options) *glassbox.Sandbox {
	t.Helper()
	o.Transport, o.StateDir = l, t.TempDir()
	box, err := glassbox.Create(t.Context(), "service.example", &o)
	if err != nil {
		t.Fatal(err)
	}
	return box
}

func use(t *testing.T, box *glassbox.Sandbox) {
	t.Helper()
	if _, err := box.List(t.Context(), "/"); err != nil {
		t.Fatal(err)
	}
}

// A life that was asked for begins anew with each operation.
func TestTTLRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const life = 10 * time.Minute
		l := &lifeService{}
		box := l.open(t, glassbox.Options{TTL: life})
		if l.timeout != 600.0 {
			t.Errorf("asked for %v seconds, want 600", l.timeout)
		}
		l.take() // the creation is an operation
		<-time.After(life / 2)
		l.take()
		<-time.After(life / 3)
		if got := l.take(); len(got) != 0 {
			t.Errorf("renewed while nothing was done: %v", got)
		}
		used := time.Now()
		use(t, box)
		<-time.After(life / 10)
		if got := l.take(); len(got) != 1 || got[0].Before(used.Add(life)) {
			t.Errorf("after an operation at %v: %v, want one renewal", used, got)
		}
		for range 100 {
			use(t, box)
			<-time.After(100 * time.Millisecond)
		}
		<-time.After(life / 10)
		if got := l.take(); len(got) == 0 || len(got) > 2 {
			t.Errorf("after many: %d renewals", len(got))
		}
		l.set(func() { l.slow = 4 * life })
		if _, err := box.ReadFile(t.Context(), "/f"); err != nil {
			t.Errorf("an operation longer than the life: %v", err)
		}
		if got := l.take(); len(got) < 10 {
			t.Errorf("while it ran: %d renewals", len(got))
		}
		l.set(func() { l.running = 1 })
		<-time.After(3 * life)
		use(t, box)     // it lives
		synctest.Wait() // no renewal is on its way
		l.set(func() { l.running, l.expires = 0, time.Now().Add(8*time.Hour) })
		l.take()
		use(t, box)
		<-time.After(life)
		if got := l.take(); len(got) != 0 {
			t.Errorf("a longer life was made shorter: %v", got)
		}
		err := box.Close(t.Context())
		if _, deleted := l.end(); err != nil || !deleted || len(l.take()) != 0 {
			t.Errorf("closed: %v, deleted %v", err, deleted)
		}
	})
}

// What becomes of a sandbox after Close.
func TestCleanup(t *testing.T) {
	for name, tt := range map[string]struct {
		opts    glassbox.Options
		timeout any
		after   time.Duration // life after Close; 0: for ever
		deleted bool
	}{
		"on close":          {glassbox.Options{}, nil, 0, true},
		"never":             {glassbox.Options{Cleanup: glassbox.Never}, nil, 0, false},
		"never, with a TTL": {glassbox.Options{Cleanup: glassbox.Never, TTL: time.Hour}, 3600.0, time.Hour, false},
		"later":             {glassbox.Options{Cleanup: glassbox.AfterTTL, CleanupTTL: 5 * time.Minute}, 300.0, 5 * time.Minute, false},
		"a little later":    {glassbox.Options{Cleanup: glassbox.AfterTTL, CleanupTTL: 10 * time.Second}, 60.0, 10 * time.Second, false},
		"later, with a TTL": {glassbox.Options{Cleanup: glassbox.AfterTTL, CleanupTTL: 5 * time.Minute, TTL: time.Hour}, 3600.0, 5 * time.Minute, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &lifeService{}
				box := l.open(t, tt.opts)
				if l.timeout != tt.timeout {
					t.Errorf("asked for %v seconds, want %v", l.timeout, tt.timeout)
				}
				<-time.After(50 * time.Minute)
				use(t, box) // nobody has ended it meanwhile
				if tt.timeout == nil && len(l.take()) != 0 {
					t.Error("renewed, though nobody asked for a life")
				}
				if err := box.Close(t.Context()); err != nil {
					t.Error(err)
				}
				var left time.Duration
				expires, deleted := l.end()
				if !expires.IsZero() {
					left = time.Until(expires)
				}
				if deleted != tt.deleted || left != tt.after {
					t.Errorf("deleted: %v, left %v, want %v, %v", deleted, left, tt.deleted, tt.after)
				}
				<-time.After(2 * time.Hour)
				if expires, _ = l.end(); !expires.IsZero() && time.Now().Before(expires) {
					t.Error("renewed after Close")
				}
			})
		})
	}
}

// A connection never makes a life shorter.
func TestConnectKeepsLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, expires := range []time.Time{{}, time.Now().Add(24 * time.Hour)} {
			l := &lifeService{expires: expires}
			box, err := glassbox.Connect(t.Context(), "service.example", fakeID, &glassbox.Options{TTL: time.Minute, Transport: l, StateDir: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			use(t, box)
			<-time.After(10 * time.Minute)
			err = box.Close(t.Context())
			if is, deleted := l.end(); err != nil || deleted || !is.Equal(expires) {
				t.Errorf("%v: it expires at %v, deleted %v, %v", expires, is, deleted, err)
			}
		}
	})
}
