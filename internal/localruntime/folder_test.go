package localruntime_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/glassboxhq/glassbox/internal/localruntime"
	"github.com/glassboxhq/glassbox/internal/owner"
	"github.com/glassboxhq/glassbox/sandbox"
)

// TestForeignStateDir refuses state folders into which another user could put
// a program that this user would run.
func TestForeignStateDir(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to make folders of another user")
	}
	const nobody = 65534
	must := func(t *testing.T, errs ...error) {
		t.Helper()
		for _, err := range errs {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, tt := range []struct {
		name string
		lay  func(t *testing.T, top string) (state string)
		text string // of the refusal; empty: it is taken
	}{
		{"new", func(_ *testing.T, top string) string { return filepath.Join(top, "a", "b") }, ""},
		{"readable by others", func(t *testing.T, top string) string {
			must(t, os.Chmod(top, 0o755))
			return top
		}, ""},
		{"of another user", func(t *testing.T, top string) string {
			must(t, os.Chown(top, nobody, nobody))
			return top
		}, "belongs to the user 65534"},
		{"writable by all", func(t *testing.T, top string) string {
			must(t, os.Chmod(top, 0o777))
			return top
		}, "chmod go-w"},
		{"writable by all, and sticky", func(t *testing.T, top string) string {
			must(t, os.Chmod(top, 0o777|os.ModeSticky))
			return top
		}, "chmod go-w"},
		{"writable by the group", func(t *testing.T, top string) string {
			must(t, os.Chmod(top, 0o775))
			return top
		}, "chmod go-w"},
		{"recorders of another user", func(t *testing.T, top string) string {
			inner := filepath.Join(top, "recorders")
			must(t, os.Mkdir(inner, 0o755), os.Chown(inner, nobody, nobody))
			return top
		}, "recorders belongs to the user 65534"},
		{"recorders elsewhere", func(t *testing.T, top string) string {
			must(t, os.Symlink(t.TempDir(), filepath.Join(top, "recorders")))
			return top
		}, "recorders"},
		{"sandboxes writable by all", func(t *testing.T, top string) string {
			inner := filepath.Join(top, "sandboxes")
			must(t, os.Mkdir(inner, 0o700), os.Chmod(inner, 0o777))
			return top
		}, "sandboxes can be written by other users"},
		{"below another user's folder", func(t *testing.T, top string) string {
			home := filepath.Join(top, "home")
			must(t, os.MkdirAll(filepath.Join(home, "state"), 0o700), os.Chown(home, nobody, nobody))
			return filepath.Join(home, "state")
		}, "home, which belongs to the user 65534"},
		{"new below another user's folder", func(t *testing.T, top string) string {
			home := filepath.Join(top, "home")
			must(t, os.Mkdir(home, 0o700), os.Chown(home, nobody, nobody))
			return filepath.Join(home, "a", "state")
		}, "home, which belongs to the user 65534"},
		{"below a folder that all can write", func(t *testing.T, top string) string {
			open := filepath.Join(top, "open")
			must(t, os.MkdirAll(filepath.Join(open, "state"), 0o700), os.Chmod(open, 0o777))
			return filepath.Join(open, "state")
		}, "open, which other users can write (mode 0777)"},
		{"below a sticky folder", func(t *testing.T, top string) string {
			open := filepath.Join(top, "open")
			must(t, os.MkdirAll(filepath.Join(open, "state"), 0o700), os.Chmod(open, 0o777|os.ModeSticky))
			return filepath.Join(open, "state")
		}, ""},
		{"below a folder of a group", func(t *testing.T, top string) string {
			shared := filepath.Join(top, "shared")
			must(t, os.MkdirAll(filepath.Join(shared, "state"), 0o700), os.Chmod(shared, 0o770), os.Chown(shared, 0, nobody))
			return filepath.Join(shared, "state")
		}, "shared, which other users can write"},
		{"by another user's link", func(t *testing.T, top string) string {
			link := filepath.Join(top, "link")
			must(t, os.Mkdir(filepath.Join(top, "state"), 0o700), os.Symlink("state", link), os.Lchown(link, nobody, nobody))
			return link
		}, "link, which belongs to the user 65534"},
		{"by a link", func(t *testing.T, top string) string {
			link := filepath.Join(top, "link")
			must(t, os.Mkdir(filepath.Join(top, "state"), 0o700), os.Symlink("state", link))
			return link
		}, ""},
		{"comma", func(_ *testing.T, top string) string { return filepath.Join(top, "a,b") }, "comma"},
		{"colon", func(_ *testing.T, top string) string { return filepath.Join(top, "a:b", "state") }, "colon"},
		{"line end", func(_ *testing.T, top string) string { return filepath.Join(top, "a\nb") }, "line end"},
		{"name of any script", func(_ *testing.T, top string) string { return filepath.Join(top, "stato è 状态 \"'$") }, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			state := tt.lay(t, plainDir(t))
			rt, err := localruntime.New(&localruntime.Options{StateDir: state})
			if tt.text == "" {
				if err != nil {
					t.Fatal(err)
				}
				rt.Close()
				for _, name := range []string{"sandboxes", "recorders", "snapshots"} {
					if info, err := os.Lstat(filepath.Join(state, name)); err != nil || info.Mode() != os.ModeDir|0o700 {
						t.Errorf("%s: %v %v", name, err, info)
					}
				}
				return
			}
			if err == nil {
				rt.Close()
				t.Fatal("it is taken")
			}
			e, ok := err.(*sandbox.Error) //nolint:errorlint // New returns it as it is
			if !ok || e.Field != "state_dir" || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("%v (%+v), want %q", err, e, tt.text)
			}
		})
	}
}

