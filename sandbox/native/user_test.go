package native_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/glassboxhq/glassbox/sandbox"
	"github.com/glassboxhq/glassbox/sandbox/native"
)

// TestUser works for another user, to whom everything belongs that is made.
func TestUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	top, err := os.MkdirTemp("", "glassbox-user-") //nolint:usetesting // the other user must be able to look into it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(top) })
	if err := os.Chmod(top, 0o755); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(top, "work")
	s, err := native.New(&native.Options{
		User: &native.User{UID: 1234, GID: 1235, Groups: []uint32{77}}, Workdir: dir,
		Env: map[string]string{"PATH": "/usr/bin:/bin"}, Scripts: t.TempDir(),
	})
	if err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"id -u; id -g; id -G":                        "1234\n1235\n1235 77\n",
		"echo a > made; pwd":                         dir + "\n",
		"echo long #" + strings.Repeat("x", 200<<10): "long\n",
	} {
		res, err := s.Run(t.Context(), &sandbox.Command{Line: line})
		if err != nil || string(res.Stdout) != want {
			t.Errorf("%.20s: %+v %v, want %q", line, res, err, want)
		}
	}
	if _, err := s.Write(t.Context(), "new/deep/file", strings.NewReader("x"), nil); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", "made", "new", "new/deep", "new/deep/file"} {
		info, err := os.Lstat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if stat := info.Sys().(*syscall.Stat_t); stat.Uid != 1234 || stat.Gid != 1235 {
			t.Errorf("%q belongs to %d:%d", name, stat.Uid, stat.Gid)
		}
	}
}
