package lifecycle_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/internal/localruntime/lifecycle"
	"github.com/glassboxhq/glassbox/sandbox"
)

const key = "the-key"

// fake is a runtime without sandboxes behind it: its recorder and its ports
// are a server of the test.
type fake struct {
	server *httptest.Server

	mu        sync.Mutex
	infos     []*sandbox.Info
	snapshots []*sandbox.Snapshot
	specs     map[string]*sandbox.Spec
	dialed    int
	done      []*history.Operation
	claimed   map[string]bool // ids of those that their client claims to record
}

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 678900000, time.UTC)

func notThere(id string) error {
	return &sandbox.Error{Op: "find sandbox", Code: sandbox.CodeSandboxNotFound, Message: "there is no sandbox " + id}
}

func (f *fake) Create(_ context.Context, spec *sandbox.Spec) (*sandbox.Info, error) {
	if spec.Snapshot != "" {
		if s, err := f.GetSnapshot(context.Background(), spec.Snapshot); err != nil || s.State != sandbox.SnapshotReady {
			return nil, orElse(err, &sandbox.Error{Code: sandbox.CodeSnapshotState, Message: "it is not ready"})
		}
		spec.Image = "host"
	}
	if spec.Image != "host" && spec.Image != "here" {
		return nil, &sandbox.Error{Code: sandbox.CodeImageNotFound, Message: "there is no image " + spec.Image + "; use host"}
	}
	if spec.Metadata["bad"] != "" {
		return nil, sandbox.Invalid("metadata", "is bad")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	info := &sandbox.Info{
		ID: id.NewRandom(), Name: spec.Name, State: sandbox.Running, Image: spec.Image, Snapshot: spec.Snapshot, Metadata: spec.Metadata,
		CreatedAt: epoch.Add(time.Duration(len(f.infos)) * time.Second),
	}
	if spec.Timeout > 0 {
		info.ExpiresAt = info.CreatedAt.Add(spec.Timeout)
	}
	if spec.Limits["gpu"] != "" {
		info.Warnings = []string{"no gpu"}
	}
	f.infos = append([]*sandbox.Info{info}, f.infos...)
	f.specs[info.ID] = spec
	return info, nil
}

func orElse(err, other error) error {
	if err != nil {
		return err
	}
	return other
}

func (f *fake) Get(_ context.Context, id string) (*sandbox.Info, error) {
	return f.change(id, func(*sandbox.Info) error { return nil })
}

// change does something with a sandbox, and returns it as it is then.
func (f *fake) change(id string, do func(*sandbox.Info) error) (*sandbox.Info, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, info := range f.infos {
		if info.ID == id {
			err := do(info)
			copied := *info
			return &copied, err
		}
	}
	return nil, notThere(id)
}

func (f *fake) List(context.Context) ([]*sandbox.Info, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.infos), nil
}

func (f *fake) Delete(_ context.Context, id string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := len(f.infos)
	f.infos = slices.DeleteFunc(f.infos, func(info *sandbox.Info) bool { return info.ID == id })
	if len(f.infos) == n {
		return notThere(id)
	}
	return nil
}

func (f *fake) move(id string, from, to sandbox.State) (*sandbox.Info, error) {
	return f.change(id, func(info *sandbox.Info) error {
		if info.State != from {
			return &sandbox.Error{Code: sandbox.CodeSandboxState, Message: "it is " + string(info.State)}
		}
		info.State = to
		return nil
	})
}

func (f *fake) Pause(_ context.Context, id string) (*sandbox.Info, error) {
	return f.move(id, sandbox.Running, sandbox.Paused)
}

func (f *fake) Resume(_ context.Context, id string) (*sandbox.Info, error) {
	return f.move(id, sandbox.Paused, sandbox.Running)
}

func (f *fake) Renew(_ context.Context, id string, at time.Time) (*sandbox.Info, error) {
	return f.change(id, func(info *sandbox.Info) error {
		if at.Before(epoch) {
			return sandbox.Invalid("expires_at", "must be in the future")
		}
		info.ExpiresAt = at
		return nil
	})
}

