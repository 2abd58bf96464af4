package sandboxtest

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/glassboxhq/glassbox/sandbox"
)

// below lists what was found, by its path below the working directory.
func below(s sandbox.Session, t *testing.T, list []*sandbox.FileInfo) []string {
	root := strings.TrimSpace(string(run(t, s, &sandbox.Command{Line: "pwd -P"}).Stdout))
	logical := strings.TrimSpace(string(run(t, s, &sandbox.Command{Line: "pwd"}).Stdout))
	names := []string{}
	for _, info := range list {
		names = append(names, strings.TrimPrefix(strings.TrimPrefix(info.Path, root+"/"), logical+"/"))
	}
	return names
}

func testGlob(t *testing.T, s sandbox.Session) {
	f := files(t, s)
	run(t, s, &sandbox.Command{Line: "mkdir -p g/src/deep/er g/.git/x g/docs && cd g && touch a.go b.txt .env src/c.go src/.hid.go src/deep/d.go src/deep/er/e.go src/deep/er/f.ts .git/x/y.go docs/x.md 'docs/[1].md'"})
	for _, tt := range []struct {
		pattern string
		hidden  bool
		want    string
	}{
		{"*.go", false, "a.go"},
		{"*", false, "a.go b.txt docs src"},
		{"*", true, ".env .git a.go b.txt docs src"},
		{".*", false, ".env .git"},
		{"**/*.go", false, "a.go src/c.go src/deep/d.go src/deep/er/e.go"},
		{"**/*.go", true, ".git/x/y.go a.go src/.hid.go src/c.go src/deep/d.go src/deep/er/e.go"},
		{"**/.*.go", false, "src/.hid.go"},
		{".git/**", false, ".git/x .git/x/y.go"},
		{"src/**/er/*.{go,ts}", false, "src/deep/er/e.go src/deep/er/f.ts"},
		{"{src,docs}/*.{go,md}", false, "docs/[1].md docs/x.md src/c.go"},
		{"{src/deep,docs}/*.??", false, "docs/[1].md docs/x.md src/deep/d.go"},
		{"{.env,a.go}", false, ".env a.go"},
		{"**/deep/**", false, "src/deep/d.go src/deep/er src/deep/er/e.go src/deep/er/f.ts"},
		{"**/", false, "docs src src/deep src/deep/er"},
		{"[ab].*", false, "a.go b.txt"},
		{"[!a].*", false, "b.txt"},
		{`docs/\[1\].md`, false, "docs/[1].md"},
		{"./src/./c.go", false, "src/c.go"},
		{"nothing/**", false, ""},
	} {
		t.Run(fmt.Sprint(tt.pattern, tt.hidden), func(t *testing.T) {
			res, err := f.Glob(t.Context(), &sandbox.GlobQuery{Path: "g", Pattern: tt.pattern, Hidden: tt.hidden})
			if err != nil {
				t.Fatal(err)
			}
			got := below(s, t, res.Files)
			for i := range got {
				got[i] = strings.TrimPrefix(got[i], "g/")
			}
			if diff := cmp.Diff(tt.want, strings.Join(got, " ")); diff != "" || res.Truncated {
				t.Errorf("truncated %v (-want +got):\n%s", res.Truncated, diff)
			}
		})
	}
	t.Run("limit", func(t *testing.T) {
		for limit, truncated := range map[int]bool{1: true, 3: true, 4: false, 5: false} {
			res, err := f.Glob(t.Context(), &sandbox.GlobQuery{Path: "g", Pattern: "**/*.go", Limit: limit})
			if err != nil || len(res.Files) != min(limit, 4) || res.Truncated != truncated {
				t.Errorf("limit %d: got %+v, %v", limit, res, err)
			}
		}
	})
	t.Run("FB-025 names", func(t *testing.T) {
		for _, name := range oddNames {
			write(t, s, "oddglob/"+name, nil)
		}
		res, err := f.Glob(t.Context(), &sandbox.GlobQuery{Path: "oddglob", Pattern: "*"})
		if err != nil || len(res.Files) != len(oddNames) {
			t.Fatalf("got %+v, %v, want %d files", res, err, len(oddNames))
		}
		for _, info := range res.Files {
			if _, err := f.Stat(t.Context(), info.Path); err != nil {
				t.Errorf("what was found is not there: %v", err)
			}
		}
	})
	for _, tt := range []struct {
		name, field string
		query       sandbox.GlobQuery
	}{
		{"empty", "pattern", sandbox.GlobQuery{}},
		{"not closed", "pattern", sandbox.GlobQuery{Pattern: "a["}},
		{"brace", "pattern", sandbox.GlobQuery{Pattern: "{a,b"}},
		{"absolute", "pattern", sandbox.GlobQuery{Pattern: "/etc/*"}},
		{"climbs out", "pattern", sandbox.GlobQuery{Pattern: "../*"}},
		{"NUL", "pattern", sandbox.GlobQuery{Pattern: "a\x00"}},
		{"too many", "pattern", sandbox.GlobQuery{Pattern: strings.Repeat("{a,b}", 40)}},
		{"limit", "limit", sandbox.GlobQuery{Pattern: "*", Limit: -1}},
		{"high limit", "limit", sandbox.GlobQuery{Pattern: "*", Limit: 100_001}},
	} {
		t.Run("invalid: "+tt.name, func(t *testing.T) {
			_, err := f.Glob(t.Context(), &tt.query)
			if e, ok := errors.AsType[*sandbox.Error](err); !ok || e.Code != sandbox.CodeInvalid || e.Field != tt.field {
				t.Errorf("got %v, want an invalid %s", err, tt.field)
			}
		})
	}
	if _, err := f.Glob(t.Context(), &sandbox.GlobQuery{Path: "g/a.go", Pattern: "*"}); !errors.Is(err, sandbox.ErrNotDirectory) {
		t.Errorf("in a file: got %v", err)
	}
	if _, err := f.Glob(t.Context(), &sandbox.GlobQuery{Path: "g/none", Pattern: "*"}); !errors.Is(err, sandbox.ErrNotFound) {
		t.Errorf("in nothing: got %v", err)
	}
}

