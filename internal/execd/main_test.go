package execd_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/history/sqlite"
	"github.com/glassboxhq/glassbox/internal/execd"
	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/record"
	"github.com/glassboxhq/glassbox/sandbox/native"
)

const token = "an execd token for tests"

// setup is an execd over a recorded session on this machine.
type setup struct {
	*httptest.Server
	store *sqlite.Store
	dir   string // where commands run
	env   string // file of variables
	tmp   string
}

func newServer(t *testing.T) *setup {
	t.Helper()
	s := &setup{dir: t.TempDir(), tmp: t.TempDir()}
	s.env = filepath.Join(t.TempDir(), "env")
	inner, err := native.New(&native.Options{Workdir: s.dir, Env: map[string]string{"PATH": os.Getenv("PATH"), execd.EnvVariable: s.env}})
	if err != nil {
		t.Fatal(err)
	}
	if s.store, err = sqlite.Open(filepath.Join(t.TempDir(), "history.sqlite3"), nil); err != nil {
		t.Fatal(err)
	}
	session := record.New(inner, s.store, nil)
	s.Server = httptest.NewServer(execd.New(session, s.store, &execd.Options{Token: token, Workdir: s.dir, Home: s.dir, Dir: s.tmp, EnvFile: s.env, Whose: func(context.Context) (*execd.Identity, error) {
		return &execd.Identity{ProviderKey: "opensandbox-default", SandboxID: "s-1", InstanceID: "i-1"}, nil
	}}))
	t.Cleanup(func() {
		s.Close()
		if err := errors.Join(session.Close(context.Background()), s.store.Close()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// answer is a response that was read to its end.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// do sends a request with the token and these headers: name, value, ...
func (s *setup) do(t *testing.T, route string, body any, headers ...string) *answer {
	t.Helper()
	method, path, _ := strings.Cut(route, " ")
	var content io.Reader
	switch b := body.(type) {
	case nil:
	case io.Reader:
		content = b
	default:
		text, err := json.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		content = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, content)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set(wire.HeaderExecdToken, token)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	a := &answer{status: resp.StatusCode, header: resp.Header}
	if a.body, err = io.ReadAll(resp.Body); err != nil {
		t.Fatalf("%s: %v", route, err)
	}
	return a
}

// must is do where the answer has to be a 200.
func (s *setup) must(t *testing.T, route string, body any, headers ...string) *answer {
	t.Helper()
	a := s.do(t, route, body, headers...)
	if a.status != http.StatusOK {
		t.Fatalf("%s: got %d %s", route, a.status, a.body)
	}
	return a
}

func (a *answer) json(t *testing.T, to any) {
	t.Helper()
	if err := json.Unmarshal(a.body, to); err != nil {
		t.Fatalf("%v in %s", err, a.body)
	}
}

// event is what a client reads of one.
type event struct {
	Type      string `json:"type"`
	Text      string `json:"text"`
	Timestamp int64  `json:"timestamp"`
	Error     *struct {
		Name      string   `json:"ename"`
		Value     string   `json:"evalue"`
		Traceback []string `json:"traceback"`
	} `json:"error"`
}

// events reads a stream as the public SDKs do: JSON, and an empty line.
func (a *answer) events(t *testing.T) (list []event) {
	t.Helper()
	frames, ok := strings.CutSuffix(string(a.body), "\n\n")
	if !ok || a.header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("not a stream of events (%s): %q", a.header.Get("Content-Type"), a.body)
	}
	for frame := range strings.SplitSeq(frames, "\n\n") {
		var e event
		if err := json.Unmarshal([]byte(frame), &e); err != nil {
			t.Fatalf("%v in frame %q", err, frame)
		}
		if e.Timestamp == 0 {
			t.Errorf("event without a time: %s", frame)
		}
		if e.Type != "ping" {
			list = append(list, e)
		}
	}
	return list
}

// texts are the lines of a stream.
func texts(list []event, kind string) (lines []string) {
	for _, e := range list {
		if e.Type == kind {
			lines = append(lines, e.Text)
		}
	}
	return lines
}

// operations are all that the history holds.
func (s *setup) operations(t *testing.T) []*history.Operation {
	t.Helper()
	page, err := s.store.List(t.Context(), &history.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	return page.Operations
}
