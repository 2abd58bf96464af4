package sandboxtest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/glassboxhq/glassbox/sandbox"
)

// files asks for the rest of the file operations. A session that says it has
// none is only asked to say so.
func files(t *testing.T, s sandbox.Session) sandbox.Files {
	t.Helper()
	f, ok := s.(sandbox.Files)
	if s.Capabilities().Files {
		if !ok {
			t.Fatal("the session says that it has all file operations, and does not implement them")
		}
		return f
	}
	if ok {
		if _, err := f.Stat(t.Context(), "."); !errors.Is(err, sandbox.ErrUnsupported) {
			t.Errorf("got %v, want that it is not supported", err)
		}
	}
	t.Skip("the session has no further file operations")
	return nil
}

func testLines(t *testing.T, s sandbox.Session) {
	files(t, s) // ranges of lines came with them
	write(t, s, "lines", []byte("one\r\n\n\nfour\nlast"))
	for _, tt := range []struct {
		line, lines int64
		want        string
	}{
		{0, 0, "one\r\n\n\nfour\nlast"},
		{1, 1, "one\r\n"},
		{2, 2, "\n\n"},
		{4, 9, "four\nlast"},
		{5, 1, "last"},
		{5, 0, "last"},
		{6, 1, ""},
		{999, 0, ""},
		{0, 2, "one\r\n\n"},
	} {
		if got := read(t, s, "lines", &sandbox.ReadOptions{Line: tt.line, Lines: tt.lines}); string(got) != tt.want {
			t.Errorf("FB-139 line %d, %d lines: got %q, want %q", tt.line, tt.lines, got, tt.want)
		}
	}
	long := strings.Repeat("x", 100_000) + "\n"
	write(t, s, "long", []byte(strings.Repeat(long, 20)+"end"))
	if got := read(t, s, "long", &sandbox.ReadOptions{Line: 20, Lines: 1}); string(got) != long {
		t.Errorf("a long line: got %d bytes, want %d", len(got), len(long))
	}
	if got := read(t, s, "long", &sandbox.ReadOptions{Line: 21}); string(got) != "end" {
		t.Errorf("the last line: got %.20q", got)
	}
	for _, opts := range []sandbox.ReadOptions{{Line: -1}, {Lines: -1}, {Offset: -1}, {Line: 1, Offset: 1}, {Lines: 1, Length: 1}} {
		f, err := s.Read(t.Context(), "lines", &opts)
		if err == nil {
			f.Close()
		}
		if e, ok := errors.AsType[*sandbox.Error](err); !ok || e.Code != sandbox.CodeInvalid || e.Field != "range" {
			t.Errorf("%+v: got %v, want an invalid range", opts, err)
		}
	}
}

