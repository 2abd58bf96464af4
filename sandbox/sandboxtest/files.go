package sandboxtest

import (
	"bytes"
	"errors"
	"io"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/glassboxhq/glassbox/sandbox"
)

func testFiles(t *testing.T, open Open) {
	s := open(t)
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	t.Run("FB-021 every byte", func(t *testing.T) {
		write(t, s, "every.bin", every)
		if got := read(t, s, "every.bin", nil); !bytes.Equal(got, every) {
			t.Errorf("got %x, want every byte once", got)
		}
		if got := read(t, s, "every.bin", &sandbox.ReadOptions{Offset: 250, Length: 3}); !bytes.Equal(got, every[250:253]) {
			t.Errorf("range: got %x, want %x", got, every[250:253])
		}
		if got := read(t, s, "every.bin", &sandbox.ReadOptions{Offset: 999}); len(got) != 0 {
			t.Errorf("beyond the end: got %x, want nothing", got)
		}
	})
	t.Run("FB-029 relative paths", func(t *testing.T) {
		write(t, s, "rel/x.txt", []byte("1"))
		if res := run(t, s, &sandbox.Command{Line: "cat rel/x.txt; echo 2 > rel/y.txt"}); string(res.Stdout) != "1" {
			t.Errorf("got %q, want 1", res.Stdout)
		}
		if got := read(t, s, "rel/y.txt", nil); string(got) != "2\n" {
			t.Errorf("got %q, want 2", got)
		}
	})
	t.Run("FB-025 names", func(t *testing.T) {
		for _, name := range []string{"'; touch pwned; #", "$(touch pwned)", "`touch pwned`", "a\nb", "-rf", "--help", "*", "研究员 文件.txt", `back\slash`, "per%20cent", "a?b#c&d=e+f"} {
			write(t, s, "names/"+name, []byte(name))
			if got := read(t, s, "names/"+name, nil); string(got) != name {
				t.Errorf("%q: got %q", name, got)
			}
			if err := s.Remove(t.Context(), "names/"+name, nil); err != nil {
				t.Errorf("%q: %v", name, err)
			}
		}
		if list, err := s.List(t.Context(), "names"); err != nil || len(list) != 0 {
			t.Errorf("got %v, %v, want an empty directory", list, err)
		}
	})
	t.Run("write keeps mode", func(t *testing.T) {
		write(t, s, "tool.sh", []byte("#!/bin/sh\necho 1\n"))
		run(t, s, &sandbox.Command{Line: "chmod 751 tool.sh"})
		write(t, s, "tool.sh", []byte("#!/bin/sh\necho 2\n"))
		if res := run(t, s, &sandbox.Command{Line: "stat -c %a tool.sh; ./tool.sh; ls -A | grep -c '^\\.glassbox' || true"}); string(res.Stdout) != "751\n2\n0\n" {
			t.Errorf("got %q, want mode 751, the new content and no file left beside", res.Stdout)
		}
	})
	t.Run("compare and swap", func(t *testing.T) {
		first := write(t, s, "cas.txt", []byte("one"))
		run(t, s, &sandbox.Command{Line: "echo two > cas.txt"})
		_, err := s.Write(t.Context(), "cas.txt", strings.NewReader("three"), &sandbox.WriteOptions{IfHash: first.SHA256})
		if !errors.Is(err, sandbox.ErrConflict) {
			t.Errorf("changed file: got %v, want a conflict", err)
		}
		_, err = s.Write(t.Context(), "cas.txt", strings.NewReader("three"), &sandbox.WriteOptions{IfHash: sandbox.Absent})
		if !errors.Is(err, sandbox.ErrExists) {
			t.Errorf("existing file: got %v, want that it exists", err)
		}
		if got := read(t, s, "cas.txt", nil); string(got) != "two\n" {
			t.Errorf("got %q, want it unchanged", got)
		}
		second := write(t, s, "cas.txt", []byte("four"))
		if _, err := s.Write(t.Context(), "cas.txt", strings.NewReader("five"), &sandbox.WriteOptions{IfHash: second.SHA256}); err != nil {
			t.Errorf("unchanged file: %v", err)
		}
	})
	t.Run("list", func(t *testing.T) {
		run(t, s, &sandbox.Command{Line: "mkdir -p l/sub; printf abc > l/a; ln -s nowhere l/dangling"})
		list, err := s.List(t.Context(), "l")
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range list {
			got = append(got, path.Base(f.Path)+" "+f.Mode.Type().String()[:1]+" "+f.Target)
		}
		if diff := cmp.Diff([]string{"a - ", "dangling L nowhere", "sub d "}, got); diff != "" {
			t.Errorf("list (-want +got):\n%s", diff)
		}
	})
	testFileErrors(t, s)
}

