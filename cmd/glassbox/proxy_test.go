package main_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// TestBehindProxy puts the proxies of docs/server.md before the server, with
// the configuration that stands there. A sign-in, a stream of events and a
// WebSocket come through.
func TestBehindProxy(t *testing.T) {
	if os.Getenv("GLASSBOX_TEST_PROXIES") == "" {
		t.Skip("runs in make matrix, which installs nginx and Caddy")
	}
	text, err := os.ReadFile("../../docs/server.md")
	if err != nil {
		t.Fatal(err)
	}
	fromDocs := func(pattern, upstream string) string {
		found := regexp.MustCompile(pattern).FindSubmatch(text)
		if found == nil {
			t.Fatalf("docs/server.md has no %s", pattern)
		}
		return strings.ReplaceAll(string(found[1]), "127.0.0.1:7717", upstream)
	}
	for name, configure := range map[string]func(p *proxy) []string{
		"nginx": func(p *proxy) []string {
			return []string{"nginx", "-p", p.dir, "-c", p.write("nginx.conf", fmt.Sprintf(`
				pid %[1]s/pid; error_log stderr; daemon off; events {}
				http {
					access_log off; client_body_temp_path %[1]s/b; proxy_temp_path %[1]s/p; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
					server { listen %[2]s ssl; ssl_certificate %[1]s/cert.pem; ssl_certificate_key %[1]s/key.pem; %[3]s }
				}`, p.dir, p.address, fromDocs("(?s)nginx:\n\n```\n(.*?)```", p.upstream)))}
		},
		"caddy": func(p *proxy) []string {
			return []string{"caddy", "run", "--adapter", "caddyfile", "--config", p.write("Caddyfile", fmt.Sprintf(
				"{\n\tadmin off\n\tauto_https disable_redirects\n}\nhttps://%s {\n\tbind 127.0.0.1\n\ttls %s/cert.pem %s/key.pem\n\t%s\n}\n",
				p.host, p.dir, p.dir, fromDocs("Caddy sets these by itself: `(.*?)`", p.upstream)))}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProxy(t)
			p.start(configure(p))
			boxID := p.signIn()
			events := p.events(boxID)
			p.terminal(boxID)
			want := `"type":"terminal.session"`
			for event := range events {
				if strings.Contains(event, want) {
					return
				}
			}
			t.Error("the stream ended without what was done")
		})
	}
}

// proxy stands before a server of its own.
type proxy struct {
	t             *testing.T
	dir           string
	host          string // and port, that browsers see
	address       string // of the proxy
	upstream      string // address of the server
	key, link     string
	client        *http.Client
	stateVariable string
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func newProxy(t *testing.T) *proxy {
	t.Helper()
	p := &proxy{t: t, dir: t.TempDir(), address: freeAddress(t), upstream: freeAddress(t)}
	_, port, _ := net.SplitHostPort(p.address)
	p.host = "localhost:" + port
	p.stateVariable = "GLASSBOX_STATE_DIR=" + filepath.Join(p.dir, "state")
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	p.client = &http.Client{Jar: jar, Timeout: time.Minute, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: p.certify()}}}
	_, port, _ = net.SplitHostPort(p.upstream)
	p.serve("--port", port, "--public-url", "https://"+p.host, "--trusted-proxy", "127.0.0.1")
	return p
}

func (p *proxy) write(name, text string) string {
	p.t.Helper()
	path := filepath.Join(p.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
	return path
}

// certify makes a certificate for localhost.
func (p *proxy) certify() *x509.CertPool {
	p.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		p.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		p.t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		p.t.Fatal(err)
	}
	text := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}))
	p.write("cert.pem", text)
	p.write("key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(text))
	return pool
}

// run runs a program until the test ends, and hands on what it says.
func (p *proxy) run(args []string, hear func(line string)) {
	p.t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		p.t.Fatal(err)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), p.stateVariable, "HOME="+p.dir, "XDG_DATA_HOME="+p.dir, "XDG_CONFIG_HOME="+p.dir)
	cmd.Stderr = w
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	w.Close()
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		for lines := bufio.NewScanner(r); lines.Scan(); {
			hear(lines.Text())
		}
	}()
	p.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		_ = cmd.Wait()
		r.Close() // what it started may hold the other end
		<-heard
	})
}

func (p *proxy) glassbox(args ...string) string {
	p.t.Helper()
	cmd := exec.Command(filepath.Join(bin, "glassbox"), args...)
	cmd.Env = append(os.Environ(), p.stateVariable)
	out, err := cmd.Output()
	if err != nil {
		p.t.Fatalf("%v: %v", args, err)
	}
	return strings.TrimSpace(string(out))
}

func (p *proxy) serve(args ...string) {
	p.t.Helper()
	link := make(chan string, 1)
	p.run(append([]string{filepath.Join(bin, "glassbox"), "serve", "--here"}, args...), func(line string) {
		p.t.Log(line)
		if _, text, ok := strings.Cut(line, "/sign-in#"); ok {
			link <- text
		}
	})
	select {
	case p.link = <-link:
	case <-time.After(time.Minute):
		p.t.Fatal("the server does not run")
	}
	p.key = p.glassbox("config", "get", "local.api_key")
}

