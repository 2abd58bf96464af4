package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/glassboxhq/glassbox/history"
)

func TestFileAct(t *testing.T) {
	size := int64(6)
	for _, tt := range []struct {
		kind, request, result string
		file                  history.File
		want                  string
	}{
		{history.FileWrite, `{}`, `{}`, history.File{Path: "/w/f", AfterSize: &size}, "/w/f  6 bytes"},
		{history.FileEdit, `{}`, `{"replaced":1}`, history.File{Path: "/w/f", AfterSize: &size, Diff: "--- /w/f\n+++ /w/f\n@@ -1 +1 @@\n-a\n+b\n+--c\n"}, "/w/f  6 bytes  +2 -1 lines"},
		{history.FileAppend, `{}`, `{}`, history.File{Path: "/w/f", Diff: "@@\n+b\n", DiffTruncated: true}, "/w/f  +1 -0 lines and more"},
		{history.FileMove, `{}`, `{}`, history.File{Path: "/w/new", OldPath: "/w/o\nld"}, "/w/o ld → /w/new"},
		{history.FileGlob, `{"pattern":"**/*.go"}`, `{"count":3}`, history.File{Path: "/w"}, "**/*.go in /w  3 found"},
		{history.FileGrep, `{"pattern":"a\u001b"}`, `{"count":1000,"truncated":true}`, history.File{Path: "/w"}, `"a\x1b" in /w  1000 matches, and there are more`},
		{history.FileGrep, `{"pattern":"a"}`, `{"error":{}}`, history.File{Path: "/w"}, `"a" in /w`},
		{history.FileSetMode, `{"mode":493,"owner":"app","recursive":true}`, `{}`, history.File{Path: "/w"}, "/w  -rwxr-xr-x  app:  and all below"},
		{history.FileUpload, `{}`, `{"uploaded_files":2,"directories":1,"links":0,"size":2048}`, history.File{Path: "/w"}, "/w  2 files, 1 folder, 0 links, 2.0 KiB"},
		{history.FileDownload, `{}`, `{"size":3}`, history.File{Path: "/w"}, "/w  3 bytes"},
		{history.FileRead, `{"line":5,"lines":2}`, `{}`, history.File{Path: "/w/f"}, "/w/f  from line 5"},
		{history.FileStat, `no json`, ``, history.File{Path: "/w/f"}, "/w/f"},
	} {
		op := &history.Operation{Type: tt.kind, Request: []byte(tt.request), Result: []byte(tt.result), File: &tt.file}
		if got := fileAct(op); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.kind, got, tt.want)
		}
	}
}

// A diff is shown line by line, safe for a terminal.
func TestShowDiff(t *testing.T) {
	var out bytes.Buffer
	a := &app{out: &out, page: newOutput(&out)}
	a.showDiff(&history.Operation{File: &history.File{Diff: "--- f\n+++ f\n-a\x1b[2J\n+b\n", DiffTruncated: true}})
	if err := a.page.flush(); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); strings.Contains(got, "\x1b") || !strings.Contains(got, "    +b\n") || !strings.HasSuffix(got, "… the diff was cut\n") {
		t.Errorf("got %q", got)
	}
}

func TestAmount(t *testing.T) {
	for n, want := range map[int64]string{0: "0 bytes", 1023: "1023 bytes", 1024: "1.0 KiB", 10 << 30: "10.0 GiB", 1<<63 - 1: "8.0 EiB"} {
		if got := amount(n); got != want {
			t.Errorf("%d: got %s, want %s", n, got, want)
		}
	}
}
