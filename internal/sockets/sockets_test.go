package sockets_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/glassboxhq/glassbox/internal/sockets"
)

func TestListenAndDial(t *testing.T) {
	for _, depth := range []int{0, 60} {
		dir := filepath.Join(t.TempDir(), strings.Repeat("deep/", depth))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "s.sock")
		for range 2 { // the second takes the place of what the first left
			l, err := sockets.Listen(path)
			if err != nil {
				t.Fatalf("depth %d: %v", depth, err)
			}
			go func() {
				if conn, err := l.Accept(); err == nil {
					conn.Close()
				}
			}()
			conn, err := sockets.Dial(t.Context(), path)
			if err != nil {
				t.Fatalf("depth %d: %v", depth, err)
			}
			conn.Close()
			if info, err := os.Lstat(path); err != nil || info.Mode().Perm() != 0o600 || info.Mode().Type() != os.ModeSocket {
				t.Errorf("depth %d: %v %v", depth, err, info)
			}
			l.Close()
			if _, err := sockets.Dial(t.Context(), path); !sockets.Refused(err) {
				t.Errorf("depth %d: nobody listens: %v", depth, err)
			}
		}
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) != 1 {
			t.Errorf("depth %d: left %v, %v", depth, entries, err)
		}
	}
	if _, err := sockets.Dial(t.Context(), filepath.Join(t.TempDir(), "none")); !sockets.Refused(err) {
		t.Errorf("no socket: %v", err)
	}
	if _, err := net.Listen("unix", filepath.Join(t.TempDir(), strings.Repeat("x", 120))); err == nil {
		t.Error("the kernel takes long paths: this package is not needed any more")
	}
}
