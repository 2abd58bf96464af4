package execd_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/glassboxhq/glassbox/internal/execd"
	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/record"
	"github.com/glassboxhq/glassbox/sandbox/native"
)

// Whatever an upload of the Python package holds, and its manifest agrees,
// nothing is written but below its target.
func FuzzBulkUpload(f *testing.F) {
	top := f.TempDir()
	inner, err := native.New(&native.Options{Workdir: top, Env: map[string]string{"PATH": "/none"}})
	if err != nil {
		f.Fatal(err)
	}
	session := record.New(inner, nil, &record.Options{NoFileChanges: true})
	handler := execd.New(session, nil, &execd.Options{Token: token, Dir: f.TempDir(), Spool: f.TempDir(), Whose: func(context.Context) (*execd.Identity, error) {
		return &execd.Identity{}, nil
	}})
	f.Cleanup(func() { session.Close(context.Background()) })
	do := func(path, kind string, body []byte) string {
		r := httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body))
		r.Header.Set(wire.HeaderExecdToken, token)
		r.Header.Set("Content-Type", kind)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w.Body.String()
	}
	send := func(name string, content []byte) {
		var form bytes.Buffer
		parts := multipart.NewWriter(&form)
		meta, _ := parts.CreateFormFile("metadata", "metadata")
		fmt.Fprintf(meta, `{"path":%q}`, name)
		file, _ := parts.CreateFormFile("file", "file")
		file.Write(content)
		parts.Close()
		do("/files/upload", parts.FormDataContentType(), form.Bytes())
	}
	call := func(words string) string {
		body, _ := json.Marshal(fields{"command": uploadLine + words})
		return do("/command", "application/json", body)
	}
	f.Add("a", "b/c", byte(tar.TypeReg), "", []byte("text"), "overwrite", "new")
	f.Add("way", "way/c", byte(tar.TypeSymlink), "..", []byte("text"), "overwrite", "new")
	f.Add("../a", "/b", byte(tar.TypeReg), "", []byte("text"), "skip", "new")
	f.Add("a", "a", byte(tar.TypeLink), "../kept", []byte(""), "if_changed", "new")
	f.Add("a", "link/x", byte(tar.TypeReg), "", []byte("x"), "overwrite", "there")
	f.Fuzz(func(t *testing.T, first, second string, kind byte, link string, content []byte, conflict, target string) {
		base := filepath.Join(top, id.New())
		there := filepath.Join(base, "there")
		if strings.Contains(target, "..") || os.MkdirAll(there, 0o700) != nil || os.WriteFile(filepath.Join(base, "kept"), []byte("kept"), 0o600) != nil ||
			os.Symlink(base, filepath.Join(there, "link")) != nil {
			t.Skip()
		}
		defer os.RemoveAll(base)
		var out bytes.Buffer
		zip := gzip.NewWriter(&out)
		w := tar.NewWriter(zip)
		sum := sha256.Sum256(content)
		var entries []fields
		for _, name := range []string{first, second} {
			head := &tar.Header{Name: name, Typeflag: tar.TypeReg, Size: int64(len(content)), Mode: 0o777}
			if name == first {
				head.Typeflag, head.Linkname = kind, link
			}
			if w.WriteHeader(head) != nil {
				t.Skip()
			}
			_, _ = w.Write(content)
			entries = append(entries, fields{"relative_path": name, "size": len(content), "sha256": hex.EncodeToString(sum[:])})
		}
		w.Close()
		zip.Close()
		text, _ := json.Marshal(fields{"entries": entries})
		upload := id.New()
		archive, manifest, staging := "/.agent-upload/tmp/archive-"+upload+".tar.gz", "/.agent-upload/tmp/manifest-"+upload+".json", "/.agent-upload/"+upload
		send(archive, out.Bytes())
		send(manifest, text)
		call("extract --archive " + archive + " --staging " + staging + " --manifest-file " + manifest)
		quoted := "'" + strings.ReplaceAll(filepath.Join(base, "to", target), "'", `'"'"'`) + "'"
		if target == "there" {
			quoted = there
		}
		call("commit --staging " + staging + " --target " + quoted + " --manifest-file " + manifest + " --conflict " + conflict)
		call("cleanup --staging " + staging)
		list, err := os.ReadDir(base)
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range list {
			if name := entry.Name(); name != "kept" && name != "there" && name != "to" {
				t.Errorf("%q was written outside of the target", name)
			}
		}
		if got, err := os.ReadFile(filepath.Join(base, "kept")); err != nil || string(got) != "kept" {
			t.Errorf("what lies outside is now %q, %v", got, err)
		}
	})
}
