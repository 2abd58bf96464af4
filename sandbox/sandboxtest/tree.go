package sandboxtest

import (
	"errors"
	"io/fs"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/glassboxhq/glassbox/sandbox"
)

// oddNames are names that a file may have.
var oddNames = []string{
	"'; touch pwned; #", "$(touch pwned)", "`touch pwned`", "a\nb", "-rf", "--help", "*", "[x]", "{a,b}", "研究员 文件.txt", `back\slash`,
	"per%20cent", "a?b#c&d=e+f", `a"b.txt`, "semi;colon.txt", "\xff\xfe bytes", " ", strings.Repeat("n", 255),
}

func testTree(t *testing.T, s sandbox.Session) {
	f := files(t, s)
	t.Run("stat", func(t *testing.T) {
		write(t, s, "st/f", []byte("abc"))
		run(t, s, &sandbox.Command{Line: "ln -s f st/link; ln -s nowhere st/dangling; chmod 4751 st/f"})
		info, err := f.Stat(t.Context(), "st/f")
		if err != nil || info.Size != 3 || info.Mode != 0o751|fs.ModeSetuid || info.Modified.IsZero() || info.Owner == "" || info.Group == "" || !path.IsAbs(info.Path) {
			t.Errorf("got %+v, %v", info, err)
		}
		owner := strings.TrimSpace(string(run(t, s, &sandbox.Command{Line: "stat -c %U:%G st/f"}).Stdout))
		if got := info.Owner + ":" + info.Group; got != owner && !strings.Contains(owner, "UNKNOWN") {
			t.Errorf("got the owner %s, want %s", got, owner)
		}
		for link, target := range map[string]string{"link": "f", "dangling": "nowhere"} {
			if info, err := f.Stat(t.Context(), "st/"+link); err != nil || info.Mode.Type() != fs.ModeSymlink || info.Target != target {
				t.Errorf("got %+v, %v, want the link itself", info, err)
			}
		}
		for _, dir := range []string{"/", ".", "st", "st/"} {
			if info, err := f.Stat(t.Context(), dir); err != nil || !info.Mode.IsDir() {
				t.Errorf("%s: got %+v, %v, want a directory", dir, info, err)
			}
		}
	})
	t.Run("make directories", func(t *testing.T) {
		for range 2 {
			info, err := f.MakeDir(t.Context(), "m/a/b", &sandbox.MakeDirOptions{Mode: 0o700})
			if err != nil || !info.Mode.IsDir() {
				t.Fatalf("got %+v, %v", info, err)
			}
		}
		if res := run(t, s, &sandbox.Command{Line: "stat -c %a m/a/b m/a"}); string(res.Stdout) != "700\n700\n" {
			t.Errorf("got %q", res.Stdout)
		}
	})
	t.Run("FB-025 names", func(t *testing.T) {
		for _, name := range oddNames {
			write(t, s, "odd/"+name, []byte(name))
			if info, err := f.Stat(t.Context(), "odd/"+name); err != nil || path.Base(info.Path) != name {
				t.Errorf("%q: stat: got %+v, %v", name, info, err)
			}
			if _, err := f.Edit(t.Context(), "odd/"+name, &sandbox.Edit{Old: strings.ToValidUTF8(name, ""), New: "!"}); err != nil {
				t.Errorf("%q: edit: %v", name, err)
			}
			if info, err := f.Move(t.Context(), "odd/"+name, "moved/"+name, nil); err != nil || path.Base(info.Path) != name {
				t.Errorf("%q: move: got %+v, %v", name, info, err)
			}
			list, err := s.List(t.Context(), "moved")
			if err != nil || len(list) != 1 || path.Base(list[0].Path) != name {
				t.Errorf("%q: list: got %+v, %v", name, list, err)
			}
			if err := s.Remove(t.Context(), "moved/"+name, nil); err != nil {
				t.Errorf("%q: remove: %v", name, err)
			}
		}
		if res := run(t, s, &sandbox.Command{Line: "ls -A odd moved; find . -name pwned"}); string(res.Stdout) != "moved:\n\nodd:\n" {
			t.Errorf("got %q, want nothing left", res.Stdout)
		}
	})
	testMove(t, s, f)
	testSetMode(t, s, f)
	testTreeErrors(t, s, f)
}

