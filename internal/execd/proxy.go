package execd

import (
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/sandbox"
)

const proxyPrefix = "/proxy/"

// newPorts passes requests on to ports of this machine's loopback, by one
// transport for all, so that connections end.
func newPorts() http.Handler {
	transport := &http.Transport{
		DialContext:         (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		DisableCompression:  true,
		MaxIdleConnsPerHost: 4,
		IdleConnTimeout:     5 * time.Second,
	}
	return &httputil.ReverseProxy{
		Transport:     transport,
		FlushInterval: -1, // what a program prints is wanted now
		Rewrite: func(p *httputil.ProxyRequest) {
			port, rest, _ := strings.Cut(strings.TrimPrefix(p.In.URL.EscapedPath(), proxyPrefix), "/")
			p.Out.URL = &url.URL{Scheme: "http", Host: net.JoinHostPort("127.0.0.1", port), RawQuery: p.In.URL.RawQuery, RawPath: "/" + rest}
			if plain, err := url.PathUnescape("/" + rest); err == nil {
				p.Out.URL.Path = plain
			}
			p.Out.Host = p.In.Host
			p.Out.Header.Del(wire.HeaderExecdToken) // what listens there may be anybody
			p.Out.Header.Del(wire.HeaderToken)
			p.SetXForwarded()
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
			answerStatus(w, http.StatusBadGateway, &fault{"RUNTIME_ERROR", "nothing in the sandbox listens at this port"})
		},
	}
}

func (h *Handler) proxy(w http.ResponseWriter, r *http.Request, rest string) {
	text, _, _ := strings.Cut(rest, "/")
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || port == 0 {
		tell(w, sandbox.Invalid("port", "must be a number from 1 to 65535"))
		return
	}
	if port == wire.ExecdPort { // this very wire
		inner := r.Clone(r.Context())
		inner.URL.Path = strings.TrimPrefix(r.URL.Path, proxyPrefix+text)
		inner.URL.RawPath = strings.TrimPrefix(r.URL.RawPath, proxyPrefix+text)
		h.ServeHTTP(w, inner)
		return
	}
	h.ports.ServeHTTP(w, r)
}
