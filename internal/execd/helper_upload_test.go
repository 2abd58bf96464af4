package execd_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"mime/multipart"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/sandbox"
)

const uploadLine = "python3 /.agent-upload/bin/upload-helper-v1.pyz "

// bulk is an upload of the Python package, as it does it.
type bulk struct {
	*setup
	staging, archive, manifest string
}

func (s *setup) send(t *testing.T, name string, content []byte) {
	t.Helper()
	var form bytes.Buffer
	parts := multipart.NewWriter(&form)
	meta, _ := parts.CreateFormFile("metadata", "metadata")
	fmt.Fprintf(meta, `{"path":%q,"mode":755}`, name)
	file, _ := parts.CreateFormFile("file", "file")
	file.Write(content)
	parts.Close()
	s.must(t, "POST /files/upload", &form, "Content-Type", parts.FormDataContentType())
}

// newBulk sends an archive of packed and a manifest of files.
func newBulk(t *testing.T, s *setup, packed, files map[string]string) *bulk {
	t.Helper()
	b := &bulk{s, "/.agent-upload/" + id.New(), "/.agent-upload/tmp/archive-" + id.New() + ".tar.gz", "/.agent-upload/tmp/manifest-" + id.New() + ".json"}
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	w := tar.NewWriter(zip)
	for _, name := range slices.Sorted(maps.Keys(packed)) {
		head := &tar.Header{Name: name, Typeflag: tar.TypeReg, Size: int64(len(packed[name])), Mode: 0o640}
		if target, ok := strings.CutPrefix(packed[name], "link:"); ok {
			head = &tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: target}
		}
		if err := w.WriteHeader(head); err != nil {
			t.Fatal(err)
		}
		if head.Typeflag == tar.TypeReg {
			fmt.Fprint(w, packed[name])
		}
	}
	if w.Close() != nil || zip.Close() != nil {
		t.Fatal("cannot pack")
	}
	entries := []fields{}
	for name, text := range files {
		sum := sha256.Sum256([]byte(text))
		entries = append(entries, fields{"relative_path": name, "size": len(text), "mtime_ns": 1, "mode": 0, "sha256": hex.EncodeToString(sum[:])})
	}
	text, _ := json.Marshal(fields{"manifest_hash": "h", "entries": entries})
	s.send(t, b.archive, out.Bytes())
	s.send(t, b.manifest, text)
	return b
}

// call runs the program, and returns what it says; ok is whether it exits with 0.
func (b *bulk) call(t *testing.T, words string) (says map[string]any, ok bool) {
	t.Helper()
	list := b.must(t, "POST /command", fields{"command": uploadLine + words}).events(t)
	ok = list[len(list)-1].Type == "execution_complete"
	stream := "stdout"
	if !ok {
		stream = "stderr"
	}
	if err := json.Unmarshal([]byte(strings.Join(texts(list, stream), "")), &says); err != nil || says["ok"] != ok {
		t.Fatalf("%s: got %v", words, list)
	}
	return says, ok
}

func (b *bulk) extract(t *testing.T) bool {
	_, ok := b.call(t, "extract --archive "+b.archive+" --staging "+b.staging+" --manifest-file "+b.manifest)
	return ok
}

func (b *bulk) commit(t *testing.T, target, conflict string) (map[string]any, bool) {
	says, ok := b.call(t, "commit --staging "+b.staging+" --target "+target+" --manifest-file "+b.manifest+" --conflict "+conflict+" --atomic")
	data, _ := says["data"].(map[string]any)
	return data, ok
}

