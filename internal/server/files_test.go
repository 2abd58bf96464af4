package server_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/console/act"
	"github.com/glassboxhq/glassbox/internal/server"
	"github.com/glassboxhq/glassbox/sandbox"
)

func TestFiles(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	r := s.room()
	files := r.base + "/files"

	a := r.ask("PUT", files+"/content?path=a%2Fпривет.txt&mode=600", "hello\x00\xff", "Content-Type: application/octet-stream")
	var made server.Written
	a.read(t, &made)
	sum := sha256.Sum256([]byte("hello\x00\xff"))
	hash := hex.EncodeToString(sum[:])
	if made.SHA256 != hash || made.Previous != "" || a.header.Get("ETag") != `"`+hash+`"` || made.Name != "привет.txt" || made.Size != 7 || made.Mode != "0600" || made.Type != "file" {
		t.Errorf("%+v %v", made, a.header)
	}
	if got := mustRead(t, filepath.Join(r.dir, "a", "привет.txt")); got != "hello\x00\xff" {
		t.Errorf("%q", got)
	}
	op := r.history(history.FileWrite)[0]
	if op.ID != made.Operation || op.Source != history.SourceConsole || op.Actor.Type != history.User || op.Actor.ID != "олена" || op.Actor.Correlation != a.header.Get("X-Request-Id") {
		t.Errorf("%+v", op)
	}
	acts, err := s.acts.List(t.Context(), &act.Query{Target: "local/" + r.box, Limit: 1})
	if err != nil || len(acts) != 1 || acts[0].Action != "file.write" || acts[0].Address != "127.0.0.1" || acts[0].UserName != "олена" || !strings.Contains(acts[0].Detail, "привет") {
		t.Errorf("%+v, %v", acts, err)
	}

	// The timeline tells it once, as the history does.
	var timeline server.Page[*history.Operation]
	r.ask("GET", r.base+"/operations", "").read(t, &timeline)
	if len(timeline.Items) != 1 || timeline.Items[0].ID != made.Operation {
		t.Errorf("%+v", timeline.Items)
	}

	var one server.FileEntry
	r.ask("GET", files+"/stat?path=a", "").read(t, &one)
	if one.Type != "directory" || one.Path != r.dir+"/a" {
		t.Errorf("%+v", one)
	}
	r.ask("GET", files+"/stat?path=none", "").want(t, "nothing", 404, sandbox.CodeFileNotFound)
	r.ask("GET", files+"/content?path=a", "").want(t, "directory", 409, sandbox.CodeIsDirectory)

	for i := range 25 {
		r.file(fmt.Sprintf("f%02d", i), "x")
	}
	var names []string
	for next := ""; ; {
		var page server.FileList
		r.ask("GET", files+"?limit=10&cursor="+next, "").read(t, &page)
		for _, e := range page.Entries {
			names = append(names, e.Name)
		}
		if next = page.Next; next == "" {
			break
		}
	}
	if len(names) != 26 || !slices.IsSorted(names) || names[0] != "a" || names[25] != "f24" {
		t.Errorf("%v", names)
	}
	var page server.FileList
	r.ask("GET", files+"?depth=2&limit=2", "").read(t, &page)
	if len(page.Entries) != 2 || page.Entries[1].Path != r.dir+"/a/привет.txt" || page.Next == "" {
		t.Errorf("%+v", page)
	}
	r.ask("GET", files+"?path=f01", "").want(t, "no directory", 409, sandbox.CodeNotDirectory)
	r.ask("GET", files+"?cursor=x", "").want(t, "cursor", 400, "cursor_invalid")
	if _, err := s.rt.Pause(t.Context(), r.box); err != nil {
		t.Fatal(err)
	}
	r.ask("GET", files, "").want(t, "paused", 409, sandbox.CodeSandboxState)
}

