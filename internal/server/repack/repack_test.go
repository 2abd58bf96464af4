package repack_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/glassboxhq/glassbox/internal/server/repack"
	"github.com/glassboxhq/glassbox/sandbox"
)

type entry struct {
	kind       byte
	name, link string
}

func pack(t testing.TB, list []entry) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, e := range list {
		h := &tar.Header{Typeflag: e.kind, Name: e.name, Linkname: e.link, Mode: 0o4755, Uid: 7}
		if e.kind == tar.TypeReg {
			h.Size = int64(len("content"))
		}
		if e.kind == tar.TypeXGlobalHeader {
			h = &tar.Header{Typeflag: e.kind, PAXRecords: map[string]string{sandbox.TarSkipped: "2", sandbox.TarSkippedNames: "fifo\nsocket"}}
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if e.kind == tar.TypeReg {
			if _, err := io.WriteString(w, "content"); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

var hostile = []struct {
	entry
	kept bool
}{
	{entry{tar.TypeDir, "./", ""}, false}, // the folder itself
	{entry{tar.TypeDir, "d/", ""}, true},
	{entry{tar.TypeReg, "d/plain", ""}, true},
	{entry{tar.TypeReg, "./dot", ""}, true},
	{entry{tar.TypeReg, "/etc/absolute", ""}, false},
	{entry{tar.TypeReg, "../climbs", ""}, false},
	{entry{tar.TypeReg, "d/../../climbs", ""}, false},
	{entry{tar.TypeReg, "d/../dot", ""}, false},
	{entry{tar.TypeSymlink, "inside", "d/plain"}, true},
	{entry{tar.TypeSymlink, "d/up", "../dot"}, true},
	{entry{tar.TypeSymlink, "here", "."}, true},
	{entry{tar.TypeReg, "here/through", ""}, false},
	{entry{tar.TypeSymlink, "absolute", "/etc/passwd"}, false},
	{entry{tar.TypeSymlink, "out", "../x"}, false},
	{entry{tar.TypeSymlink, "d/out", "../../x"}, false},
	{entry{tar.TypeSymlink, "behind", "here/../../x"}, false},
	{entry{tar.TypeSymlink, "d/later", "x/../../x"}, false},
	{entry{tar.TypeLink, "hard", "d/plain"}, true},
	{entry{tar.TypeLink, "hardout", "../x"}, false},
	{entry{tar.TypeLink, "hardabs", "/etc/passwd"}, false},
	{entry{tar.TypeChar, "device", ""}, false},
	{entry{tar.TypeFifo, "fifo", ""}, false},
	{entry{tar.TypeReg, "line\nbreak", ""}, true},
	{entry{tar.TypeReg, "bytes\xff", ""}, true},
	{entry{tar.TypeReg, `back\slash`, ""}, true},
	{entry{tar.TypeReg, `back_slash`, ""}, true},
	{entry{tar.TypeReg, "nul.txt", ""}, true},
	{entry{tar.TypeReg, "a:b", ""}, true},
	{entry{tar.TypeReg, "dot.", ""}, true},
	{entry{tar.TypeReg, "\u202egpj.exe", ""}, true},
	{entry{tar.TypeXGlobalHeader, "", ""}, false},
}

func list() (all []entry) {
	for _, h := range hostile {
		all = append(all, h.entry)
	}
	return all
}

func TestTar(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := repack.Tar(&out, bytes.NewReader(pack(t, list()))); err != nil {
		t.Fatal(err)
	}
	got, skipped := map[string]*tar.Header{}, ""
	for r := tar.NewReader(bytes.NewReader(out.Bytes())); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeXGlobalHeader {
			skipped = h.PAXRecords[sandbox.TarSkipped] + " " + h.PAXRecords[sandbox.TarSkippedNames]
			continue
		}
		got[h.Name] = h
	}
	kept := 0
	for _, h := range hostile {
		name := path.Clean(h.name)
		if h.kind == tar.TypeDir {
			name += "/"
		}
		if h.kept {
			kept++
			if g := got[name]; g == nil || g.Linkname != h.link || g.Mode != 0o755 || g.Uid != 7 {
				t.Errorf("%q: %+v", name, g)
			}
		}
	}
	if len(got) != kept {
		t.Errorf("%d entries, want %d", len(got), kept)
	}
	if !strings.HasPrefix(skipped, "16 /etc/absolute\n") || !strings.HasSuffix(skipped, "\nfifo\nsocket") {
		t.Errorf("%q", skipped)
	}
	// An ordinary program unpacks it, and only where it should.
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "in"), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("tar", "-x", "-C", filepath.Join(dir, "in"))
	cmd.Stdin = bytes.NewReader(out.Bytes())
	if text, err := cmd.CombinedOutput(); err != nil && os.Geteuid() == 0 {
		t.Errorf("%v: %s", err, text)
	}
	if there, err := os.ReadDir(dir); err != nil || len(there) != 1 {
		t.Errorf("%v %v", there, err)
	}
}

func TestZip(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := repack.Zip(&out, bytes.NewReader(pack(t, list()))); err != nil {
		t.Fatal(err)
	}
	z, err := zip.NewReader(bytes.NewReader(out.Bytes()), int64(out.Len()))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	seen := map[string]bool{}
	for _, f := range z.File {
		names = append(names, f.Name)
		if seen[f.Name] || strings.ContainsAny(f.Name, "\\:\n\u202e") || !utf8.ValidString(f.Name) || !f.Mode().IsDir() && !f.Mode().IsRegular() || f.NonUTF8 {
			t.Errorf("%q %v", f.Name, f.Mode())
		}
		if seen[f.Name] = true; f.Mode().IsDir() {
			continue
		}
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		if content, err := io.ReadAll(r); err != nil || string(content) != "content" {
			t.Errorf("%s: %q %v", f.Name, content, err)
		}
	}
	all := strings.Join(names, " ")
	if len(names) != 11 || !strings.Contains(all, "d/plain dot ") || !strings.Contains(all, "back_slash~") || !strings.Contains(all, "_nul~") {
		t.Errorf("%d: %q", len(names), names)
	}
	if !strings.HasPrefix(z.Comment, "left out: 20\n") || !strings.Contains(z.Comment, "/etc/absolute") {
		t.Errorf("%q", z.Comment)
	}
}

// A file that is far larger than what comes of it is not written out.
func TestSparse(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(file, 1<<30); err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{"gnu", "posix"} {
		text, err := exec.Command("tar", "-c", "-S", "--format="+format, "-C", filepath.Dir(file), "f").Output()
		if err != nil {
			t.Skip("needs GNU tar: ", err)
		}
		var out bytes.Buffer
		if err := repack.Tar(&out, bytes.NewReader(text)); err != nil || out.Len() > 1<<20 {
			t.Errorf("%s: %d bytes, %v", format, out.Len(), err)
		}
	}
}

func FuzzRepack(f *testing.F) {
	f.Add(pack(f, list()))
	f.Fuzz(func(t *testing.T, text []byte) {
		var out bytes.Buffer
		if repack.Tar(&out, bytes.NewReader(text)) == nil {
			links := map[string]bool{}
			for r := tar.NewReader(&out); ; {
				h, err := r.Next()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				if h.Typeflag == tar.TypeXGlobalHeader {
					continue
				}
				if !filepath.IsLocal(h.Name) {
					t.Fatalf("%q", h.Name)
				}
				for dir := path.Dir(path.Clean(h.Name)); dir != "."; dir = path.Dir(dir) {
					if links[dir] {
						t.Fatalf("%q lies below a link", h.Name)
					}
				}
				if h.Typeflag == tar.TypeSymlink {
					if links[h.Name] = true; path.IsAbs(h.Linkname) || !filepath.IsLocal(path.Join(path.Dir(h.Name), h.Linkname)) && path.Join(path.Dir(h.Name), h.Linkname) != "." {
						t.Fatalf("%q to %q", h.Name, h.Linkname)
					}
				}
			}
		}
		out.Reset()
		if repack.Zip(&out, bytes.NewReader(text)) == nil {
			z, err := zip.NewReader(bytes.NewReader(out.Bytes()), int64(out.Len()))
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range z.File {
				if !filepath.IsLocal(file.Name) || strings.ContainsRune(file.Name, '\\') {
					t.Fatalf("%q", file.Name)
				}
			}
		}
	})
}
