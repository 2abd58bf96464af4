package localruntime_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/glassboxhq/glassbox/sandbox"
)

// serveSecret answers on a port of the loopback and on an abstract socket.
const serveSecret = `python3 -c 'import socket, threading
def serve(s):
    s.listen()
    while True:
        c = s.accept()[0]
        c.sendall(b"` + secret + `")
        c.close()
tcp = socket.create_server(("127.0.0.1", 8123))
unix = socket.socket(socket.AF_UNIX)
unix.bind("\0glassbox-secret")
threading.Thread(target=serve, args=(unix,)).start()
serve(tcp)' `

const dial = `python3 -c 'import socket
s = socket.socket(socket.%s)
s.settimeout(5)
s.connect(%s)
print(s.recv(100).decode())'`

// TestOtherSandboxesAreNotReached tries from one sandbox what works in another
// one.
func TestOtherSandboxesAreNotReached(t *testing.T) {
	state := t.TempDir()
	rt := startRuntime(t, options(t, state))
	theirs := create(t, rt, &sandbox.Spec{Env: map[string]string{"SECRET": secret}}).ID
	mine := create(t, rt, nil).ID
	for _, folder := range []string{"/tmp", "/workspace", "/dev/shm", "/root", "/var/tmp", "/.agent-history"} {
		if out := run(t, rt, theirs, fmt.Sprintf("mkdir -p %[1]s; echo %[2]s > %[1]s/theirs", folder, secret)); out.code != 0 {
			t.Fatalf("%s: %+v", folder, out)
		}
	}
	if out := run(t, rt, theirs, "("+serveSecret+" secret-argument > /dev/null 2>&1 &) ; for i in $(seq 100); do "+fmt.Sprintf(dial, "AF_INET", `("127.0.0.1", 8123)`)+" && break; sleep 0.1; done"); !strings.Contains(out.stdout, secret) {
		t.Fatalf("%+v", out)
	}
	for _, tt := range []struct{ name, line string }{
		{"a file", "cat /tmp/theirs /workspace/theirs /dev/shm/theirs /root/theirs /var/tmp/theirs /.agent-history/theirs 2>/dev/null | head -n 1"},
		{"a port of the loopback", fmt.Sprintf(dial, "AF_INET", `("127.0.0.1", 8123)`)},
		{"an abstract socket", fmt.Sprintf(dial, "AF_UNIX", `"\0glassbox-secret"`)},
		{"a process", `for f in /proc/[0-9]*/cmdline; do tr '\0' ' ' < $f; echo; done | grep -v grep | grep -q 'secret-argument' && echo ` + secret},
		{"an environment", "cat /proc/[0-9]*/environ 2>/dev/null | grep -a -o -m 1 " + secret},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if out := run(t, rt, theirs, tt.line); !strings.Contains(out.stdout, secret) {
				t.Fatalf("in the sandbox itself: %+v", out)
			}
			if out := run(t, rt, mine, tt.line); strings.Contains(out.stdout, secret) {
				t.Errorf("in another one: %+v", out)
			}
		})
	}
	t.Run("through the proxy", func(t *testing.T) {
		for _, host := range []string{"127.0.0.1:8123", "localhost:8123", theirs + ":8123", theirs + ":44780"} {
			out := run(t, rt, mine, askProxy("CONNECT "+host+" HTTP/1.1\r\nHost: x\r\n\r\n"))
			if strings.HasPrefix(out.stdout, "HTTP/1.1 200") || strings.Contains(out.stdout, secret) {
				t.Errorf("%s: %+v", host, out)
			}
		}
	})
	t.Run("by the host's folders", func(t *testing.T) {
		theirsOutside := filepath.Join(state, "sandboxes", theirs)
		if text, err := os.ReadFile(filepath.Join(theirsOutside, "history", "theirs")); err != nil || !strings.Contains(string(text), secret) {
			t.Fatalf("outside: %v %s", err, text)
		}
		for _, name := range []string{"run/boot.json", "run/recorder.sock", "run/egress.sock"} {
			if _, err := os.Lstat(filepath.Join(theirsOutside, name)); err != nil {
				t.Fatalf("outside: %v", err)
			}
		}
		for _, line := range []string{
			"cat " + theirsOutside + "/history/theirs", "cat " + theirsOutside + "/run/boot.json", "ls " + theirsOutside,
			"cat /.agent-history/../../" + theirs + "/history/theirs", "cat /run/glassbox/../" + theirs + "/run/boot.json",
			"ln -s " + theirsOutside + "/history /.agent-history/l && cat /.agent-history/l/theirs",
			dialUnix + theirsOutside + "/run/recorder.sock", dialUnix + theirsOutside + "/run/egress.sock",
		} {
			if out := run(t, rt, mine, line); out.code == 0 || strings.Contains(out.stdout, secret) {
				t.Errorf("%s: %+v", line, out)
			}
		}
	})
	t.Run("by its token", func(t *testing.T) {
		access, err := rt.Access(t.Context(), theirs)
		if err != nil {
			t.Fatal(err)
		}
		// The way from the host ends in a sandbox's own recorder, which takes its own token only.
		out := run(t, rt, mine, "cat /run/glassbox/boot.json")
		if out.code != 0 || strings.Contains(out.stdout, access.Token) || strings.Contains(out.stdout, access.ExecdToken) {
			t.Errorf("it is told: %+v", out)
		}
	})
}
