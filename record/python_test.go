package record_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/history/sqlite"
	"github.com/glassboxhq/glassbox/record"
	"github.com/glassboxhq/glassbox/sandbox"
	"github.com/glassboxhq/glassbox/sandbox/native"
)

// The helper of the published Python package reads every act on files that we
// have recorded. GLASSBOX_SEED_PYTHON names an interpreter that has the package.
func TestPythonReadsFileActs(t *testing.T) {
	python := os.Getenv("GLASSBOX_SEED_PYTHON")
	if python == "" {
		if os.Getenv("CI") != "" {
			t.Fatal("GLASSBOX_SEED_PYTHON is not set")
		}
		t.Skip("GLASSBOX_SEED_PYTHON is not set")
	}
	inner, err := native.New(&native.Options{Workdir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	database := filepath.Join(t.TempDir(), "history.sqlite3")
	store, err := sqlite.Open(database, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	s := record.New(inner, store, nil)
	defer s.Close(t.Context())
	ctx := t.Context()
	_, _ = s.Write(ctx, "研究\xff", strings.NewReader("a\r\n\u2028b\n"), nil)
	_, _ = s.Edit(ctx, "研究\xff", &sandbox.Edit{Old: "b", New: "\u0000\u0085\"'\\"})
	_, _ = s.Append(ctx, "large", strings.NewReader(strings.Repeat("line\n", 100_000)), nil)
	_, _ = s.Edit(ctx, "large", &sandbox.Edit{Old: "nothing", New: "x"})
	_, _ = s.MakeDir(ctx, "d", nil)
	_, _ = s.Move(ctx, "large", "d/large", nil)
	_, _ = s.SetMode(ctx, "d/large", &sandbox.ModeOptions{Owner: "0"})
	_, _ = s.Stat(ctx, "d")
	_, _ = s.Glob(ctx, &sandbox.GlobQuery{Pattern: "**"})
	_, _ = s.Grep(ctx, &sandbox.GrepQuery{Pattern: "研"})
	_, _ = s.Upload(ctx, "u", pack(t, map[string]string{"x": "1"}), nil)
	if r, err := s.Download(ctx, "u", nil); err == nil {
		r.Close()
	}
	page, err := store.List(ctx, &history.Filter{})
	if err != nil || len(page.Operations) != 12 {
		t.Fatalf("got %d operations, %v, want 12", len(page.Operations), err)
	}
	var ids []string
	for _, op := range page.Operations {
		ids = append(ids, op.ID)
	}
	out, err := exec.Command(python, "-c", `
import subprocess, sys, tempfile
from agent_sandbox_backends.helper import build_helper_bytes
with tempfile.NamedTemporaryFile(suffix=".pyz") as f:
    f.write(build_helper_bytes()); f.flush()
    sys.exit(subprocess.call([sys.executable, f.name, "--database", sys.argv[1], "get-operations", "--event-ids", sys.argv[2]]))`,
		database, strings.Join(ids, ",")).Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var answer struct {
		OK   bool `json:"ok"`
		Data struct {
			Operations []struct {
				ID   string `json:"event_id"`
				Type string `json:"operation_type"`
				File struct {
					Change   string `json:"change_type"`
					Diff     string `json:"diff_data"`
					Complete any    `json:"diff_complete"`
				} `json:"file_operation"`
			} `json:"operations"`
		} `json:"data"`
	}
	if err := json.Unmarshal(out, &answer); err != nil || !answer.OK {
		t.Fatalf("%v %.300s", err, out)
	}
	if len(answer.Data.Operations) != len(ids) {
		t.Errorf("the helper reads %d operations of %d", len(answer.Data.Operations), len(ids))
	}
	cut := 0
	for i, op := range answer.Data.Operations {
		file := page.Operations[i].File
		if op.Type != "file."+op.File.Change || op.ID == ids[i] && op.File.Diff != file.Diff {
			t.Errorf("the helper reads %+v", op)
		}
		if op.File.Complete == 0.0 || op.File.Complete == false {
			cut++
		}
	}
	if cut != 1 {
		t.Errorf("the helper reads %d diffs that are not whole, want one", cut)
	}
}
