package lifecycle_test

import (
	"bytes"
	"fmt"
	"mime/multipart"
	"strings"
	"sync"
	"testing"

	"github.com/glassboxhq/glassbox/sandbox"
)

// A paused sandbox is let go on for a record of the Python package, and for
// nothing else; and it is paused again.
func TestAwake(t *testing.T) {
	s := start(t, nil)
	id := s.create()
	s.ask("POST", "/v1/sandboxes/"+id+"/pause", "")
	const file = "/.agent-history/tmp/request-x.json"
	form := func(path string) (string, string) {
		var b bytes.Buffer
		parts := multipart.NewWriter(&b)
		meta, _ := parts.CreateFormFile("metadata", "metadata")
		fmt.Fprintf(meta, `{"path":%q}`, path)
		parts.Close()
		return b.String(), "Content-Type: " + parts.FormDataContentType()
	}
	record, recordType := form(file)
	other, otherType := form("/workspace/x")
	const call = "python3 /.agent-history/bin/history-helper-v1.pyz --database /.agent-history/history.sqlite3 apply"
	token := "X-EXECD-ACCESS-TOKEN: execd-" + id
	for _, tt := range []struct {
		name, method, path, body string
		headers                  []string
		status                   int
	}{
		{"a record", "POST", "/files/upload", record, []string{token, recordType}, 200},
		{"its call", "POST", "/command", `{"command":"` + call + `"}`, []string{token}, 200},
		{"its removal", "DELETE", "/files?path=" + file, "", []string{token}, 200},
		{"a file", "POST", "/files/upload", other, []string{token, otherType}, 409},
		{"a command", "POST", "/command", `{"command":"ls"}`, []string{token}, 409},
		{"a removal", "DELETE", "/files?path=/x", "", []string{token}, 409},
		{"two removals", "DELETE", "/files?path=" + file + "&path=/x", "", []string{token}, 409},
		{"a look", "GET", "/files?path=" + file, "", []string{token}, 409},
		{"a long record", "POST", "/files/upload", record + strings.Repeat("x", 3<<20), []string{token, recordType}, 409},
		{"no token", "DELETE", "/files?path=" + file, "", nil, 401},
	} {
		a := s.ask(tt.method, "/v1/sandboxes/"+id+"/proxy/44772"+tt.path, tt.body, tt.headers...)
		if a.status != tt.status || tt.status == 200 && tt.body != "" && !strings.Contains(a.text, "body="+tt.body) {
			t.Errorf("%s: got %d %.300s, want %d with what was sent", tt.name, a.status, a.text, tt.status)
		}
		if info, err := s.fake.Get(t.Context(), id); err != nil || info.State != sandbox.Paused {
			t.Errorf("%s: it is %v afterwards, %v", tt.name, info, err)
		}
	}
	// A resume at the same time is not undone.
	var both sync.WaitGroup
	for range 8 {
		both.Go(func() {
			s.ask("DELETE", "/v1/sandboxes/"+id+"/proxy/44772/files?path="+file, "", token)
		})
	}
	if a := s.ask("POST", "/v1/sandboxes/"+id+"/resume", ""); a.status != 202 {
		t.Errorf("resume: got %d %s", a.status, a.text)
	}
	both.Wait()
	if info, err := s.fake.Get(t.Context(), id); err != nil || info.State != sandbox.Running {
		t.Errorf("after the resume it is %v, %v", info, err)
	}
}