func testAppend(t *testing.T, s sandbox.Session) {
	f := files(t, s)
	add := func(name, text string, opts *sandbox.WriteOptions) (*sandbox.FileInfo, error) {
		return f.Append(t.Context(), name, strings.NewReader(text), opts)
	}
	first, err := add("new/log", "one\n", &sandbox.WriteOptions{Mode: 0o600})
	if err != nil || first.Size != 4 || first.Mode.Perm() != 0o600 || first.SHA256 != hash("one\n") || first.Previous != "" {
		t.Fatalf("a new file: got %+v, %v", first, err)
	}
	second, err := add("new/log", "two\n", &sandbox.WriteOptions{IfHash: first.SHA256})
	if err != nil || second.Size != 8 || second.SHA256 != hash("one\ntwo\n") || second.Previous != first.SHA256 || second.OldSize != 4 {
		t.Errorf("got %+v, %v", second, err)
	}
	if second != nil && !strings.Contains(second.Diff, "+two\n") {
		t.Errorf("got the diff %q, want the line that was added", second.Diff)
	}
	if _, err := add("new/log", "three\n", &sandbox.WriteOptions{IfHash: first.SHA256}); !errors.Is(err, sandbox.ErrConflict) {
		t.Errorf("a file that has changed: got %v, want a conflict", err)
	}
	if _, err := add("new/log", "three\n", &sandbox.WriteOptions{IfHash: sandbox.Absent}); !errors.Is(err, sandbox.ErrExists) {
		t.Errorf("a file that is there: got %v, want that it exists", err)
	}
	t.Run("a file that is open stays the same", func(t *testing.T) {
		run(t, s, &sandbox.Command{Line: "ln new/log other; chmod 640 new/log"})
		if _, err := add("new/log", "three\n", nil); err != nil {
			t.Fatal(err)
		}
		res := run(t, s, &sandbox.Command{Line: "cat other; stat -c %a new/log; ls -A new"})
		if got, want := string(res.Stdout), "one\ntwo\nthree\n640\nlog\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
	t.Run("content that breaks adds nothing", func(t *testing.T) {
		broken := io.MultiReader(strings.NewReader(strings.Repeat("x", 3<<20)), failing{})
		if _, err := f.Append(t.Context(), "new/log", broken, nil); err == nil {
			t.Error("got no error")
		}
		if got := read(t, s, "new/log", nil); string(got) != "one\ntwo\nthree\n" {
			t.Errorf("got %d bytes, want the file as it was", len(got))
		}
	})
	t.Run("large", func(t *testing.T) {
		more := bytes.Repeat([]byte("0123456789abcde\n"), 200_000)
		info, err := f.Append(t.Context(), "new/log", bytes.NewReader(more), nil)
		if err != nil || info.Size != int64(14+len(more)) || info.SHA256 != hash("one\ntwo\nthree\n"+string(more)) || info.Diff != "" || !info.DiffTruncated {
			t.Errorf("got size %d, diff of %d bytes, truncated %v, %v", info.Size, len(info.Diff), info.DiffTruncated, err)
		}
	})
	t.Run("everyone's lines are there", func(t *testing.T) {
		var group sync.WaitGroup
		for i := range 8 {
			group.Go(func() {
				for j := range 5 {
					if _, err := add("all", fmt.Sprintf("%d-%d\n", i, j), nil); err != nil {
						t.Error(err)
					}
				}
			})
		}
		group.Wait()
		if got := bytes.Count(read(t, s, "all", nil), []byte("\n")); got != 40 {
			t.Errorf("got %d lines, want 40", got)
		}
	})
}

// failing is content that cannot be read.
type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("the content broke") }

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func testEdit(t *testing.T, s sandbox.Session) {
	f := files(t, s)
	for _, tt := range []struct {
		name, before string
		edit         sandbox.Edit
		after        string
		replaced     int
	}{
		{"once", "a b c", sandbox.Edit{Old: "b", New: "B"}, "a B c", 1},
		{"to nothing", "a b c", sandbox.Edit{Old: " b"}, "a c", 1},
		{"all", "x.x.x", sandbox.Edit{Old: "x", New: "yy", All: true}, "yy.yy.yy", 3},
		{"literally", "a.*b $1", sandbox.Edit{Old: ".*b $1", New: `\0&`}, `a\0&`, 1},
		{"FB-019 line ends and mark stay", "\ufeffa\r\nb\r\nc", sandbox.Edit{Old: "b", New: "B"}, "\ufeffa\r\nB\r\nc", 1},
		{"FB-019 lines of a file with carriage returns", "a\r\nb\r\nc\r\n", sandbox.Edit{Old: "a\nb\n", New: "x\ny\nz\n"}, "x\r\ny\r\nz\r\nc\r\n", 1},
		{"new lines in a file with carriage returns", "a\r\nb\r\n", sandbox.Edit{Old: "b", New: "b\nc"}, "a\r\nb\r\nc\r\n", 1},
		{"mixed line ends", "a\r\nb\nc\r\nd\n", sandbox.Edit{Old: "c\nd", New: "C\nd"}, "a\r\nb\nC\r\nd\n", 1},
		{"bytes that are no text stay", "\xff\x00 key=1 \xfe", sandbox.Edit{Old: "key=1", New: "key=2"}, "\xff\x00 key=2 \xfe", 1},
		{"Chinese", "研究员一\n研究员二\n", sandbox.Edit{Old: "员二", New: "员三"}, "研究员一\n研究员三\n", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			old := write(t, s, "edited", []byte(tt.before))
			got, err := f.Edit(t.Context(), "edited", &tt.edit)
			if err != nil {
				t.Fatal(err)
			}
			if text := string(read(t, s, "edited", nil)); text != tt.after || got.Replaced != tt.replaced {
				t.Errorf("got %q, %d replaced, want %q, %d", text, got.Replaced, tt.after, tt.replaced)
			}
			if got.SHA256 != hash(tt.after) || got.Previous != old.SHA256 || got.Size != int64(len(tt.after)) || got.OldSize != old.Size {
				t.Errorf("got %+v", got)
			}
		})
	}
	testEditRefused(t, s, f)
	testEditAtOnce(t, s, f)
}

