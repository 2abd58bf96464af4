package sqlite_test

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"database/sql"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/history/sqlite"
	"github.com/glassboxhq/glassbox/sandbox"
)

// copySeed copies the history that the Python SDK really wrote.
func copySeed(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("testdata/seed-history.sqlite3")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "history.sqlite3")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestSeed reads a history of the Python SDK whole.
func TestSeed(t *testing.T) {
	for _, readOnly := range []bool{false, true} {
		s := open(t, copySeed(t), &sqlite.Options{TTL: -1, ReadOnly: readOnly})
		page, err := s.List(t.Context(), &history.Filter{})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for i, op := range page.Operations {
			got = append(got, op.Type+" "+string(op.Status)+" "+op.Actor.ID)
			if op.Seq != int64(i+1) || !op.Foreign || op.Source != "sdk" || op.Actor.Type != history.Agent || op.StartedAt.IsZero() {
				t.Errorf("operation %d is %+v", i+1, op)
			}
		}
		want := []string{
			"sandbox.create succeeded seed-history-sample",
			"command.execute succeeded planner",
			"file.write succeeded coder",
			"command.execute unknown runner",
			"file.write succeeded coder",
			"command.execute unknown planner",
			"command.execute cancelled runner",
			"file.write failed coder",
			"command.execute succeeded planner",
			"file.read succeeded coder",
			"command.execute succeeded runner",
			"file.read failed coder",
			"command.execute unknown planner",
			"command.execute succeeded runner",
			"file.list succeeded coder",
			"file.write succeeded coder",
			"file.delete succeeded coder",
			"sandbox.get succeeded seed-history-sample",
			"sandbox.capabilities succeeded seed-history-sample",
			"command.execute succeeded seed-history-sample",
			"command.execute started seed-history-sample",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("List (-want +got):\n%s", diff)
		}
		checkSeedDetails(t, s, page.Operations)
		feed, err := s.Changes(t.Context(), &history.ChangeQuery{Limit: 1000})
		if err != nil || len(feed.Changes) != 51 || feed.Min != 1 || feed.Max != 51 || feed.Next != 51 || feed.Reset {
			t.Errorf("Changes gave %d changes, %+v, %v", len(feed.Changes), feed, err)
		}
		id, err := s.Identity(t.Context())
		if err != nil || id.SDKVersion != "0.1.0" || id.SandboxName != "seed-history-sample" || id.SandboxID != "244bf990-7976-48d9-b008-b1dd13b62923" {
			t.Errorf("Identity gave %+v, %v", id, err)
		}
	}
}