// What an agent has written is never a page of ours.
func TestFileIsNoPage(t *testing.T) {
	t.Parallel()
	r := start(t, nil).room()
	r.file("x.html", "<script>alert(1)</script>")
	r.file("x.svg", "<svg onload=alert(1)>")
	for _, path := range []string{"x.html", "x.svg", "x.html&etag=sha256"} {
		a := r.ask("GET", r.base+"/files/content?path="+path, "")
		if a.status != 200 || a.header.Get("Content-Type") != "application/octet-stream" || !strings.HasPrefix(a.header.Get("Content-Disposition"), "attachment;") ||
			a.header.Get("X-Content-Type-Options") != "nosniff" || !strings.Contains(a.header.Get("Content-Security-Policy"), "sandbox") || a.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %d %v", path, a.status, a.header)
		}
	}
}

func TestFileRanges(t *testing.T) {
	t.Parallel()
	r := start(t, nil).room()
	r.file("f", "0123456789")
	r.file("empty", "")
	content := r.base + "/files/content?path="
	for _, tt := range []struct {
		path, ask  string
		status     int
		body, part string
	}{
		{"f", "", 200, "0123456789", ""},
		{"f", "bytes=0-", 206, "0123456789", "bytes 0-9/10"},
		{"f", "bytes=2-4", 206, "234", "bytes 2-4/10"},
		{"f", "bytes=9-9", 206, "9", "bytes 9-9/10"},
		{"f", "bytes=8-99", 206, "89", "bytes 8-9/10"},
		{"f", "bytes=-3", 206, "789", "bytes 7-9/10"},
		{"f", "bytes=-99", 206, "0123456789", "bytes 0-9/10"},
		{"f", "bytes=10-", 416, "", "bytes */10"},
		{"f", "bytes=1099511627776-", 416, "", "bytes */10"},
		{"f", "bytes=4-2", 200, "0123456789", ""},
		{"f", "bytes=0-1,3-4", 200, "0123456789", ""},
		{"f", "lines=1-2", 200, "0123456789", ""},
		{"f", "bytes=99999999999999999999-", 200, "0123456789", ""},
		{"empty", "", 200, "", ""},
		{"empty", "bytes=0-", 200, "", ""},
		{"empty", "bytes=-5", 200, "", ""},
		{"f&etag=sha256", "bytes=2-4", 206, "234", "bytes 2-4/10"},
	} {
		var headers []string
		if tt.ask != "" {
			headers = append(headers, "Range: "+tt.ask)
		}
		a := r.ask("GET", content+tt.path, "", headers...)
		if a.status != tt.status || a.header.Get("Content-Range") != tt.part || a.status != 416 && a.body != tt.body {
			t.Errorf("%s %q: %d %q %v", tt.path, tt.ask, a.status, a.body, a.header)
		}
		if a.status == 416 {
			a.want(t, tt.ask, 416, "range_not_satisfiable")
		}
	}
	tag := r.ask("GET", content+"f", "").header.Get("ETag")
	if a := r.ask("GET", content+"f", "", "If-None-Match: "+tag); a.status != 304 || a.body != "" {
		t.Errorf("%d %q", a.status, a.body)
	}
	if a := r.ask("GET", content+"f", "", "Range: bytes=2-4", "If-Range: "+tag); a.status != 200 {
		t.Errorf("a weak tag is none for a range: %d", a.status)
	}
	// A file of the kernel has more than it says.
	if a := r.ask("GET", content+"/proc/self/status", ""); a.status != 200 || !strings.Contains(a.body, "Pid:") {
		t.Errorf("%d %q", a.status, a.body)
	}
}

func TestWriteConditions(t *testing.T) {
	t.Parallel()
	r := start(t, nil).room()
	path := r.base + "/files/content?path=f"
	first := r.ask("PUT", path, "one", "If-None-Match: *")
	if first.status != 200 {
		t.Fatalf("%+v", first)
	}
	r.ask("PUT", path, "two", "If-None-Match: *").want(t, "it is there", 412, sandbox.CodeModified)
	read := r.ask("GET", path+"&etag=sha256", "").header.Get("ETag")
	if read != first.header.Get("ETag") {
		t.Errorf("%q, %q", read, first.header.Get("ETag"))
	}
	second := r.ask("PUT", path, "two", "If-Match: "+read)
	if second.status != 200 {
		t.Fatalf("%+v", second)
	}
	r.ask("PUT", path, "three", "If-Match: "+read).want(t, "another has written", 412, sandbox.CodeModified)
	r.ask("PUT", path, "three", `If-Match: W/"3-1"`).want(t, "a weak tag", 412, sandbox.CodeModified)
	r.ask("PUT", path, "three", "If-None-Match: x").want(t, "not *", 400, sandbox.CodeInvalid)
	r.ask("PUT", path+"&mode=9", "three").want(t, "mode", 422, sandbox.CodeInvalid)
	if got := mustRead(t, filepath.Join(r.dir, "f")); got != "two" {
		t.Errorf("%q", got)
	}
}

