package egress_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/glassboxhq/glassbox/internal/localruntime/egress"
)

func TestCheck(t *testing.T) {
	own := []netip.Addr{netip.MustParseAddr("93.184.216.34"), netip.MustParseAddr("2606:2800:220::1")}
	allowed := []netip.Prefix{
		netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("169.254.0.0/16"),
		netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("fd00::/8"), netip.MustParsePrefix("198.18.0.0/15"),
	}
	for _, tt := range []struct{ addr, rule string }{
		{"8.8.8.8", ""},
		{"2606:4700::1111", ""},
		{"::ffff:8.8.8.8", ""},
		{"127.0.0.1", "loopback"},
		{"127.255.0.9", "loopback"},
		{"::1", "loopback"},
		{"::ffff:127.0.0.1", "loopback"},
		{"::127.0.0.1", "loopback"},
		{"64:ff9b::7f00:1", "loopback"},
		{"2002:7f00:1::", "loopback"},
		{"2002:a9fe:a9fe::1", "metadata"},
		{"0.0.0.0", "no address of a host"},
		{"0.1.2.3", "no address of a host"},
		{"::", "no address of a host"},
		{"169.254.169.254", "metadata"},
		{"::ffff:169.254.169.254", "metadata"},
		{"fd00:ec2::254", "metadata"},
		{"100.100.100.200", "metadata"},
		{"168.63.129.16", "metadata"},
		{"169.254.1.1", "link-local"},
		{"fe80::1%eth0", "link-local"},
		{"fe80::1", "link-local"},
		{"224.0.0.1", "multicast"},
		{"ff02::1", "multicast"},
		{"255.255.255.255", "multicast or broadcast"},
		{"10.0.0.1", "private"},
		{"10.1.0.1", ""},
		{"::ffff:10.1.0.1", ""},
		{"::ffff:10.2.0.1", "private"},
		{"172.16.0.1", "private"},
		{"172.31.255.255", "private"},
		{"172.32.0.1", ""},
		{"192.168.1.1", "private"},
		{"64:ff9b::c0a8:101", "private"},
		{"100.64.0.1", ""},
		{"100.127.255.255", ""},
		{"fd00::1", ""},
		{"fc00::1", "private"},
		{"198.18.0.1", ""},
		{"192.0.0.9", "reserved"},
		{"240.0.0.1", "reserved"},
		{"93.184.216.34", "host itself"},
		{"::ffff:93.184.216.34", "host itself"},
		{"2606:2800:220::1", "host itself"},
	} {
		t.Run(tt.addr, func(t *testing.T) {
			got := egress.Check(netip.MustParseAddr(tt.addr), allowed, own)
			if (tt.rule == "") != (got == "") || !strings.Contains(got, tt.rule) {
				t.Errorf("refused because %q, want %q", got, tt.rule)
			}
		})
	}
	if egress.Check(netip.Addr{}, nil, nil) == "" {
		t.Error("no address is allowed")
	}
}

func TestCheckService(t *testing.T) {
	allowed := []netip.Prefix{netip.MustParsePrefix("169.254.7.0/24")}
	for _, tt := range []struct{ addr, rule string }{
		{"8.8.8.8", ""},
		{"127.0.0.1", ""},
		{"::1", ""},
		{"10.1.2.3", ""},
		{"fd00::1", ""},
		{"169.254.169.254", "metadata"},
		{"::ffff:169.254.169.254", "metadata"},
		{"64:ff9b::a9fe:a9fe", "metadata"},
		{"fd00:ec2::254", "metadata"},
		{"100.100.100.200", "metadata"},
		{"169.254.1.1", "link-local"},
		{"169.254.7.1", ""},
		{"fe80::1%eth0", "link-local"},
		{"0.0.0.0", "no address of a host"},
		{"::", "no address of a host"},
		{"224.0.0.1", "multicast"},
		{"240.0.0.1", "reserved"},
	} {
		got := egress.CheckService(netip.MustParseAddr(tt.addr), allowed)
		if (tt.rule == "") != (got == "") || !strings.Contains(got, tt.rule) {
			t.Errorf("%s: refused because %q, want %q", tt.addr, got, tt.rule)
		}
	}
}

// proxy is a proxy on the loopback whose names and dials the test decides.
type proxy struct {
	url    *url.URL
	target net.Addr // where every allowed dial really goes

	mu      sync.Mutex
	lookups int
	dialled []string
	events  []egress.Event
}

func startProxy(t *testing.T, target net.Addr, names map[string][]string) *proxy {
	t.Helper()
	p := &proxy{target: target}
	server := egress.New(&egress.Options{
		Sandbox: "box",
		Resolver: func(_ context.Context, host string) ([]netip.Addr, error) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.lookups++
			var addrs []netip.Addr
			for _, text := range names[host] {
				addrs = append(addrs, netip.MustParseAddr(text))
			}
			if addrs == nil {
				return nil, errors.New("no such host")
			}
			return addrs, nil
		},
		Own: func() ([]netip.Addr, error) { return nil, nil },
		Dial: func(ctx context.Context, addr netip.AddrPort) (net.Conn, error) {
			p.mu.Lock()
			p.dialled = append(p.dialled, addr.String())
			p.mu.Unlock()
			return new(net.Dialer).DialContext(ctx, "tcp", p.target.String())
		},
		OnConnect: func(e egress.Event) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.events = append(p.events, e)
		},
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	p.url = &url.URL{Scheme: "http", Host: l.Addr().String()}
	return p
}

