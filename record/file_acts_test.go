package record_test

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/record"
	"github.com/glassboxhq/glassbox/sandbox"
)

// pack makes a tar of files.
func pack(t *testing.T, files map[string]string) *bytes.Reader {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(files[name]))}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, files[name]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return bytes.NewReader(b.Bytes())
}

// Each act is one operation, with what it was asked and what came of it.
func TestFileActs(t *testing.T) {
	s, store := newSession(t, nil)
	ctx, mode := t.Context(), fs.FileMode(0o600)
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(s.Write(ctx, "f", strings.NewReader("a\nb\n"), nil))
	must(s.Append(ctx, "f", strings.NewReader("c\n"), nil))
	must(s.Edit(ctx, "f", &sandbox.Edit{Old: "b", New: "B"}))
	must(s.Stat(ctx, "f"))
	must(s.MakeDir(ctx, "d", nil))
	must(s.Move(ctx, "f", "d/g", nil))
	must(s.SetMode(ctx, "d/g", &sandbox.ModeOptions{Mode: &mode}))
	must(s.Glob(ctx, &sandbox.GlobQuery{Pattern: "**/g"}))
	must(s.Grep(ctx, &sandbox.GrepQuery{Pattern: "B", Path: "d"}))
	must(s.Upload(ctx, "u", pack(t, map[string]string{"x": "1", "y/z": "22"}), nil))
	r, err := s.Download(ctx, "u", nil)
	must(r, err)
	must(io.Copy(io.Discard, r))
	must(nil, r.Close())

	page, err := store.List(ctx, &history.Filter{})
	must(page, err)
	type told struct{ Type, Path, Old, Diff, Result string }
	var got []told
	root := page.Operations[0].File.Path[:len(page.Operations[0].File.Path)-2]
	for _, op := range page.Operations {
		if op.Status != sandbox.Succeeded || op.File == nil || op.Type != "file."+op.File.Change {
			t.Errorf("got %+v", op)
		}
		_, diff, _ := strings.Cut(op.File.Diff, "@@\n")
		var result map[string]any
		if err := json.Unmarshal(op.Result, &result); err != nil {
			t.Fatal(err)
		}
		maps.DeleteFunc(result, func(name string, _ any) bool {
			return !slices.Contains([]string{"replaced", "count", "files", "uploaded_files", "directories", "size", "previous_size", "complete", "is_edit"}, name)
		})
		if op.Type == history.FileDownload || op.Type == history.FileMakeDir {
			delete(result, "size")
		}
		line, _ := json.Marshal(result)
		got = append(got, told{op.Type, strings.TrimPrefix(op.File.Path, root), strings.TrimPrefix(op.File.OldPath, root), diff, string(line)})
	}
	want := []told{
		{history.FileWrite, "/f", "", "+a\n+b\n", `{"size":4}`},
		{history.FileAppend, "/f", "", " a\n b\n+c\n", `{"previous_size":4,"size":6}`},
		{history.FileEdit, "/f", "", " a\n-b\n+B\n c\n", `{"is_edit":true,"previous_size":6,"replaced":1,"size":6}`},
		{history.FileStat, "/f", "", "", `{"size":6}`},
		{history.FileMakeDir, "/d", "", "", `{}`},
		{history.FileMove, "/d/g", "/f", "", `{"size":6}`},
		{history.FileSetMode, "/d/g", "", "", `{"size":6}`},
		{history.FileGlob, "", "", "", `{"count":1}`},
		{history.FileGrep, "/d", "", "", `{"count":1,"files":1}`},
		{history.FileUpload, "/u", "", "", `{"directories":0,"size":3,"uploaded_files":2}`},
		{history.FileDownload, "/u", "", "", `{"complete":true}`},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("operations (-want +got):\n%s", diff)
	}
	wrote, edited := page.Operations[1].File, page.Operations[2].File
	if wrote.AfterHash == "" || wrote.AfterHash != edited.BeforeHash || *edited.BeforeSize != 6 || edited.AfterHash == edited.BeforeHash {
		t.Errorf("got %+v and %+v, want the hashes before and after", wrote, edited)
	}
	// The texts of an edit are in its diff only.
	if strings.Contains(string(page.Operations[2].Request), `"old"`) {
		t.Errorf("the request holds the text: %s", page.Operations[2].Request)
	}
}