// Links that lead in circles do not lead a search astray.
func testCircles(t *testing.T, s sandbox.Session) {
	f := files(t, s)
	run(t, s, &sandbox.Command{Line: "mkdir -p w/sub; ln -s . w/sub/again; ln -s ../.. w/sub/up; ln -s nowhere w/dangling; ln -s loop2 w/loop1; ln -s loop1 w/loop2; echo hit > w/sub/f.txt; mkfifo w/fifo"})
	began := time.Now()
	res, err := f.Glob(t.Context(), &sandbox.GlobQuery{Pattern: "w/**/*"})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"w/dangling", "w/fifo", "w/loop1", "w/loop2", "w/sub", "w/sub/again", "w/sub/f.txt", "w/sub/up"}
	if diff := cmp.Diff(want, below(s, t, res.Files)); diff != "" {
		t.Errorf("FB-027 glob (-want +got):\n%s", diff)
	}
	for _, info := range res.Files {
		if base := path.Base(info.Path); (base == "dangling" || base == "again") && info.Target == "" {
			t.Errorf("FB-027: %+v is not shown as a link", info)
		}
	}
	found, err := f.Grep(t.Context(), &sandbox.GrepQuery{Pattern: "hit", Path: "w"})
	if err != nil || len(found.Matches) != 1 || found.Files != 1 || found.Matches[0].Line != 1 {
		t.Errorf("FB-027 grep: got %+v, %v, want one match", found, err)
	}
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("FB-027: took %v", took)
	}
	t.Run("the end of the context ends a walk", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := f.Grep(ctx, &sandbox.GrepQuery{Pattern: "x", Path: "/"}); !errors.Is(err, sandbox.ErrCancelled) {
			t.Errorf("grep: got %v", err)
		}
		if _, err := f.Glob(ctx, &sandbox.GlobQuery{Pattern: "**", Path: "/"}); !errors.Is(err, sandbox.ErrCancelled) {
			t.Errorf("glob: got %v", err)
		}
	})
}

