package main

import (
	"archive/tar"
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// entry is an entry of a tar that a sandbox may have sent.
type entry struct {
	kind       byte
	name, text string // of a link: where it leads
}

func tarOf(t testing.TB, entries []entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{Typeflag: e.kind, Name: e.name, Mode: 0o7777}
		if e.kind == tar.TypeReg {
			h.Size = int64(len(e.text))
		} else {
			h.Linkname = e.text
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, e.text[:h.Size]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// unpackInto unpacks below a folder, and returns what was said.
func unpackInto(t testing.TB, dir string, content []byte) (*copying, string, error) {
	t.Helper()
	return unpackUpTo(t, dir, content, 100)
}

func unpackUpTo(t testing.TB, dir string, content []byte, files int) (*copying, string, error) {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	var said bytes.Buffer
	c := &copying{app: &app{err: &said}, maxFiles: files, maxBytes: 1 << 20}
	err = (&unpacking{copying: c, root: root}).run(bytes.NewReader(content))
	return c, said.String(), err
}

// outsideOf makes a folder to unpack into, and what lies beside it.
func outsideOf(t testing.TB) (dir string, check func()) {
	t.Helper()
	base := t.TempDir()
	dir = filepath.Join(base, "into")
	for _, name := range []string{"into", "beside"} {
		if err := os.Mkdir(filepath.Join(base, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	secret := filepath.Join(base, "beside", "f")
	if err := os.WriteFile(secret, []byte("true"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir, func() {
		t.Helper()
		for name, want := range map[string]int{base: 2, filepath.Join(base, "beside"): 1} {
			if entries, err := os.ReadDir(name); err != nil || len(entries) != want {
				t.Errorf("got %v, %v in %s", entries, err, name)
			}
		}
		text, err := os.ReadFile(secret)
		if info, serr := os.Stat(secret); err != nil || serr != nil || string(text) != "true" || info.Mode() != 0o600 {
			t.Errorf("got %q, %v, %v beside", text, err, serr)
		}
		_ = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
			if err != nil {
				return nil
			}
			info, err := d.Info()
			if err != nil {
				return nil
			}
			if info.Mode()&(fs.ModeDevice|fs.ModeNamedPipe|fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky) != 0 || info.Mode()&fs.ModeSymlink == 0 && info.Mode()&0o022 != 0 {
				t.Errorf("%s has the mode %v", name, info.Mode())
			}
			if info.Mode()&fs.ModeSymlink != 0 {
				real, err := filepath.EvalSymlinks(name)
				if err == nil && real != dir && !strings.HasPrefix(real, dir+"/") {
					target, _ := os.Readlink(name)
					t.Errorf("%s leads to %s by %s", name, real, target)
				}
			}
			return nil
		})
	}
}

func TestUnpackHostile(t *testing.T) {
	const reg, dir, sym, hard = tar.TypeReg, tar.TypeDir, tar.TypeSymlink, tar.TypeLink
	for _, tt := range []struct {
		name    string
		entries []entry
		refused bool
		leftOut int
	}{
		{"climbs out", []entry{{reg, "../beside/f", "false"}}, true, 0},
		{"climbs out further in", []entry{{reg, "a/../../beside/f", "false"}}, true, 0},
		{"absolute", []entry{{reg, "/tmp/glassbox-hostile", "false"}}, true, 0},
		{"through a link", []entry{{sym, "l", "d"}, {reg, "l/f", "false"}}, true, 0},
		{"link out", []entry{{sym, "l", "../beside"}}, false, 1},
		{"absolute link", []entry{{sym, "l", "/etc/passwd"}}, false, 1},
		{"link out and through it", []entry{{sym, "l", "../beside"}, {reg, "l/f", "inside"}}, false, 1},
		{"links that climb behind a link", []entry{{sym, "p/q/a", "../.."}, {sym, "l", "p/q/a/../beside"}}, false, 1},
		{"a link further down that climbs too far", []entry{{sym, "p/l", "../../beside"}}, false, 1},
		{"a link within", []entry{{reg, "f", "x"}, {sym, "p/l", "../f"}}, false, 0},
		{"hard link out", []entry{{hard, "h", "../beside/f"}}, true, 0},
		{"hard link to a link", []entry{{sym, "s", "f"}, {hard, "h", "s"}}, true, 0},
		{"hard link within", []entry{{reg, "f", "x"}, {hard, "h", "f"}, {hard, "h", "f"}}, false, 0},
		{"device", []entry{{tar.TypeChar, "null", ""}}, true, 0},
		{"FIFO", []entry{{tar.TypeFifo, "pipe", ""}}, true, 0},
		{"modes", []entry{{dir, "d/", ""}, {reg, "d/f", "x"}}, false, 0},
		{"below a file", []entry{{reg, "f", "x"}, {reg, "f/g", "x"}}, true, 0},
		{"a folder over a link", []entry{{sym, "l", "x"}, {dir, "l", ""}}, true, 0},
		{"too large", []entry{{reg, "f", strings.Repeat("x", 1<<20+1)}}, true, 0},
		{"no name", []entry{{reg, ".", "x"}}, true, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			into, check := outsideOf(t)
			c, said, err := unpackInto(t, into, tarOf(t, tt.entries))
			if (err != nil) != tt.refused || c.done.LeftOut != tt.leftOut || tt.leftOut > 0 && !strings.Contains(said, "left out") {
				t.Errorf("got %v, %d left out, %q; want refused %v, %d left out", err, c.done.LeftOut, said, tt.refused, tt.leftOut)
			}
			check()
		})
	}
	t.Run("entries", func(t *testing.T) {
		into, _ := outsideOf(t)
		many := make([]entry, 101)
		for i := range many {
			many[i] = entry{reg, "f", "x"}
		}
		if _, _, err := unpackInto(t, into, tarOf(t, many)); err == nil || !strings.Contains(err.Error(), "--max-files") {
			t.Errorf("got %v, want it refused", err)
		}
	})
}

// A folder is opened in the one above it, not from the root anew: four times as
// many of them, one in the other, take four times as long, and not sixteen.
func TestUnpackDeep(t *testing.T) {
	best := func(deep int) time.Duration {
		least := time.Hour
		for range 3 {
			least = min(least, unpackDeep(t, deep))
		}
		return least
	}
	if few, many := best(100), best(400); many > 11*few {
		t.Errorf("100 folders took %v, 400 took %v", few, many)
	}
}

// unpackDeep unpacks folders that are one in the other, each with a file.
func unpackDeep(t *testing.T, deep int) time.Duration {
	t.Helper()
	var entries []entry
	name := ""
	for range deep {
		name += "d/"
		entries = append(entries, entry{tar.TypeDir, name, ""}, entry{tar.TypeReg, name + "f", "x"})
	}
	into, _ := outsideOf(t)
	began := time.Now()
	c, _, err := unpackUpTo(t, into, tarOf(t, entries), 2*deep)
	took := time.Since(began)
	if err != nil || c.done.Files != deep || c.done.Directories != deep {
		t.Fatalf("got %v, %+v, want it all", err, c.done)
	}
	info, err := os.Stat(filepath.Join(into, name, "f"))
	if err != nil || info.Size() != 1 {
		t.Errorf("the deepest file: %v, %v", info, err)
	}
	return took
}

// Whatever a sandbox sends stays in its folder.
func FuzzUnpack(f *testing.F) {
	for _, list := range [][]entry{
		{{tar.TypeReg, "a", "x"}, {tar.TypeSymlink, "b", "a"}, {tar.TypeLink, "c", "a"}, {tar.TypeDir, "d/", ""}},
		{{tar.TypeSymlink, "p/q/a", "../.."}, {tar.TypeSymlink, "l", "p/q/a/.."}, {tar.TypeReg, "l/beside/f", "x"}},
		{{tar.TypeReg, "../beside/f", "x"}},
		{{tar.TypeSymlink, "l", ".././../beside"}},
		{{tar.TypeLink, "l", "./../beside/f"}},
	} {
		f.Add(tarOf(f, list))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		into, check := outsideOf(t)
		_, _, _ = unpackInto(t, into, content)
		check()
	})
}

func TestStaysWithin(t *testing.T) {
	for _, tt := range []struct {
		dir, target string
		want        bool
	}{
		{".", "a", true},
		{".", "a/b", true},
		{".", ".", true},
		{".", "..", false},
		{".", "/", false},
		{".", "", false},
		{"a", "..", true},
		{"a", "../b", true},
		{"a", "../../b", false},
		{"a/b", "../../c", true},
		{"a/b", "./.././../c", true},
		{"a/b", "x/..", false},
		{"a/b", "../x/../y", false},
		{"a", `..\..\b`, false},
		{"a", "..a", true},
	} {
		if got := staysWithin(tt.dir, tt.target); got != tt.want {
			t.Errorf("a link in %s to %q: got %v, want %v", tt.dir, tt.target, got, tt.want)
		}
	}
}

func TestParseSpot(t *testing.T) {
	for word, want := range map[string]spot{
		"a": {path: "a"}, "a/b:c": {path: "a/b:c"}, "./a:b": {path: "./a:b"}, ":x": {path: ":x"}, "-": {path: "-"}, "/a:b": {path: "/a:b"},
		"box:": {"box", "."}, "box:/a:b": {"box", "/a:b"}, "box:-": {"box", "-"}, "研究:x": {"研究", "x"}, `C\x:y`: {path: `C\x:y`},
	} {
		if got := parseSpot(word); got != want {
			t.Errorf("%q: got %+v, want %+v", word, got, want)
		}
	}
}