func (f *fake) SetMetadata(ctx context.Context, id string, change map[string]*string) (*sandbox.Info, error) {
	info, err := f.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	if _, ok := change["bad"]; ok {
		return nil, sandbox.Invalid("metadata", "is bad")
	}
	for key, value := range change {
		delete(info.Metadata, key)
		if value != nil {
			info.Metadata[key] = *value
		}
	}
	return info, nil
}

func (f *fake) TakeSnapshot(_ context.Context, box, name string) (*sandbox.Snapshot, error) {
	if err := f.reach(box); err != nil {
		return nil, err
	}
	if name == "here" {
		return nil, &sandbox.Error{Code: sandbox.CodeUnsupported, Message: "nothing to keep"}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	s := &sandbox.Snapshot{
		ID: id.NewRandom(), Sandbox: box, Name: name, State: sandbox.SnapshotCreating, Reason: "ACCEPTED",
		CreatedAt: epoch, ChangedAt: epoch, Size: int64(len(f.snapshots)),
	}
	f.snapshots = append([]*sandbox.Snapshot{s}, f.snapshots...)
	return s, nil
}

func (f *fake) GetSnapshot(_ context.Context, id string) (*sandbox.Snapshot, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.snapshots {
		if s.ID == id {
			return s, nil
		}
	}
	return nil, &sandbox.Error{Code: sandbox.CodeSnapshotNotFound, Message: "there is no snapshot " + id}
}

func (f *fake) ListSnapshots(_ context.Context, box string) ([]*sandbox.Snapshot, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(f.snapshots), func(s *sandbox.Snapshot) bool { return box != "" && s.Sandbox != box }), nil
}

func (f *fake) DeleteSnapshot(ctx context.Context, id string) error {
	s, err := f.GetSnapshot(ctx, id)
	if err == nil && s.State == sandbox.SnapshotCreating {
		err = &sandbox.Error{Code: sandbox.CodeSnapshotState, Message: "it is being taken"}
	}
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.snapshots = slices.DeleteFunc(f.snapshots, func(s *sandbox.Snapshot) bool { return s.ID == id })
	return nil
}

func (f *fake) DeleteNoted(ctx context.Context, id string, note *lifecycle.Note) error {
	err := f.Delete(ctx, id)
	if err == nil {
		f.Record(ctx, id, note)
	}
	return err
}

func (f *fake) Record(_ context.Context, box string, note *lifecycle.Note) {
	f.mu.Lock()
	defer f.mu.Unlock()
	op := note.Op
	if note.Claimed {
		if f.claimed == nil {
			f.claimed = map[string]bool{}
		}
		f.claimed[op.ID] = true
	}
	if op.Status != sandbox.Succeeded {
		op.Type += " " + string(op.Status)
	}
	f.done = append(f.done, op)
	if op.Request == nil || op.Result == nil || op.CompletedAt.Before(op.StartedAt) || box == "" {
		f.done = append(f.done, nil)
	}
}

func (f *fake) Diagnose(ctx context.Context, id string) (*lifecycle.Diagnosis, error) {
	if _, err := f.Get(ctx, id); err != nil {
		return nil, err
	}
	return &lifecycle.Diagnosis{
		Facts:   [][2]string{{"id", id}, {"message", "two\nlines"}},
		Events:  []lifecycle.Event{{At: epoch, What: "CREATED"}, {At: epoch.Add(time.Second), What: "ENDED", Message: "killed\x1b[2J"}},
		Console: "one\ntwo\x1b[31m\nthree\n",
	}, nil
}

func (f *fake) Spec(ctx context.Context, id string) (*sandbox.Spec, error) {
	if _, err := f.Get(ctx, id); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.specs[id], nil
}