// TestHostileFiles asks for what an agent may have made, and for what nobody
// has to ask for.
func TestHostileFiles(t *testing.T) {
	t.Parallel()
	r := start(t, nil).room()
	files := r.base + "/files"
	odd := []string{"line\nbreak", "not\xffutf8", "quote\"'", "semi;colon", "-rf", " space ", "\u202egpj.exe", "<b>", "%41", "a\\b"}
	for _, name := range odd {
		r.file(name, name)
	}
	if err := syscall.Mkfifo(filepath.Join(r.dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"loop": "loop", "out": "/etc/hostname", "bad": "x\xfe"} {
		if err := os.Symlink(to, filepath.Join(r.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	var page server.FileList
	r.ask("GET", files, "").read(t, &page)
	if len(page.Entries) != len(odd)+4 {
		t.Errorf("%d entries", len(page.Entries))
	}
	for _, e := range page.Entries {
		path := e.Path
		if e.PathBytes != nil {
			path = string(e.PathBytes)
		}
		name := filepath.Base(path)
		if e.Type != "file" {
			continue
		}
		ways := []string{"path=" + url.QueryEscape(path), "path_base64=" + url.QueryEscape(base64.StdEncoding.EncodeToString([]byte(path)))}
		for _, way := range ways {
			a := r.ask("GET", files+"/content?"+way, "")
			if a.status != 200 || a.body != name {
				t.Errorf("%q by %s: %d %s", name, way, a.status, a.body)
			}
			if h := a.header.Get("Content-Disposition"); strings.ContainsAny(h, "\n\r\u202e") || !utf8.ValidString(h) || strings.Contains(h, "%E2%80%AE") || !strings.HasPrefix(h, "attachment; filename") {
				t.Errorf("%q: %q", name, h)
			}
		}
	}
	for _, tt := range []struct {
		name, method, query string
		status              int
		code                sandbox.Code
	}{
		{"fifo", "GET", "path=fifo", 403, sandbox.CodePathNotAllowed},
		{"device", "GET", "path=/dev/zero", 403, sandbox.CodePathNotAllowed},
		{"loop", "GET", "path=loop", 0, ""},
		{"nul", "GET", "path=a%00b", 400, sandbox.CodeInvalid},
		{"empty", "GET", "path=", 400, sandbox.CodeInvalid},
		{"none", "GET", "", 400, sandbox.CodeInvalid},
		{"both", "GET", "path=a&path_base64=YQ==", 400, sandbox.CodeInvalid},
		{"no base64", "GET", "path_base64=%21", 400, sandbox.CodeInvalid},
		{"long", "GET", "path=" + strings.Repeat("x", 5000), 422, sandbox.CodeInvalid},
		{"long name", "GET", "path=" + strings.Repeat("x", 300), 0, ""},
		{"memory", "GET", "path=/proc/self/mem", 0, ""},
		{"write to proc", "PUT", "path=/proc/sys/kernel/hostname", 403, sandbox.CodePathNotAllowed},
		{"write to proc by ..", "PUT", "path=../../../../../../../../../proc/self/comm", 403, sandbox.CodePathNotAllowed},
		{"write to sys", "PUT", "path=/sys/x", 403, sandbox.CodePathNotAllowed},
		{"write to a directory", "PUT", "path=.", 409, sandbox.CodeIsDirectory},
		{"write to a fifo", "PUT", "path=fifo", 0, ""},
	} {
		a := r.ask(tt.method, files+"/content?"+tt.query, "")
		if tt.status != 0 {
			a.want(t, tt.name, tt.status, tt.code)
		} else if a.status >= 500 || a.status < 400 && tt.name != "write to a fifo" {
			t.Errorf("%s: %d %s", tt.name, a.status, a.body)
		}
	}
}

// A large file passes through flat memory: nothing else runs meanwhile.
func TestLargeFile(t *testing.T) {
	r := start(t, nil).room()
	const size = 3 << 30
	if err := os.WriteFile(filepath.Join(r.dir, "sparse"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(r.dir, "sparse"), size); err != nil {
		t.Fatal(err)
	}
	content := r.base + "/files/content?path=sparse"
	if a := r.ask("GET", content, "", fmt.Sprintf("Range: bytes=%d-", size-10)); a.status != 206 || len(a.body) != 10 || a.header.Get("Content-Range") != fmt.Sprintf("bytes %d-%d/%d", size-10, size-1, size) {
		t.Errorf("%d %d %v", a.status, len(a.body), a.header)
	}
	// What passes is not kept: neither way.
	const passed = 192 << 20
	if err := os.Truncate(filepath.Join(r.dir, "sparse"), passed); err != nil {
		t.Fatal(err)
	}
	goruntime.GC()
	var before goruntime.MemStats
	goruntime.ReadMemStats(&before)
	m := &meter{Reader: io.LimitReader(zeros{}, passed)}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, r.s.url+r.base+"/files/content?path=brought", m)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Cookie", r.cookie)
	req.Header.Set("Origin", r.s.url)
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("%v %v", resp, err)
	}
	resp.Body.Close()
	if req, err = http.NewRequestWithContext(t.Context(), http.MethodGet, r.s.url+r.base+"/files/content?path=brought", http.NoBody); err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Cookie", r.cookie)
	if resp, err = http.DefaultTransport.RoundTrip(req); err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	m.Reader = resp.Body
	if n, err := io.Copy(io.Discard, struct{ io.Reader }{m}); err != nil || n != passed || resp.ContentLength != passed {
		t.Errorf("%d of %d bytes, %v", n, resp.ContentLength, err)
	}
	if m.most > 2*before.HeapAlloc+96<<20 { // what was there may lie about twice, until it is collected
		t.Errorf("%d MiB of memory, after %d MiB", m.most>>20, before.HeapAlloc>>20)
	}
	if a := r.ask("GET", content+"&etag=sha256", ""); a.status != http.StatusRequestEntityTooLarge {
		t.Errorf("%d %s", a.status, a.body)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// meter looks at the memory while bytes pass.
type meter struct {
	io.Reader
	passed, most uint64
}

func (m *meter) Read(p []byte) (int, error) {
	n, err := m.Reader.Read(p)
	const every = 8 << 20
	if before := m.passed / every; (m.passed+uint64(n))/every > before {
		var now goruntime.MemStats
		goruntime.ReadMemStats(&now)
		m.most = max(m.most, now.HeapAlloc)
	}
	m.passed += uint64(n)
	return n, err
}

// A write that is cut leaves the file as it was.
func TestCutWrite(t *testing.T) {
	t.Parallel()
	r := start(t, nil).room()
	r.file("f", "as it was")
	conn, err := net.Dial("tcp", strings.TrimPrefix(r.s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "PUT %s/files/content?path=f HTTP/1.1\r\nHost: localhost\r\nCookie: %s\r\nSec-Fetch-Site: same-origin\r\nContent-Length: 100\r\n\r\nnew", r.base, r.cookie)
	r.eventually("the write has begun", func() bool { return len(r.history(history.FileWrite)) == 1 })
	conn.Close()
	r.eventually("the write has ended", func() bool { return history.Final(r.history(history.FileWrite)[0].Status) })
	if op := r.history(history.FileWrite)[0]; op.Status != sandbox.Cancelled || mustRead(t, filepath.Join(r.dir, "f")) != "as it was" {
		t.Errorf("%+v", op)
	}
}
