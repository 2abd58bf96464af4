// Package opensandbox is a sandbox.Provider over the lifecycle API of an
// OpenSandbox service: a real one, or our own local runtime.
//
//	p, err := opensandbox.New("http://localhost:7717", &opensandbox.Options{Opener: open})
//	info, err := p.Create(ctx, &sandbox.Spec{Image: "host"})
//
// Creating is never repeated on its own: the service knows no idempotency
// key, and a lost answer may have left a sandbox.
package opensandbox

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/glassboxhq/glassbox/sandbox"
)

// Secret is a value that must not be printed.
type Secret string

// String hides the value.
func (Secret) String() string { return "***" }

// GoString hides the value.
func (Secret) GoString() string { return "***" }

// MarshalText hides the value.
func (Secret) MarshalText() ([]byte, error) { return []byte("***"), nil }

// Endpoint is where a port of a sandbox can be reached.
type Endpoint struct {
	Sandbox string
	URL     string      // with scheme, without a trailing slash
	Header  http.Header // for every request there; it may hold tokens
}

// Opener opens the data plane of a sandbox behind its execd endpoint.
type Opener func(ctx context.Context, endpoint *Endpoint) (sandbox.Session, error)

// Options set up a Provider.
type Options struct {
	// Key is sent to the service, and nowhere else. Empty: none.
	Key Secret
	// Opener is what Open uses. Nil: Open is not supported.
	Opener Opener
	// Transport carries the requests; nil: an ordinary one.
	Transport http.RoundTripper
	// Direct asks for endpoints that go around the service's proxy.
	Direct bool
	// RequestTimeout bounds one request to the service; 0: 30 s. Creating may
	// take longer, as an image may have to be fetched: it is bounded by ctx.
	RequestTimeout time.Duration
	// Hosts are names and addresses besides the service's own at which an
	// endpoint may be.
	Hosts []string
}

// Provider talks to one service.
type Provider struct {
	base   *url.URL
	opts   Options
	client *http.Client
	clock  clock
}

var _ sandbox.Provider = (*Provider)(nil)

// New returns a provider for the service at an address, as ParseURL takes it.
func New(address string, opts *Options) (*Provider, error) {
	base, err := ParseURL(address)
	if err != nil {
		return nil, err
	}
	p := &Provider{base: base}
	if opts != nil {
		p.opts = *opts
	}
	if p.opts.RequestTimeout == 0 {
		p.opts.RequestTimeout = 30 * time.Second
	}
	transport := p.opts.Transport
	if transport == nil {
		transport = &http.Transport{
			Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 64, IdleConnTimeout: 10 * time.Second,
		}
	}
	p.client = &http.Client{
		Transport: transport,
		// A redirect would carry the key, or our requests, to who knows whom.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return p, nil
}

// ParseURL reads the address of a service: host:port, or the root of an http
// or https URL. Credentials, a query and a path are refused.
func ParseURL(address string) (*url.URL, error) {
	text := strings.TrimSpace(address)
	if text == "" {
		return nil, sandbox.Invalid("url", "must not be empty; give the root of an OpenSandbox service, as in http://localhost:7717")
	}
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	switch {
	case err != nil: // its text may hold a password
		return nil, sandbox.Invalid("url", "is not a URL; give host:port, http://host:port or https://host:port")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, sandbox.Invalid("url", "must be http or https")
	case u.User != nil:
		return nil, sandbox.Invalid("url", "must not hold credentials; give an API key instead")
	case u.Hostname() == "":
		return nil, sandbox.Invalid("url", "must name a host")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, sandbox.Invalid("url", "must not have a query or a fragment")
	case strings.Trim(u.Path, "/") != "":
		return nil, sandbox.Invalid("url", "must be the root of the service, without a path such as /v1")
	}
	return &url.URL{Scheme: u.Scheme, Host: u.Host}, nil
}

// Client returns what the provider sends requests with, for those who go to
// an endpoint of the same service. The key is not in it.
func (p *Provider) Client() *http.Client { return p.client }

// Close implements sandbox.Provider.
func (p *Provider) Close() error {
	p.client.CloseIdleConnections()
	return nil
}