func (f *fake) Access(ctx context.Context, id string) (lifecycle.Access, error) {
	_, err := f.Get(ctx, id)
	return lifecycle.Access{Token: "token-" + id, ExecdToken: "execd-" + id}, err
}

func (f *fake) reach(id string) error {
	info, err := f.Get(context.Background(), id)
	if err == nil && info.State == sandbox.Paused {
		err = &sandbox.Error{Code: sandbox.CodeSandboxState, Message: "the sandbox is paused"}
	}
	return err
}

type roundTrip func(*http.Request) (*http.Response, error)

func (rt roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return rt(r) }

func (f *fake) Conn(id string) http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		if err := f.reach(id); err != nil {
			return nil, err
		}
		r.URL.Host = f.server.Listener.Addr().String()
		r.Header.Set("X-Via", "recorder")
		return http.DefaultTransport.RoundTrip(r)
	})
}

func (f *fake) DialPort(ctx context.Context, id string, port int) (net.Conn, error) {
	if err := f.reach(id); err != nil {
		return nil, err
	}
	if port != 8080 {
		return nil, &sandbox.Error{Code: sandbox.CodeUnavailable, Message: "nobody listens"}
	}
	f.mu.Lock()
	f.dialed++
	f.mu.Unlock()
	return new(net.Dialer).DialContext(ctx, "tcp", f.server.Listener.Addr().String())
}

// echo tells what arrived.
func echo(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/redirect" {
		http.Redirect(w, r, "/elsewhere?a=b", http.StatusFound)
		return
	}
	body, _ := io.ReadAll(r.Body)
	var names []string
	for name := range r.Header {
		names = append(names, name)
	}
	slices.Sort(names)
	fmt.Fprintf(w, "%s %s host=%s via=%s body=%s headers=%s", r.Method, r.RequestURI, r.Host, r.Header.Get("X-Via"), body, strings.Join(names, ","))
}

type service struct {
	t    *testing.T
	fake *fake
	url  string
}

func start(t *testing.T, opts *lifecycle.Options) *service {
	t.Helper()
	f := &fake{server: httptest.NewServer(http.HandlerFunc(echo)), specs: map[string]*sandbox.Spec{}}
	t.Cleanup(f.server.Close)
	if opts == nil {
		opts = &lifecycle.Options{APIKey: key, Version: "1.2.3"}
	}
	server := httptest.NewServer(lifecycle.New(f, opts))
	t.Cleanup(server.Close)
	return &service{t: t, fake: f, url: server.URL}
}

type answer struct {
	status int
	header http.Header
	text   string
}

// ask sends a request with the key; headers are "Name: value".
func (s *service) ask(method, path, body string, headers ...string) answer {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("OPEN-SANDBOX-API-KEY", key)
	for _, h := range headers {
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
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer{res.StatusCode, res.Header, string(text)}
}

func (a answer) field(t *testing.T, path ...string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(a.text), &v); err != nil {
		t.Fatalf("%v: %s", err, a.text)
	}
	for _, name := range path {
		m, _ := v.(map[string]any)
		v = m[name]
	}
	return v
}

func (s *service) create() string {
	s.t.Helper()
	a := s.ask("POST", "/v1/sandboxes", `{"image":{"uri":"host"},"entrypoint":["sleep","infinity"],"resourceLimits":{}}`)
	if a.status != 202 {
		s.t.Fatalf("%d %s", a.status, a.text)
	}
	return a.field(s.t, "id").(string)
}