func testEditRefused(t *testing.T, s sandbox.Session, f sandbox.Files) {
	const text = "one two two aaa\n"
	write(t, s, "edited", []byte(text))
	write(t, s, "empty", nil)
	run(t, s, &sandbox.Command{Line: "mkdir dir; ln -s edited elink; mkfifo efifo"})
	for _, tt := range []struct {
		name, path string
		edit       sandbox.Edit
		code       sandbox.Code
		text       string
	}{
		{"not there", "edited", sandbox.Edit{Old: "three", New: "x"}, sandbox.CodeNoMatch, "0 places"},
		{"not unique", "edited", sandbox.Edit{Old: "two", New: "x"}, sandbox.CodeAmbiguous, "2 times"},
		{"overlapping", "edited", sandbox.Edit{Old: "aa", New: "x"}, sandbox.CodeAmbiguous, "2 times"},
		{"FB-137 empty", "edited", sandbox.Edit{New: "x"}, sandbox.CodeInvalid, "old"},
		{"FB-137 empty, all", "edited", sandbox.Edit{New: "x", All: true}, sandbox.CodeInvalid, "old"},
		{"FB-137 empty file", "empty", sandbox.Edit{Old: "a", New: "x"}, sandbox.CodeNoMatch, "0 places"},
		{"FB-137 missing file", "missing", sandbox.Edit{Old: "a", New: "x"}, sandbox.CodeFileNotFound, "missing"},
		{"FB-137 same", "edited", sandbox.Edit{Old: "one", New: "one"}, sandbox.CodeInvalid, "new"},
		{"not UTF-8", "edited", sandbox.Edit{Old: "\xff", New: "x"}, sandbox.CodeInvalid, "old"},
		{"other version", "edited", sandbox.Edit{Old: "one", New: "x", IfHash: hash("other")}, sandbox.CodeModified, "read it again"},
		{"directory", "dir", sandbox.Edit{Old: "a", New: "x"}, sandbox.CodeIsDirectory, "dir"},
		{"link", "elink", sandbox.Edit{Old: "one", New: "x"}, sandbox.CodePathNotAllowed, "link"},
		{"FIFO", "efifo", sandbox.Edit{Old: "one", New: "x"}, sandbox.CodePathNotAllowed, "regular"},
		{"FB-033 empty path", "", sandbox.Edit{Old: "a", New: "x"}, sandbox.CodeInvalid, "path"},
		{"FB-033 root", "/", sandbox.Edit{Old: "a", New: "x"}, sandbox.CodePathNotAllowed, "root"},
		{"FB-033 long name", strings.Repeat("n", 300), sandbox.Edit{Old: "a", New: "x"}, sandbox.CodeInvalid, "too long"},
		{"FB-033 below a file", "/etc/passwd/x", sandbox.Edit{Old: "a", New: "x"}, sandbox.CodeNotDirectory, "passwd"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := f.Edit(t.Context(), tt.path, &tt.edit)
			if sandbox.CodeOf(err) != tt.code || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("got %v (%s), want %s with %q", err, sandbox.CodeOf(err), tt.code, tt.text)
			}
		})
	}
	if got := read(t, s, "edited", nil); string(got) != text {
		t.Errorf("got %q, want it as it was", got)
	}
}