func testGrep(t *testing.T, s sandbox.Session) {
	f := files(t, s)
	run(t, s, &sandbox.Command{Line: `mkdir -p r/sub/.hid r/.git; cd r
printf 'one\ntwo a.b\nthree\nfour a.b\n' > a.txt
printf 'A.B\r\nx axb\n' > sub/b.go
printf 'a.b' > sub/.hid/c.txt; printf 'a.b' > .git/config
printf 'a.b\0' > binary; printf 'a.b \377 caf\303\251\n' > latin
printf '研究员\nStraße\n' > zh.txt`})
	type hit struct {
		Path string
		Line int
		Col  int
		Text string
	}
	for _, tt := range []struct {
		name  string
		query sandbox.GrepQuery
		want  []hit
	}{
		{"literal", sandbox.GrepQuery{Pattern: "a.b"}, []hit{{"a.txt", 2, 5, "two a.b"}, {"a.txt", 4, 6, "four a.b"}, {"latin", 1, 1, "a.b \ufffd café"}}},
		{"regular expression", sandbox.GrepQuery{Pattern: "^.*a.b$", Regexp: true, Glob: "*.{go,txt}"}, []hit{{"a.txt", 2, 1, "two a.b"}, {"a.txt", 4, 1, "four a.b"}, {"sub/b.go", 2, 1, "x axb"}}},
		{"case", sandbox.GrepQuery{Pattern: "a.b", IgnoreCase: true, Glob: "**/*.go"}, []hit{{"sub/b.go", 1, 1, "A.B"}}},
		{"case of other scripts", sandbox.GrepQuery{Pattern: "STRAßE", IgnoreCase: true}, []hit{{"zh.txt", 2, 1, "Straße"}}},
		{"Chinese", sandbox.GrepQuery{Pattern: "究"}, []hit{{"zh.txt", 1, 4, "研究员"}}},
		{"hidden", sandbox.GrepQuery{Pattern: "a.b", Hidden: true, Glob: "c*"}, []hit{{".git/config", 1, 1, "a.b"}, {"sub/.hid/c.txt", 1, 1, "a.b"}}},
		{"a hidden directory that is named", sandbox.GrepQuery{Pattern: "a.b", Glob: ".git/*"}, []hit{{".git/config", 1, 1, "a.b"}}},
		{"one file", sandbox.GrepQuery{Pattern: "three", Path: "r/a.txt"}, []hit{{"a.txt", 3, 1, "three"}}},
		{"limit of a file", sandbox.GrepQuery{Pattern: "a.b", FileLimit: 1, Glob: "*.txt"}, []hit{{"a.txt", 2, 5, "two a.b"}}},
		{"nothing", sandbox.GrepQuery{Pattern: "no such text"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.query.Path == "" {
				tt.query.Path = "r"
			}
			res, err := f.Grep(t.Context(), &tt.query)
			if err != nil {
				t.Fatal(err)
			}
			var got []hit
			for _, m := range res.Matches {
				_, name, _ := strings.Cut(m.Path, "/r/")
				got = append(got, hit{name, m.Line, m.Column, m.Text})
			}
			if diff := cmp.Diff(tt.want, got); diff != "" || res.Truncated {
				t.Errorf("truncated %v (-want +got):\n%s", res.Truncated, diff)
			}
		})
	}
	res, err := f.Grep(t.Context(), &sandbox.GrepQuery{Pattern: "a.b", Path: "r", Limit: 2})
	if err != nil || len(res.Matches) != 2 || !res.Truncated {
		t.Errorf("limit: got %+v, %v", res, err)
	}
	res, err = f.Grep(t.Context(), &sandbox.GrepQuery{Pattern: "three", Path: "r", Before: 5, After: 1})
	if err != nil || len(res.Matches) != 1 || res.Binary != 1 || res.Files != 5 {
		t.Fatalf("context: got %+v, %v, want 5 files, one of them binary", res, err)
	}
	if diff := cmp.Diff([][]string{{"one", "two a.b"}, {"four a.b"}}, [][]string{res.Matches[0].Before, res.Matches[0].After}); diff != "" {
		t.Errorf("context (-want +got):\n%s", diff)
	}
	testGrepLimits(t, s, f)
	testText(t, s, f)
}