func TestCreate(t *testing.T) {
	s := start(t, nil)
	a := s.ask("POST", "/v1/sandboxes", `{"image":{"uri":"host"},"entrypoint":["tail","-f","/dev/null"],"resourceLimits":{"memory":"512Mi","gpu":"1"},
		"timeout":600,"env":{"A":"1","B":null},"metadata":{"team":"x"},"extensions":{"glassbox.name":"研究员","glassbox.workdir":"/w","glassbox.network":"none"},"unknown":1}`)
	if a.status != 202 {
		t.Fatalf("%d %s", a.status, a.text)
	}
	id := a.field(t, "id").(string)
	want := map[string]any{
		"id": id, "status": map[string]any{"state": "Running"}, "metadata": map[string]any{"team": "x"},
		"entrypoint": []any{"tail", "-f", "/dev/null"}, "createdAt": "2026-01-02T03:04:05.6789Z", "expiresAt": "2026-01-02T03:14:05.6789Z",
		"extensions": map[string]any{
			"glassbox.name": "研究员", "glassbox.workdir": "/w", "glassbox.network": "none", "glassbox.warnings": `["no gpu"]`,
		},
	}
	if diff := cmp.Diff(a.field(t), any(want)); diff != "" {
		t.Errorf("answer: %s", diff)
	}
	spec := s.fake.specs[id]
	wantSpec := &sandbox.Spec{
		Image: "host", Name: "研究员", Env: map[string]string{"A": "1"}, Metadata: map[string]string{"team": "x"}, Timeout: 10 * time.Minute,
		Entrypoint: []string{"tail", "-f", "/dev/null"}, Limits: map[string]string{"memory": "512Mi", "gpu": "1"}, Network: "none", Workdir: "/w",
	}
	if diff := cmp.Diff(spec, wantSpec); diff != "" {
		t.Errorf("spec: %s", diff)
	}
	want["image"] = map[string]any{"uri": "host"}
	for _, path := range []string{"/v1/sandboxes/", "/sandboxes/"} {
		if a := s.ask("GET", path+id, ""); a.status != 200 || cmp.Diff(a.field(t), any(want)) != "" {
			t.Errorf("get %s: %d %s", path, a.status, cmp.Diff(a.field(t), any(want)))
		}
	}
	a = s.ask("POST", "/v1/sandboxes", `{"image":{"uri":"host","auth":{"username":"ann","password":"hunter2"}},"resourceLimits":{}}`)
	if spec := s.fake.specs[a.field(t, "id").(string)]; spec.ImageAuth == nil || *spec.ImageAuth != (sandbox.RegistryAuth{Username: "ann", Password: "hunter2"}) || strings.Contains(fmt.Sprintf("%v %+v %#v", spec.ImageAuth, *spec.ImageAuth, spec.ImageAuth)+a.text, "hunter2") {
		t.Errorf("credentials of the registry: %+v %s", spec, a.text)
	}
	const here = `{"image":{"uri":"host"},"resource_limits":{"cpu":"1"},"extensions":{"glassbox.here":"true"}}`
	if a := s.ask("POST", "/sandboxes", here); a.status != 400 || !strings.Contains(a.text, "--here") {
		t.Errorf("here without leave: %d %s", a.status, a.text)
	}
	s = start(t, &lifecycle.Options{APIKey: key, Here: true})
	a = s.ask("POST", "/sandboxes", here)
	if spec := s.fake.specs[a.field(t, "id").(string)]; a.status != 202 || spec.Image != "here" || spec.Limits["cpu"] != "1" {
		t.Errorf("in snake case: %d %s %+v", a.status, a.text, spec)
	}
}

