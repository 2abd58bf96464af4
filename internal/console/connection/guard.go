package connection

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/glassboxhq/glassbox/internal/localruntime/egress"
	"github.com/glassboxhq/glassbox/sandbox"
)

const (
	maxEndpoint = 512
	dialTimeout = 10 * time.Second
)

// validateEndpoint returns the address of a service in its usual form. Only
// what it says is looked at; names are looked at again when they are dialled.
func (f *Fleet) validateEndpoint(text string) (string, error) {
	if len(text) > maxEndpoint {
		return "", sandbox.Invalid("endpoint", "must be at most 512 bytes")
	}
	text = strings.TrimSpace(text)
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https": // its text may hold a password
		return "", sandbox.Invalid("endpoint", "must be the root of an OpenSandbox service: host:port, http://host:port or https://host:port")
	case u.User != nil:
		return "", sandbox.Invalid("endpoint", "must not hold credentials; give the key by itself")
	case strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return "", sandbox.Invalid("endpoint", "must be the root of the service, without a path such as /v1")
	}
	if addr, err := netip.ParseAddr(u.Hostname()); err == nil {
		if err := f.check(addr, true); err != nil {
			return "", err
		}
	}
	return u.Scheme + "://" + strings.ToLower(u.Host), nil
}

// check refuses the addresses at which nobody keeps a service that a console
// should speak to. The loopback is one only for who names it: a name that
// leads there may be somebody's trick.
func (f *Fleet) check(addr netip.Addr, named bool) error {
	reason := egress.CheckService(addr, f.opts.Allowed)
	if reason == "" && addr.Unmap().IsLoopback() && !named {
		reason = "the name leads to this machine itself; give localhost if that is meant"
	}
	if reason == "" {
		return nil
	}
	return &sandbox.Error{
		Op: "reach service", Code: CodeAddress,
		Message: addr.String() + " is refused: " + reason + "; an operator allows such a network with --allow-endpoint",
	}
}

// transport reaches a service: every address is checked when it is dialled,
// after the name was looked up.
func (f *Fleet) transport(endpoint string) *http.Transport {
	named := false
	if u, err := url.Parse(endpoint); err == nil {
		addr, err := netip.ParseAddr(u.Hostname())
		named = strings.EqualFold(u.Hostname(), "localhost") || err == nil && addr.IsLoopback()
	}
	dialer := &net.Dialer{
		Timeout: dialTimeout,
		ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
			at, err := netip.ParseAddrPort(address)
			if err != nil {
				return err
			}
			return f.check(at.Addr(), named)
		},
	}
	return &http.Transport{
		DialContext: dialer.DialContext, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 16, MaxConnsPerHost: 64,
		IdleConnTimeout: 10 * time.Second, TLSHandshakeTimeout: dialTimeout, MaxResponseHeaderBytes: 64 << 10,
	}
}
