package server_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/server"
	"github.com/glassboxhq/glassbox/sandbox"
)

func TestTree(t *testing.T) {
	t.Parallel()
	r := start(t, nil).room()
	files := r.base + "/files"
	var one server.FileEntry
	r.ask("POST", files+"/directories", `{"path":"a/b","mode":"700"}`).read(t, &one)
	if one.Type != "directory" || one.Mode != "0700" || one.Path != r.dir+"/a/b" {
		t.Errorf("%+v", one)
	}
	r.file("a/x", "1")
	r.file("a/y", "2")
	r.ask("POST", files+"/move", `{"from":"a/x","to":"a/y"}`).want(t, "it is there", 409, sandbox.CodeFileExists)
	r.ask("POST", files+"/move", `{"from":"a/x","to":"a/y","replace":true}`).read(t, &one)
	if got := mustRead(t, filepath.Join(r.dir, "a/y")); got != "1" || one.Name != "y" {
		t.Errorf("%q %+v", got, one)
	}
	r.ask("POST", files+"/move", `{"from":"none","to":"x"}`).want(t, "nothing", 404, sandbox.CodeFileNotFound)
	r.ask("POST", files+"/move", `{"from":"a/y","to_base64":"/w=="}`).read(t, &one)
	if !bytes.Equal(one.PathBytes, []byte(r.dir+"/\xff")) {
		t.Errorf("%+v", one)
	}
	r.ask("POST", files+"/mode", `{"path_base64":"/w==","mode":"4640"}`).read(t, &one)
	if one.Mode != "4640" {
		t.Errorf("%+v", one)
	}
	for body, code := range map[string]int{`{}`: 400, `{"path":"a","mode":"9"}`: 422, `{"path":"none","mode":"644"}`: 404, `{"path":"a","path_base64":"YQ==","mode":"644"}`: 400, `{"path":"/proc/self/comm","mode":"777"}`: 403} {
		if a := r.ask("POST", files+"/mode", body); a.status != code {
			t.Errorf("%s: %d %s", body, a.status, a.body)
		}
	}
	r.ask("DELETE", files+"?path=a", "").want(t, "not empty", 409, sandbox.CodeNotEmpty)
	r.ask("DELETE", files+"?path=a&recursive=true", "").want(t, "recursive", 204, "")
	r.ask("DELETE", files+"?path=a", "").want(t, "again", 404, sandbox.CodeFileNotFound)
	r.ask("DELETE", files+"?path=%FF", "").want(t, "a name that is no text", 204, "")
	for _, path := range []string{"/", "/proc", "/proc/1", "../../../../../../../../../../", ""} {
		if a := r.ask("DELETE", files+"?recursive=true&path="+url.QueryEscape(path), ""); a.status < 400 || a.status >= 500 {
			t.Errorf("%q: %d %s", path, a.status, a.body)
		}
	}
	if left, err := os.ReadDir(r.dir); err != nil || len(left) != 0 {
		t.Errorf("%v %v", left, err)
	}
	for kind, want := range map[string]int{history.FileMakeDir: 1, history.FileMove: 4, history.FileDelete: 0} {
		ops := r.history(kind)
		if want > 0 && len(ops) != want {
			t.Errorf("%s: %d operations", kind, len(ops))
		}
		for _, op := range ops {
			if op.Source != history.SourceConsole || op.Actor.ID != "олена" {
				t.Errorf("%+v", op)
			}
		}
	}
}

