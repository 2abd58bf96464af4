package server_test

import (
	"archive/zip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/glassboxhq/glassbox/internal/server"
	"github.com/glassboxhq/glassbox/sandbox"
)

// tree makes a directory of every kind of thing.
func (r *room) tree(t *testing.T) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(r.dir, "d", ".deep"), 0o750); err != nil {
		t.Fatal(err)
	}
	r.file("d/one", "1")
	r.file("d/.deep/two\xff", "22")
	if err := os.Chmod(filepath.Join(r.dir, "d/one"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("one", filepath.Join(r.dir, "d/in")); err != nil {
		t.Fatal(err)
	}
}

func TestCopy(t *testing.T) {
	t.Parallel()
	r := start(t, nil).room()
	r.tree(t)
	files := r.base + "/files"
	var one server.FileEntry
	r.ask("POST", files+"/copy", `{"from":"d/one","to":"d/again"}`).read(t, &one)
	if one.Mode != "0755" || mustRead(t, filepath.Join(r.dir, "d/again")) != "1" {
		t.Errorf("%+v", one)
	}
	r.ask("POST", files+"/copy", `{"from":"d","to":"e"}`).read(t, &one)
	if one.Type != "directory" || one.Mode != "0750" || mustRead(t, filepath.Join(r.dir, "e/.deep/two\xff")) != "22" {
		t.Errorf("%+v", one)
	}
	r.ask("POST", files+"/copy", `{"from":"d/in","to_base64":"/w=="}`).read(t, &one)
	if to, err := os.Readlink(filepath.Join(r.dir, "\xff")); err != nil || to != "one" || one.Type != "link" {
		t.Errorf("%q %v %+v", to, err, one)
	}
	if err := os.Symlink("d", filepath.Join(r.dir, "door")); err != nil {
		t.Fatal(err)
	}
	r.ask("POST", files+"/copy", `{"from":"d/one","to":"e/in"}`).want(t, "it is there", 409, sandbox.CodeFileExists)
	r.ask("POST", files+"/copy", `{"from":"none","to":"x"}`).want(t, "nothing", 404, sandbox.CodeFileNotFound)
	r.ask("POST", files+"/copy", `{"from":"d/one","to":"none/x"}`).want(t, "nowhere", 404, sandbox.CodeFileNotFound)
	for _, to := range []string{"d/x", "d/.deep/x", "door/x"} {
		r.ask("POST", files+"/copy", `{"from":"d","to":"`+to+`"}`).want(t, to, 400, sandbox.CodeInvalid)
	}
	r.ask("POST", files+"/copy", `{"from":"/dev/null","to":"x"}`).want(t, "a device", 403, sandbox.CodePathNotAllowed)
}

func TestUsage(t *testing.T) {
	t.Parallel()
	r := start(t, nil).room()
	r.tree(t)
	var all server.Usage
	r.ask("GET", r.base+"/files/usage?path=d", "").read(t, &all)
	if want := (server.Usage{Files: 3, Directories: 1, Bytes: 3}); all != want {
		t.Errorf("%+v, want %+v", all, want)
	}
	r.ask("GET", r.base+"/files/usage?path=none", "").want(t, "nothing", 404, sandbox.CodeFileNotFound)
}

func TestSelection(t *testing.T) {
	t.Parallel()
	r := start(t, nil).room()
	r.tree(t)
	r.file("数据 1.csv", "a,b")
	r.file("\xfe", "bytes")
	r.file("other", "not asked for")
	archive := r.base + "/files/archive?format=zip&path=" + url.QueryEscape(r.dir)
	a := r.ask("GET", archive+"&only=d&only="+url.QueryEscape("数据 1.csv")+"&only_base64=%2Fg%3D%3D", "")
	z, err := zip.NewReader(strings.NewReader(a.body), int64(len(a.body)))
	if err != nil {
		t.Fatalf("%d %s: %v", a.status, a.body, err)
	}
	var names []string
	for _, f := range z.File {
		names = append(names, f.Name)
	}
	slices.Sort(names)
	if len(names) != 6 || !slices.Contains(names, "d/") || !slices.Contains(names, "d/one") || !slices.Contains(names, "数据 1.csv") || slices.Contains(names, "other") {
		t.Errorf("%q", names)
	}
	r.ask("GET", archive+"&only=none", "").want(t, "nothing", 404, sandbox.CodeFileNotFound)
	for _, bad := range []string{"&only=..", "&only=a%2Fb", "&only=.", "&only_base64=x"} {
		r.ask("GET", archive+bad, "").want(t, bad, 400, sandbox.CodeInvalid)
	}
}