func TestRefusedCreate(t *testing.T) {
	s := start(t, nil)
	for _, tt := range []struct {
		name, body, code string
		status           int
	}{
		{"no JSON", `{`, "", 422},
		{"no object", `[]`, "", 422},
		{"no image", `{}`, "", 422},
		{"blank image", `{"image":{"uri":" "}}`, "", 422},
		{"image of the wrong type", `{"image":"host"}`, "", 422},
		{"short timeout", `{"image":{"uri":"host"},"timeout":59}`, "", 422},
		{"timeout of the wrong type", `{"image":{"uri":"host"},"timeout":"1h"}`, "", 422},
		{"unknown image", `{"image":{"uri":"python:3.12"}}`, "DOCKER::SANDBOX_IMAGE_PULL_FAILED", 500},
		{"bad metadata", `{"image":{"uri":"host"},"metadata":{"bad":"x"}}`, "SANDBOX::INVALID_METADATA_LABEL", 400},
		{"volumes", `{"image":{"uri":"host"},"volumes":[{"name":"v"}]}`, "SANDBOX::INVALID_PARAMETER", 400},
		{"network policy", `{"image":{"uri":"host"},"networkPolicy":{}}`, "SANDBOX::INVALID_PARAMETER", 400},
		{"secure access", `{"image":{"uri":"host"},"secureAccess":true}`, "SANDBOX::INVALID_PARAMETER", 400},
		{"lifecycle", `{"image":{"uri":"host"},"lifecycle":{"preStart":{}}}`, "SANDBOX::INVALID_PARAMETER", 400},
		{"platform", `{"image":{"uri":"host"},"platform":{"os":"windows","arch":"amd64"}}`, "SANDBOX::INVALID_PARAMETER", 400},
		{"here by image", `{"image":{"uri":"here"}}`, "SANDBOX::INVALID_PARAMETER", 400},
		{"snapshot", `{"snapshotId":"x"}`, "SNAPSHOT::NOT_FOUND", 404},
		{"snapshot by a path", `{"snapshotId":"../x"}`, "SNAPSHOT::NOT_FOUND", 404},
		{"snapshot and image", `{"snapshotId":"x","image":{"uri":"host"}}`, "", 422},
		{"snapshot of the wrong type", `{"snapshotId":7}`, "", 422},
		{"too large", `{"image":{"uri":"` + strings.Repeat("x", 1<<20) + `"}}`, "SANDBOX::INVALID_PARAMETER", 413},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := s.ask("POST", "/v1/sandboxes", tt.body)
			if a.status != tt.status {
				t.Errorf("%d %s, want %d", a.status, a.text, tt.status)
			}
			if tt.code != "" && a.field(t, "code") != tt.code || tt.code == "" && a.field(t, "detail") == nil {
				t.Errorf("%s, want code %s", a.text, tt.code)
			}
		})
	}
	if len(s.fake.infos) > 0 {
		t.Errorf("%d sandboxes were made", len(s.fake.infos))
	}
}

func TestPauseRenewDelete(t *testing.T) {
	s := start(t, nil)
	id := s.create()
	for _, tt := range []struct {
		method, path, body, code string
		status                   int
	}{
		{"POST", "/resume", "", "DOCKER::SANDBOX_NOT_PAUSED", 409},
		{"POST", "/pause", "", "", 202},
		{"POST", "/pause", "", "DOCKER::SANDBOX_NOT_RUNNING", 409},
		{"POST", "/resume", "", "", 202},
		{"POST", "/renew-expiration", `{"expiresAt":"2027-01-02T03:04:05Z"}`, "", 200},
		{"POST", "/renew-expiration", `{"expires_at":"2027-01-02T03:04:05"}`, "", 200},
		{"POST", "/renew-expiration", `{"expiresAt":1830297600}`, "", 200},
		{"POST", "/renew-expiration", `{"expiresAt":"2020-01-02T03:04:05Z"}`, "DOCKER::INVALID_EXPIRATION", 400},
		{"POST", "/renew-expiration", `{"expiresAt":"soon"}`, "", 422},
		{"POST", "/renew-expiration", `{}`, "", 422},
		{"PUT", "/pause", "", "", 405},
		{"PATCH", "/networkpolicy", "{}", "SANDBOX::API_NOT_SUPPORTED", 501},
		{"GET", "/nothing", "", "", 404},
		{"DELETE", "", "", "", 204},
		{"DELETE", "", "", "DOCKER::SANDBOX_NOT_FOUND", 404},
		{"GET", "", "", "DOCKER::SANDBOX_NOT_FOUND", 404},
		{"POST", "/pause", "", "DOCKER::SANDBOX_NOT_FOUND", 404},
	} {
		a := s.ask(tt.method, "/v1/sandboxes/"+id+tt.path, tt.body)
		if a.status != tt.status || tt.code != "" && a.field(t, "code") != tt.code {
			t.Errorf("%s %s %s: %d %s, want %d %s", tt.method, tt.path, tt.body, a.status, a.text, tt.status, tt.code)
		}
		if (tt.status == 202 || tt.status == 204) && a.text != "" {
			t.Errorf("%s %s: body %q", tt.method, tt.path, a.text)
		}
	}
}