func TestArchive(t *testing.T) {
	t.Parallel()
	r := start(t, nil).room()
	if err := os.MkdirAll(filepath.Join(r.dir, "d", "deep"), 0o755); err != nil {
		t.Fatal(err)
	}
	r.file("d/one", "1")
	r.file("d/deep/two\xff", "22")
	r.file("d/three:\n", "333")
	for name, to := range map[string]string{"d/in": "one", "d/out": "/etc/passwd", "d/up": "../../x"} {
		if err := os.Symlink(to, filepath.Join(r.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(r.dir, "d", "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	archive := r.base + "/files/archive?path="
	a := r.ask("GET", archive+"d", "")
	if a.status != 200 || a.header.Get("Content-Type") != "application/x-tar" || a.header.Get("Content-Disposition") != "attachment; filename=d.tar" {
		t.Fatalf("%d %v", a.status, a.header)
	}
	var names []string
	for tr := tar.NewReader(strings.NewReader(a.body)); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeXGlobalHeader {
			names = append(names, "left out "+h.PAXRecords[sandbox.TarSkipped])
			continue
		}
		names = append(names, h.Name)
	}
	slices.Sort(names)
	if want := []string{"deep/", "deep/two\xff", "in", "left out 3", "one", "three:\n"}; !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
	whole := a.body

	a = r.ask("GET", archive+"d&format=zip", "")
	z, err := zip.NewReader(strings.NewReader(a.body), int64(len(a.body)))
	if err != nil || len(z.File) != 4 || a.header.Get("Content-Type") != "application/zip" {
		t.Errorf("%d %v %v", a.status, a.header, err)
	}
	if a = r.ask("GET", archive+"d/one&format=zip", ""); a.status != 200 || !strings.Contains(a.header.Get("Content-Disposition"), "one.zip") {
		t.Errorf("%d %v", a.status, a.header)
	}
	r.ask("GET", archive+"none", "").want(t, "nothing", 404, sandbox.CodeFileNotFound)
	r.ask("GET", archive+"d/fifo", "").want(t, "fifo", 403, sandbox.CodePathNotAllowed)
	r.ask("GET", archive+"d&format=rar", "").want(t, "format", 422, sandbox.CodeInvalid)

	var done sandbox.Uploaded
	r.ask("POST", archive+"copy", whole, "Content-Type: application/x-tar").read(t, &done)
	if done.Files != 3 || done.Links != 1 || mustRead(t, filepath.Join(r.dir, "copy/deep/two\xff")) != "22" {
		t.Errorf("%+v", done)
	}
	var evil bytes.Buffer
	w := tar.NewWriter(&evil)
	for _, name := range []string{"fine", "../evil"} {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	a = r.ask("POST", archive+"copy", evil.String())
	a.want(t, "evil", 400, sandbox.CodeArchive)
	if _, err := os.Lstat(filepath.Join(r.dir, "evil")); err == nil || !strings.Contains(a.body, "1 files") {
		t.Errorf("%v %s", err, a.body)
	}
	if a = r.ask("POST", archive+"copy", "no tar"); a.status != 400 {
		t.Errorf("%d %s", a.status, a.body)
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	r := start(t, nil).room()
	if err := os.MkdirAll(filepath.Join(r.dir, "d", ".h"), 0o755); err != nil {
		t.Fatal(err)
	}
	r.file("a.go", "package a\n\nfunc Main() {}\n")
	r.file("d/b.go", "package b // Основа\n")
	r.file("d/c\xff.txt", "package c\n")
	r.file("d/.h/e.go", "package e\n")
	r.file("bin", "package\x00")
	search := r.base + "/files/search?"
	var found server.Found
	for query, want := range map[string]string{
		"name=*.go": "a.go d/b.go", "name=*.go&hidden=true": "a.go d/.h/e.go d/b.go", "name=*/*.go": "d/b.go", "name=none": "", "name=*.go&limit=1": "a.go …", "path=d&name=b*": "d/b.go",
	} {
		found = server.Found{}
		r.ask("GET", search+query, "").read(t, &found)
		var got []string
		for _, e := range found.Entries {
			got = append(got, strings.TrimPrefix(e.Path, r.dir+"/"))
		}
		if slices.Sort(got); found.Truncated {
			got = append(got, "…")
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", query, got, want)
		}
	}
	for query, want := range map[string]string{
		"content=package": "a.go:1 d/b.go:1 d/c\xff.txt:1", "content=PACKAGE&ignore_case=true&name=*.go": "a.go:1 d/b.go:1", "content=func%5Cs%2BM&regexp=true": "a.go:3",
		"content=" + url.QueryEscape("Основа"): "d/b.go:1", "content=none": "",
	} {
		found = server.Found{}
		r.ask("GET", search+query, "").read(t, &found)
		var got []string
		for _, m := range found.Matches {
			path := m.Path
			if m.PathBytes != nil {
				path = string(m.PathBytes)
			}
			got = append(got, fmt.Sprintf("%s:%d", strings.TrimPrefix(path, r.dir+"/"), m.Line))
		}
		if slices.Sort(got); strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", query, got, want)
		}
	}
	r.ask("GET", search, "").want(t, "neither", 400, sandbox.CodeInvalid)
	r.ask("GET", search+"content=(&regexp=true", "").want(t, "no expression", 400, sandbox.CodeInvalid)
	r.ask("GET", search+"name=[", "").want(t, "no pattern", 400, sandbox.CodeInvalid)
	r.ask("GET", search+"name=/etc/*", "").want(t, "absolute", 400, sandbox.CodeInvalid)
}