// start starts the proxy, and waits until it lets requests through.
func (p *proxy) start(args []string) {
	p.t.Helper()
	p.run(args, func(line string) { p.t.Log(line) })
	deadline := time.Now().Add(time.Minute)
	for {
		res, err := p.client.Get("https://" + p.host + "/healthz")
		if err == nil {
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return
			}
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("the proxy does not work: %v", err)
		}
		<-time.After(50 * time.Millisecond)
	}
}

// ask sends a request as a browser's page does, or with the header of a
// program.
func (p *proxy) ask(method, path, body string, header http.Header) (*http.Response, string) {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), method, "https://"+p.host+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	if req.Header = header; header == nil {
		req.Header = http.Header{"Origin": {"https://" + p.host}, "Sec-Fetch-Site": {"same-origin"}}
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := p.client.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode/100 != 2 {
		p.t.Fatalf("%s %s: %d %s, %v", method, path, res.StatusCode, text, err)
	}
	return res, string(text)
}

// signIn signs in through the proxy, and makes a sandbox.
func (p *proxy) signIn() (boxID string) {
	p.t.Helper()
	res, _ := p.ask("POST", "/api/v1/auth/link", fmt.Sprintf(`{"link":%q}`, p.link), nil)
	if c := res.Cookies(); len(c) != 1 || !strings.HasPrefix(c[0].Name, "__Host-") || !c[0].Secure || res.Header.Get("Strict-Transport-Security") == "" {
		p.t.Errorf("a browser is not told that this is TLS: %v %v", c, res.Header)
	}
	if _, list := p.ask("GET", "/api/v1/sign-ins", "", nil); !strings.Contains(list, `"address":"127.0.0.1"`) {
		p.t.Errorf("where they came from: %s", list)
	}
	_, text := p.ask("POST", "/api/v1/connections/local/sandboxes", fmt.Sprintf(`{"image":"here","workdir":%q}`, p.dir), nil)
	var box struct{ ID string }
	if err := json.Unmarshal([]byte(text), &box); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { p.glassbox("sandbox", "delete", box.ID) })
	return box.ID
}

// events follows what is done in a sandbox.
func (p *proxy) events(boxID string) <-chan string {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, "https://"+p.host+"/api/v1/connections/local/sandboxes/"+boxID+"/events", http.NoBody)
	if err != nil {
		p.t.Fatal(err)
	}
	res, err := p.client.Do(req)
	if err != nil || res.StatusCode != http.StatusOK {
		p.t.Fatalf("%v %v", res, err)
	}
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	if !lines.Scan() || !strings.HasPrefix(lines.Text(), "retry:") {
		p.t.Fatalf("the stream is held back: %q", lines.Text())
	}
	events := make(chan string, 100)
	go func() {
		defer close(events)
		defer res.Body.Close()
		for lines.Scan() {
			events <- lines.Text()
		}
	}()
	return events
}

// terminal works on a terminal in the sandbox, as any OpenSandbox client does:
// at the address that the server told it.
func (p *proxy) terminal(boxID string) {
	p.t.Helper()
	_, text := p.ask("GET", "/v1/sandboxes/"+boxID+"/endpoints/44772?use_server_proxy=true", "", http.Header{"Open-Sandbox-Api-Key": {p.key}})
	var at struct {
		Endpoint string
		Headers  map[string]string
	}
	if err := json.Unmarshal([]byte(text), &at); err != nil {
		p.t.Fatal(err)
	}
	path, ok := strings.CutPrefix(strings.TrimPrefix(at.Endpoint, "https://"), p.host)
	if !ok {
		p.t.Fatalf("the endpoint is elsewhere: %s", text)
	}
	header := http.Header{}
	for name, value := range at.Headers {
		header.Set(name, value)
	}
	_, text = p.ask("POST", path+"/pty", `{"cwd":"/tmp"}`, header.Clone())
	var pty struct {
		ID string `json:"session_id"`
	}
	if err := json.Unmarshal([]byte(text), &pty); err != nil {
		p.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(p.t.Context(), time.Minute)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, "wss://"+p.host+path+"/pty/"+pty.ID+"/ws", &websocket.DialOptions{HTTPHeader: header, HTTPClient: &http.Client{Transport: p.client.Transport}})
	if err != nil {
		p.t.Fatal(err)
	}
	defer conn.CloseNow()
	if err := conn.Write(ctx, websocket.MessageBinary, []byte("\x00echo in''side; exit 5\n")); err != nil {
		p.t.Fatal(err)
	}
	var shown []byte
	for {
		_, data, err := conn.Read(ctx)
		if err != nil {
			break
		}
		shown = append(shown, data...)
	}
	if !bytes.Contains(shown, []byte("inside\r\n")) || !bytes.Contains(shown, []byte(`"exit_code":5`)) {
		p.t.Errorf("the terminal showed %q", shown)
	}
}