func TestList(t *testing.T) {
	s := start(t, nil)
	for i := range 5 {
		s.ask("POST", "/v1/sandboxes", fmt.Sprintf(`{"image":{"uri":"host"},"metadata":{"n":"%d","even":"%t"}}`, i, i%2 == 0))
	}
	s.ask("POST", "/v1/sandboxes/"+s.fake.infos[4].ID+"/pause", "")
	for _, tt := range []struct {
		query  string
		status int
		names  []any
		more   bool
	}{
		{"", 200, []any{"4", "3", "2", "1", "0"}, false},
		{"?page=2&pageSize=2", 200, []any{"2", "1"}, true},
		{"?page=3&pageSize=2", 200, []any{"0"}, false},
		{"?page=9&pageSize=200", 200, nil, false},
		{"?state=paused", 200, []any{"0"}, false},
		{"?state=Running&state=PAUSED", 200, []any{"4", "3", "2", "1", "0"}, false},
		{"?state=None", 200, nil, false},
		{"?metadata=even%3Dtrue%26n%3D2", 200, []any{"2"}, false},
		{"?metadata=even%3Dtrue%26n%3D1", 200, nil, false},
		{"?metadata=even", 400, nil, false},
		{"?page=0", 422, nil, false},
		{"?pageSize=201", 422, nil, false},
		{"?pageSize=x", 422, nil, false},
	} {
		a := s.ask("GET", "/v1/sandboxes"+tt.query, "")
		if a.status != tt.status {
			t.Errorf("%s: %d %s", tt.query, a.status, a.text)
		}
		if tt.status != 200 {
			continue
		}
		var names []any
		for _, item := range a.field(t, "items").([]any) {
			names = append(names, item.(map[string]any)["metadata"].(map[string]any)["n"])
		}
		if diff := cmp.Diff(names, tt.names); diff != "" || a.field(t, "pagination", "hasNextPage") != tt.more {
			t.Errorf("%s: %s %s", tt.query, diff, a.text)
		}
	}
	want := map[string]any{"page": 1.0, "pageSize": 2.0, "totalItems": 5.0, "totalPages": 3.0, "hasNextPage": true}
	if got := s.ask("GET", "/sandboxes?pageSize=2", "").field(t, "pagination"); cmp.Diff(got, any(want)) != "" {
		t.Errorf("pagination: %v", got)
	}
}

