package lifecycle

import (
	"encoding/json"
	"net/http"
	"runtime"
	"strings"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/sandbox"
)

// description is a sandbox as the API shows it.
type description struct {
	ID         string            `json:"id"`
	Image      *imageRef         `json:"image,omitempty"`
	SnapshotID string            `json:"snapshotId,omitempty"`
	Status     status            `json:"status"`
	Metadata   map[string]string `json:"metadata,omitempty"`
	Extensions map[string]string `json:"extensions,omitempty"`
	Entrypoint []string          `json:"entrypoint,omitempty"`
	ExpiresAt  string            `json:"expiresAt,omitempty"`
	CreatedAt  string            `json:"createdAt"`
}

type imageRef struct {
	URI string `json:"uri"`
}

type status struct {
	State   sandbox.State `json:"state"`
	Reason  string        `json:"reason,omitempty"`
	Message string        `json:"message,omitempty"`
	Changed string        `json:"lastTransitionAt,omitempty"`
}

func (a *api) describe(r *http.Request, info *sandbox.Info) *description {
	d := &description{
		ID: info.ID, Image: &imageRef{info.Image}, SnapshotID: info.Snapshot, Metadata: info.Metadata,
		Status:    status{State: info.State, Reason: info.Reason, Message: info.Message},
		CreatedAt: timestamp(info.CreatedAt), Extensions: map[string]string{},
	}
	if !info.ChangedAt.IsZero() {
		d.Status.Changed = timestamp(info.ChangedAt)
	}
	if !info.ExpiresAt.IsZero() {
		d.ExpiresAt = timestamp(info.ExpiresAt)
	}
	if info.Name != "" {
		d.Extensions[wire.ExtName] = info.Name
	}
	if len(info.Warnings) > 0 {
		text, err := json.Marshal(info.Warnings)
		if err != nil {
			panic(err) // plain values only
		}
		d.Extensions[wire.ExtWarnings] = string(text)
	}
	if spec, err := a.rt.Spec(r.Context(), info.ID); err == nil { // it may just have been deleted
		d.Entrypoint = spec.Entrypoint
		d.Extensions[wire.ExtWorkdir], d.Extensions[wire.ExtNetwork] = spec.Workdir, spec.Network
	}
	return d
}

// timestamp writes a time as the original does: UTC, at most microseconds.
func timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.999999Z") }

// wantedImage is an image as a request names it.
type wantedImage struct {
	URI  string `json:"uri"`
	Auth *struct {
		Username string `json:"username"`
		Password string `json:"password"`
	} `json:"auth"`
}

// createRequest holds the fields that we know. What of them cannot be done
// here is refused, never dropped in silence.
type createRequest struct {
	Image          *wantedImage       `json:"image"`
	SnapshotID     string             `json:"snapshotId"`
	TemplateID     string             `json:"templateId"`
	Entrypoint     []string           `json:"entrypoint"`
	ResourceLimits map[string]string  `json:"resourceLimits"`
	Timeout        *int64             `json:"timeout"`
	Env            map[string]*string `json:"env"`
	Metadata       map[string]string  `json:"metadata"`
	Extensions     map[string]string  `json:"extensions"`
	NetworkPolicy  json.RawMessage    `json:"networkPolicy"`
	Volumes        []json.RawMessage  `json:"volumes"`
	SecureAccess   bool               `json:"secureAccess"`
	Lifecycle      json.RawMessage    `json:"lifecycle"`
	Platform       *struct {
		OS   string `json:"os"`
		Arch string `json:"arch"`
	} `json:"platform"`
}

func (a *api) create(w http.ResponseWriter, r *http.Request, _ *route) {
	req, ok := readCreate(w, r)
	if !ok {
		return
	}
	switch {
	case (req.SnapshotID == "") == (req.image() == ""):
		unprocessable(w, "give either an image, as {\"uri\": \"host\"}, or a snapshotId", "body", "image")
		return
	case req.Timeout != nil && *req.Timeout < 60:
		unprocessable(w, "must be at least 60 seconds, or absent for no limit", "body", "timeout")
		return
	}
	spec, err := req.spec()
	if err == nil && spec.Image == "here" && !a.opts.Trusted && !a.opts.Here {
		err = sandbox.Invalid("image", "here runs commands without isolation, which this server does not offer; start it with --here if this machine is itself the boundary")
	}
	if err != nil {
		fail(w, err, codeNotRunning)
		return
	}
	began := time.Now()
	info, err := a.rt.Create(r.Context(), spec)
	if err != nil {
		fail(w, err, codeNotRunning)
		return
	}
	a.record(r, &done{
		opType: history.SandboxCreate, sandbox: info.ID, began: began, request: requestOf(spec),
		result: map[string]any{"sandbox_id": info.ID, "image": info.Image, "warnings": append([]string{}, info.Warnings...)},
	}, nil)
	answer := a.describe(r, info)
	answer.Image, answer.SnapshotID = nil, "" // as the original's answer to this request
	writeJSON(w, http.StatusAccepted, answer)
}