func (p *proxy) client(t *testing.T, config *http.Transport) *http.Client {
	config.Proxy = http.ProxyURL(p.url)
	t.Cleanup(config.CloseIdleConnections)
	return &http.Client{Transport: config, Timeout: 10 * time.Second}
}

func hello(w http.ResponseWriter, r *http.Request) {
	io.WriteString(w, "hello from "+r.Host)
	if r.Header.Get("Proxy-Connection") != "" || r.Header.Get("X-Hop") != "" {
		io.WriteString(w, ", with headers of the hop")
	}
}

func get(t *testing.T, client *http.Client, target string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, target, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Connection", "X-Hop")
	req.Header.Set("X-Hop", "1")
	res, err := client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

func TestForward(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(hello))
	defer server.Close()
	p := startProxy(t, server.Listener.Addr(), map[string][]string{
		"public.example": {"10.0.0.1", "93.184.216.34"}, "inner.example": {"10.0.0.1"}, "meta.example": {"169.254.169.254"},
	})
	client := p.client(t, &http.Transport{})
	for _, tt := range []struct {
		url, body string
		status    int
	}{
		{"http://public.example/x", "hello from public.example", 200},
		{"http://inner.example/", "private network", 403},
		{"http://meta.example/", "metadata service", 403},
		{"http://127.0.0.1:1/", "loopback", 403},
		{"http://nowhere.example/", "was not found", 502},
	} {
		if status, body := get(t, client, tt.url); status != tt.status || !strings.Contains(body, tt.body) || strings.Contains(body, "hop") {
			t.Errorf("%s: %d %s", tt.url, status, body)
		}
	}
	want := []string{"93.184.216.34:80"}
	if diff := cmp.Diff(p.dialled, want); diff != "" {
		t.Errorf("dialled: %s", diff)
	}
	if p.lookups != 4 {
		t.Errorf("%d look-ups for 4 names", p.lookups)
	}
	if e := p.events[0]; !e.Allowed || e.Host != "public.example" || e.Port != 80 || e.Sandbox != "box" || e.Address.String() != "93.184.216.34" {
		t.Errorf("first event: %+v", e)
	}
	if e := p.events[1]; e.Allowed || !strings.Contains(e.Reason, "10.0.0.1") {
		t.Errorf("second event: %+v", e)
	}
}

func TestTunnel(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(hello))
	defer server.Close()
	p := startProxy(t, server.Listener.Addr(), map[string][]string{"example.com": {"93.184.216.34"}, "inner.example": {"192.168.0.9"}})
	config := server.Client().Transport.(*http.Transport).Clone()
	client := p.client(t, config)
	if status, body := get(t, client, "https://example.com/"); status != 200 || !strings.HasPrefix(body, "hello from example.com") {
		t.Errorf("%d %s", status, body)
	}
	if _, body := get(t, client, "https://inner.example/"); !strings.Contains(body, "Forbidden") {
		t.Errorf("inner: %s", body)
	}
}

// TestTunnelHalfClosed ends one direction and reads the rest of the other.
func TestTunnelHalfClosed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		got, _ := io.ReadAll(conn)
		io.WriteString(conn, strings.ToUpper(string(got)))
	}()
	p := startProxy(t, l.Addr(), map[string][]string{"public.example": {"93.184.216.34"}})
	conn, err := net.Dial("tcp", p.url.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	// The first bytes come together with the request, as clients may do.
	io.WriteString(conn, "CONNECT public.example:443 HTTP/1.1\r\nHost: public.example:443\r\n\r\nearly ")
	answer := bufio.NewReader(conn)
	res, err := http.ReadResponse(answer, &http.Request{Method: http.MethodConnect})
	if err != nil || res.StatusCode != 200 {
		t.Fatalf("connect: %v %+v", err, res)
	}
	io.WriteString(conn, "late")
	conn.(*net.TCPConn).CloseWrite()
	if got, err := io.ReadAll(answer); err != nil || string(got) != "EARLY LATE" {
		t.Errorf("%v %q", err, got)
	}
}

func TestBadRequests(t *testing.T) {
	p := startProxy(t, &net.TCPAddr{}, nil)
	for _, tt := range []struct{ request, status string }{
		{"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "400"},
		{"GET ftp://x.example/ HTTP/1.1\r\nHost: x\r\n\r\n", "400"},
		{"GET https://x.example/ HTTP/1.1\r\nHost: x\r\n\r\n", "400"},
		{"CONNECT x.example HTTP/1.1\r\nHost: x\r\n\r\n", "400"},
		{"CONNECT x.example:0 HTTP/1.1\r\nHost: x\r\n\r\n", "400"},
		{"CONNECT x.example:99999 HTTP/1.1\r\nHost: x\r\n\r\n", "400"},
		{"CONNECT :80 HTTP/1.1\r\nHost: x\r\n\r\n", "400"},
		{"CONNECT [fe80::1%25lo]:80 HTTP/1.1\r\nHost: x\r\n\r\n", "40"},
		{"nonsense\r\n\r\n", "400"},
	} {
		conn, err := net.Dial("tcp", p.url.Host)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(conn, tt.request)
		conn.SetReadDeadline(time.Now().Add(5 * time.Second))
		line, _ := bufio.NewReader(conn).ReadString('\n')
		if !strings.HasPrefix(line, "HTTP/1.1 "+tt.status) {
			t.Errorf("%q: %q", tt.request, line)
		}
		conn.Close()
	}
	if len(p.dialled) > 0 {
		t.Errorf("dialled %v", p.dialled)
	}
}
