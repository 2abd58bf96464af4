package localruntime_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/internal/owner"
	"github.com/glassboxhq/glassbox/sandbox"
)

// Each test here shows first that the attempt works outside a sandbox, so that
// its failure inside says something.

const secret = "the-planted-secret"

// plant writes a file on the host that any user may read. Where only root may
// write, an ordinary user plants nothing.
func plant(t *testing.T, folder string) (name string, ok bool) {
	t.Helper()
	name = filepath.Join(folder, "glassbox-test-"+id.NewRandom())
	err := os.WriteFile(name, []byte(secret), 0o644)
	if errors.Is(err, fs.ErrPermission) && os.Geteuid() != 0 {
		return "", false
	}
	if err != nil {
		t.Skipf("no file can be planted in %s: %v", folder, err)
	}
	t.Cleanup(func() { os.Remove(name) })
	return name, true
}

func TestHostFilesAreNotSeen(t *testing.T) {
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	rt := startRuntime(t, options(t, t.TempDir()))
	box := create(t, rt, nil).ID
	planted := 0
	for _, folder := range []string{home, "/tmp", "/var/tmp", "/usr/local/share", "/opt", "/srv", "/var/lib", "/run", "/etc", "/dev/shm", t.TempDir()} {
		name, ok := plant(t, folder)
		if !ok {
			continue
		}
		planted++
		// Also by way of what might lead out of the root.
		for _, path := range []string{name, "/proc/1/root" + name, "/run/glassbox/../../" + name, "/.agent-history/../" + name} {
			if out, err := host(t, "cat "+name); err != nil || out != secret {
				t.Fatalf("outside: %v %s", err, out)
			}
			if out := run(t, rt, box, "cat "+path); out.code == 0 || strings.Contains(out.stdout, secret) {
				t.Errorf("inside, %s: %+v", path, out)
			}
		}
	}
	if planted < 4 {
		t.Errorf("%d files were planted", planted)
	}
	for _, path := range []string{"/etc/shadow", "/etc/machine-id", "/etc/ssh", home + "/.ssh", "/etc/ssl/private", "/var/run/docker.sock", "/etc/sudoers"} {
		if out, err := host(t, "ls -d "+path); err != nil || out != path {
			continue // this machine does not have it
		}
		if out := run(t, rt, box, "ls -d "+path); out.code == 0 {
			t.Errorf("inside there is %s", path)
		}
	}
}

func TestHostProcessesAreNotSeen(t *testing.T) {
	rt := startRuntime(t, options(t, t.TempDir()))
	box := create(t, rt, nil).ID
	line := fmt.Sprintf("tr '\\0' ' ' < /proc/%d/cmdline; kill -0 %d", os.Getpid(), os.Getpid())
	if out, err := host(t, line); err != nil || !strings.Contains(out, "test") {
		t.Fatalf("outside: %v %s", err, out)
	}
	if out := run(t, rt, box, line); out.code == 0 || strings.Contains(out.stdout, "test") {
		t.Errorf("inside: %+v", out)
	}
}

const dialUnix = `python3 -c 'import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); print(s.recv(100).decode())' `

func TestHostSocketsAreNotReached(t *testing.T) {
	state := t.TempDir()
	rt := startRuntime(t, options(t, state))
	box := create(t, rt, nil).ID
	for _, folder := range []string{"/tmp", "/run", "/var/tmp"} {
		name := filepath.Join(folder, "glassbox-test-"+id.NewRandom()[:8]+".sock")
		l, err := net.Listen("unix", name)
		if errors.Is(err, fs.ErrPermission) && os.Geteuid() != 0 {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		go answer(l)
		if out, err := host(t, dialUnix+name); err != nil || out != secret {
			t.Fatalf("outside: %v %s", err, out)
		}
		// A link of the sandbox to it leads nowhere, either.
		line := fmt.Sprintf("%s %s || { ln -sf %s /.agent-history/s; %s /.agent-history/s; }", dialUnix, name, name, dialUnix)
		if out := run(t, rt, box, line); out.code == 0 || strings.Contains(out.stdout, secret) {
			t.Errorf("inside: %+v", out)
		}
	}
	// The state socket is the host's own door.
	if out := run(t, rt, box, dialUnix+owner.Socket(state)); out.code == 0 {
		t.Errorf("inside: %+v", out)
	}
	// A socket that the sandbox makes in its bound folder is not one of the host.
	run(t, rt, box, `python3 -c 'import socket; s = socket.socket(socket.AF_UNIX); s.bind("/.agent-history/own.sock")'`)
	if info, err := os.Lstat(filepath.Join(state, "sandboxes", box, "history", "own.sock")); err == nil && info.Mode()&os.ModeSocket != 0 {
		t.Error("the sandbox made a socket on the host")
	}
}

func answer(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		io.WriteString(conn, secret)
		conn.Close()
	}
}

