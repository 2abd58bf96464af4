package gvisor

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/glassboxhq/glassbox/internal/localruntime/proc"
	"github.com/glassboxhq/glassbox/internal/localruntime/userland"
	"github.com/glassboxhq/glassbox/internal/usertest"
)

const inNamespace = "GLASSBOX_TEST_NAMESPACE"

// TestBinds runs TestBindsInside where it may mount.
func TestBinds(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.v", "-test.run=^TestBindsInside$")
	cmd.Env = append(os.Environ(), inNamespace+"="+t.TempDir())
	cmd.SysProcAttr = proc.Namespaces(os.Geteuid(), os.Getegid())
	out, err := cmd.CombinedOutput()
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSPC) {
		t.Skipf("needs mount namespaces: %v", err)
	}
	if err != nil || !strings.Contains(string(out), "--- PASS: TestBindsInside") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestOrdinaryUser(t *testing.T) {
	usertest.Run(t, &usertest.Options{Tests: []string{"TestBinds"}})
}

// TestBindsInside binds a mount in both ways there are, which makes them
// read-only and takes no flag away.
func TestBindsInside(t *testing.T) {
	top := os.Getenv(inNamespace)
	if top == "" {
		t.Skip("TestBinds runs it")
	}
	dir := func(name string) string {
		name = filepath.Join(top, name)
		if err := os.MkdirAll(name, 0o700); err != nil {
			t.Fatal(err)
		}
		return name
	}
	source, target, old := dir("source"), dir("target"), dir("old")
	if err := unix.Mount("none", source, "tmpfs", unix.MS_NOEXEC|unix.MS_NOATIME, ""); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(source, old, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	if err := bindReadOnly(userland.Bind{Source: source, Target: target}); err != nil {
		t.Fatal(err)
	}
	if err := remountReadOnly(old); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{target, old} {
		if err := os.WriteFile(filepath.Join(name, "file"), nil, 0o600); !errors.Is(err, unix.EROFS) {
			t.Errorf("%s: %v", name, err)
		}
		var stat unix.Statfs_t
		const want = unix.ST_RDONLY | unix.ST_NOSUID | unix.ST_NODEV | unix.ST_NOEXEC | unix.ST_NOATIME
		if err := unix.Statfs(name, &stat); err != nil || stat.Flags&want != want {
			t.Errorf("%s: %v, flags %x, want %x", name, err, stat.Flags, want)
		}
	}
	if err := os.WriteFile(filepath.Join(source, "file"), nil, 0o600); err != nil {
		t.Errorf("the source is not as it was: %v", err)
	}
}