// Of those who saw the same version one wins; those who asked for none all do.
func testEditAtOnce(t *testing.T, s sandbox.Session, f sandbox.Files) {
	t.Run("FB-067 one of two wins", func(t *testing.T) {
		seen := write(t, s, "cas", []byte("count=0\n"))
		var won, lost atomic.Int64
		var group sync.WaitGroup
		for i := range 2 {
			group.Go(func() {
				_, err := f.Edit(t.Context(), "cas", &sandbox.Edit{Old: "count=0", New: fmt.Sprint("count=", i+1), IfHash: seen.SHA256})
				switch {
				case err == nil:
					won.Add(1)
				case errors.Is(err, sandbox.ErrConflict):
					lost.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		group.Wait()
		if won.Load() != 1 || lost.Load() != 1 {
			t.Errorf("%d won, %d lost, want one each", won.Load(), lost.Load())
		}
	})
	t.Run("edits of different places", func(t *testing.T) {
		write(t, s, "places", []byte("a=0\nb=0\nc=0\n"))
		var group sync.WaitGroup
		for _, name := range []string{"a", "b", "c"} {
			group.Go(func() {
				if _, err := f.Edit(t.Context(), "places", &sandbox.Edit{Old: name + "=0", New: name + "=1"}); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		if got := read(t, s, "places", nil); string(got) != "a=1\nb=1\nc=1\n" {
			t.Errorf("got %q, want every edit", got)
		}
	})
}

func testDiff(t *testing.T, s sandbox.Session) {
	files(t, s)
	diffOf := func(name, content string) (string, bool) {
		info := write(t, s, name, []byte(content))
		_, diff, _ := strings.Cut(info.Diff, "\n")
		_, diff, _ = strings.Cut(diff, "\n") // the two lines with the names
		return diff, info.DiffTruncated
	}
	numbers := func(n int, change string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "line %d%s\n", i, change)
		}
		return b.String()
	}
	for _, tt := range []struct{ name, before, after, want string }{
		{"a line", "a\nb\nc\n", "a\nB\nc\n", "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"},
		{"nothing", "a\n", "a\n", ""},
		{"no last line end", "a\nb", "a\nc", "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n\\ No newline at end of file\n"},
		{"binary", "a\x00b", "a\nb", ""},
		{"not UTF-8", "a\n", "\xff\n", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			diffOf("d", tt.before)
			got, cut := diffOf("d", tt.after)
			if diff := cmp.Diff(tt.want, got); diff != "" || cut {
				t.Errorf("truncated %v (-want +got):\n%s", cut, diff)
			}
		})
	}
	t.Run("new file", func(t *testing.T) {
		info := write(t, s, "brandnew", []byte("x\n"))
		if !strings.HasPrefix(info.Diff, "--- /dev/null\n+++ "+info.Path+"\n") || !strings.HasSuffix(info.Diff, "+x\n") {
			t.Errorf("got %q", info.Diff)
		}
	})
	t.Run("large", func(t *testing.T) {
		write(t, s, "d", []byte(numbers(20_000, "")))
		info := write(t, s, "d", []byte(numbers(20_000, " changed")))
		if len(info.Diff) > 256<<10 || len(info.Diff) < 200<<10 || !info.DiffTruncated {
			t.Errorf("got %d bytes, truncated %v, want it cut at 256 KiB", len(info.Diff), info.DiffTruncated)
		}
		info = write(t, s, "d", []byte(strings.Repeat("x\n", 1<<20)))
		if info.Diff != "" || !info.DiffTruncated {
			t.Errorf("over 1 MiB: got %d bytes, truncated %v, want none and that it is told", len(info.Diff), info.DiffTruncated)
		}
	})
}
