package opensandbox

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/sandbox"
)

// answer is a sandbox as the service tells it.
type answer struct {
	ID    string `json:"id"`
	Image struct {
		URI string `json:"uri"`
	} `json:"image"`
	Snapshot string `json:"snapshotId"`
	Status   struct {
		State   sandbox.State `json:"state"`
		Reason  string        `json:"reason"`
		Message string        `json:"message"`
		Changed time.Time     `json:"lastTransitionAt"`
	} `json:"status"`
	Metadata   map[string]string `json:"metadata"`
	Extensions map[string]string `json:"extensions"`
	ExpiresAt  *time.Time        `json:"expiresAt"`
	CreatedAt  time.Time         `json:"createdAt"`
}

func (a *answer) info() *sandbox.Info {
	metadata, name := wire.TakeName(a.Metadata)
	info := &sandbox.Info{
		ID: a.ID, InstanceID: metadata[wire.MetaInstance], Name: cmp.Or(a.Extensions[wire.ExtName], name, metadata[wire.MetaName]),
		State: a.Status.State, Reason: a.Status.Reason, Message: a.Status.Message,
		Image: a.Image.URI, Snapshot: a.Snapshot, Metadata: metadata, CreatedAt: a.CreatedAt, ChangedAt: a.Status.Changed,
	}
	if a.ExpiresAt != nil {
		info.ExpiresAt = *a.ExpiresAt
	}
	_ = json.Unmarshal([]byte(a.Extensions[wire.ExtWarnings]), &info.Warnings) // other services tell none
	return info
}

// Create implements sandbox.Provider.
func (p *Provider) Create(ctx context.Context, spec *sandbox.Spec) (*sandbox.Info, error) {
	if err := ValidateSpec(spec); err != nil {
		return nil, err
	}
	body := map[string]any{
		"entrypoint": spec.Entrypoint, "resourceLimits": map[string]string{}, "metadata": metadata(spec), "extensions": extensions(spec),
	}
	if spec.Snapshot == "" {
		image := map[string]any{"uri": spec.Image}
		if auth := spec.ImageAuth; auth != nil {
			image["auth"] = map[string]string{"username": auth.Username, "password": auth.Password}
		}
		body["image"] = image
	} else {
		body["snapshotId"] = spec.Snapshot
	}
	if len(spec.Entrypoint) == 0 {
		body["entrypoint"] = []string{"tail", "-f", "/dev/null"}
	}
	if spec.Limits != nil {
		body["resourceLimits"] = spec.Limits
	}
	if spec.Env != nil {
		body["env"] = spec.Env
	}
	if spec.Timeout > 0 {
		body["timeout"] = int64((spec.Timeout + time.Second - 1) / time.Second)
	}
	c := &call{
		op: "create sandbox", method: http.MethodPost, path: "/sandboxes", body: body, makes: true,
		secrets: slices.Collect(maps.Values(spec.Env)),
	}
	var a answer
	if err := p.do(ctx, c, &a); err != nil {
		return nil, err
	}
	if validID(a.ID) != nil {
		return nil, p.fault(c, &sandbox.Error{Code: sandbox.CodeProvider, Message: "the service answered without an id of the sandbox"})
	}
	info := a.info()
	// The answer to this one request leaves out what it was made from.
	info.Image, info.Snapshot = cmp.Or(info.Image, spec.Image), spec.Snapshot
	return info, nil
}

// metadata is what a service keeps of a sandbox: others read the name where a
// label can hold it. Snapshots of some services bring the metadata of the sandbox
// that they were taken of, whose name must not hold.
func metadata(spec *sandbox.Spec) map[string]string {
	labels := maps.Clone(spec.Metadata)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[wire.MetaInstance] = cmp.Or(labels[wire.MetaInstance], id.New())
	if spec.Name == "" {
		return labels
	}
	readable := isLabel(spec.Name)
	if readable {
		labels[wire.MetaName] = spec.Name
	} else if spec.Snapshot != "" {
		labels[wire.MetaName] = ""
	}
	if spec.Snapshot != "" || !readable {
		maps.Copy(labels, wire.NameLabels(spec.Name))
	}
	return labels
}

func extensions(spec *sandbox.Spec) map[string]string {
	ext := map[string]string{}
	for name, value := range map[string]string{
		wire.ExtName: spec.Name, wire.ExtWorkdir: spec.Workdir, wire.ExtNetwork: spec.Network, wire.ExtHistory: spec.History,
		wire.ExtHistoryConfig: string(spec.HistoryConfig),
	} {
		if value != "" {
			ext[name] = value
		}
	}
	if spec.Concurrency != nil {
		text, err := json.Marshal(spec.Concurrency)
		if err != nil {
			panic(err) // plain values only
		}
		ext[wire.ExtConcurrency] = string(text)
	}
	if spec.Image == "here" {
		ext[wire.ExtHere] = "true"
	}
	if spec.NoFileChanges {
		ext[wire.ExtFileChanges] = "off"
	}
	return ext
}