// requestOf is what a history keeps of a creation, without the values of
// variables.
func requestOf(spec *sandbox.Spec) map[string]any {
	text, err := json.Marshal(spec) // leaves them out
	if err != nil {
		panic(err) // plain values only
	}
	request := map[string]any{}
	if err := json.Unmarshal(text, &request); err != nil {
		panic(err) // it was JSON a moment ago
	}
	names := map[string]string{}
	for name := range spec.Env {
		names[name] = "***"
	}
	if len(names) > 0 {
		request["env"] = names
	}
	if delete(request, "timeout"); spec.Timeout > 0 {
		request["timeout_seconds"] = spec.Timeout.Seconds()
	}
	return request
}

// readCreate reads the body; field names in snake case count, too.
func readCreate(w http.ResponseWriter, r *http.Request) (*createRequest, bool) {
	var fields map[string]json.RawMessage
	if !readBody(w, r, &fields) {
		return nil, false
	}
	for name, value := range fields {
		if strings.Contains(name, "_") {
			delete(fields, name)
			fields[camel(name)] = value
		}
	}
	text, err := json.Marshal(fields)
	if err != nil {
		panic(err) // it was JSON a moment ago
	}
	var req createRequest
	if err := json.Unmarshal(text, &req); err != nil {
		place := "body"
		if e, ok := err.(*json.UnmarshalTypeError); ok { //nolint:errorlint // Unmarshal does not wrap it
			place = e.Field
		}
		unprocessable(w, "is not of the type that this field has", "body", place)
		return nil, false
	}
	return &req, true
}

func camel(name string) string {
	words := strings.Split(name, "_")
	for i := 1; i < len(words); i++ {
		if words[i] != "" {
			words[i] = strings.ToUpper(words[i][:1]) + words[i][1:]
		}
	}
	return strings.Join(words, "")
}

func (req *createRequest) image() string {
	if req.Image == nil {
		return ""
	}
	return strings.TrimSpace(req.Image.URI)
}

func (req *createRequest) spec() (*sandbox.Spec, error) {
	metadata, _ := wire.TakeName(req.Metadata) // the extension has it
	spec := &sandbox.Spec{
		Image: req.image(), Snapshot: req.SnapshotID, Metadata: metadata, Entrypoint: req.Entrypoint,
		Limits: req.ResourceLimits, Env: map[string]string{},
		Name: req.Extensions[wire.ExtName], Workdir: req.Extensions[wire.ExtWorkdir], Network: req.Extensions[wire.ExtNetwork],
		History: req.Extensions[wire.ExtHistory],
	}
	if req.Image != nil && req.Image.Auth != nil {
		spec.ImageAuth = &sandbox.RegistryAuth{Username: req.Image.Auth.Username, Password: req.Image.Auth.Password}
	}
	switch choice := req.Extensions[wire.ExtFileChanges]; choice {
	case "", "on":
	case "off":
		spec.NoFileChanges = true
	default:
		return nil, sandbox.Invalid(wire.ExtFileChanges, "must be on or off")
	}
	if text := req.Extensions[wire.ExtHistoryConfig]; text != "" {
		spec.HistoryConfig = json.RawMessage(text)
	}
	if text := req.Extensions[wire.ExtConcurrency]; text != "" {
		spec.Concurrency = &sandbox.Concurrency{}
		if err := json.Unmarshal([]byte(text), spec.Concurrency); err != nil {
			return nil, sandbox.Invalid("concurrency", "must be JSON with whole numbers")
		}
	}
	for name, value := range req.Env {
		if value != nil {
			spec.Env[name] = *value
		}
	}
	if req.Timeout != nil {
		// Bounded here, so that the product cannot overflow.
		spec.Timeout = time.Duration(min(*req.Timeout, 1<<32)) * time.Second
	}
	if req.Extensions[wire.ExtHere] == "true" {
		spec.Image = "here"
	}
	return spec, req.unsupported(spec)
}

// unsupported tells what of a request the local runtime cannot do.
func (req *createRequest) unsupported(spec *sandbox.Spec) error {
	given := func(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }
	switch {
	case req.TemplateID != "":
		return sandbox.Invalid("templateId", "the local runtime has no templates")
	case given(req.NetworkPolicy):
		return sandbox.Invalid("networkPolicy", "the local runtime has none; use the extension "+wire.ExtNetwork+" with none or proxy")
	case len(req.Volumes) > 0:
		return sandbox.Invalid("volumes", "the local runtime has no volumes; upload files instead")
	case req.SecureAccess:
		return sandbox.Invalid("secureAccess", "every sandbox of the local runtime has tokens of its own; leave it out")
	case given(req.Lifecycle):
		return sandbox.Invalid("lifecycle", "the local runtime has no lifecycle hooks")
	case spec.Image == "here" && req.Extensions[wire.ExtHere] != "true":
		return sandbox.Invalid("image", "here runs commands without isolation; it needs the extension "+wire.ExtHere+" = true")
	}
	if p := req.Platform; p != nil && (p.OS != "" && !strings.EqualFold(p.OS, "linux") || p.Arch != "" && !strings.EqualFold(p.Arch, runtime.GOARCH)) {
		return sandbox.Invalid("platform", "this machine runs linux/"+runtime.GOARCH+" only")
	}
	return nil
}
