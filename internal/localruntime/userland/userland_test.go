package userland_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/glassboxhq/glassbox/internal/localruntime/userland"
)

func build(t testing.TB, opts *userland.Options) (string, []userland.Bind) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "bundle")
	binds, err := userland.Build(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "rootfs"), binds
}

func TestBuild(t *testing.T) {
	root, binds := build(t, &userland.Options{
		Hostname: "box", Workdir: "/data/work", Files: []string{"/opt/tool/program"}, Dirs: []string{"/.hidden"},
	})
	if len(binds) == 0 || binds[0].Source != "/usr" {
		t.Errorf("binds: %v", binds)
	}
	for _, b := range binds {
		if !strings.HasPrefix(b.Target, root+"/") {
			t.Errorf("%s is bound outside of the root", b.Target)
		}
		if info, err := os.Lstat(b.Target); b.Target != filepath.Join(root, "usr/local") && (err != nil || !info.IsDir()) {
			t.Errorf("no place to bind %s: %v", b.Source, err)
		}
	}
	for name, mode := range map[string]os.FileMode{
		"tmp": os.ModeDir | os.ModeSticky | 0o777, "root": os.ModeDir | 0o700, "etc": os.ModeDir | 0o755,
		"data/work": os.ModeDir | 0o755, ".hidden": os.ModeDir | 0o755, "opt/tool/program": 0o755, "etc/passwd": 0o644,
	} {
		if info, err := os.Lstat(filepath.Join(root, name)); err != nil || info.Mode() != mode {
			t.Errorf("%s: %v %v, want mode %v", name, err, info, mode)
		}
	}
	hosts, err := os.ReadFile(filepath.Join(root, "etc/hosts"))
	if err != nil || !strings.Contains(string(hosts), "127.0.1.1\tbox\n") {
		t.Errorf("hosts: %v %s", err, hosts)
	}
}

func TestNothingOfTheHost(t *testing.T) {
	root, _ := build(t, &userland.Options{Hostname: "box", Workdir: "/w"})
	for _, name := range []string{"home", "root", "srv", "opt", "mnt", "media", "var/lib", "var/log", "run", "dev", "proc", "sys"} {
		entries, err := os.ReadDir(filepath.Join(root, name))
		if err != nil {
			t.Error(err)
		}
		for _, e := range entries {
			if e.Name() != "lock" && e.Name() != "misc" {
				t.Errorf("%s holds %s", name, e.Name())
			}
		}
	}
	for _, name := range []string{"shadow", "gshadow", "sudoers", "machine-id", "ssh", "ssl/private", "hostname-of-host", "pip.conf", "npmrc", "gitconfig", "environment"} {
		if _, err := os.Lstat(filepath.Join(root, "etc", name)); err == nil {
			t.Errorf("etc holds %s", name)
		}
	}
	own, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(root, "etc/hostname")); err != nil || strings.TrimSpace(string(text)) == own {
		t.Errorf("hostname: %v %s", err, text)
	}
}

func TestWorkdirOfTheHostIsNotMade(t *testing.T) {
	root, _ := build(t, &userland.Options{Hostname: "box", Workdir: "/usr/src/app"})
	if _, err := os.Lstat(filepath.Join(root, "usr/src")); err == nil {
		t.Error("a folder was made where /usr will be bound")
	}
}

func TestPip(t *testing.T) {
	for workdir, want := range map[string]string{
		"/workspace": "/workspace/.venv/bin", "/it's mine/": "/it's mine/.venv/bin", "/a:b": "", `/"a"`: "", "/a\nb": "",
	} {
		if got := userland.VenvBin(workdir); got != want {
			t.Errorf("%q: %q, want %q", workdir, got, want)
		}
		root, binds := build(t, &userland.Options{Hostname: "box", Workdir: workdir})
		mask := binds[1].Source
		if !strings.HasPrefix(mask, filepath.Dir(root)+"/") {
			t.Skipf("this machine has no /usr/local: %v", binds)
		}
		info, err := os.Lstat(filepath.Join(mask, "bin", "pip"))
		if (err == nil) != (want != "") || err == nil && info.Mode() != 0o755 {
			t.Errorf("%q: %v %v", workdir, err, info)
		}
	}
}

func BenchmarkBuild(b *testing.B) {
	for b.Loop() {
		dir := filepath.Join(b.TempDir(), "bundle")
		if _, err := userland.Build(dir, &userland.Options{Hostname: "box", Workdir: "/w"}); err != nil {
			b.Fatal(err)
		}
	}
}