func TestDoors(t *testing.T) {
	s := start(t, nil)
	id := s.create()
	const noKey = "OPEN-SANDBOX-API-KEY: "
	for _, tt := range []struct {
		name, method, path string
		headers            []string
		status             int
		code               string
	}{
		{"no key", "GET", "/v1/sandboxes", []string{noKey}, 401, "MISSING_API_KEY"},
		{"wrong key", "GET", "/sandboxes", []string{"OPEN-SANDBOX-API-KEY: the-kez"}, 401, "INVALID_API_KEY"},
		{"unknown path without a key", "GET", "/secret", []string{noKey}, 401, "MISSING_API_KEY"},
		{"health needs none", "GET", "/health", []string{noKey}, 200, ""},
		{"healthz needs none", "GET", "/healthz", []string{noKey}, 200, ""},
		{"version needs none", "GET", "/v1/version", []string{noKey}, 200, ""},
		{"health is read only", "POST", "/health", nil, 405, ""},
		{"metrics", "POST", "/v1/metrics/events", nil, 204, ""},
		{"snapshots without a key", "GET", "/v1/snapshots", []string{noKey}, 401, "MISSING_API_KEY"},
		{"diagnostics without a key", "GET", "/v1/sandboxes/" + id + "/diagnostics/logs", []string{noKey}, 401, "MISSING_API_KEY"},
		{"pools", "GET", "/pools", nil, 501, "SANDBOX::API_NOT_SUPPORTED"},
		{"unknown path", "GET", "/v1/nothing", nil, 404, ""},
		{"no id", "GET", "/v1/sandboxes/", nil, 404, ""},
		{"state is not for strangers", "GET", "/glassbox/state", nil, 404, ""},
		{"nor is a lease", "GET", "/glassbox/lease", nil, 404, ""},
		{"foreign name", "GET", "/v1/sandboxes", []string{"Host: evil.example"}, 403, "GLASSBOX::HOST_NOT_ALLOWED"},
		{"foreign name for health", "GET", "/health", []string{"Host: evil.example:7717"}, 403, "GLASSBOX::HOST_NOT_ALLOWED"},
		{"like localhost", "GET", "/v1/sandboxes", []string{"Host: localhost.evil.example"}, 403, "GLASSBOX::HOST_NOT_ALLOWED"},
		{"foreign address", "GET", "/v1/sandboxes", []string{"Host: 192.168.1.9:7717"}, 403, "GLASSBOX::HOST_NOT_ALLOWED"},
		{"localhost", "GET", "/v1/sandboxes", []string{"Host: LOCALHOST:1"}, 200, ""},
		{"loopback of version 6", "GET", "/v1/sandboxes", []string{"Host: [::1]:7717"}, 200, ""},
		{"a page", "GET", "/v1/sandboxes", []string{"Origin: http://localhost:7717"}, 403, "GLASSBOX::ORIGIN_NOT_ALLOWED"},
		{"a page without an origin", "GET", "/health", []string{"Origin: null"}, 403, "GLASSBOX::ORIGIN_NOT_ALLOWED"},
		{"a page at a port", "GET", "/v1/sandboxes/" + id + "/proxy/8080/", []string{"Origin: http://x"}, 403, "GLASSBOX::ORIGIN_NOT_ALLOWED"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := s.ask(tt.method, tt.path, "", tt.headers...)
			if a.status != tt.status || tt.code != "" && a.field(t, "code") != tt.code {
				t.Errorf("%d %s, want %d %s", a.status, a.text, tt.status, tt.code)
			}
			if a.header.Get("X-Request-Id") == "" {
				t.Error("no request id")
			}
		})
	}
	if a := s.ask("GET", "/v1/nothing", "", "X-Request-ID: mine"); a.header.Get("X-Request-Id") != "mine" {
		t.Errorf("request id: %v", a.header)
	}
	if got := s.ask("GET", "/version", "").text; got != `{"version":"1.2.3"}` {
		t.Errorf("version: %s", got)
	}
	closed := start(t, &lifecycle.Options{})
	if a := closed.ask("GET", "/v1/sandboxes", "", "OPEN-SANDBOX-API-KEY: "); a.status != 401 {
		t.Errorf("a server without a key answers: %d", a.status)
	}
	named := start(t, &lifecycle.Options{APIKey: key, Hosts: []string{"Box.local", "[fd00::1]"}})
	for _, host := range []string{"box.local:80", "[fd00::1]:80"} {
		if a := named.ask("GET", "/v1/sandboxes", "", "Host: "+host); a.status != 200 {
			t.Errorf("%s: %d %s", host, a.status, a.text)
		}
	}
	trusted := start(t, &lifecycle.Options{Trusted: true, Own: http.HandlerFunc(echo)})
	for _, path := range []string{"/v1/sandboxes", "/glassbox/state"} {
		if a := trusted.ask("GET", path, "", noKey, "Host: anything"); a.status != 200 {
			t.Errorf("%s: %d %s", path, a.status, a.text)
		}
	}
}
