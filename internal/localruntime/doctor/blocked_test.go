package doctor_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/glassboxhq/glassbox/internal/localruntime/doctor"
)

const blocked = "GLASSBOX_TEST_BLOCKED"

// TestFB125UserNamespacesOff asks the doctor on a machine whose setting keeps
// ordinary users from user namespaces: in a user namespace the setting is its
// own.
func TestFB125UserNamespacesOff(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may map the users that this takes")
	}
	dir, err := os.MkdirTemp("", "glassbox-doctor-") //nolint:usetesting // that one is for root only
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "test")
	const line = `cp "$1" "$0" && chmod 755 "${0%/*}" "$0" && echo 0 > /proc/sys/user/max_user_namespaces &&
		exec setpriv --reuid=65534 --regid=65534 --clear-groups "$0" -test.v -test.run='^TestBlocked$'`
	cmd := exec.CommandContext(t.Context(), "sh", "-c", line, program, self)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), blocked+"=1")
	all := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 65536}}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWUSER, UidMappings: all, GidMappings: all, GidMappingsEnableSetgroups: true,
	}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestBlocked") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestBlocked is the part of TestFB125UserNamespacesOff that the ordinary user runs.
func TestBlocked(t *testing.T) {
	if os.Getenv(blocked) == "" {
		t.Skip("TestFB125UserNamespacesOff runs it")
	}
	checks := doctor.Run(t.Context(), doctor.Machine(&doctor.Options{
		StateDir: "/tmp", Start: func(context.Context) error { t.Error("a start was tried"); return nil },
	}))
	for _, c := range checks {
		if c.Name != "mount" {
			continue
		}
		if c.OK || !strings.HasSuffix(c.Text, "for user.max_user_namespaces is 0") || c.Fix != "sudo sysctl -w user.max_user_namespaces=15000, or run as root" {
			t.Errorf("%+v", c)
		}
		return
	}
	t.Error("no check of mounts")
}
