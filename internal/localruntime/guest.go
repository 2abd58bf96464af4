package localruntime

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/glassboxhq/glassbox/internal/localruntime/image"
	"github.com/glassboxhq/glassbox/internal/localruntime/userland"
	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/sandbox"
)

// guestRecorder is the recorder's binary as a sandbox sees it.
const guestRecorder = wire.GuestBin + "/glassbox-recorder"

const (
	guestHostname = "glassbox"
	// guestCertificates are this machine's, for the programs of an image.
	guestCertificates = wire.GuestBin + "/ca-certificates.crt"
)

// guestPoints are made in every image.
func guestPoints() image.Points {
	return image.Points{Dirs: []string{wire.GuestRun, wire.GuestHistory}, Files: []string{guestRecorder, guestCertificates}}
}

// bootOf returns what an isolated sandbox is told.
func bootOf(l *launch) *wire.Boot {
	r := l.record
	config, _ := historyConfig(&r.Spec) // they were checked before they were kept
	held, _, err := readLimits(r.Spec.Limits)
	if err != nil {
		held = &limits{}
	}
	b := &wire.Boot{
		SandboxID: r.Info.ID, InstanceID: r.Info.InstanceID, Name: r.Info.Name, Metadata: r.Info.Metadata,
		Token: r.Token, ExecdToken: r.ExecdToken, Workdir: r.Spec.Workdir,
		Env:        hostEnv(r.Spec.Workdir),
		HistoryDir: wire.GuestHistory,
		Socket:     wire.GuestSocket,
		ExpiryFile: wire.GuestExpiry,
		HistoryOff: r.Spec.History == HistoryNone,
		BestEffort: r.Spec.History == HistoryBestEffort,
		History:    config,

		MemoryBytes: held.Memory, CPUMilli: held.CPU,

		Concurrency:   r.Spec.Concurrency,
		NoFileChanges: r.Spec.NoFileChanges,
	}
	if l.image != nil {
		b.Env = imageEnv(l.image)
		if u := l.image.User; u.UID != 0 || u.GID != 0 {
			b.User = &wire.BootUser{UID: u.UID, GID: u.GID, Groups: u.Groups}
		}
	}
	if r.Spec.Network == NetworkProxy {
		b.Egress, b.EgressPort = wire.GuestEgress, wire.EgressPort
		maps.Copy(b.Env, proxyEnv())
	}
	maps.Copy(b.Env, l.env)
	return b
}

// imageEnv is the environment of a sandbox of an image before its owner adds to
// it: what the image says, over what programs expect.
func imageEnv(img *image.Image) map[string]string {
	u := img.User
	env := map[string]string{
		"PATH": defaultPath, "HOME": cmp.Or(u.Home, "/"), "USER": cmp.Or(u.Name, strconv.FormatUint(uint64(u.UID), 10)),
	}
	if u.UID == 0 {
		env["HOME"], env["USER"] = cmp.Or(u.Home, "/root"), cmp.Or(u.Name, "root")
	}
	env["LOGNAME"] = env["USER"]
	if u.Shell != "" {
		env["SHELL"] = u.Shell
	}
	// The proxy may be behind one that this machine trusts and the image does
	// not know; and an image may have no certificates.
	if certificates() != "" {
		for _, name := range []string{"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "PIP_CERT", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "NODE_EXTRA_CA_CERTS"} {
			env[name] = guestCertificates
		}
	}
	for _, entry := range img.Env {
		if name, value, ok := strings.Cut(entry, "="); ok && name != "" && !strings.ContainsRune(entry, 0) {
			env[name] = value
		}
	}
	return env
}

// certificates returns the file of the certificates that this machine trusts;
// empty: there is none.
func certificates() string {
	for _, name := range []string{"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"} {
		name, err := filepath.EvalSymlinks(name)
		if err != nil {
			continue
		}
		if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o004 != 0 && !strings.ContainsAny(name, ",:") {
			return name
		}
	}
	return ""
}

const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// hostEnv is the environment of a sandbox of the image host before its owner
// adds to it.
func hostEnv(workdir string) map[string]string {
	path := defaultPath
	if bin := userland.VenvBin(workdir); bin != "" {
		path = bin + ":" + path
	}
	return map[string]string{
		"PATH": path,
		// The sandbox's layer is thrown away, so python3 -m pip may install beside
		// the system's packages.
		"PIP_BREAK_SYSTEM_PACKAGES": "1",
		"HOME":                      "/root", "USER": "root", "LOGNAME": "root", "SHELL": "/bin/bash", "LANG": "C.UTF-8",
	}
}

func proxyEnv() map[string]string {
	url := "http://127.0.0.1:" + strconv.Itoa(wire.EgressPort)
	const local = "localhost,127.0.0.1,::1"
	return map[string]string{
		"http_proxy": url, "https_proxy": url, "HTTP_PROXY": url, "HTTPS_PROXY": url,
		"no_proxy": local, "NO_PROXY": local,
	}
}

// writeBoot writes the boot file, which holds secrets.
func (d dir) writeBoot(b *wire.Boot) error {
	text, err := json.Marshal(b)
	if err != nil {
		return fmt.Errorf("write boot file: %w", err)
	}
	if err := writeFile(d.boot(), text); err != nil {
		return fmt.Errorf("write boot file: %w", err)
	}
	return nil
}

func environ(env map[string]string) []string {
	list := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		list = append(list, name+"="+env[name])
	}
	return list
}

// notRun tells when the entrypoint asks for more than to stay alive.
func notRun(spec *sandbox.Spec) []string {
	idle := [][]string{{"tail", "-f", "/dev/null"}, {"sleep", "infinity"}, {"sh"}, {"bash"}, {"/bin/sh"}, {"/bin/bash"}}
	for _, words := range idle {
		if slices.Equal(spec.Entrypoint, words) {
			return nil
		}
	}
	if len(spec.Entrypoint) == 0 {
		return nil
	}
	return []string{"the entrypoint is not started: in the local runtime the recorder is the first process; run it as a command"}
}
