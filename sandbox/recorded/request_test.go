package recorded_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/sandbox"
	"github.com/glassboxhq/glassbox/sandbox/recorded"
)

// each is one of every kind of request.
var each = map[string]func(context.Context, *recorded.Session) error{
	"run": func(ctx context.Context, s *recorded.Session) error {
		_, err := s.Run(ctx, &sandbox.Command{Line: "x"})
		return err
	},
	"attach": func(ctx context.Context, s *recorded.Session) error {
		_, err := s.Attach(ctx, "0199f0a0-0000-7000-8000-000000000000", sandbox.Offsets{})
		return err
	},
	"stop": func(ctx context.Context, s *recorded.Session) error {
		c, err := s.Control(ctx, "0199f0a0-0000-7000-8000-000000000000")
		if err != nil {
			return err
		}
		return c.Stop(ctx)
	},
	"input": func(ctx context.Context, s *recorded.Session) error {
		c, err := s.Control(ctx, "0199f0a0-0000-7000-8000-000000000000")
		if err != nil {
			return err
		}
		_, err = io.WriteString(c.Stdin(), "x")
		return err
	},
	"read": func(ctx context.Context, s *recorded.Session) error {
		_, err := s.Read(ctx, "x", nil)
		return err
	},
	"write": func(ctx context.Context, s *recorded.Session) error {
		_, err := s.Write(ctx, "x", strings.NewReader("y"), nil)
		return err
	},
	"list":   func(ctx context.Context, s *recorded.Session) error { _, err := s.List(ctx, "x"); return err },
	"remove": func(ctx context.Context, s *recorded.Session) error { return s.Remove(ctx, "x", nil) },
	"info":   func(ctx context.Context, s *recorded.Session) error { _, err := s.Info(ctx); return err },
	"ping":   func(ctx context.Context, s *recorded.Session) error { _, err := s.Ping(ctx); return err },
	"operations": func(ctx context.Context, s *recorded.Session) error {
		_, err := s.History().List(ctx, nil)
		return err
	},
	"output": func(ctx context.Context, s *recorded.Session) error {
		_, err := s.History().Output(ctx, "x", sandbox.Stdout, 0, 0)
		return err
	},
	"changes": func(ctx context.Context, s *recorded.Session) error {
		_, err := s.History().Changes(ctx, &history.ChangeQuery{})
		return err
	},
	"prune": func(ctx context.Context, s *recorded.Session) error {
		_, err := s.History().Prune(ctx)
		return err
	},
}

// The token goes to the recorder and to nobody else, whatever client is given.
func TestFB081RedirectsAreNotFollowed(t *testing.T) {
	var visits atomic.Int64
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		visits.Add(1)
		if r.Header.Get(wire.HeaderToken) != "" {
			t.Errorf("%s %s brought the token", r.Method, r.URL)
		}
	}))
	defer elsewhere.Close()
	for _, status := range []int{301, 302, 303, 307, 308} {
		s := newStub(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere.URL+"/there", status) })
		for name, do := range each {
			for _, opts := range []*recorded.Options{nil, {Client: &http.Client{}}} {
				if err := do(t.Context(), s.session(t, opts)); err == nil {
					t.Errorf("%d, %s: got no error", status, name)
				}
			}
		}
	}
	if n := visits.Load(); n != 0 {
		t.Errorf("%d requests were led elsewhere", n)
	}
}

// No error tells the token, or what stands in the URL.
func TestErrorsTellNoSecrets(t *testing.T) {
	const password = "pa55word"
	header := http.Header{"X-Door": {"door-secret"}}
	closed := httptest.NewServer(nil)
	closed.Close()
	page := newStub(t, func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "bad "+r.Header.Get(wire.HeaderToken)+" at "+r.URL.String(), http.StatusInternalServerError)
	})
	for name, url := range map[string]string{
		"nobody listens": strings.Replace(closed.URL, "http://", "http://user:"+password+"@", 1),
		"not a URL":      "http://user:" + password + "@%zz",
		"a page":         strings.Replace(page.URL, "http://", "http://user:"+password+"@", 1),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := recorded.New(url, &recorded.Options{Token: token, Header: header, ResumeFor: 10 * time.Millisecond})
			defer s.Close(t.Context())
			for call, do := range each {
				err := do(t.Context(), s)
				if err == nil {
					t.Errorf("%s: got no error", call)
					continue
				}
				for _, secret := range []string{token, password, "door-secret", "path=", "user:"} {
					if strings.Contains(err.Error(), secret) {
						t.Errorf("%s: %q tells %q", call, err, secret)
					}
				}
				if _, ok := errors.AsType[*sandbox.Error](err); !ok {
					t.Errorf("%s: %T is not the one type of error", call, err)
				}
			}
		})
	}
}

