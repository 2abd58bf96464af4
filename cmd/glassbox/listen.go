package main

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"github.com/glassboxhq/glassbox/sandbox"
)

// serving is how the server is reached and where it keeps its own things.
type serving struct {
	listen         string
	tlsCert        string
	tlsKey         string
	publicURL      string
	proxies        []string
	databaseURL    string
	masterKeyFile  string
	allowEndpoints []string
	mirror         bool
	life           time.Duration // of a sandbox
	connect        []string
}

// flags adds the flags. What is not given comes from the environment or the
// configuration file: see fill.
func (s *serving) flags(flags *pflag.FlagSet) {
	flags.StringVar(&s.listen, "listen", listenHost, "`address` to listen at; beyond the loopback it needs TLS or a proxy (GLASSBOX_LISTEN)")
	flags.StringVar(&s.tlsCert, "tls-cert", "", "`file` of the certificate (GLASSBOX_TLS_CERT)")
	flags.StringVar(&s.tlsKey, "tls-key", "", "`file` of its key (GLASSBOX_TLS_KEY)")
	flags.StringVar(&s.publicURL, "public-url", "", "`address` that browsers see, of a proxy before this server (GLASSBOX_PUBLIC_URL)")
	flags.StringSliceVar(&s.proxies, "trusted-proxy", nil, "`network` of that proxy; nobody else may come then (GLASSBOX_TRUSTED_PROXY)")
	flags.StringVar(&s.databaseURL, "database-url", "", "postgres:// `URL`, else an SQLite file in the state folder (GLASSBOX_DATABASE_URL, GLASSBOX_DATABASE_URL_FILE)")
	flags.StringVar(&s.masterKeyFile, "master-key-file", "", "`file` of the key that seals credentials, made if it is not there (GLASSBOX_MASTER_KEY_FILE)")
	flags.BoolVar(&s.mirror, "mirror", false, "keep a central copy of every history, which outlives the sandboxes and can be searched (GLASSBOX_MIRROR); new, and off until it has proved itself")
	flags.StringSliceVar(&s.allowEndpoints, "allow-endpoint", nil, "`network` in which services may be although it is link-local or reserved (GLASSBOX_ALLOW_ENDPOINT)")
	flags.DurationVar(&s.life, "default-timeout", 0, "`life` of a sandbox for which none is asked, and the most that one is given; default: no limit (GLASSBOX_DEFAULT_TIMEOUT)")
	flags.StringArrayVar(&s.connect, "connect", nil, "work with an OpenSandbox service, too, as `NAME=URL`; its key comes from GLASSBOX_CONNECTION_NAME_KEY or GLASSBOX_CONNECTION_NAME_KEY_FILE; may be given again (GLASSBOX_CONNECT)")
}

// fill gives the flags of serve that were not given what the environment and
// the configuration file say, and the settings what the flags say.
func (s *settings) fill(flags *pflag.FlagSet) error {
	for i := range allSettings {
		k := &allSettings[i]
		if !k.serve {
			continue
		}
		flag := flags.Lookup(strings.ReplaceAll(k.name, "_", "-"))
		if list, ok := flag.Value.(pflag.SliceValue); flag.Changed && ok {
			s.values[k.name] = value{text: strings.Join(list.GetSlice(), " "), origin: "flag"}
		} else if flag.Changed {
			s.values[k.name] = value{text: flag.Value.String(), origin: "flag"}
		} else if err := s.fillOne(k, flag); err != nil {
			return err
		}
	}
	return nil
}

func (s *settings) fillOne(k *knownSetting, flag *pflag.Flag) error {
	text, err := s.secret(k.name)
	if err != nil || text == "" {
		return err
	}
	if list, ok := flag.Value.(pflag.SliceValue); ok {
		err = list.Replace(fields(text))
	} else {
		err = flag.Value.Set(text)
	}
	if err != nil { // its text would hold the value
		return sandbox.Invalid(k.name, "must be "+ruleOf(flag)+"; it comes from "+s.values[k.name].origin)
	}
	return nil
}

// database returns where the console's tables are.
func (s *serving) database(stateDir string) string {
	if s.databaseURL != "" {
		return s.databaseURL
	}
	return filepath.Join(stateDir, "console", "console.sqlite3")
}

// reach is how the server is reached, once that was found to be right.
type reach struct {
	address  string
	tls      *tls.Config // nil: none
	public   *url.URL    // nil: browsers see the server itself
	proxies  []netip.Prefix
	only     bool // proxies and this machine may come, nobody else
	hosts    []string
	allowed  []netip.Prefix // of endpoints
	loopback bool
}