func checkSeedDetails(t *testing.T, s *sqlite.Store, ops []*history.Operation) {
	t.Helper()
	output := func(op *history.Operation, stream sandbox.Stream) string {
		data, err := s.Output(t.Context(), op.ID, stream, 0, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	exits := map[int]int{2: 0, 4: -1, 6: 7, 9: 0, 11: 0, 13: 127, 14: 0, 20: 0}
	for seq, code := range exits {
		if c := ops[seq-1].Command; c == nil || c.ExitCode == nil || *c.ExitCode != code {
			t.Errorf("operation %d has command %+v, want exit code %d", seq, c, code)
		}
	}
	for _, tt := range []struct {
		seq            int
		stdout, stderr string
	}{
		{2, "你好 from planner", ""},
		{4, "start", ""},
		{6, "", "oops"},
		{14, "o1o2o3", "e1e2e3"},
		{21, "never", ""},
	} {
		op := ops[tt.seq-1]
		if out, err := output(op, sandbox.Stdout), output(op, sandbox.Stderr); out != tt.stdout || err != tt.stderr {
			t.Errorf("operation %d printed %q and %q, want %q and %q", tt.seq, out, err, tt.stdout, tt.stderr)
		}
		if c := op.Command; c.StdoutBytes != int64(len(tt.stdout)) || c.StderrBytes != int64(len(tt.stderr)) {
			t.Errorf("operation %d keeps %d and %d bytes", tt.seq, c.StdoutBytes, c.StderrBytes)
		}
	}
	if out := output(ops[10], sandbox.Stdout); len(out) != 10893 || !strings.HasSuffix(out, "29993000") {
		t.Errorf("operation 11 printed %d bytes", len(out))
	}
	if c := ops[3].Command; c.TimeoutMS != 2000 || c.Dir != "/workspace" || !c.OutputComplete || c.Recording != sandbox.RecordedWhole {
		t.Errorf("operation 4 has command %+v", c)
	}
	if op := ops[6]; op.Result != nil || op.Command.ExitCode != nil || op.DurationMS != 8060 {
		t.Errorf("operation 7 is %+v", op)
	}
	edit := ops[4].File
	if edit == nil || edit.Path != "/workspace/notes/a.md" || edit.Change != "write" || *edit.AfterSize != 21 || edit.BeforeSize != nil ||
		utf8.RuneCountInString(edit.Diff) != 111 || !strings.Contains(edit.Diff, "-hello\n+hello world\n") || !strings.Contains(edit.Diff, "标题") {
		t.Errorf("operation 5 has file %+v", edit)
	}
	if op := ops[20]; !op.CompletedAt.IsZero() || op.Duration != 0 || op.Actor.Thread != "" {
		t.Errorf("operation 21 is %+v", op)
	}
	if op := ops[3]; op.Actor.Thread != "thread-2" || op.Actor.Run != "run-3" || op.Duration != 7936578*time.Microsecond {
		t.Errorf("operation 4 is %+v", op)
	}
	for text, seqs := range map[string][]int64{"标题": {3, 5}, "NEVER": {21}, "你好": {2}, "29993000": {11}, "e1e2": {14}} {
		page, err := s.List(t.Context(), &history.Filter{Text: text})
		var got []int64
		for _, op := range page.Operations {
			got = append(got, op.Seq)
		}
		if diff := cmp.Diff(seqs, got); diff != "" || err != nil {
			t.Errorf("search for %q (-want +got), %v:\n%s", text, err, diff)
		}
	}
}

// TestSeedGoesOn records into a history of the Python SDK. What it left
// running is not ours to end.
func TestSeedGoesOn(t *testing.T) {
	path := copySeed(t)
	s := open(t, path, &sqlite.Options{TTL: -1, ProviderKey: "opensandbox-default"})
	ids, err := s.Recover(t.Context(), "the recorder was killed")
	if err != nil || len(ids) != 0 {
		t.Errorf("Recover gave %v, %v, want none", ids, err)
	}
	op := mustBegin(t, s)
	mustFinish(t, s, op.ID)
	if op.Seq != 22 {
		t.Errorf("Seq is %d, want 22", op.Seq)
	}
	got, err := s.Get(t.Context(), op.ID)
	if err != nil || got.Foreign {
		t.Errorf("Get gave %+v, %v", got, err)
	}
	var identities int
	scanOne(t, path, `select count(distinct provider_key || sandbox_id || sandbox_instance_id) from history_events`, &identities)
	if identities != 1 {
		t.Errorf("the file holds %d identities, want 1", identities)
	}
	_, err = sqlite.Open(path, &sqlite.Options{SandboxID: "another"})
	wantFault(t, "Open as another", err, sandbox.CodeHistoryConflict)
}

// scanOne reads one value from a file without the store.
func scanOne(t *testing.T, path, query string, dest ...any) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRowContext(t.Context(), query).Scan(dest...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// TestPacked reads packed output and diffs, as other writers may store them.
func TestPacked(t *testing.T) {
	path := copySeed(t)
	want := strings.Repeat("packed 输出\n", 100)
	execOne(t, path, `update command_output_chunks set data = ?, encoding = 'gzip', original_size = ? where id = 1`,
		pack(t, func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }, want), len(want))
	execOne(t, path, `insert into command_output_chunks (event_id, stream, chunk_index, data, encoding, original_size, created_at)
		select event_id, stream, 1, ?, 'zlib', ?, created_at from command_output_chunks where id = 1`,
		pack(t, func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) }, want), len(want))
	execOne(t, path, `update file_operations set diff_data = ?, diff_encoding = 'zlib' where diff_data is not null`,
		pack(t, func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) }, want))
	s := open(t, path, &sqlite.Options{TTL: -1})
	page, err := s.List(t.Context(), &history.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	op := page.Operations[1]
	data, err := s.Output(t.Context(), op.ID, sandbox.Stdout, 5, 1<<20)
	if err != nil || string(data) != (want + want)[5:] || op.Command.StdoutBytes != int64(2*len(want)) {
		t.Errorf("Output gave %d bytes of %d, %v", len(data), op.Command.StdoutBytes, err)
	}
	if diff := page.Operations[4].File.Diff; diff != want {
		t.Errorf("the diff is %.40q, want %.40q", diff, want)
	}

	execOne(t, path, `update command_output_chunks set original_size = 5 where id = 1`)
	_, err = s.Output(t.Context(), op.ID, sandbox.Stdout, 0, 1<<20)
	wantFault(t, "Output of a row that lies about its size", err, sandbox.CodeHistoryCorrupt)
}

func execOne(t *testing.T, path, statement string, args ...any) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(5000)&_pragma=foreign_keys(1)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func pack(t *testing.T, packer func(io.Writer) io.WriteCloser, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := packer(&b)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
