package execd_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/glassboxhq/glassbox/history"
)

// part is one of a form, with a filename as the public SDKs send it.
type part struct{ name, content string }

func form(t *testing.T, parts ...part) (body io.Reader, contentType string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for _, p := range parts {
		head := textproto.MIMEHeader{"Content-Disposition": {fmt.Sprintf(`form-data; name=%q; filename=%q`, p.name, p.name)}}
		f, err := w.CreatePart(head)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(f, p.content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &b, w.FormDataContentType()
}

func (s *setup) upload(t *testing.T, parts ...part) *answer {
	t.Helper()
	body, kind := form(t, parts...)
	return s.do(t, "POST /files/upload", body, "Content-Type", kind)
}

func meta(v fields) part {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return part{"metadata", string(text)}
}

type fileInfo struct {
	Path, Type, Owner, Group string
	Size                     int64
	Mode                     int
	Modified                 time.Time `json:"modified_at"`
	Created                  time.Time `json:"created_at"`
}

func query(name string, values ...string) string {
	q := url.Values{}
	for _, v := range values {
		q.Add(name, v)
	}
	return "?" + q.Encode()
}

func (s *setup) info(t *testing.T, name string) fileInfo {
	t.Helper()
	var got map[string]fileInfo
	s.must(t, "GET /files/info"+query("path", name), nil).json(t, &got)
	return got[name]
}

func TestUpload(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	bin := strings.Repeat("\x00\xff\r\n", 100_000)
	a := s.upload(t,
		meta(fields{"path": "~/d/e/price$1.txt", "mode": 600}), part{"file", bin},
		meta(fields{"path": s.dir + "/d/b"}), part{"file", ""},
	)
	if a.status != http.StatusOK || len(a.body) != 0 || a.header.Get("Content-Length") != "0" {
		t.Fatalf("got %d %q", a.status, a.body)
	}
	if got, err := os.ReadFile(s.dir + "/d/e/price$1.txt"); string(got) != bin || err != nil {
		t.Errorf("got %d bytes, %v, want them as they were", len(got), err)
	}
	for name, mode := range map[string]int{"~/d/e/price$1.txt": 600, "~/d/b": 755} {
		got := s.info(t, name)
		if got.Mode != mode || got.Type != "file" || !filepath.IsAbs(got.Path) || got.Owner == "" || got.Modified.IsZero() || got.Created.IsZero() {
			t.Errorf("got %+v, want mode %d", got, mode)
		}
	}
	// What is there keeps its mode, unless another is asked for.
	if a := s.upload(t, meta(fields{"path": "~/d/e/price$1.txt"}), part{"file", "x"}); a.status != http.StatusOK {
		t.Fatalf("got %d %s", a.status, a.body)
	}
	if got := s.info(t, "~/d/e/price$1.txt"); got.Mode != 600 || got.Size != 1 {
		t.Errorf("got %+v, want mode 600", got)
	}
	// All metadata first, as other clients send it.
	if a := s.upload(t, meta(fields{"path": "1"}), meta(fields{"path": "2", "mode": 4711}), part{"file", "one"}, part{"file", "two"}); a.status != http.StatusOK {
		t.Fatalf("got %d %s", a.status, a.body)
	}
	if got, err := os.ReadFile(s.dir + "/2"); string(got) != "two" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := os.Stat(s.dir + "/2"); err != nil || got.Mode()&os.ModeSetuid == 0 {
		t.Errorf("got %v, %v, want setuid kept", got, err)
	}
}

func TestUploadRefused(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for _, tt := range []struct {
		name  string
		parts []part
	}{
		{"nothing", nil},
		{"file first", []part{{"file", "x"}, meta(fields{"path": "a"})}},
		{"no file", []part{meta(fields{"path": "a"})}},
		{"no path", []part{meta(fields{}), {"file", "x"}}},
		{"bad mode", []part{meta(fields{"path": "a", "mode": 988}), {"file", "x"}}},
		{"mode as text", []part{meta(fields{"path": "a", "mode": "644"}), {"file", "x"}}},
		{"early, with much behind it", []part{{"file", "x"}, {"file", strings.Repeat("x", 8<<20)}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if a := s.upload(t, tt.parts...); a.status != http.StatusBadRequest {
				t.Errorf("got %d %s, want a 400", a.status, a.body)
			}
		})
	}
	if _, err := os.Stat(s.dir + "/a"); err == nil {
		t.Error("a refused file was written")
	}
	if a := s.do(t, "POST /files/upload", fields{}); a.status != http.StatusBadRequest {
		t.Errorf("no form: got %d %s", a.status, a.body)
	}
}

func TestDownload(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	content := "l1\r\nl2\n\nl4"
	if err := os.WriteFile(s.dir+"/é.txt", []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, query, ranged string
		status              int
		body, contentRange  string
	}{
		{"whole", "", "", 200, content, ""},
		{"first bytes", "", "bytes=0-1", 206, "l1", "bytes 0-1/10"},
		{"from a byte on", "", "bytes=8-", 206, "l4", "bytes 8-9/10"},
		{"over the end", "", "bytes=8-99", 206, "l4", "bytes 8-9/10"},
		{"last bytes", "", "bytes=-2", 206, "l4", "bytes 8-9/10"},
		{"more than all", "", "bytes=-99", 206, content, "bytes 0-9/10"},
		{"behind the end", "", "bytes=10-", 416, "", "bytes */10"},
		{"no bytes", "", "bytes=-0", 416, "", "bytes */10"},
		{"malformed", "", "bytes=x-1", 400, "", ""},
		{"backward", "", "bytes=2-1", 400, "", ""},
		{"several", "", "bytes=0-1,3-4", 200, content, ""},
		{"a line", "&offset=2&limit=1", "", 200, "l2\n", ""},
		{"lines from", "&offset=3", "", 200, "\nl4", ""},
		{"first lines", "&limit=1", "", 200, "l1\r\n", ""},
		{"line 0", "&offset=0", "", 400, "", ""},
		{"lines and bytes", "&limit=1", "bytes=0-1", 400, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := s.do(t, "GET /files/download"+query("path", s.dir+"/é.txt")+tt.query, nil, "Range", tt.ranged)
			if a.status != tt.status || a.header.Get("Content-Range") != tt.contentRange {
				t.Errorf("got %d, %s, want %d, %s", a.status, a.header.Get("Content-Range"), tt.status, tt.contentRange)
			}
			if tt.status < 300 {
				if string(a.body) != tt.body || a.header.Get("Content-Disposition") != "attachment; filename*=UTF-8''%C3%A9.txt" {
					t.Errorf("got %q (%s), want %q", a.body, a.header.Get("Content-Disposition"), tt.body)
				}
			}
		})
	}
	for name, want := range map[string]struct {
		status int
		code   string
	}{s.dir: {409, "INVALID_FILE"}, "/no/such": {404, "FILE_NOT_FOUND"}, "": {400, "INVALID_REQUEST_BODY"}} {
		a := s.do(t, "GET /files/download"+query("path", name), nil)
		var got struct{ Code string }
		a.json(t, &got)
		if a.status != want.status || got.Code != want.code {
			t.Errorf("download of %q: got %d %s, want %d %s", name, a.status, a.body, want.status, want.code)
		}
	}
	if a := s.must(t, "GET /files/download?path=/proc/self/comm", nil); len(a.body) == 0 {
		t.Error("a file of the kernel is empty")
	}
}

func TestFiles(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for name, text := range map[string]string{"a.py": "old old", "sub/b.py": "x", "sub/.c.py": "x", "sub/deep/d.txt": "x"} {
		if err := os.MkdirAll(filepath.Dir(s.dir+"/"+name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(s.dir+"/"+name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for pattern, want := range map[string][]string{
		"*.py": {"a.py", "sub/.c.py", "sub/b.py"}, "sub/*.py": {"sub/.c.py", "sub/b.py"}, "": {"a.py", "sub/.c.py", "sub/b.py", "sub/deep/d.txt"},
		"{a,d}.*": {"a.py", "sub/deep/d.txt"}, "**/d.txt": {"sub/deep/d.txt"}, "none": nil,
	} {
		var found []fileInfo
		s.must(t, "GET /files/search?path=~"+"&"+query("pattern", pattern)[1:], nil).json(t, &found)
		if diff := cmp.Diff(want, s.names(found)); diff != "" || found == nil {
			t.Errorf("search for %q (-want +got):\n%s", pattern, diff)
		}
	}
	for depth, want := range map[string][]string{
		"": {"a.py", "sub"}, "0": nil, "2": {"a.py", "sub", "sub/.c.py", "sub/b.py", "sub/deep"},
		"99": {"a.py", "sub", "sub/.c.py", "sub/b.py", "sub/deep", "sub/deep/d.txt"},
	} {
		var found []fileInfo
		s.must(t, "GET /directories/list?path=~&depth="+depth, nil).json(t, &found)
		if diff := cmp.Diff(want, s.names(found)); diff != "" || found == nil {
			t.Errorf("list to depth %q (-want +got):\n%s", depth, diff)
		}
	}
	var counts map[string]struct {
		Count int `json:"replacedCount"`
	}
	s.must(t, "POST /files/replace?verbose=true", fields{"~/a.py": fields{"old": "old", "new": "new"}, "~/sub/b.py": fields{"old": "none", "new": ""}}).json(t, &counts)
	if counts["~/a.py"].Count != 2 || counts["~/sub/b.py"].Count != 0 || len(counts) != 2 {
		t.Errorf("got %v replaced", counts)
	}
	s.must(t, "POST /files/permissions", fields{"~/a.py": fields{"mode": 640}, "~/sub": fields{"mode": 0}})
	if got := s.info(t, "~/a.py"); got.Mode != 640 || got.Size != 7 {
		t.Errorf("got %+v, want mode 640", got)
	}
	s.must(t, "POST /files/mv", []fields{{"src": "~/a.py", "dest": "~/new/z.py"}})
	s.must(t, "POST /directories", fields{"~/made/deep": fields{"mode": 700}, "~/new": fields{"mode": 777}, "~/open": fields{"mode": 777}})
	for name, mode := range map[string]int{"~/made/deep": 700, "~/new": 755, "~/open": 777} {
		if got := s.info(t, name); got.Mode != mode || got.Type != "directory" {
			t.Errorf("%s: got %+v, want a directory of mode %d", name, got, mode)
		}
	}
	s.must(t, "DELETE /files"+query("path", "~/new/z.py", "~/missing"), nil)
	s.must(t, "DELETE /directories"+query("path", "~/sub", "~/missing"), nil)
	left, err := os.ReadDir(s.dir)
	if err != nil || len(left) != 3 {
		t.Errorf("left are %v, %v, want new, made and open", left, err)
	}
	for _, op := range s.operations(t) {
		if op.Source != history.SourceExecd {
			t.Errorf("%s came by %s", op.Type, op.Source)
		}
	}
}

// names are the paths below the directory.
func (s *setup) names(list []fileInfo) (names []string) {
	for _, f := range list {
		names = append(names, strings.TrimPrefix(f.Path, s.dir+"/"))
	}
	return names
}

func TestFilesRefused(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	if err := os.MkdirAll(s.dir+"/full/sub", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.dir+"/f", []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, route string
		body        any
		status      int
	}{
		{"info of none", "GET /files/info?path=~/none", nil, 404},
		{"replace nothing", "POST /files/replace", fields{"~/f": fields{"old": "", "new": "x"}}, 400},
		{"replace in none", "POST /files/replace", fields{"~/none": fields{"old": "x", "new": "y"}}, 404},
		{"mode of none", "POST /files/permissions", fields{"~/none": fields{"mode": 600}}, 404},
		{"bad mode", "POST /files/permissions", fields{"~/f": fields{"mode": 8}}, 400},
		{"bad owner", "POST /files/permissions", fields{"~/f": fields{"owner": "no-such-user"}}, 400},
		{"move none", "POST /files/mv", []fields{{"src": "~/none", "dest": "~/g"}}, 404},
		{"move onto", "POST /files/mv", []fields{{"src": "~/full", "dest": "~/f"}}, 409},
		{"delete a directory", "DELETE /files?path=~/full", nil, 409},
		{"make onto a file", "POST /directories", fields{"~/f": fields{}}, 409},
		{"list a file", "GET /directories/list?path=~/f", nil, 409},
		{"list none", "GET /directories/list?path=~/none", nil, 404},
		{"list negative", "GET /directories/list?path=~&depth=-1", nil, 400},
		{"list nothing", "GET /directories/list", nil, 400},
		{"search nothing", "GET /files/search", nil, 400},
		{"bad pattern", "GET /files/search?path=~&pattern=%5B", nil, 400},
		{"body of another kind", "POST /files/mv", fields{}, 400},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := s.do(t, tt.route, tt.body)
			var got struct{ Code, Message string }
			a.json(t, &got)
			if a.status != tt.status || got.Code == "" || got.Message == "" {
				t.Errorf("got %d %s, want %d", a.status, a.body, tt.status)
			}
		})
	}
	if a := s.must(t, "GET /files/info", nil); strings.TrimSpace(string(a.body)) != "{}" {
		t.Errorf("info of nothing: got %s", a.body)
	}
	list, err := os.ReadDir(s.dir)
	if err != nil || len(list) != 2 || !slices.ContainsFunc(list, func(e os.DirEntry) bool { return e.Name() == "full" }) {
		t.Errorf("refused acts left %v, %v", list, err)
	}
}