// An upload of the Python package is one operation, that which it announced,
// though it is ten calls; and the sandbox needs no Python.
func TestBulkUpload(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	target := filepath.Join(s.dir, "app")
	files := map[string]string{"a.txt": "one\n", "src/b.py": "two\n", "src/deep/空.txt": "three\n"}
	opID := id.New()
	s.tell(t, fields{"type": "operation_started", "event": fields{
		"event_id": opID, "operation_type": "file.upload", "occurred_at": "2026-12-01T00:00:00Z", "schema_version": 1, "actor": fields{"actor_type": "agent", "actor_id": "研究"},
		"request": fields{"target": target, "conflict": "if_changed"}, "file_operation": fields{"path": "", "change_type": "upload"},
	}})
	program := []byte("a program that is not run")
	sum := sha256.Sum256(program)
	temp := "/.agent-upload/tmp/helper-" + id.New() + ".pyz"
	s.send(t, temp, program)
	install := "python3 -c '" + strings.ReplaceAll(installScript, "'", `'"'"'`) + "' " + temp + " /.agent-upload/bin/upload-helper-v1.pyz /.agent-upload/VERSION "
	if list := s.must(t, "POST /command", fields{"command": install + hex.EncodeToString(sum[:])}).events(t); list[len(list)-1].Type != "execution_complete" {
		t.Errorf("install: got %v", list)
	}
	b := newBulk(t, s, files, files)
	if !b.extract(t) {
		t.Fatal("extract failed")
	}
	if _, ok := b.call(t, "verify --staging "+b.staging+" --manifest-file "+b.manifest); !ok {
		t.Error("verify failed")
	}
	if _, err := os.Stat(target); err == nil {
		t.Error("something was written before commit")
	}
	data, ok := b.commit(t, target, "if_changed")
	if !ok || data["committed_files"] != 3.0 || data["skipped_files"] != 0.0 || data["atomic"] != false {
		t.Errorf("commit: got %v", data)
	}
	b.call(t, "cleanup --staging "+b.staging)
	if _, ok := b.call(t, "verify --staging "+b.staging+" --manifest-file "+b.manifest); ok {
		t.Error("what was cleaned up is still there")
	}
	for _, name := range []string{b.archive, b.manifest, temp} {
		s.must(t, "DELETE /files?path="+name, nil)
	}
	for name, text := range files {
		if got, err := os.ReadFile(filepath.Join(target, name)); err != nil || string(got) != text {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
	s.tell(t, fields{"type": "operation_completed", "event": fields{
		"event_id": opID, "status": "succeeded", "completed_at": "2026-12-01T00:00:01Z", "result": fields{"uploaded_files": 99},
	}})
	ops := s.operations(t)
	if len(ops) != 1 || ops[0].ID != opID || ops[0].Type != history.FileUpload || ops[0].Status != sandbox.Succeeded ||
		ops[0].Actor.ID != "研究" || ops[0].File.Path != target || !strings.Contains(string(ops[0].Result), `"uploaded_files":3`) {
		t.Errorf("got %d operations, the first %+v %s", len(ops), ops[0], ops[0].Result)
	}
}

const installScript = "import hashlib,os,pathlib,sys;src,dst,version,expected=sys.argv[1:];data=pathlib.Path(src).read_bytes();" +
	"actual=hashlib.sha256(data).hexdigest();sys.exit('helper checksum mismatch') if actual!=expected else None;" +
	"pathlib.Path(dst).parent.mkdir(parents=True,exist_ok=True);os.replace(src,dst);pathlib.Path(version).write_text(expected+'\\n',encoding='utf-8')"

// What is there already is treated as the package asks, and looked for before
// anything is written.
func TestBulkConflict(t *testing.T) {
	t.Parallel()
	files := map[string]string{"new": "n", "same": "s", "other": "o"}
	for _, tt := range []struct {
		policy             string
		ok                 bool
		committed, skipped float64
		other              string
	}{
		{"error", false, 0, 0, "old"},
		{"skip", true, 1, 2, "old"},
		{"if_changed", true, 2, 1, "o"},
		{"overwrite", true, 3, 0, "o"},
		{"whatever", false, 0, 0, "old"},
	} {
		t.Run(tt.policy, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			writeFiles(t, s.dir, map[string]string{"same": "s", "other": "old", "kept": "k"})
			b := newBulk(t, s, files, files)
			if !b.extract(t) {
				t.Fatal("extract failed")
			}
			data, ok := b.commit(t, s.dir, tt.policy)
			if ok != tt.ok || ok && (data["committed_files"] != tt.committed || data["skipped_files"] != tt.skipped) {
				t.Errorf("got %v, %v", data, ok)
			}
			if got, _ := os.ReadFile(filepath.Join(s.dir, "other")); string(got) != tt.other {
				t.Errorf("other holds %q, want %q", got, tt.other)
			}
			if got, _ := os.ReadFile(filepath.Join(s.dir, "kept")); string(got) != "k" {
				t.Error("what is not in the upload has gone")
			}
			if _, err := os.Stat(filepath.Join(s.dir, "new")); (err == nil) != tt.ok {
				t.Errorf("new: %v", err)
			}
			if ops := s.operations(t); len(ops) != 1 && tt.ok || len(ops) != 0 && !tt.ok {
				t.Errorf("got %d operations", len(ops))
			}
		})
	}
}

func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// Nothing is written of an archive that is not what its manifest says, and
// nothing leads out of the target.
func TestBulkHostile(t *testing.T) {
	t.Parallel()
	good := map[string]string{"a": "1"}
	for name, tt := range map[string]struct{ packed, files map[string]string }{
		"another content": {map[string]string{"a": "2"}, good},
		"another size":    {map[string]string{"a": "22"}, good},
		"more":            {map[string]string{"a": "1", "b": "1"}, good},
		"less":            {map[string]string{}, good},
		"a link":          {map[string]string{"a": "link:/etc/passwd"}, good},
		"climbs out":      {map[string]string{"../a": "1"}, map[string]string{"../a": "1"}},
		"absolute":        {map[string]string{"/a": "1"}, map[string]string{"/a": "1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			b := newBulk(t, s, tt.packed, tt.files)
			if b.extract(t) {
				t.Error("it was taken")
			}
			if _, ok := b.commit(t, s.dir, "overwrite"); ok {
				t.Error("it was committed")
			}
			if list, err := os.ReadDir(s.dir); err != nil || len(list) != 0 {
				t.Errorf("left %v, %v", list, err)
			}
		})
	}
	t.Run("through a link", func(t *testing.T) {
		t.Parallel()
		s, out := newServer(t), t.TempDir()
		if err := os.Symlink(out, filepath.Join(s.dir, "way")); err != nil {
			t.Fatal(err)
		}
		files := map[string]string{"a": "1", "way/b": "2"}
		b := newBulk(t, s, files, files)
		if !b.extract(t) {
			t.Fatal("extract failed")
		}
		if _, ok := b.commit(t, s.dir, "overwrite"); ok {
			t.Error("it was committed")
		}
		if _, err := os.Stat(filepath.Join(s.dir, "a")); err == nil {
			t.Error("something was written")
		}
	})
}
