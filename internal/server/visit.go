package server

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/glassboxhq/glassbox/internal/console/door"
	"github.com/glassboxhq/glassbox/internal/id"
)

// visit is one request, as far as those who record it want to know.
type visit struct {
	id        string
	address   string // of the client
	peer      netip.Addr
	secure    bool // the browser speaks TLS
	visitor   *door.Visitor
	operation string // of the OpenAPI document; empty: none was found
	code      string // of the error
	problem   string // its text
	target    string // what an act is about
	sandbox   string // connection/sandbox, in whose timeline the act stands
	detail    string // more of it, in JSON
	recorded  bool   // the act is, before it is over
	replayed  bool   // it was answered before, and nothing was done now
	answer    *answered
}

type visitKey struct{}

func visitOf(ctx context.Context) *visit {
	v, _ := ctx.Value(visitKey{}).(*visit)
	return v
}

// visit begins a request.
func (s *Server) visit(r *http.Request) (*http.Request, *visit) {
	v := &visit{id: id.New(), secure: s.opts.TLS}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	v.address = host
	if addr, err := netip.ParseAddr(host); err == nil {
		v.peer = addr.Unmap()
		v.address = v.peer.String()
		if s.isProxy(v.peer) {
			v.address = s.forwardedFor(r, v.address)
			v.secure = v.secure || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https")
		}
	}
	return r.WithContext(context.WithValue(r.Context(), visitKey{}, v)), v
}

func (s *Server) isProxy(addr netip.Addr) bool {
	for _, p := range s.opts.Proxies {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}

// forwardedFor finds the client behind proxies that are ours: the last address
// that is none of them. What stands before it anybody may have written.
func (s *Server) forwardedFor(r *http.Request, peer string) string {
	list := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, text := range slices.Backward(list) {
		addr, err := netip.ParseAddr(strings.TrimSpace(text))
		if err != nil {
			return peer
		}
		peer = addr.Unmap().WithZone("").String()
		if !s.isProxy(addr.Unmap()) {
			return peer
		}
	}
	return peer
}