// A gateway that is away for a moment: what may be repeated is, a command under
// the same id.
func TestRetries(t *testing.T) {
	const page = "<html><body><h1>502 Bad Gateway</h1></body></html>"
	for name, tt := range map[string]struct {
		request string
		again   bool
	}{
		"run": {"POST " + wire.PathCommands, true}, "attach": {"GET ", true}, "stop": {"DELETE ", true}, "input": {"POST ", true},
		"read": {"GET " + wire.PathFile, true}, "write": {"PUT " + wire.PathFile, true}, "list": {"GET " + wire.PathList, true},
		"remove": {"DELETE " + wire.PathFile, true}, "info": {"GET " + wire.PathInfo, true}, "operations": {"GET " + wire.PathOps, true},
		"output": {"GET ", true}, "changes": {"GET " + wire.PathChanges, true}, "prune": {"POST " + wire.PathPrune, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var failures atomic.Int64
			failures.Store(2)
			s := newStub(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				if failures.Add(-1) >= 0 {
					w.Header().Set("Content-Type", "text/html")
					w.WriteHeader(http.StatusBadGateway)
					_, _ = io.WriteString(w, page)
					return
				}
				switch name {
				case "run", "attach":
					send(w, startFrame(), exitFrame(0))
				case "list":
					_, _ = io.WriteString(w, "[]")
				default:
					_, _ = io.WriteString(w, "{}")
				}
			})
			err := each[name](t.Context(), s.session(t, nil))
			n := s.count(tt.request)
			switch {
			case tt.again && (err != nil || n != 3):
				t.Errorf("got %v after %d requests, want success at the third", err, n)
			case !tt.again && (err == nil || n != 1):
				t.Errorf("got %v after %d requests, want an error at the first", err, n)
			}
			if err != nil && strings.Contains(err.Error(), "<") {
				t.Errorf("%q holds the page", err)
			}
			if ids := s.operations(); len(ids) > 1 {
				t.Errorf("got the ids %v, want one operation", ids)
			}
		})
	}
}

// A command whose request may have arrived is never taken for one that did
// not: the same call again would be a second command.
func TestLostStart(t *testing.T) {
	s := newStub(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		reset(hijack(t, w))
	})
	_, err := s.session(t, nil).Run(t.Context(), &sandbox.Command{Line: "x"})
	e, ok := errors.AsType[*sandbox.Error](err)
	if ids := s.operations(); !ok || !errors.Is(err, sandbox.ErrInterrupted) || e.Retryable || len(ids) != 1 || !strings.Contains(err.Error(), ids[0]) {
		t.Errorf("got %v, want that the outcome of %v is not known", err, ids)
	}
	closed := httptest.NewServer(nil)
	closed.Close()
	_, err = recorded.New(closed.URL, nil).Run(t.Context(), &sandbox.Command{Line: "x"})
	if e, ok := errors.AsType[*sandbox.Error](err); !ok || !errors.Is(err, sandbox.ErrUnavailable) || !e.Retryable {
		t.Errorf("nobody listens: got %v, want that it may be tried again", err)
	}
}

