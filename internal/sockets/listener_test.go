package sockets_test

import (
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/glassboxhq/glassbox/internal/sockets"
)

func TestOurListener(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	if !sockets.OurListener(port) {
		t.Error("our own listener is not found to be ours")
	}
	l.Close()
	if sockets.OurListener(port) {
		t.Error("a port at which nobody listens is found to be ours")
	}
	if sockets.OurListener("http") {
		t.Error("what is no port is found to be ours")
	}
	if os.Getuid() != 0 {
		t.Skip("needs root to listen as another user")
	}
	// Another user's program, which prints its port and waits for its end.
	const code = "import socket,sys; s=socket.socket(); s.bind(('127.0.0.1',0)); s.listen(); print(s.getsockname()[1],flush=True); sys.stdin.read()"
	cmd := exec.Command("/usr/bin/python3", "-c", code)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { in.Close(); _ = cmd.Wait() }()
	buf := make([]byte, 16)
	n, err := out.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	theirs := strings.TrimSpace(string(buf[:n]))
	if _, err := strconv.Atoi(theirs); err != nil || sockets.OurListener(theirs) {
		t.Errorf("another user's listener at %q is found to be ours", theirs)
	}
}