func TestHostLoopbackIsNotReached(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, secret) }))
	defer server.Close()
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	rt := startRuntime(t, options(t, t.TempDir()))
	box := create(t, rt, nil).ID
	get := func(url string) string {
		return `python3 -c 'import urllib.request, sys; o = urllib.request.build_opener(urllib.request.ProxyHandler({})); print(o.open(sys.argv[1], timeout=5).read().decode())' ` + url
	}
	if out, err := host(t, get(server.URL)); err != nil || out != secret {
		t.Fatalf("outside: %v %s", err, out)
	}
	if out := run(t, rt, box, get(server.URL)); out.code == 0 || strings.Contains(out.stdout, secret) {
		t.Errorf("inside, directly: %+v", out)
	}
	hosts := []string{"127.0.0.1", "127.1.2.3", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "[::]", "[64:ff9b::7f00:1]", "2130706433"}
	hosts = append(hosts, ownAddresses(t)...)
	for _, name := range hosts {
		for _, line := range []string{
			"GET http://" + name + ":" + port + "/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
			"CONNECT " + name + ":" + port + " HTTP/1.1\r\nHost: x\r\n\r\n",
		} {
			out := run(t, rt, box, askProxy(line))
			if strings.Contains(out.stdout, secret) || !strings.HasPrefix(out.stdout, "HTTP/1.1 403") && !strings.HasPrefix(out.stdout, "HTTP/1.1 502") {
				t.Errorf("inside, through the proxy to %s: %+v", name, out)
			}
		}
	}
}

// askProxy is a shell line that sends one request to the sandbox's proxy.
func askProxy(request string) string {
	return fmt.Sprintf(`python3 -c 'import socket
s = socket.create_connection(("127.0.0.1", 3128))
s.sendall(%q.encode())
s.settimeout(30)
print(s.recv(4096).decode())'`, request)
}

// ownAddresses are those of this machine beside the loopback.
func ownAddresses(t *testing.T) []string {
	t.Helper()
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	var own []string
	for _, addr := range addrs {
		if ip := addr.(*net.IPNet).IP; !ip.IsLoopback() {
			own = append(own, strings.Split(net.JoinHostPort(ip.String(), "0"), ":0")[0])
		}
	}
	return own
}

// The metadata service of a cloud stands here as a service in a network of its
// own; that the rule keeps it from being dialled at all is a test of egress.
func TestMetadataIsNotReached(t *testing.T) {
	const outside = `unshare --map-root-user --net sh -c 'ip link set lo up; ip addr add 169.254.169.254/32 dev lo
python3 -c "import http.server, threading, urllib.request
s = http.server.HTTPServer((\"169.254.169.254\", 80), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=s.serve_forever, daemon=True).start()
o = urllib.request.build_opener(urllib.request.ProxyHandler({}))
print(o.open(\"http://169.254.169.254/\").status)"'`
	if out, err := host(t, "cd / && "+outside); err != nil || !strings.HasSuffix(out, "200") {
		t.Skipf("outside: %v %s", err, out)
	}
	rt := startRuntime(t, options(t, t.TempDir()))
	box := create(t, rt, nil).ID
	for _, name := range []string{"169.254.169.254", "[fd00:ec2::254]", "[::ffff:169.254.169.254]", "100.100.100.200"} {
		out := run(t, rt, box, askProxy("GET http://"+name+"/latest/meta-data/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"))
		if !strings.HasPrefix(out.stdout, "HTTP/1.1 403") || !strings.Contains(out.stdout, "metadata service") {
			t.Errorf("inside, through the proxy to %s: %+v", name, out)
		}
	}
	if out := run(t, rt, box, `python3 -c 'import socket; socket.create_connection(("169.254.169.254", 80), 5)'`); out.code == 0 {
		t.Errorf("inside, directly: %+v", out)
	}
}

func TestRunFolderCannotBeChanged(t *testing.T) {
	state := t.TempDir()
	rt := startRuntime(t, options(t, state))
	box := create(t, rt, nil).ID
	folder := filepath.Join(state, "sandboxes", box, "run")
	copied := filepath.Join(t.TempDir(), "run")
	lines := []string{
		"touch D/new", "rm D/recorder.sock", "mv D/recorder.sock D/other", "ln -s /etc/passwd D/link", "ln -sf /etc/passwd D/recorder.sock",
		"echo x > D/boot.json", "chmod 777 D/boot.json", "mkdir D/sub", "echo 2999-01-01T00:00:00Z > D/expires_at", "ln D/boot.json D/hard",
		`python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("D/mine.sock")'`, "mount -o remount,rw D", "mount --bind /tmp D",
	}
	before := names(t, folder)
	for _, line := range lines {
		if !strings.HasPrefix(line, "mount") {
			os.RemoveAll(copied)
			if out, err := host(t, "cp -a "+folder+" "+copied); err != nil {
				t.Fatalf("copy: %v %s", err, out)
			}
			if out, err := host(t, strings.ReplaceAll(line, "D", copied)); err != nil {
				t.Fatalf("outside, %s: %v %s", line, err, out)
			}
		}
		if out := run(t, rt, box, strings.ReplaceAll(line, "D", "/run/glassbox")); out.code == 0 {
			t.Errorf("inside, %s: %+v", line, out)
		}
	}
	if after := names(t, folder); after != before {
		t.Errorf("on the host: %s, before: %s", after, before)
	}
	if out := run(t, rt, box, "echo still here"); out.stdout != "still here\n" {
		t.Errorf("%+v", out)
	}
}