// reach checks how the server is to be reached.
func (s *serving) reach(port int) (*reach, error) {
	r := &reach{}
	if err := r.at(s.listen, port); err != nil {
		return nil, err
	}
	var err error
	if r.proxies, err = prefixes("--trusted-proxy", s.proxies); err != nil {
		return nil, err
	}
	if r.allowed, err = prefixes("--allow-endpoint", s.allowEndpoints); err != nil {
		return nil, err
	}
	if s.publicURL != "" {
		if r.public, err = publicURL(s.publicURL); err != nil {
			return nil, err
		}
	}
	if r.tls, err = s.tls(); err != nil {
		return nil, err
	}
	return r, r.guard(s.listen)
}

// at takes the address to listen at.
func (r *reach) at(listen string, port int) error {
	bare := strings.Trim(listen, "[]")
	r.address = net.JoinHostPort(bare, strconv.Itoa(port))
	if listen == "localhost" {
		r.loopback = true
		return nil
	}
	addr, err := netip.ParseAddr(bare)
	if err != nil {
		return usage("--listen must be an address, as 127.0.0.1 or 0.0.0.0, not %q", listen)
	}
	r.loopback = addr.Unmap().IsLoopback()
	if !addr.IsUnspecified() {
		r.hosts = []string{addr.String()}
	}
	return nil
}

// tls returns how TLS is spoken; nil: it is not.
func (s *serving) tls() (*tls.Config, error) {
	switch {
	case (s.tlsCert == "") != (s.tlsKey == ""):
		return nil, usage("--tls-cert and --tls-key belong together")
	case s.tlsCert == "":
		return nil, nil
	}
	pair := &certificate{cert: s.tlsCert, key: s.tlsKey}
	if _, err := pair.get(nil); err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: pair.get, NextProtos: []string{"h2", "http/1.1"}}, nil
}

// guard refuses to be reached by others in the clear.
func (r *reach) guard(listen string) error {
	behindProxy := r.public != nil && len(r.proxies) > 0
	r.only = behindProxy && r.tls == nil
	if !r.loopback && r.tls == nil && !behindProxy {
		return usage("--listen %s is reached by others: give --tls-cert and --tls-key, or behind a proxy that speaks TLS --public-url and --trusted-proxy", listen)
	}
	if r.only && !r.loopback && r.public.Scheme != "https" {
		return usage("--public-url must be https where others reach this server: the proxy has to speak TLS")
	}
	return nil
}

func prefixes(flag string, texts []string) (list []netip.Prefix, err error) {
	for _, text := range texts {
		p, err := netip.ParsePrefix(text)
		if addr, addrErr := netip.ParseAddr(text); err != nil && addrErr == nil {
			p, err = netip.PrefixFrom(addr, addr.BitLen()), nil
		}
		if err != nil {
			return nil, usage("%s must be an address or a network, as 10.0.0.0/8, not %q", flag, text)
		}
		list = append(list, p.Masked())
	}
	return list, nil
}

func publicURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, usage("--public-url must be the root of what browsers see, as https://glassbox.example")
	}
	return &url.URL{Scheme: u.Scheme, Host: strings.ToLower(u.Host)}, nil
}

// open listens.
func (r *reach) open(ctx context.Context) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", r.address)
	if err != nil {
		return nil, &sandbox.Error{
			Op: "listen at " + r.address, Code: sandbox.CodeUnavailable, Err: errors.Unwrap(err),
			Message: "choose another port with --port or GLASSBOX_PORT, or stop what uses this one",
		}
	}
	if r.tls != nil {
		l = tls.NewListener(l, r.tls)
	}
	return l, nil
}

// base is the address that a browser is given.
func (r *reach) base(l net.Listener) *url.URL {
	if r.public != nil {
		return r.public
	}
	u := &url.URL{Scheme: "http", Host: l.Addr().String()}
	if r.tls != nil {
		u.Scheme = "https"
	}
	if addr, err := netip.ParseAddrPort(u.Host); err == nil && addr.Addr().IsUnspecified() {
		u.Host = net.JoinHostPort("localhost", strconv.Itoa(int(addr.Port())))
	}
	return u
}

// certificate is read again when its file was replaced, as by a renewal.
type certificate struct {
	cert, key string

	mu     sync.Mutex
	loaded *tls.Certificate
	at     time.Time
}

func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	info, err := os.Stat(c.cert)
	if err == nil && c.loaded != nil && info.ModTime().Equal(c.at) {
		return c.loaded, nil
	}
	if err == nil {
		var pair tls.Certificate
		if pair, err = tls.LoadX509KeyPair(c.cert, c.key); err == nil {
			c.loaded, c.at = &pair, info.ModTime()
		}
	}
	if c.loaded != nil { // the old one, while the new one is being written
		return c.loaded, nil
	}
	return nil, &sandbox.Error{Op: "read certificate", Code: sandbox.CodeInvalid, Err: err, Message: "see --tls-cert and --tls-key"}
}