// testText is about text that a bound of bytes falls into.
func testText(t *testing.T, s sandbox.Session, f sandbox.Files) {
	t.Run("FB-017 character across a bound", func(t *testing.T) {
		for _, bound := range []int{4096, 8192, 32768, 65536} {
			for n := bound - 4; n <= bound+1; n++ {
				text := strings.Repeat("a", n) + "€€€\n"
				write(t, s, "euro.txt", []byte(text))
				if got := read(t, s, "euro.txt", nil); string(got) != text {
					t.Errorf("%d letters: got %d bytes, want %d", n, len(got), len(text))
				}
				found, err := f.Grep(t.Context(), &sandbox.GrepQuery{Pattern: "€€€", Path: "euro.txt"})
				if err != nil || len(found.Matches) != 1 {
					t.Errorf("%d letters: grep found %+v, %v, want it once, as in text", n, found, err)
				}
				if info := write(t, s, "euro.txt", []byte(text+"$\n")); !strings.HasSuffix(info.Diff, "€€€\n+$\n") {
					t.Errorf("%d letters: the diff ends with %q, want that of text", n, info.Diff[max(0, len(info.Diff)-40):])
				}
			}
		}
	})
	t.Run("FB-043 one long line", func(t *testing.T) {
		run(t, s, &sandbox.Command{Line: `head -c 300000 /dev/zero | tr '\0' x > one.txt`})
		const page = 80_000
		var got []byte
		for range 4 {
			got = append(got, read(t, s, "one.txt", &sandbox.ReadOptions{Offset: int64(len(got)), Length: page})...)
		}
		if string(got) != strings.Repeat("x", 300_000) {
			t.Errorf("got %d bytes in 4 pages, want all 300000", len(got))
		}
	})
}

func testGrepLimits(t *testing.T, s sandbox.Session, f sandbox.Files) {
	t.Run("FB-039 long line", func(t *testing.T) {
		run(t, s, &sandbox.Command{Line: "{ head -c 3000000 /dev/zero | tr '\\0' x; printf needle; head -c 3000000 /dev/zero | tr '\\0' y; echo; echo needle; } > long"})
		res, err := f.Grep(t.Context(), &sandbox.GrepQuery{Pattern: "needle", Path: "long"})
		if err != nil || len(res.Matches) != 2 {
			t.Fatalf("got %+v, %v, want two matches", res, err)
		}
		if m := res.Matches[0]; m.Column != 3_000_001 || !m.Cut || len(m.Text) > 4<<10 || !strings.Contains(m.Text, "xneedley") {
			t.Errorf("got column %d, cut %v, %d bytes", m.Column, m.Cut, len(m.Text))
		}
	})
	t.Run("a name that is not UTF-8", func(t *testing.T) {
		write(t, s, "rb/\xff\xfe", []byte("found\n"))
		res, err := f.Grep(t.Context(), &sandbox.GrepQuery{Pattern: "found", Path: "rb"})
		if err != nil || len(res.Matches) != 1 || path.Base(res.Matches[0].Path) != "\xff\xfe" {
			t.Fatalf("got %+v, %v", res, err)
		}
		if got := read(t, s, res.Matches[0].Path, nil); string(got) != "found\n" {
			t.Errorf("got %q", got)
		}
	})
	for _, tt := range []struct {
		name, field string
		query       sandbox.GrepQuery
	}{
		{"empty", "pattern", sandbox.GrepQuery{}},
		{"line end", "pattern", sandbox.GrepQuery{Pattern: "a\nb"}},
		{"expression", "pattern", sandbox.GrepQuery{Pattern: "(a", Regexp: true}},
		{"back reference", "pattern", sandbox.GrepQuery{Pattern: `(a)\1`, Regexp: true}},
		{"glob", "glob", sandbox.GrepQuery{Pattern: "a", Glob: "[a"}},
		{"before", "before", sandbox.GrepQuery{Pattern: "a", Before: 101}},
		{"after", "after", sandbox.GrepQuery{Pattern: "a", After: -1}},
		{"limit", "limit", sandbox.GrepQuery{Pattern: "a", Limit: 1 << 30}},
		{"file limit", "file_limit", sandbox.GrepQuery{Pattern: "a", FileLimit: -1}},
	} {
		t.Run("invalid: "+tt.name, func(t *testing.T) {
			_, err := f.Grep(t.Context(), &tt.query)
			if e, ok := errors.AsType[*sandbox.Error](err); !ok || e.Code != sandbox.CodeInvalid || e.Field != tt.field {
				t.Errorf("got %v, want an invalid %s", err, tt.field)
			}
		})
	}
	for name, want := range map[string]error{"none": sandbox.ErrNotFound, "/dev/zero": sandbox.ErrPermission} {
		if _, err := f.Grep(t.Context(), &sandbox.GrepQuery{Pattern: "a", Path: name}); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", name, err, want)
		}
	}
}
