package cgroup

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDelegated makes groups where systemd lets a user make some. The tree is
// one of plain files.
func TestDelegated(t *testing.T) {
	const place = "user.slice/user-1000.slice/user@1000.service"
	joins := func(string) error { return nil }
	for _, tt := range []struct {
		name    string
		m       *member
		warning string // empty: the limit is held
	}{
		{"terminal of a desktop", &member{1000, "/" + place + "/app.slice/terminal.scope", joins}, ""},
		{"the group itself", &member{1000, "/" + place, joins}, ""},
		{"session of ssh", &member{1000, "/user.slice/user-1000.slice/session-3.scope", joins}, "outside of what systemd gives this user"},
		{"another user's", &member{1001, "/" + place, joins}, "outside of what systemd gives this user"},
		{"service of the system", &member{1000, "/system.slice/x.service", joins}, "outside of what systemd gives this user"},
		{"no group at all", &member{1000, "", joins}, "outside of what systemd gives this user"},
		{"may not join", &member{1000, "/" + place, func(string) error { return errors.New("EACCES") }}, "EACCES"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := t.TempDir()
			box := filepath.Join(root, place, base, "box")
			if err := os.MkdirAll(box, 0o700); err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{
				"cgroup.controllers", place + "/cgroup.procs", place + "/cgroup.subtree_control",
				place + "/glassbox/cgroup.subtree_control", place + "/glassbox/box/memory.max",
			} {
				if err := os.WriteFile(filepath.Join(root, name), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			dirs, warnings := Tree(root).makeFor(tt.m, "box", Limits{Memory: 1 << 30})
			if tt.warning != "" {
				if len(dirs) > 0 || len(warnings) != 1 || !strings.Contains(warnings[0], tt.warning) {
					t.Errorf("%v %q", dirs, warnings)
				}
				return
			}
			if diff := cmp.Diff(dirs, []string{box}); diff != "" || len(warnings) > 0 {
				t.Errorf("%s %q", diff, warnings)
			}
			if text, err := os.ReadFile(filepath.Join(box, "memory.max")); err != nil || string(text) != "1073741824" {
				t.Errorf("%v %s", err, text)
			}
		})
	}
}

// TestGive takes a controller that is there, where it may not be written.
func TestGive(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "cgroup.subtree_control")
	if err := give(dir, "memory"); err == nil {
		t.Error("a group that is not there")
	}
	if err := os.Symlink("/proc/filesystems", name); err != nil { // words that nobody writes
		t.Fatal(err)
	}
	if err := give(dir, "memory"); err == nil {
		t.Error("a controller that is not there")
	}
	if err := give(dir, "proc"); err != nil {
		t.Errorf("one that is there: %v", err)
	}
}

func TestOwnGroup(t *testing.T) {
	name := filepath.Join(t.TempDir(), "cgroup")
	if err := os.WriteFile(name, []byte("4:memory:/a\n0::/user.slice/x.scope\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := ownGroup(name); got != "/user.slice/x.scope" {
		t.Errorf("%q", got)
	}
	if got := ownGroup(name + "none"); got != "" {
		t.Errorf("%q", got)
	}
}
