package cgroup_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/glassboxhq/glassbox/internal/localruntime/cgroup"
)

// tree lays out a tree as the kernel would, with the files of the group of a
// sandbox that is named box.
func tree(t *testing.T, files ...string) cgroup.Tree {
	t.Helper()
	root := t.TempDir()
	for _, name := range files {
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return cgroup.Tree(root)
}

// contents reads all files that were written.
func contents(t *testing.T, root cgroup.Tree) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(string(root), func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(name)
		if len(text) > 0 {
			all[strings.TrimPrefix(name, string(root)+"/")] = string(text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

var limits = cgroup.Limits{Memory: 256 << 20, CPU: 1500}

func TestVersion1(t *testing.T) {
	root := tree(t, "memory/cgroup.procs", "cpu/cgroup.procs",
		"memory/glassbox/box/memory.limit_in_bytes", "memory/glassbox/box/memory.memsw.limit_in_bytes",
		"cpu/glassbox/box/cpu.cfs_period_us", "cpu/glassbox/box/cpu.cfs_quota_us")
	dirs, warnings := root.Make("box", limits)
	want := []string{filepath.Join(string(root), "memory/glassbox/box"), filepath.Join(string(root), "cpu/glassbox/box")}
	if diff := cmp.Diff(dirs, want); diff != "" || len(warnings) > 0 {
		t.Errorf("%s %v", diff, warnings)
	}
	if diff := cmp.Diff(contents(t, root), map[string]string{
		"memory/glassbox/box/memory.limit_in_bytes":       "268435456",
		"memory/glassbox/box/memory.memsw.limit_in_bytes": "268435456",
		"cpu/glassbox/box/cpu.cfs_period_us":              "100000",
		"cpu/glassbox/box/cpu.cfs_quota_us":               "150000",
	}); diff != "" {
		t.Error(diff)
	}
}

func TestVersion2(t *testing.T) {
	root := tree(t, "cgroup.controllers", "cgroup.procs", "cgroup.subtree_control", "glassbox/cgroup.subtree_control",
		"glassbox/box/memory.max", "glassbox/box/memory.swap.max", "glassbox/box/cpu.max")
	dirs, warnings := root.Make("box", limits)
	if diff := cmp.Diff(dirs, []string{filepath.Join(string(root), "glassbox/box")}); diff != "" || len(warnings) > 0 {
		t.Errorf("%s %v", diff, warnings)
	}
	got := contents(t, root)
	// The kernel takes one word after the other; a plain file keeps the last.
	delete(got, "cgroup.subtree_control")
	delete(got, "glassbox/cgroup.subtree_control")
	if diff := cmp.Diff(got, map[string]string{
		"glassbox/box/memory.max": "268435456", "glassbox/box/memory.swap.max": "0", "glassbox/box/cpu.max": "150000 100000",
	}); diff != "" {
		t.Error(diff)
	}
}

func TestNotHeld(t *testing.T) {
	root := tree(t, "cpu/cgroup.procs", "cpu/glassbox/box/cpu.cfs_period_us", "cpu/glassbox/box/cpu.cfs_quota_us")
	dirs, warnings := root.Make("box", limits)
	if len(dirs) != 1 || len(warnings) != 1 || !strings.Contains(warnings[0], "the memory limit is not held") {
		t.Errorf("%v %v", dirs, warnings)
	}
	if dirs, warnings := root.Make("box", cgroup.Limits{}); dirs != nil || warnings != nil {
		t.Errorf("without limits: %v %v", dirs, warnings)
	}
}

func TestKilled(t *testing.T) {
	for _, name := range []string{"memory/glassbox/box/memory.oom_control", "glassbox/box/memory.events"} {
		root := tree(t, name)
		for text, want := range map[string]bool{
			"oom_kill_disable 0\nunder_oom 0\noom_kill 0\n": false,
			"low 0\noom 1\noom_kill 2\n":                    true,
		} {
			if err := os.WriteFile(filepath.Join(string(root), name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if got := root.Killed("box"); got != want {
				t.Errorf("%s %q: %v", name, text, got)
			}
		}
	}
}

func TestRemove(t *testing.T) {
	root := tree(t, "memory/cgroup.procs", "cpu/cgroup.procs")
	for _, name := range []string{"memory/glassbox/box", "cpu/glassbox/box", "glassbox/box"} {
		if err := os.MkdirAll(filepath.Join(string(root), name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := root.Remove(t.Context(), "box"); err != nil {
			t.Fatal(err)
		}
	}
	left, err := filepath.Glob(filepath.Join(string(root), "*/glassbox/*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left: %v %v", left, err)
	}
}
