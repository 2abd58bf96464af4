package sandboxtest

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/glassboxhq/glassbox/sandbox"
)

// entry is an entry of a tar as the cases write it.
type entry struct {
	kind       byte
	name, text string // of a link: where it leads
	mode       int64
}

func tarOf(t *testing.T, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{Typeflag: e.kind, Name: e.name, Mode: e.mode, ModTime: time.Unix(981173106, 0)}
		if h.Typeflag == 0 {
			h.Typeflag = tar.TypeReg
		}
		if h.Mode == 0 {
			h.Mode = 0o644
		}
		switch h.Typeflag {
		case tar.TypeSymlink, tar.TypeLink:
			h.Linkname = e.text
		default:
			h.Size = int64(len(e.text))
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if h.Size > 0 {
			if _, err := io.WriteString(w, e.text); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// listTar reads a tar to its end.
func listTar(t *testing.T, r io.Reader) (list []entry, skipped string) {
	t.Helper()
	in := tar.NewReader(r)
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return list, skipped
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeXGlobalHeader {
			skipped = h.PAXRecords[sandbox.TarSkipped] + " " + h.PAXRecords[sandbox.TarSkippedNames]
			continue
		}
		text, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		e := entry{h.Typeflag, h.Name, string(text), h.Mode}
		if h.Linkname != "" {
			e.text = h.Linkname
		}
		list = append(list, e)
	}
}

func testDownload(t *testing.T, s sandbox.Session) {
	f := files(t, s)
	download := func(name string) ([]entry, string) {
		t.Helper()
		r, err := f.Download(t.Context(), name, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		return listTar(t, r)
	}
	t.Run("tree", func(t *testing.T) {
		run(t, s, &sandbox.Command{Line: "mkdir -p d/sub/empty; cd d; printf hi > a; chmod 751 a; ln a sub/hard; ln -s ../../nowhere sub/link; ln -s / out; mkfifo fifo; chmod 700 sub/empty; chmod 755 . sub"})
		got, skipped := download("d")
		want := []entry{
			{tar.TypeDir, "./", "", 0o755},
			{tar.TypeReg, "a", "hi", 0o751},
			{tar.TypeSymlink, "out", "/", 0o777},
			{tar.TypeDir, "sub/", "", 0o755},
			{tar.TypeDir, "sub/empty/", "", 0o700},
			{tar.TypeLink, "sub/hard", "a", 0o751},
			{tar.TypeSymlink, "sub/link", "../../nowhere", 0o777},
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(entry{})); diff != "" || skipped != "1 fifo" {
			t.Errorf("skipped %q (-want +got):\n%s", skipped, diff)
		}
	})
	t.Run("one file", func(t *testing.T) {
		got, _ := download("d/a")
		if len(got) != 1 || got[0] != (entry{tar.TypeReg, "a", "hi", 0o751}) {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("FB-023 names", func(t *testing.T) {
		deep := strings.Repeat(strings.Repeat("d", 200)+"/", 5)
		var want []string
		for _, name := range append(oddNames, deep+"f") {
			write(t, s, "oddtar/"+name, []byte(name))
			want = append(want, name)
		}
		list, _ := download("oddtar")
		var got []string
		for _, e := range list {
			if e.kind == tar.TypeReg {
				got = append(got, e.name)
				if e.text != e.name {
					t.Errorf("%q holds %q", e.name, e.text)
				}
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("names (-want +got):\n%s", diff)
		}
	})
	t.Run("large", func(t *testing.T) {
		run(t, s, &sandbox.Command{Line: "mkdir big; head -c 30000000 /dev/zero | tr '\\0' b > big/b; : > big/z"})
		got, _ := download("big")
		if len(got) != 3 || len(got[1].text) != 30_000_000 || strings.Trim(got[1].text, "b") != "" {
			t.Errorf("got %d entries, want the whole file", len(got))
		}
	})
	t.Run("FB-021 a tar program reads it", func(t *testing.T) {
		r, err := f.Download(t.Context(), "d", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		cmd := exec.CommandContext(t.Context(), "tar", "tf", "-")
		cmd.Stdin = r
		if out, err := cmd.Output(); err != nil || string(out) != "./\na\nout\nsub/\nsub/empty/\nsub/hard\nsub/link\n" {
			t.Errorf("got %q, %v", out, err)
		}
	})
	t.Run("closed before its end", func(t *testing.T) {
		r, err := f.Download(t.Context(), "big", nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(r, make([]byte, 1000)); err != nil {
			t.Error(err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	for name, want := range map[string]error{"nothing": sandbox.ErrNotFound, "": sandbox.ErrInvalid, "d/fifo": sandbox.ErrPermission, "/dev/zero": sandbox.ErrPermission, "/proc": sandbox.ErrPermission} {
		if r, err := f.Download(t.Context(), name, nil); !errors.Is(err, want) {
			t.Errorf("%q: got %v, want %v", name, err, want)
			if err == nil {
				r.Close()
			}
		}
	}
}

func testUpload(t *testing.T, s sandbox.Session) {
	f := files(t, s)
	upload := func(dir string, content []byte, opts *sandbox.UploadOptions) (*sandbox.Uploaded, error) {
		return f.Upload(t.Context(), dir, bytes.NewReader(content), opts)
	}
	t.Run("tree", func(t *testing.T) {
		got, err := upload("u", tarOf(t,
			entry{kind: tar.TypeDir, name: "./", mode: 0o700}, entry{kind: tar.TypeDir, name: "ro/", mode: 0o555}, entry{name: "ro/f", text: "in", mode: 0o640},
			entry{name: "a", text: "hi", mode: 0o4755}, entry{kind: tar.TypeLink, name: "hard", text: "a"}, entry{kind: tar.TypeSymlink, name: "link", text: "/etc/passwd"},
			entry{name: "x/y/z", text: "deep"}, entry{name: "a2", text: "first"}, entry{name: "a2", text: "second"},
		), nil)
		want := &sandbox.Uploaded{Files: 5, Directories: 1, Links: 2, Bytes: 19}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("got %v (-want +got):\n%s", err, diff)
		}
		res := run(t, s, &sandbox.Command{Line: "cd u && stat -c '%a %n' ro ro/f a && stat -c '%h %y' a | cut -c1-12 && readlink link && cat a2 x/y/z && ls -A; chmod 755 ro"})
		if got, want := string(res.Stdout), "555 ro\n640 ro/f\n755 a\n2 2001-02-03\n/etc/passwd\nseconddeepa\na2\nhard\nlink\nro\nx\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
	t.Run("over what is there", func(t *testing.T) {
		run(t, s, &sandbox.Command{Line: "mkdir -p o/d; echo old > o/f; echo safe > o/target; ln -s target o/link; mkfifo o/p; ln o/f o/other"})
		if _, err := upload("o", tarOf(t, entry{name: "f", text: "new"}, entry{name: "link", text: "new"}, entry{name: "p", text: "new"}), nil); err != nil {
			t.Fatal(err)
		}
		res := run(t, s, &sandbox.Command{Line: "cd o; cat f link p; cat target other; ls -A | grep -c glassbox"})
		if got := string(res.Stdout); got != "newnewnewsafe\nold\n0\n" {
			t.Errorf("got %q, want the names replaced, and neither what a link leads to nor the old file changed", got)
		}
		if _, err := upload("o", tarOf(t, entry{name: "d", text: "x"}), nil); !errors.Is(err, sandbox.ErrIsDirectory) && !errors.Is(err, sandbox.ErrExists) {
			t.Errorf("a file over a directory: got %v", err)
		}
		if _, err := upload("o", tarOf(t, entry{kind: tar.TypeDir, name: "f"}), nil); !errors.Is(err, sandbox.ErrExists) {
			t.Errorf("a directory over a file: got %v", err)
		}
	})
	testHostile(t, s, f)
	testUploadLimits(t, s, f)
	t.Run("FB-023 there and back", func(t *testing.T) {
		for _, name := range oddNames {
			write(t, s, "from/"+name, []byte(name))
		}
		r, err := f.Download(t.Context(), "from", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		got, err := f.Upload(t.Context(), "to", r, nil)
		if err != nil || got.Files != len(oddNames) {
			t.Errorf("got %+v, %v, want %d files", got, err, len(oddNames))
		}
		if res := run(t, s, &sandbox.Command{Line: "diff -r from to && echo same"}); string(res.Stdout) != "same\n" {
			t.Errorf("got %q", res.Stdout)
		}
	})
}

// Nothing of an archive reaches out of its directory, whoever made the links.
func testHostile(t *testing.T, s sandbox.Session, f sandbox.Files) {
	run(t, s, &sandbox.Command{Line: "mkdir -p h/in outside; echo true > outside/f; ln -s ../outside h/agents; ln -s ../outside/f h/file"})
	for _, tt := range []struct {
		name    string
		entries []entry
		code    sandbox.Code
	}{
		{"climbs out", []entry{{name: "../outside/f", text: "false"}}, sandbox.CodeArchive},
		{"climbs out further in", []entry{{name: "in/../../outside/f", text: "false"}}, sandbox.CodeArchive},
		{"absolute", []entry{{name: "/tmp/glassbox-hostile", text: "false"}}, sandbox.CodeArchive},
		{"through a link of the archive", []entry{{kind: tar.TypeSymlink, name: "l", text: "../outside"}, {name: "l/f", text: "false"}}, sandbox.CodePathNotAllowed},
		{"through a link to a link", []entry{{kind: tar.TypeSymlink, name: "a", text: "in"}, {kind: tar.TypeSymlink, name: "in/b", text: "../../outside"}, {name: "a/b/f", text: "false"}}, sandbox.CodePathNotAllowed},
		{"through a link of the agent", []entry{{name: "agents/f", text: "false"}}, sandbox.CodePathNotAllowed},
		{"a directory where a link is", []entry{{kind: tar.TypeDir, name: "agents"}, {name: "agents/f", text: "false"}}, sandbox.CodeFileExists},
		{"hard link out", []entry{{kind: tar.TypeLink, name: "h", text: "../outside/f"}}, sandbox.CodeArchive},
		{"absolute hard link", []entry{{kind: tar.TypeLink, name: "h", text: "/etc/passwd"}}, sandbox.CodeArchive},
		{"hard link through a link", []entry{{kind: tar.TypeLink, name: "h", text: "agents/f"}}, sandbox.CodePathNotAllowed},
		{"hard link to a link", []entry{{kind: tar.TypeLink, name: "h", text: "file"}, {name: "h", text: "false"}}, sandbox.CodeArchive},
		{"hard link to nothing", []entry{{kind: tar.TypeLink, name: "h", text: "none"}}, sandbox.CodeArchive},
		{"device", []entry{{kind: tar.TypeChar, name: "null"}}, sandbox.CodeArchive},
		{"block device", []entry{{kind: tar.TypeBlock, name: "disk"}}, sandbox.CodeArchive},
		{"FIFO", []entry{{kind: tar.TypeFifo, name: "pipe"}}, sandbox.CodeArchive},
		{"below a file", []entry{{name: "p", text: "x"}, {name: "p/q", text: "x"}}, sandbox.CodeNotDirectory},
		{"the directory as a file", []entry{{name: ".", text: "x"}}, sandbox.CodeArchive},
		{"long name", []entry{{name: strings.Repeat("n", 300), text: "x"}}, sandbox.CodeInvalid},
	} {
		t.Run("hostile: "+tt.name, func(t *testing.T) {
			_, err := f.Upload(t.Context(), "h", bytes.NewReader(tarOf(t, tt.entries...)), nil)
			if sandbox.CodeOf(err) != tt.code {
				t.Errorf("got %v (%s), want %s", err, sandbox.CodeOf(err), tt.code)
			}
		})
	}
	res := run(t, s, &sandbox.Command{Line: "cat outside/f; ls -A outside; ls -A h | grep glassbox; ls /tmp/glassbox-hostile 2>/dev/null"})
	if string(res.Stdout) != "true\nf\n" {
		t.Errorf("got %q, want what lies outside as it was", res.Stdout)
	}
	if _, err := f.Upload(t.Context(), "/proc/self", bytes.NewReader(tarOf(t, entry{name: "comm", text: "x"})), nil); !errors.Is(err, sandbox.ErrPermission) {
		t.Errorf("into /proc: got %v", err)
	}
}

func testUploadLimits(t *testing.T, s sandbox.Session, f sandbox.Files) {
	three := tarOf(t, entry{name: "1", text: "aaaa"}, entry{name: "2", text: "bbbb"}, entry{name: "3", text: "cccc"})
	for _, tt := range []struct {
		name    string
		content []byte
		opts    sandbox.UploadOptions
		code    sandbox.Code
		files   int
	}{
		{"entries", three, sandbox.UploadOptions{MaxFiles: 2}, sandbox.CodeTooLarge, 2},
		{"bytes", three, sandbox.UploadOptions{MaxBytes: 11}, sandbox.CodeTooLarge, 2},
		{"just so many", three, sandbox.UploadOptions{MaxFiles: 3, MaxBytes: 12}, "", 3},
		{"cut in a file", three[:512+2], sandbox.UploadOptions{}, sandbox.CodeArchive, 0},
		{"cut between files", three[:2048], sandbox.UploadOptions{}, sandbox.CodeArchive, 2},
		{"cut behind zeros", tarOf(t, entry{name: "1", text: strings.Repeat("\x00", 2000)})[:512+2048], sandbox.UploadOptions{}, sandbox.CodeArchive, 1},
		{"nothing", nil, sandbox.UploadOptions{}, sandbox.CodeArchive, 0},
		{"no tar", bytes.Repeat([]byte("no tar "), 1000), sandbox.UploadOptions{}, sandbox.CodeArchive, 0},
		{"empty tar", make([]byte, 1024), sandbox.UploadOptions{}, "", 0},
		{"negative entries", three, sandbox.UploadOptions{MaxFiles: -1}, sandbox.CodeInvalid, -1},
		{"negative bytes", three, sandbox.UploadOptions{MaxBytes: -1}, sandbox.CodeInvalid, -1},
	} {
		t.Run("limits: "+tt.name, func(t *testing.T) {
			got, err := f.Upload(t.Context(), "lim", bytes.NewReader(tt.content), &tt.opts)
			if code := sandbox.CodeOf(err); err != nil && code != tt.code || err == nil && tt.code != "" {
				t.Errorf("got %v (%s), want %q", err, code, tt.code)
			}
			if tt.files >= 0 && (got == nil || got.Files != tt.files) {
				t.Errorf("got %+v, want it told that %d files are there", got, tt.files)
			}
		})
	}
	t.Run("many small files", func(t *testing.T) {
		var entries []entry
		for i := range 1000 {
			entries = append(entries, entry{name: fmt.Sprintf("%d/%d", i%10, i), text: "x"})
		}
		content := tarOf(t, entries...)
		began := time.Now()
		got, err := f.Upload(t.Context(), "many", bytes.NewReader(content), nil)
		if err != nil || got.Files != 1000 {
			t.Errorf("got %+v, %v", got, err)
		}
		t.Logf("1000 files in %v", time.Since(began))
	})
	t.Run("the end of the context ends it", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		r, w := io.Pipe()
		go func() {
			_, _ = w.Write(three[:1024])
			cancel()
			_, _ = w.Write(three[1024:])
			_ = w.CloseWithError(context.Canceled)
		}()
		if _, err := f.Upload(ctx, "cancelled", r, nil); !errors.Is(err, sandbox.ErrCancelled) {
			t.Errorf("got %v, want it cancelled", err)
		}
		r.Close()
	})
}