func testFileErrors(t *testing.T, s sandbox.Session) {
	run(t, s, &sandbox.Command{Line: "mkdir -p full/dir real; touch full/f plain; mkfifo fifo; ln -s real link; ln -s plain plainlink; ln -s loop2 loop1; ln -s loop1 loop2"})
	write1 := func(name string) error {
		_, err := s.Write(t.Context(), name, strings.NewReader("x"), nil)
		return err
	}
	read1 := func(name string) error {
		f, err := s.Read(t.Context(), name, nil)
		if err == nil {
			f.Close()
		}
		return err
	}
	remove := func(name string) error { return s.Remove(t.Context(), name, nil) }
	long := strings.Repeat("n", 300)
	for _, tt := range []struct {
		name string
		err  error
		want error
	}{
		{"FB-035 write below a file", write1("plain/x"), sandbox.ErrNotDirectory},
		{"FB-035 read a directory", read1("full"), sandbox.ErrIsDirectory},
		{"FB-035 write over a directory", write1("full"), sandbox.ErrIsDirectory},
		{"FB-035 remove a full directory", remove("full"), sandbox.ErrState},
		{"FB-035 remove what is not there", remove("nothing"), sandbox.ErrNotFound},
		{"FB-035 remove the root", s.Remove(t.Context(), "/", &sandbox.RemoveOptions{Recursive: true}), sandbox.ErrPermission},
		{"FB-035 remove the working directory", s.Remove(t.Context(), ".", &sandbox.RemoveOptions{Recursive: true}), sandbox.ErrPermission},
		{"FB-033 read what is not there", read1("/mail_2024?"), sandbox.ErrNotFound},
		{"FB-033 empty path", read1(""), sandbox.ErrInvalid},
		{"FB-033 long name", write1(long), sandbox.ErrInvalid},
		{"FB-033 long path", write1(strings.Repeat("d/", 2500) + "f"), sandbox.ErrInvalid},
		{"FB-033 NUL", read1("a\x00b"), sandbox.ErrInvalid},
		{"FB-033 below a file", read1("/etc/passwd/x"), sandbox.ErrNotDirectory},
		{"FIFO is not read", read1("fifo"), sandbox.ErrPermission},
		{"FIFO is not written", write1("fifo"), sandbox.ErrPermission},
		{"device is not read", read1("/dev/zero"), sandbox.ErrPermission},
		{"/proc is not written", write1("/proc/self/comm"), sandbox.ErrPermission},
		{"link is not written through", write1("plainlink"), sandbox.ErrPermission},
		{"FB-027 loop of links", read1("loop1"), sandbox.ErrPermission},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if !errors.Is(tt.err, tt.want) {
				t.Errorf("got %v, want %v", tt.err, tt.want)
			}
		})
	}
	t.Run("FB-035 only the link goes", func(t *testing.T) {
		if err := s.Remove(t.Context(), "link", &sandbox.RemoveOptions{Recursive: true}); err != nil {
			t.Fatal(err)
		}
		if err := s.Remove(t.Context(), "full", &sandbox.RemoveOptions{Recursive: true}); err != nil {
			t.Fatal(err)
		}
		if res := run(t, s, &sandbox.Command{Line: "ls -d real link full 2>/dev/null"}); string(res.Stdout) != "real\n" {
			t.Errorf("got %q, want only the directory that the link pointed to", res.Stdout)
		}
	})
}

func write(t *testing.T, s sandbox.Session, name string, content []byte) *sandbox.FileInfo {
	t.Helper()
	info, err := s.Write(t.Context(), name, bytes.NewReader(content), nil)
	if err != nil {
		t.Fatalf("write %q: %v", name, err)
	}
	if info.Size != int64(len(content)) || info.SHA256 == "" {
		t.Errorf("write %q: got %+v, want size %d and a hash", name, info, len(content))
	}
	return info
}

func read(t *testing.T, s sandbox.Session, name string, opts *sandbox.ReadOptions) []byte {
	t.Helper()
	f, err := s.Read(t.Context(), name, opts)
	if err != nil {
		t.Fatalf("read %q: %v", name, err)
	}
	defer f.Close()
	content, err := io.ReadAll(f)
	if err != nil {
		t.Fatalf("read %q: %v", name, err)
	}
	return content
}