// plainDir is t.TempDir without the name of the test in it.
func plainDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "state-") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// TestStateDirByLinks runs a sandbox, and the doctor, in a folder that is
// reached through links.
func TestStateDirByLinks(t *testing.T) {
	top := plainDir(t)
	if err := os.MkdirAll(filepath.Join(top, "real", "state"), 0o700); err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{"a": "real", "real/b": "state"} {
		if err := os.Symlink(to, filepath.Join(top, from)); err != nil {
			t.Fatal(err)
		}
	}
	opts := options(t, filepath.Join(top, "a", "b"))
	rt := startRuntime(t, opts)
	info := create(t, rt, nil)
	if out := run(t, rt, info.ID, "echo up > /.agent-history/x; cat /.agent-history/x"); out.stdout != "up\n" {
		t.Errorf("%+v", out)
	}
	conn, err := owner.Dial(t.Context(), opts.StateDir)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	checkDoctor(t, opts, "")
	if err := rt.Delete(t.Context(), info.ID); err != nil {
		t.Fatal(err)
	}
}

// TestDoctorTriesTheStateDir finds what is wrong with the state folder itself.
func TestDoctorTriesTheStateDir(t *testing.T) {
	top := plainDir(t)
	for _, name := range []string{"a,b", "not/there/yet"} {
		opts := options(t, filepath.Join(top, name))
		text := ""
		if strings.Contains(name, ",") {
			if err := os.Mkdir(opts.StateDir, 0o700); err != nil {
				t.Fatal(err)
			}
			text = "comma"
		}
		checkDoctor(t, opts, text)
	}
	if left, err := filepath.Glob(filepath.Join(top, "*", ".doctor*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
	if _, err := os.Lstat(filepath.Join(top, "not")); err == nil {
		t.Error("the doctor made the state folder")
	}
}

// checkDoctor looks at what the doctor says of a start; without a text, it went
// well.
func checkDoctor(t *testing.T, opts *localruntime.Options, text string) {
	t.Helper()
	for _, c := range localruntime.Doctor(t.Context(), opts) {
		if strings.Contains(c.Text, "MISSING") {
			t.Errorf("%+v", c)
		}
		if c.Name == "start" && (c.OK != (text == "") || !strings.Contains(c.Text, text)) {
			t.Errorf("%+v, want %q", c, text)
		}
	}
}
