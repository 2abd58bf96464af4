package execd_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/sandbox"
)

// What is asked for once is one operation, and what went well succeeded.
func TestOneRequestOneOperation(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	file := filepath.Join(s.dir, "f")
	if err := os.WriteFile(file, []byte("0123456789"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, kind string
		ask        func() *answer
		status     sandbox.Status
	}{
		{"upload with a mode", history.FileWrite, func() *answer {
			return s.upload(t, meta(fields{"path": file, "mode": 4755, "owner": "0", "group": "0"}), part{"file", "0123456789"})
		}, sandbox.Succeeded},
		{"upload of a new file", history.FileWrite, func() *answer {
			return s.upload(t, meta(fields{"path": file + "2", "mode": 666}), part{"file", "new"})
		}, sandbox.Succeeded},
		{"the last bytes", history.FileRead, func() *answer { return s.do(t, "GET /files/download?path="+file, nil, "Range", "bytes=-3") }, sandbox.Succeeded},
		{"the last bytes of nothing", history.FileRead, func() *answer { return s.do(t, "GET /files/download?path=none", nil, "Range", "bytes=-3") }, sandbox.Unsuccessful},
		{"a directory with a mode", history.FileMakeDir, func() *answer {
			return s.do(t, "POST /directories", fields{s.dir + "/d": fields{"mode": 2777, "owner": "0"}})
		}, sandbox.Succeeded},
		{"a directory that is there", history.FileMakeDir, func() *answer {
			return s.do(t, "POST /directories", fields{s.dir + "/d": fields{"mode": 700}})
		}, sandbox.Succeeded},
		{"a replacement", history.FileEdit, func() *answer {
			return s.do(t, "POST /files/replace?verbose=true", fields{file: fields{"old": "5", "new": "five"}})
		}, sandbox.Succeeded},
		{"a replacement of nothing", history.FileEdit, func() *answer {
			return s.do(t, "POST /files/replace?verbose=true", fields{file: fields{"old": "nowhere", "new": "x"}})
		}, sandbox.Succeeded},
		{"a shell", "", func() *answer { return s.do(t, "POST /session", fields{"cwd": s.dir}) }, ""},
	} {
		before := len(s.operations(t))
		a := tt.ask()
		ops := s.operations(t)[before:]
		if tt.kind == "" {
			if len(ops) != 0 {
				t.Errorf("%s: got %d operations, want none", tt.name, len(ops))
			}
			continue
		}
		if len(ops) != 1 || ops[0].Type != tt.kind || ops[0].Status != tt.status {
			t.Errorf("%s: got %d %s, %d operations, the first %+v", tt.name, a.status, a.body, len(ops), ops[0])
		}
	}
	for name, want := range map[string]os.FileMode{
		"f": 0o755, "f2": 0o666, "d": 0o777 | os.ModeSetgid | os.ModeDir,
	} {
		if info, err := os.Stat(filepath.Join(s.dir, name)); err != nil || info.Mode() != want {
			t.Errorf("%s: got %v, %v, want %v", name, info.Mode(), err, want)
		}
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "01234five6789" {
		t.Errorf("got %q, %v", text, err)
	}
}