// Get implements sandbox.Provider.
func (p *Provider) Get(ctx context.Context, id string) (*sandbox.Info, error) {
	if err := validID(id); err != nil {
		return nil, err
	}
	var a answer
	err := p.do(ctx, &call{op: "get sandbox", method: http.MethodGet, path: "/sandboxes/" + id, sandbox: id, repeat: true}, &a)
	if err != nil {
		return nil, err
	}
	return a.info(), nil
}

// validID keeps what is no id out of the path of a request.
func validID(s string) error {
	if s == "" || len(s) > 128 || strings.IndexFunc(s, func(r rune) bool {
		return r > 127 || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-", r)
	}) >= 0 {
		return sandbox.Invalid("sandbox", "must be the id of a sandbox: letters, digits and dashes")
	}
	return nil
}

// List implements sandbox.Provider: newest first, every page.
func (p *Provider) List(ctx context.Context) ([]*sandbox.Info, error) {
	answers, err := pages(ctx, p, &call{op: "list sandboxes", method: http.MethodGet, path: "/sandboxes", query: url.Values{}, repeat: true},
		func(a *answer) string { return a.ID })
	if err != nil {
		return nil, err
	}
	list := make([]*sandbox.Info, len(answers))
	for i, a := range answers {
		list[i] = a.info()
	}
	return list, nil
}

// Delete implements sandbox.Provider.
func (p *Provider) Delete(ctx context.Context, id string) error {
	if err := validID(id); err != nil {
		return err
	}
	return p.do(ctx, &call{op: "delete sandbox", method: http.MethodDelete, path: "/sandboxes/" + id, sandbox: id, repeat: true}, nil)
}

// Version asks what the service is; empty: it does not say, as the older ones.
func (p *Provider) Version(ctx context.Context) (string, error) {
	var a struct {
		Version string `json:"version"`
	}
	err := p.do(ctx, &call{op: "get version", method: http.MethodGet, path: "/version", repeat: true}, &a)
	if e, ok := errors.AsType[*sandbox.Error](err); ok && (e.Code == sandbox.CodeProvider || e.Code == sandbox.CodeSandboxNotFound) && !e.Retryable {
		return "", nil
	}
	return a.Version, err
}

// Endpoint asks where a port of a sandbox can be reached. The answer is input:
// it is taken only if it leads to the service's own host or an allowed one.
func (p *Provider) Endpoint(ctx context.Context, id string, port int) (*Endpoint, error) {
	if err := validID(id); err != nil {
		return nil, err
	}
	c := &call{
		op: "get endpoint", method: http.MethodGet, path: "/sandboxes/" + id + "/endpoints/" + strconv.Itoa(port), sandbox: id, repeat: true,
		query: url.Values{"use_server_proxy": {strconv.FormatBool(!p.opts.Direct)}},
	}
	var a struct {
		Endpoint string            `json:"endpoint"`
		Headers  map[string]string `json:"headers"`
	}
	if err := p.do(ctx, c, &a); err != nil {
		return nil, err
	}
	u, err := url.Parse(p.base.Scheme + "://" + a.Endpoint)
	if err != nil || u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || u.Hostname() == "" {
		return nil, p.fault(c, &sandbox.Error{Code: sandbox.CodeProvider, Message: "the service answered with an endpoint that is none"})
	}
	if !p.allowed(u) {
		return nil, p.fault(c, &sandbox.Error{
			Code: sandbox.CodeProvider, Message: "the service answered with an endpoint at " + u.Host + ", which is not its own host; allow it by an option if it is right",
		})
	}
	e := &Endpoint{Sandbox: id, URL: strings.TrimSuffix(u.String(), "/"), Header: http.Header{}}
	for name, value := range a.Headers {
		e.Header.Set(name, value)
	}
	return e, nil
}

func (p *Provider) allowed(u *url.URL) bool {
	host := u.Hostname()
	return strings.EqualFold(host, p.base.Hostname()) || slices.Contains(p.opts.Hosts, host) ||
		loopback(host) && loopback(p.base.Hostname())
}

func loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback()
}

// Loopback reports whether the service is on this machine, and its port.
func Loopback(address string) (port string, ok bool) {
	u, err := ParseURL(address)
	if err != nil || !loopback(u.Hostname()) {
		return "", false
	}
	if port = u.Port(); port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return port, true
}

// Open implements sandbox.Provider.
func (p *Provider) Open(ctx context.Context, id string) (sandbox.Session, error) {
	if p.opts.Opener == nil {
		return nil, &sandbox.Error{Op: "open sandbox", Code: sandbox.CodeUnsupported, Sandbox: id}
	}
	endpoint, err := p.Endpoint(ctx, id, wire.ExecdPort)
	if err != nil {
		return nil, err
	}
	return p.opts.Opener(ctx, endpoint)
}