func testMove(t *testing.T, s sandbox.Session, f sandbox.Files) {
	t.Run("move", func(t *testing.T) {
		write(t, s, "mv/a", []byte("a"))
		write(t, s, "mv/b", []byte("b"))
		if _, err := f.Move(t.Context(), "mv/a", "mv/b", nil); !errors.Is(err, sandbox.ErrExists) {
			t.Errorf("over a file: got %v, want that it exists", err)
		}
		info, err := f.Move(t.Context(), "mv/a", "mv/b", &sandbox.MoveOptions{Replace: true})
		if err != nil || info.Size != 1 || path.Base(info.Path) != "b" {
			t.Errorf("got %+v, %v", info, err)
		}
		if _, err := f.Move(t.Context(), "mv", "deep/er/mv2", nil); err != nil {
			t.Error(err)
		}
		if got := read(t, s, "deep/er/mv2/b", nil); string(got) != "a" {
			t.Errorf("got %q, want a", got)
		}
		run(t, s, &sandbox.Command{Line: "ln -s nowhere mvlink"})
		if info, err := f.Move(t.Context(), "mvlink", "mvlink2", nil); err != nil || info.Target != "nowhere" {
			t.Errorf("a link: got %+v, %v, want it moved itself", info, err)
		}
	})
	t.Run("move to another file system", func(t *testing.T) {
		if res := run(t, s, &sandbox.Command{Line: "d=$(mktemp -d -p /dev/shm) && [ $(stat -c %d $d) != $(stat -c %d .) ] && rmdir $d"}); res.ExitCode != 0 {
			t.Skip("there is no other file system to write to")
		}
		run(t, s, &sandbox.Command{Line: "mkdir -p far/sub; printf x > far/sub/f; chmod 640 far/sub/f; touch -d 2001-02-03 far/sub/f; ln -s f far/sub/l; mkfifo far/p; chmod 711 far"})
		there := "/dev/shm/far-" + path.Base(strings.TrimSpace(string(run(t, s, &sandbox.Command{Line: "mktemp -u"}).Stdout)))
		if _, err := f.Move(t.Context(), "far", there, nil); err != nil {
			t.Fatal(err)
		}
		res := run(t, s, &sandbox.Command{Line: "cd $D && stat -c '%a' . && stat -c '%a %y' sub/f | cut -c1-14 && cat sub/f && readlink sub/l && stat -c %F p; cd -; ls -d far; ls -A /dev/shm | grep -c glassbox; rm -r $D", Env: map[string]string{"D": there}})
		if got := string(res.Stdout); !strings.HasPrefix(got, "711\n640 2001-02-03\nxf\nfifo\n") || !strings.HasSuffix(got, "\n0\n") {
			t.Errorf("got %q %s", got, res.Stderr)
		}
	})
}

func testSetMode(t *testing.T, s sandbox.Session, f sandbox.Files) {
	mode := func(m fs.FileMode) *fs.FileMode { return &m }
	t.Run("set mode", func(t *testing.T) {
		write(t, s, "ch/f", nil)
		write(t, s, "ch/sub/g", nil)
		write(t, s, "outside", nil)
		run(t, s, &sandbox.Command{Line: "chmod 644 outside; ln -s ../outside ch/link; ln -s .. ch/up; mkfifo ch/p"})
		info, err := f.SetMode(t.Context(), "ch/f", &sandbox.ModeOptions{Mode: mode(0o4750&^0o4000 | fs.ModeSetuid)})
		if err != nil || info.Mode != 0o750|fs.ModeSetuid {
			t.Errorf("got %+v, %v", info, err)
		}
		if _, err := f.SetMode(t.Context(), "ch", &sandbox.ModeOptions{Mode: mode(0o711), Recursive: true}); err != nil {
			t.Fatal(err)
		}
		res := run(t, s, &sandbox.Command{Line: "stat -c %a ch ch/f ch/sub ch/sub/g ch/p outside . | tr '\\n' ' '"})
		if got := string(res.Stdout); !strings.HasPrefix(got, "711 711 711 711 711 644 ") || strings.HasSuffix(got, " 711 ") {
			t.Errorf("got %q, want all below and nothing beyond", got)
		}
		me := strings.Fields(string(run(t, s, &sandbox.Command{Line: "id -u; id -g"}).Stdout))
		if _, err := f.SetMode(t.Context(), "ch", &sandbox.ModeOptions{Owner: me[0], Group: me[1], Recursive: true}); err != nil {
			t.Errorf("to oneself: %v", err)
		}
		if me[0] == "0" {
			info, err := f.SetMode(t.Context(), "ch/f", &sandbox.ModeOptions{Owner: "nobody", Group: "4242"})
			if err != nil || info.Owner != "nobody" || info.Group != "4242" {
				t.Errorf("got %+v, %v", info, err)
			}
		}
	})
	run(t, s, &sandbox.Command{Line: "touch plainmode; ln -s plainmode modelink"})
	for _, tt := range []struct {
		name, path, field string
		opts              *sandbox.ModeOptions
		want              error
	}{
		{"nothing to change", "plainmode", "mode", &sandbox.ModeOptions{}, sandbox.ErrInvalid},
		{"no options", "plainmode", "mode", nil, sandbox.ErrInvalid},
		{"type bits", "plainmode", "mode", &sandbox.ModeOptions{Mode: mode(fs.ModeDir | 0o755)}, sandbox.ErrInvalid},
		{"unknown owner", "plainmode", "owner", &sandbox.ModeOptions{Owner: "no such user"}, sandbox.ErrInvalid},
		{"unknown group", "plainmode", "group", &sandbox.ModeOptions{Group: "-1"}, sandbox.ErrInvalid},
		{"link", "modelink", "", &sandbox.ModeOptions{Mode: mode(0o600)}, sandbox.ErrPermission},
		{"missing", "nothing", "", &sandbox.ModeOptions{Mode: mode(0o600)}, sandbox.ErrNotFound},
		{"/proc", "/proc/self/comm", "", &sandbox.ModeOptions{Mode: mode(0o600)}, sandbox.ErrPermission},
	} {
		t.Run("set mode: "+tt.name, func(t *testing.T) {
			_, err := f.SetMode(t.Context(), tt.path, tt.opts)
			e, ok := errors.AsType[*sandbox.Error](err)
			if !ok || !errors.Is(err, tt.want) || e.Field != tt.field {
				t.Errorf("got %v, want %v about %q", err, tt.want, tt.field)
			}
		})
	}
}