// A download that ends early is no whole file, even where a proxy on the way
// ends the answer properly.
func TestFB005CutRead(t *testing.T) {
	for name, tt := range map[string]struct {
		info string
		opts *sandbox.ReadOptions
		body string
		want string
		cut  bool
	}{
		"whole":             {`{"path":"/f","size":6}`, nil, "abcdef", "abcdef", false},
		"cut":               {`{"path":"/f","size":6}`, nil, "abc", "abc", true},
		"empty":             {`{"path":"/f","size":0}`, nil, "", "", false},
		"grown":             {`{"path":"/f","size":2}`, nil, "abc", "abc", false},
		"range":             {`{"path":"/f","size":6}`, &sandbox.ReadOptions{Offset: 1, Length: 2}, "bc", "bc", false},
		"cut range":         {`{"path":"/f","size":6}`, &sandbox.ReadOptions{Offset: 1, Length: 3}, "bc", "bc", true},
		"range beyond":      {`{"path":"/f","size":6}`, &sandbox.ReadOptions{Offset: 9}, "", "", false},
		"range to the end":  {`{"path":"/f","size":6}`, &sandbox.ReadOptions{Offset: 4, Length: 100}, "ef", "ef", false},
		"of a kernel's own": {`{"path":"/proc/version","size":0}`, nil, "Linux", "Linux", false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStub(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set(wire.HeaderFile, tt.info)
				send(w, []byte(tt.body))
			})
			f, err := s.session(t, nil).Read(t.Context(), "f", tt.opts)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			got, err := io.ReadAll(f)
			if string(got) != tt.want || errors.Is(err, sandbox.ErrInterrupted) != tt.cut || !tt.cut && err != nil {
				t.Errorf("got %q, %v, want %q, cut %v", got, err, tt.want, tt.cut)
			}
		})
	}
	t.Run("broken off", func(t *testing.T) {
		s := newStub(t, func(w http.ResponseWriter, _ *http.Request) {
			send(w, []byte("abc"))
			panic(http.ErrAbortHandler)
		})
		f, err := s.session(t, nil).Read(t.Context(), "f", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if got, err := io.ReadAll(f); string(got) != "abc" || !errors.Is(err, sandbox.ErrInterrupted) {
			t.Errorf("got %q, %v, want it interrupted", got, err)
		}
	})
}

// An answer without an end does not fill the memory: what answers in a sandbox
// may have been put there by the agent.
func TestEndlessAnswer(t *testing.T) {
	if testing.Short() {
		t.Skip("reads tens of megabytes")
	}
	s := newStub(t, func(w http.ResponseWriter, _ *http.Request) {
		junk := []byte(strings.Repeat(" ", 1<<20))
		for {
			if _, err := w.Write(junk); err != nil {
				return
			}
		}
	})
	session := s.session(t, &recorded.Options{RequestTimeout: time.Minute})
	for _, name := range []string{"info", "output"} {
		if err := each[name](t.Context(), session); !errors.Is(err, sandbox.ErrTooLarge) {
			t.Errorf("%s: got %v, want that it is too large", name, err)
		}
	}
}

// The table in docs/recorder.md is the one in the code.
func TestDocumentedStatuses(t *testing.T) {
	text, err := os.ReadFile("../../docs/recorder.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`(?m)^\| ([1-5][0-9][0-9]) \| (.*) \|$`).FindAllStringSubmatch(string(text), -1)
	n := 0
	for _, row := range rows {
		for _, code := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(row[2], -1) {
			n++
			if got := strconv.Itoa(wire.StatusOf(sandbox.Code(code[1]))); got != row[1] {
				t.Errorf("%s: the docs say %s, the code %s", code[1], row[1], got)
			}
		}
	}
	if n < 30 {
		t.Errorf("found %d codes in the docs, want all", n)
	}
}

// What the recorder says of its history is an answer, also where it may be
// asked again: nothing was started.
func TestHistoryRefuses(t *testing.T) {
	t.Parallel()
	for _, code := range []sandbox.Code{sandbox.CodeHistoryExhausted, sandbox.CodeHistoryLocked} {
		s := newStub(t, func(w http.ResponseWriter, _ *http.Request) {
			wire.WriteError(w, &sandbox.Error{Op: "begin operation", Code: code, Retryable: true, Message: "the history is full"})
		})
		_, err := s.session(t, nil).Run(t.Context(), &sandbox.Command{Line: "true"})
		if sandbox.CodeOf(err) != code {
			t.Errorf("got %v, want %s", err, code)
		}
	}
}