func names(t *testing.T, folder string) string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range entries {
		list = append(list, e.Type().String()+" "+e.Name())
	}
	return strings.Join(list, ", ")
}

func TestHostProgramsCannotBeChanged(t *testing.T) {
	state := t.TempDir()
	rt := startRuntime(t, options(t, state))
	box := create(t, rt, nil).ID
	name := "/usr/glassbox-test-" + id.NewRandom()
	if out, err := host(t, "echo x > "+name+" && cat "+name+" && rm "+name); os.Geteuid() == 0 && (err != nil || out != "x") {
		t.Skipf("outside: %v %s", err, out)
	}
	if out := run(t, rt, box, "echo x > "+name+" && cat "+name+"; echo broken > /usr/bin/env; rm -rf /usr/share/doc /etc/passwd; cat /usr/bin/env"); out.stdout != "x\nbroken\n" {
		t.Errorf("inside: %+v", out)
	}
	if _, err := os.Lstat(name); err == nil {
		t.Errorf("%s is on the host", name)
	}
	if out, err := host(t, "env true && cat /etc/passwd && ls /usr/share/doc"); err != nil {
		t.Errorf("the host is broken: %v %s", err, out)
	}
	// The recorder's binary is a bind of its own.
	if out := run(t, rt, box, "cd /opt/glassbox; echo x > glassbox-recorder || rm -f glassbox-recorder || mv glassbox-recorder y"); out.code == 0 {
		t.Errorf("the recorder was changed: %+v", out)
	}
}

// TestPlantedLinks fills the bound history folder with what might lead the
// host elsewhere.
func TestPlantedLinks(t *testing.T) {
	state, outside := t.TempDir(), t.TempDir()
	canary := filepath.Join(outside, "canary")
	if err := os.WriteFile(canary, []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	opts := options(t, state)
	opts.Retention = time.Nanosecond
	rt := startRuntime(t, opts)
	info := create(t, rt, nil)
	dir := filepath.Join(state, "sandboxes", info.ID)
	line := "cd D && ln -sf " + canary + " history.sqlite3 && ln -sfn " + outside + " sub && ln -sf " + canary + " sandbox.json && ln -sf ../sandbox.json up && chmod 777 ."
	if out, err := host(t, strings.Replace(line, "D", t.TempDir(), 1)+" && cat sub/canary"); err != nil || out != secret {
		t.Fatalf("outside: %v %s", err, out)
	}
	if out := run(t, rt, info.ID, strings.Replace(line, "D", "/.agent-history", 1)+" && cat history.sqlite3 sub/canary up; echo x >> up; mkdir deep; touch deep/file"); strings.Contains(out.stdout, secret) {
		t.Errorf("inside: %+v", out)
	}
	if target, err := os.Readlink(filepath.Join(dir, "history", "sub")); err != nil || target != outside {
		t.Fatalf("the links were not planted: %v %s", err, target)
	}
	histories, err := rt.Histories(t.Context())
	if err != nil || len(histories) != 1 || histories[0].ID != info.ID || histories[0].Dir != filepath.Join(dir, "history") {
		t.Errorf("histories: %v %+v", err, histories)
	}
	if err := rt.Delete(t.Context(), info.ID); err != nil {
		t.Fatal(err)
	}
	if err := rt.Purge(t.Context()); err != nil {
		t.Errorf("purge: %v", err)
	}
	if _, err := os.Lstat(dir); err == nil {
		t.Error("the history outlived its retention")
	}
	if text, err := os.ReadFile(canary); err != nil || string(text) != secret {
		t.Errorf("the host followed a link: %v %s", err, text)
	}
}

func TestNetworkNone(t *testing.T) {
	rt := startRuntime(t, options(t, t.TempDir()))
	box := create(t, rt, &sandbox.Spec{Network: "none"}).ID
	if out := run(t, rt, box, `echo "[$http_proxy]"; ls /run/glassbox; python3 -c 'import socket; socket.create_connection(("127.0.0.1", 3128), 5)'`); out.code == 0 || !strings.HasPrefix(out.stdout, "[]\n") || strings.Contains(out.stdout, "egress") {
		t.Errorf("%+v", out)
	}
}