func testTreeErrors(t *testing.T, s sandbox.Session, f sandbox.Files) {
	run(t, s, &sandbox.Command{Line: "mkdir -p te/dir/sub te/full; touch te/plain te/full/f; ln -s dir te/link"})
	stat := func(name string) error { _, err := f.Stat(t.Context(), name); return err }
	mkdir := func(name string) error { _, err := f.MakeDir(t.Context(), name, nil); return err }
	move := func(from, to string) error {
		_, err := f.Move(t.Context(), from, to, &sandbox.MoveOptions{Replace: true})
		return err
	}
	for _, tt := range []struct {
		name string
		err  error
		want error
	}{
		{"FB-033 stat nothing", stat("te/nothing"), sandbox.ErrNotFound},
		{"FB-033 stat an empty path", stat(""), sandbox.ErrInvalid},
		{"FB-033 stat a long name", stat(strings.Repeat("n", 300)), sandbox.ErrInvalid},
		{"FB-033 stat a long path", stat(strings.Repeat("d/", 2500) + "f"), sandbox.ErrInvalid},
		{"FB-033 stat NUL", stat("a\x00b"), sandbox.ErrInvalid},
		{"FB-033 stat below a file", stat("te/plain/x"), sandbox.ErrNotDirectory},
		{"FB-035 mkdir over a file", mkdir("te/plain"), sandbox.ErrExists},
		{"FB-035 mkdir below a file", mkdir("te/plain/x"), sandbox.ErrNotDirectory},
		{"mkdir in /proc", mkdir("/proc/glassbox"), sandbox.ErrPermission},
		{"FB-035 move a into a/b", move("te/dir", "te/dir/sub/dir"), sandbox.ErrInvalid},
		{"move a into a through a link", move("te/dir", "te/link/sub/dir"), sandbox.ErrInvalid},
		{"move over a directory", move("te/plain", "te/full"), sandbox.ErrIsDirectory},
		{"move a directory over a file", move("te/dir", "te/plain"), sandbox.ErrNotDirectory},
		{"move nothing", move("te/nothing", "te/x"), sandbox.ErrNotFound},
		{"move the root", move("/", "te/x"), sandbox.ErrPermission},
		{"move the working directory", move(".", "/tmp/glassbox-moved"), sandbox.ErrPermission},
		{"move to /proc", move("te/plain", "/proc/glassbox"), sandbox.ErrPermission},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if !errors.Is(tt.err, tt.want) {
				t.Errorf("got %v, want %v", tt.err, tt.want)
			}
		})
	}
	res := run(t, s, &sandbox.Command{Line: "find te | sort"})
	want := "te\nte/dir\nte/dir/sub\nte/full\nte/full/f\nte/link\nte/plain\n"
	if diff := cmp.Diff(want, string(res.Stdout)); diff != "" {
		t.Errorf("what was refused has changed something (-want +got):\n%s", diff)
	}
}
