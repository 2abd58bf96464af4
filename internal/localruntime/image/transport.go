package image

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"time"
)

func newTransport() *http.Transport {
	return &http.Transport{
		Proxy:       http.ProxyFromEnvironment,
		DialContext: (&net.Dialer{Timeout: 15 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		// A registry may look for a while before it answers.
		ResponseHeaderTimeout: 30 * time.Second, TLSHandshakeTimeout: 10 * time.Second,
		ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 2 * maxFetches, IdleConnTimeout: 30 * time.Second,
		MaxResponseHeaderBytes: 1 << 20,
	}
}

// loopbackOrTLS sends nothing in plain text but to this machine: neither
// credentials nor the question go where others read and answer them.
type loopbackOrTLS struct{ http.RoundTripper }

func (t *loopbackOrTLS) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme != "https" && !isLoopback(req.URL.Hostname()) {
		if req.Body != nil {
			req.Body.Close()
		}
		return nil, fmt.Errorf("%s answers without TLS only, which is for registries on this machine", req.URL.Host)
	}
	return t.RoundTripper.RoundTrip(req)
}

func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.Unmap().IsLoopback()
}