// The same id again is the first result, and nothing is done a second time.
func TestSameIDOfFileActs(t *testing.T) {
	s, store := newSession(t, nil)
	ctx, mode := t.Context(), fs.FileMode(0o640)
	if _, err := s.Write(ctx, "f", strings.NewReader("a\n"), nil); err != nil {
		t.Fatal(err)
	}
	for name, act := range map[string]func(id string) (any, error){
		"append": func(id string) (any, error) {
			return s.Append(ctx, "log", strings.NewReader("line\n"), &sandbox.WriteOptions{ID: id})
		},
		"edit":  func(id string) (any, error) { return s.Edit(ctx, "f", &sandbox.Edit{ID: id, Old: "a", New: "aa"}) },
		"mkdir": func(id string) (any, error) { return s.MakeDir(ctx, "d", &sandbox.MakeDirOptions{ID: id}) },
		"move":  func(id string) (any, error) { return s.Move(ctx, "d", "e", &sandbox.MoveOptions{ID: id}) },
		"chmod": func(id string) (any, error) { return s.SetMode(ctx, "f", &sandbox.ModeOptions{ID: id, Mode: &mode}) },
		"upload": func(id string) (any, error) {
			return s.Upload(ctx, "u", pack(t, map[string]string{"x": "1"}), &sandbox.UploadOptions{ID: id})
		},
		"failed edit": func(id string) (any, error) { return s.Edit(ctx, "f", &sandbox.Edit{ID: id, Old: "no", New: "x"}) },
		"failed upload": func(id string) (any, error) {
			return s.Upload(ctx, "u", pack(t, map[string]string{"x": "1", "y": "2"}), &sandbox.UploadOptions{ID: id, MaxFiles: 1})
		},
	} {
		if name == "move" {
			if _, err := s.MakeDir(ctx, "d", nil); err != nil {
				t.Fatal(err)
			}
		}
		opID := id.New()
		first, ferr := act(opID)
		again, aerr := act(opID)
		if sandbox.CodeOf(ferr) != sandbox.CodeOf(aerr) || (ferr == nil) != (aerr == nil) {
			t.Errorf("%s: got %v, then %v", name, ferr, aerr)
		}
		fresh := cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Modified" }, cmp.Ignore())
		owner := cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Owner" || p.Last().String() == ".Group" }, cmp.Ignore())
		if diff := cmp.Diff(first, again, fresh, owner); diff != "" {
			t.Errorf("%s (-first +again):\n%s", name, diff)
		}
	}
	if got := readFile(t, s, "log") + readFile(t, s, "f"); got != "line\naa\n" {
		t.Errorf("got %q, want each act done once", got)
	}
	opID := id.New()
	for range 2 {
		if res, err := s.Grep(ctx, &sandbox.GrepQuery{ID: opID, Pattern: "line", Path: "log"}); err != nil || len(res.Matches) != 1 {
			t.Errorf("a search again: got %+v, %v", res, err)
		}
	}
	if _, err := s.Edit(ctx, "f", &sandbox.Edit{ID: opID, Old: "a", New: "b", All: true}); !errors.Is(err, sandbox.ErrConflict) {
		t.Errorf("an edit under the id of a search: got %v, want a conflict", err)
	}
	page, err := store.List(ctx, &history.Filter{Types: []string{history.FileGrep}})
	if err != nil || len(page.Operations) != 1 {
		t.Errorf("got %d searches, %v, want one recorded", len(page.Operations), err)
	}
}

// What failed half way says how far it came.
func TestFailedUpload(t *testing.T) {
	s, store := newSession(t, nil)
	opID := id.New()
	done, err := s.Upload(t.Context(), "u", pack(t, map[string]string{"a": "1", "b": "22", "c": "3"}), &sandbox.UploadOptions{ID: opID, MaxFiles: 2})
	if !errors.Is(err, sandbox.ErrTooLarge) || done.Files != 2 || done.Bytes != 3 {
		t.Errorf("got %+v, %v", done, err)
	}
	op, err := store.Get(t.Context(), opID)
	if err != nil || op.Status != sandbox.Unsuccessful || !strings.Contains(string(op.Result), `"uploaded_files":2`) || !strings.Contains(string(op.Result), `"too_large"`) {
		t.Errorf("got %s %s, %v", op.Status, op.Result, err)
	}
}

// bare is a session that only has what every one has.
type bare struct{ sandbox.Session }

func (bare) Capabilities() sandbox.Capabilities { return sandbox.Capabilities{Files: true} }

func TestUnsupportedFileActs(t *testing.T) {
	s := record.New(bare{}, nil, nil)
	if s.Capabilities().Files {
		t.Error("it says that it can")
	}
	ctx := context.Background()
	for name, act := range map[string]func() error{
		"append":   func() error { _, err := s.Append(ctx, "f", nil, nil); return err },
		"edit":     func() error { _, err := s.Edit(ctx, "f", &sandbox.Edit{}); return err },
		"stat":     func() error { _, err := s.Stat(ctx, "f"); return err },
		"mkdir":    func() error { _, err := s.MakeDir(ctx, "f", nil); return err },
		"move":     func() error { _, err := s.Move(ctx, "f", "g", nil); return err },
		"chmod":    func() error { _, err := s.SetMode(ctx, "f", nil); return err },
		"glob":     func() error { _, err := s.Glob(ctx, &sandbox.GlobQuery{}); return err },
		"grep":     func() error { _, err := s.Grep(ctx, &sandbox.GrepQuery{}); return err },
		"download": func() error { _, err := s.Download(ctx, "f", nil); return err },
		"upload":   func() error { _, err := s.Upload(ctx, "f", nil, nil); return err },
	} {
		if err := act(); !errors.Is(err, sandbox.ErrUnsupported) {
			t.Errorf("%s: got %v, want that it is not supported", name, err)
		}
	}
}
