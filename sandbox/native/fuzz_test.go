package native_test

import (
	"archive/tar"
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/glassboxhq/glassbox/sandbox"
	"github.com/glassboxhq/glassbox/sandbox/native"
)

// enclosed makes a working directory with links that lead out of it, beside
// what must stay as it is.
func enclosed(t *testing.T) (s *native.Session, work string, check func()) {
	t.Helper()
	base := t.TempDir()
	kept, beside := filepath.Join(base, "kept"), filepath.Join(base, "beside")
	work = filepath.Join(base, "work")
	for _, dir := range []string{kept, beside, work, filepath.Join(work, "a")} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"l": base, "k": kept, "up": "..", "a/out": "../../beside"} {
		if err := os.Symlink(target, filepath.Join(work, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{kept, beside} {
		if err := os.WriteFile(filepath.Join(dir, "f"), []byte("true"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := native.New(&native.Options{Workdir: work, Protected: []string{kept}})
	if err != nil {
		t.Fatal(err)
	}
	return s, work, func() {
		t.Helper()
		for _, dir := range []string{kept, beside} {
			entries, err := os.ReadDir(dir)
			if err != nil || len(entries) != 1 {
				t.Fatalf("got %v, %v in %s", entries, err, dir)
			}
			text, err := os.ReadFile(filepath.Join(dir, "f"))
			if info, serr := os.Stat(filepath.Join(dir, "f")); err != nil || serr != nil || string(text) != "true" || info.Mode() != 0o600 {
				t.Fatalf("got %q, %v, %v in %s", text, err, serr, dir)
			}
		}
		if entries, err := os.ReadDir(base); err != nil || len(entries) != 3 {
			t.Fatalf("got %v, %v beside the working directory", entries, err)
		}
	}
}

// Whatever a tar holds, it stays below its directory and is no device.
func FuzzUpload(f *testing.F) {
	type entry struct {
		kind       byte
		name, link string
	}
	for _, list := range [][]entry{
		{{tar.TypeReg, "f", ""}, {tar.TypeDir, "d/", ""}, {tar.TypeReg, "d/g", ""}},
		{{tar.TypeSymlink, "s", "../beside"}, {tar.TypeReg, "s/f", ""}},
		{{tar.TypeReg, "../beside/f", ""}},
		{{tar.TypeReg, "/tmp/x", ""}},
		{{tar.TypeReg, "a/out/f", ""}},
		{{tar.TypeLink, "h", "../kept/f"}},
		{{tar.TypeLink, "h", "k/f"}, {tar.TypeReg, "h", ""}},
		{{tar.TypeSymlink, "a", "/"}},
		{{tar.TypeChar, "c", ""}},
		{{tar.TypeFifo, "p", ""}},
		{{tar.TypeReg, ".", ""}},
		{{tar.TypeReg, "l", ""}, {tar.TypeReg, "l/f", ""}},
	} {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for _, e := range list {
			h := &tar.Header{Typeflag: e.kind, Name: e.name, Linkname: e.link, Mode: 0o6777}
			if e.kind == tar.TypeReg {
				h.Size = 5
			}
			if err := w.WriteHeader(h); err != nil {
				f.Fatal(err)
			}
			if _, err := io.WriteString(w, "false"[:h.Size]); err != nil {
				f.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes())
	}
	f.Add([]byte{})
	f.Add(make([]byte, 2048))
	f.Fuzz(func(t *testing.T, content []byte) {
		s, work, check := enclosed(t)
		done, err := s.Upload(t.Context(), ".", bytes.NewReader(content), &sandbox.UploadOptions{MaxFiles: 100, MaxBytes: 1 << 20})
		check()
		if err == nil && done == nil {
			t.Fatal("got neither a result nor an error")
		}
		err = filepath.WalkDir(work, func(name string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			if info.Mode()&(fs.ModeDevice|fs.ModeNamedPipe|fs.ModeSocket|fs.ModeSetuid|fs.ModeSetgid) != 0 {
				t.Errorf("%s has the mode %v", name, info.Mode())
			}
			if strings.Contains(name, "/.glassbox-") {
				t.Errorf("%s was left", name)
			}
			return nil
		})
		if err != nil && !os.IsPermission(err) {
			t.Fatal(err)
		}
	})
}

// No path leads an act into what is protected.
func FuzzPaths(f *testing.F) {
	for _, name := range []string{"f", "a/b/c", "k", "k/f", "l/kept/f", "up/kept", "l/../kept/f", "/", ".", "..", "", "x\x00", strings.Repeat("l/", 40) + "kept/f", "\xff", "a/.."} {
		for act := range byte(6) {
			f.Add(name, act)
		}
	}
	f.Fuzz(func(t *testing.T, name string, act byte) {
		s, work, _ := enclosed(t)
		kept := filepath.Join(filepath.Dir(work), "kept")
		outside := filepath.Clean(filepath.Join(work, name))
		if filepath.IsAbs(name) {
			outside = filepath.Clean(name)
		}
		if !strings.HasPrefix(outside, filepath.Dir(work)) { // beyond the base the machine is not ours to try on
			t.Skip("it leads out of the folder of this test")
		}
		mode, ctx := fs.FileMode(0o777), t.Context()
		if err := os.WriteFile(filepath.Join(work, "mine"), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		switch act % 6 {
		case 0:
			_, _ = s.Append(ctx, name, strings.NewReader("false"), nil)
		case 1:
			_, _ = s.Edit(ctx, name, &sandbox.Edit{Old: "true", New: "false"})
		case 2:
			_, _ = s.MakeDir(ctx, name, nil)
		case 3:
			_, _ = s.Move(ctx, name, "moved", &sandbox.MoveOptions{Replace: true})
		case 4:
			_, _ = s.Move(ctx, "mine", name, &sandbox.MoveOptions{Replace: true})
		case 5:
			_, _ = s.SetMode(ctx, name, &sandbox.ModeOptions{Mode: &mode, Recursive: true})
		}
		entries, err := os.ReadDir(kept)
		if err != nil || len(entries) != 1 {
			t.Fatalf("%q: got %v, %v in what is protected", name, entries, err)
		}
		text, err := os.ReadFile(filepath.Join(kept, "f"))
		if info, serr := os.Stat(filepath.Join(kept, "f")); err != nil || serr != nil || string(text) != "true" || info.Mode() != 0o600 {
			t.Fatalf("%q: got %q, %v, %v in what is protected", name, text, err, serr)
		}
		if _, err := os.Stat(work); err != nil {
			t.Fatalf("%q: the working directory is gone", name)
		}
	})
}

// A pattern finds what the library matches, dots aside; it never hangs and
// never leaves its directory.
func FuzzGlob(f *testing.F) {
	for _, pattern := range []string{
		"*", "**", "**/*", "a/**", "**/b", "{a,b}/*", "{a/b,c}", "[a-c]", "[!a]", `\*`, "a**b", "**/**/**", "{a,{b,c}}", "{,a}", "./a", "a/", "a//b", "{", "[", "]", "}", "**{a,b}**", "?", "*/?/*",
	} {
		f.Add(pattern)
	}
	dir := f.TempDir()
	names := []string{"a", "a/b", "a/b/c", "b", "c", "ab", "x/y/z/w", "*", "]", "}", "a{", "研究"}
	for _, name := range names {
		full := filepath.Join(dir, "t", name)
		if err := os.MkdirAll(full, 0o755); err != nil {
			f.Fatal(err)
		}
	}
	s, err := native.New(&native.Options{Workdir: filepath.Join(dir, "t")})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, pattern string) {
		res, err := s.Glob(t.Context(), &sandbox.GlobQuery{Pattern: pattern, Hidden: true})
		if err != nil {
			if sandbox.CodeOf(err) != sandbox.CodeInvalid {
				t.Fatalf("%q: %v", pattern, err)
			}
			return
		}
		root := filepath.Join(dir, "t") + "/"
		for _, info := range res.Files {
			rel, ok := strings.CutPrefix(info.Path, root)
			if !ok {
				t.Fatalf("%q found %q", pattern, info.Path)
			}
			plain := strings.TrimSuffix(filepath.Clean(strings.ReplaceAll(pattern, "//", "/")), "/")
			if strings.ContainsAny(pattern, "{}\\") || strings.Contains(pattern, "//") || strings.Contains(pattern, "/.") {
				continue // written differently, they mean the same
			}
			if matched, err := doublestar.Match(plain, rel); err == nil && !matched {
				t.Errorf("%q found %q, which %q does not match", pattern, rel, plain)
			}
		}
	})
}
