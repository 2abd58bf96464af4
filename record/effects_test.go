package record_test

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/history/sqlite"
	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/record"
	"github.com/glassboxhq/glassbox/sandbox"
	"github.com/glassboxhq/glassbox/sandbox/native"
)

// place is a session whose working directory is at hand.
type place struct {
	*record.Session
	store *sqlite.Store
	dir   string
}

// newPlace makes a session, with files in its working directory. It returns
// when the first look is over.
func newPlace(t *testing.T, opts *record.Options, names ...string) *place {
	t.Helper()
	return newLimited(t, opts, sandbox.ScanLimit{}, names...)
}

// limited looks at less than it might.
type limited struct {
	*native.Session
	limit sandbox.ScanLimit
}

func (l *limited) Scan(ctx context.Context, dir string, limit sandbox.ScanLimit) (*sandbox.Scan, error) {
	if l.limit.Entries > 0 {
		limit.Entries = l.limit.Entries
	}
	return l.Session.Scan(ctx, dir, limit)
}

func newLimited(t *testing.T, opts *record.Options, limit sandbox.ScanLimit, names ...string) *place {
	t.Helper()
	p := &place{dir: t.TempDir()}
	for _, name := range names {
		file := filepath.Join(p.dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(name), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	inner, err := native.New(&native.Options{Workdir: p.dir, Scripts: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if p.store, err = sqlite.Open(filepath.Join(t.TempDir(), "history.sqlite3"), nil); err != nil {
		t.Fatal(err)
	}
	p.Session = record.New(&limited{inner, limit}, p.store, opts)
	t.Cleanup(func() {
		if err := errors.Join(p.Close(t.Context()), p.store.Close()); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
	})
	if opts == nil || !opts.NoFileChanges {
		p.looked(t, limit)
	}
	return p
}

// looked waits for a look that covers whatever a command does from here on.
func (p *place) looked(t *testing.T, limit sandbox.ScanLimit) {
	t.Helper()
	for range 100 {
		if c := p.run(t, "true"); c.Incomplete == "" || limit.Entries > 0 && !strings.Contains(c.Incomplete, "began before") {
			return
		}
	}
	t.Fatal("the first look does not end")
}

func (p *place) start(t *testing.T, line string) string {
	t.Helper()
	opID := id.New()
	if _, err := p.Run(t.Context(), &sandbox.Command{ID: opID, Line: line}); err != nil {
		t.Fatal(err)
	}
	return opID
}

// run runs a command, and waits until it is known what it did.
func (p *place) run(t *testing.T, line string) *history.Changes {
	t.Helper()
	return p.changes(t, p.start(t, line))
}

func (p *place) changes(t *testing.T, opID string) *history.Changes {
	t.Helper()
	for late := time.Now().Add(20 * time.Second); time.Now().Before(late); <-time.After(5 * time.Millisecond) {
		op, err := p.store.Get(t.Context(), opID)
		if err != nil {
			t.Fatal(err)
		}
		if op.Changes != nil {
			return op.Changes
		}
	}
	t.Fatal("nobody tells what the command did")
	return nil
}

// told writes changes as lines, without the working directory.
func (p *place) told(c *history.Changes) []string {
	var lines []string
	for _, kind := range []struct {
		sign string
		list []history.FileChange
	}{{"+", c.Created}, {"~", c.Changed}, {"-", c.Deleted}} {
		for _, f := range kind.list {
			line := kind.sign + strings.TrimPrefix(f.Path, p.dir+"/")
			if f.Type != "" {
				line += " " + f.Type
			}
			if f.Attributes {
				line += " attributes"
			}
			if f.PreviousSize != nil {
				line += fmt.Sprintf(" %d", *f.PreviousSize)
			}
			if f.Size != nil {
				line += fmt.Sprintf(" >%d", *f.Size)
			}
			lines = append(lines, line)
		}
	}
	return lines
}

func TestFileChanges(t *testing.T) {
	p := newPlace(t, nil, "old", "same", "mode", "touched", "moved", "copied", "gone", "d/e/f", "d/g", "w/x")
	for _, tt := range []struct {
		name, line string
		want       []string
	}{
		{"nothing", "cat old >/dev/null; ls -R >/dev/null", nil},
		{"created", "mkdir new; echo 1 > new/file; ln -s old new/link; mkfifo pipe", []string{"+new directory", "+new/file >2", "+new/link link >3", "+pipe pipe"}},
		{"changed", "echo longer > old", []string{"~old 3 >7"}},
		{"the same size", "sleep 0.02; printf SAME > same", []string{"~same 4 >4"}},
		{"replaced, with size and time", "cp -p copied c; rm copied; mv c copied", []string{"~copied 6 >6"}},
		{"mode only", "chmod 755 mode", []string{"~mode attributes 4 >4"}},
		{"mode of a directory", "chmod 700 w", []string{"~w directory attributes"}},
		{"touched only", "touch -d 2001-01-01 touched", []string{"~touched 7 >7"}},
		{"deleted", "rm gone", []string{"-gone 4"}},
		{"renamed", "mv moved elsewhere", []string{"+elsewhere >5", "-moved 5"}},
		{"a directory renamed", "mv d D", []string{"+D directory", "+D/e directory", "+D/e/f >5", "+D/g >3", "-d directory", "-d/e directory", "-d/e/f 5", "-d/g 3"}},
		{"a tree removed", "rm -rf D", []string{"-D directory", "-D/e directory", "-D/e/f 5", "-D/g 3"}},
		{"a file becomes a directory", "rm old; mkdir old", []string{"~old directory 7"}},
		{"made and removed", "touch t; rm t", nil},
		{"names", `touch $'bad\xff' $'two\nlines'`, []string{"+bad\uFFFD >0", "+two\nlines >0"}},
		{"elsewhere", "touch \"$(mktemp -u)\"", nil},
		{"below a link", "ln -s / root", []string{"+root link >1"}},
		{"failed", "touch before; false", []string{"+before >0"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := p.run(t, tt.line)
			if diff := cmp.Diff(tt.want, p.told(got)); diff != "" || got.Incomplete != "" || got.With != nil {
				t.Errorf("incomplete %q, with %v (-want +got):\n%s", got.Incomplete, got.With, diff)
			}
		})
	}
}

// A tree of 5 000 files is removed: what is kept tells all that was above, and
// the count of the rest.
func TestFileChangesOfATree(t *testing.T) {
	p := newPlace(t, nil)
	made := p.run(t, "mkdir -p t/{0..49}; touch t/{0..49}/{0..99}; touch kept")
	if made.CreatedCount != 5052 || made.Incomplete != "" {
		t.Errorf("got %d created, incomplete %q, want 5052", made.CreatedCount, made.Incomplete)
	}
	opID := p.start(t, "rm -rf t")
	got := p.changes(t, opID)
	if got.DeletedCount != 5051 || len(got.Deleted) != history.MaxChangedPaths || got.ChangedCount+got.CreatedCount != 0 || got.Incomplete != "" {
		t.Errorf("got %d deleted and %d told, incomplete %q, want 5051 and %d", got.DeletedCount, len(got.Deleted), got.Incomplete, history.MaxChangedPaths)
	}
	for _, name := range []string{"t", "t/0", "t/49", "t/0/0"} {
		if !slices.ContainsFunc(got.Deleted, func(f history.FileChange) bool { return f.Path == filepath.Join(p.dir, name) }) {
			t.Errorf("it is not told that %s was deleted", name)
		}
	}
	page, err := p.store.List(t.Context(), &history.Filter{Path: filepath.Join(p.dir, "t/49"), Newest: true})
	if err != nil || len(page.Operations) != 2 || page.Operations[0].ID != opID {
		t.Errorf("by path: got %d operations, %v, want both commands", len(page.Operations), err)
	}
}

// Commands at the same time share what was done, and name each other; so does a
// burst, for which there are few looks.
func TestFileChangesTogether(t *testing.T) {
	p := newPlace(t, nil)
	t.Run("at once", func(t *testing.T) {
		var ids [2]string
		done := make(chan struct{})
		go func() {
			defer close(done)
			ids[0] = p.start(t, "touch a; sleep 0.3; touch b")
		}()
		for _, err := os.Stat(filepath.Join(p.dir, "a")); err != nil; _, err = os.Stat(filepath.Join(p.dir, "a")) {
			<-time.After(time.Millisecond)
		}
		ids[1] = p.start(t, "touch c; sleep 0.3")
		<-done
		first, second := p.changes(t, ids[0]), p.changes(t, ids[1])
		if diff := cmp.Diff([]string{"+a >0", "+b >0", "+c >0"}, p.told(first)); diff != "" || !slices.Equal(first.With, ids[1:]) {
			t.Errorf("first: with %v, want %v (-want +got):\n%s", first.With, ids[1:], diff)
		}
		if got := p.told(second); !slices.Contains(got, "+c >0") || !slices.Equal(second.With, ids[:1]) {
			t.Errorf("second: got %v with %v, want c with %v", got, second.With, ids[:1])
		}
	})
	t.Run("burst", func(t *testing.T) {
		var ids []string
		for i := range 40 {
			ids = append(ids, p.start(t, fmt.Sprintf("touch burst%d", i)))
		}
		for i, opID := range ids {
			got := p.changes(t, opID)
			if !slices.Contains(p.told(got), fmt.Sprintf("+burst%d >0", i)) || got.Incomplete != "" || slices.Contains(got.With, opID) {
				t.Errorf("%d: got %v with %v, incomplete %q", i, p.told(got), got.With, got.Incomplete)
			}
			if len(got.Created) > 1 && len(got.With) == 0 {
				t.Errorf("%d: got %v as its own", i, p.told(got))
			}
		}
	})
	t.Run("long", func(t *testing.T) { // one that runs on gathers all that happens meanwhile
		long, err := p.Start(t.Context(), &sandbox.Command{ID: id.New(), Line: "touch l1; echo up; read; touch l2; rm l1", StdinPipe: true})
		if err != nil {
			t.Fatal(err)
		}
		defer long.Close()
		if _, err := long.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
		short := p.start(t, "touch s; touch kept; rm -f a")
		if got := p.changes(t, short); !slices.Contains(got.With, long.ID()) || !slices.Contains(p.told(got), "+s >0") {
			t.Errorf("short: got %v with %v", p.told(got), got.With)
		}
		p.changes(t, p.start(t, "rm s"))
		if err := errors.Join(func() error { _, err := long.Stdin().Write([]byte("\n")); return err }(), long.Stdin().Close()); err != nil {
			t.Fatal(err)
		}
		if _, err := long.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		got := p.changes(t, long.ID())
		if diff := cmp.Diff([]string{"+kept >0", "+l2 >0", "-a 0"}, p.told(got)); diff != "" || len(got.With) != 2 {
			t.Errorf("with %v (-want +got):\n%s", got.With, diff)
		}
	})
}

// What we did by our own acts is not told of a command beside them.
func TestFileChangesWithoutActs(t *testing.T) {
	p := newPlace(t, nil, "old", "removed", "from/a", "edited")
	ctx := t.Context()
	write := func(name, text string) {
		t.Helper()
		if _, err := p.Write(ctx, name, strings.NewReader(text), nil); err != nil {
			t.Fatal(err)
		}
	}
	write("new/dir/file", "one")
	write("formatted", "two")
	write("old", "three")
	write("dropped", "four")
	if err := errors.Join(p.Remove(ctx, "removed", nil), func() error { _, err := p.Move(ctx, "from", "to", nil); return err }()); err != nil {
		t.Fatal(err)
	}
	<-time.After(30 * time.Millisecond) // beyond what times of files tell apart
	got := p.run(t, "echo two, better > formatted; touch mine removed; rm dropped; echo x >> to/a")
	want := []string{"+mine >0", "+removed >0", "~formatted 3 >12", "~to/a 0 >8"}
	if diff := cmp.Diff(want, p.told(got)); diff != "" || got.With != nil {
		t.Errorf("with %v (-want +got):\n%s", got.With, diff)
	}
	if got := p.run(t, "rm -r new"); got.DeletedCount != 3 {
		t.Errorf("got %v", p.told(got))
	}
}

func TestFileChangesOff(t *testing.T) {
	p := newPlace(t, &record.Options{NoFileChanges: true})
	opID := p.start(t, "touch f")
	<-time.After(2 * 250 * time.Millisecond)
	if err := p.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if op, err := p.store.Get(t.Context(), opID); err != nil || op.Changes != nil {
		t.Errorf("got %+v, %v, want nothing looked for", op.Changes, err)
	}
}

// Close settles what has ended just now.
func TestFileChangesAtClose(t *testing.T) {
	p := newPlace(t, nil)
	opID := p.start(t, "touch f")
	running, err := p.Start(t.Context(), &sandbox.Command{ID: id.New(), Line: "touch g; echo up; sleep 60", Detached: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := running.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := p.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("it took %v", took)
	}
	for opID, want := range map[string]string{opID: "+f >0", running.ID(): "+g >0"} {
		op, err := p.store.Get(t.Context(), opID)
		if err != nil || op.Changes == nil || !slices.Contains(p.told(op.Changes), want) {
			t.Errorf("got %+v, %v, want %s", op.Changes, err, want)
		}
	}
}

// What looks like a secret in a name is masked.
func TestFileChangesMasked(t *testing.T) {
	p := newPlace(t, nil)
	got := p.run(t, "touch "+secret)
	if want := []string{"+" + strings.Repeat("*", len(secret)) + " >0"}; !slices.Equal(p.told(got), want) {
		t.Errorf("got %v, want %v", p.told(got), want)
	}
}

// The working directory itself goes, and comes again.
func TestFileChangesOfTheWorkdir(t *testing.T) {
	p := newPlace(t, nil, "a", "b/c")
	if got := p.run(t, "rm -rf \"$PWD\""); got.DeletedCount != 3 || got.Incomplete != "" {
		t.Errorf("got %v, incomplete %q", p.told(got), got.Incomplete)
	}
	if got := p.run(t, "touch d"); !slices.Equal(p.told(got), []string{"+d >0"}) {
		t.Errorf("got %v", p.told(got))
	}
}

// What lies beyond the limits of a look is not told, and that is.
func TestFileChangesBeyondLimits(t *testing.T) {
	p := newLimited(t, nil, sandbox.ScanLimit{Entries: 10}, "a/1", "a/2", "b/1", "b/2", "b/3", "b/4", "b/5", "b/6", "z/last")
	got := p.run(t, "rm a/1; touch z/new")
	if diff := cmp.Diff([]string{"-a/1 3"}, p.told(got)); diff != "" || !strings.Contains(got.Incomplete, "too many files; from "+p.dir+"/z") {
		t.Errorf("incomplete %q (-want +got):\n%s", got.Incomplete, diff)
	}
	if got := p.run(t, "rm b/*"); len(got.Deleted) != 6 {
		t.Errorf("got %v, incomplete %q, want six deleted", p.told(got), got.Incomplete)
	}
	// Everything has its place in a look now, but some of it for the first time.
	if got := p.run(t, "touch z/new2"); !slices.Equal(p.told(got), []string{"+z/new2 >0"}) || got.Incomplete != "" {
		t.Errorf("got %v, incomplete %q", p.told(got), got.Incomplete)
	}
	if got := p.run(t, "touch z/f{1..20}"); got.Any() || !strings.Contains(got.Incomplete, "1 directories were not looked into") {
		t.Errorf("a crowded directory: got %v, incomplete %q", p.told(got), got.Incomplete)
	}
	if got := p.run(t, "rm -r z"); !strings.Contains(got.Incomplete, p.dir+"/z") || !slices.Equal(p.told(got), []string{"-z directory"}) {
		t.Errorf("its removal: got %v, incomplete %q", p.told(got), got.Incomplete)
	}
}

func TestFileChangesUnreadable(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root reads everything")
	}
	p := newPlace(t, nil, "shut/in", "open/in")
	got := p.run(t, "touch shut/new; chmod 0 shut; touch open/new")
	want := []string{"+open/new >0", "~shut directory attributes"}
	if diff := cmp.Diff(want, p.told(got)); diff != "" || !strings.Contains(got.Incomplete, p.dir+"/shut") {
		t.Errorf("incomplete %q (-want +got):\n%s", got.Incomplete, diff)
	}
	p.run(t, "chmod 700 shut")
}

// A command that comes before the first look is over has an incomplete record,
// and waits for nothing.
func TestFileChangesBeforeTheFirstLook(t *testing.T) {
	dir := t.TempDir()
	inner, err := native.New(&native.Options{Workdir: dir, Scripts: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	store, err := sqlite.Open(filepath.Join(t.TempDir(), "history.sqlite3"), nil)
	if err != nil {
		t.Fatal(err)
	}
	slow := &slowly{Session: inner, begin: make(chan struct{})}
	p := &place{Session: record.New(slow, store, nil), store: store, dir: dir}
	opID := p.start(t, "touch f")
	close(slow.begin)
	if got := p.changes(t, opID); got.Any() || !strings.Contains(got.Incomplete, "began before the first look") {
		t.Errorf("got %v, incomplete %q", p.told(got), got.Incomplete)
	}
	if err := errors.Join(p.Close(t.Context()), store.Close()); err != nil {
		t.Fatal(err)
	}
}

// slowly looks when it may.
type slowly struct {
	*native.Session
	begin chan struct{}
}

func (s *slowly) Scan(ctx context.Context, dir string, limit sandbox.ScanLimit) (*sandbox.Scan, error) {
	<-s.begin
	return s.Session.Scan(ctx, dir, limit)
}

// An operation that is imported keeps what is told of files, masked.
func TestImportedFileChanges(t *testing.T) {
	p := newPlace(t, nil)
	op := &history.Operation{
		ID: id.New(), Type: history.CommandExecute, Status: sandbox.Succeeded, Command: &history.Command{Line: "x"},
		Changes: &history.Changes{Created: []history.FileChange{{Path: "/" + secret}}, CreatedCount: 1},
	}
	if err := p.Import(t.Context(), op); err != nil {
		t.Fatal(err)
	}
	got := p.changes(t, op.ID)
	if len(got.Created) != 1 || got.Created[0].Path != "/"+strings.Repeat("*", len(secret)) || op.Changes.Created[0].Path != "/"+secret {
		t.Errorf("got %+v of %+v, want a masked copy", got, op.Changes)
	}
}

// What a command does in a directory that is uploaded to meanwhile cannot be
// told from the upload, and that is said.
func TestFileChangesBesideAnUpload(t *testing.T) {
	p := newPlace(t, nil, "t/old")
	content, feed := io.Pipe()
	done := make(chan error, 1)
	go func() {
		_, err := p.Upload(context.WithoutCancel(t.Context()), "t", content, nil)
		done <- err
	}()
	archive := tar.NewWriter(feed)
	if err := archive.WriteHeader(&tarHeader); err != nil {
		t.Fatal(err)
	}
	got := p.run(t, "touch t/mine elsewhere")
	if !slices.Equal(p.told(got), []string{"+elsewhere >0"}) || !strings.Contains(got.Incomplete, "below "+p.dir+"/t;") {
		t.Errorf("got %v, incomplete %q", p.told(got), got.Incomplete)
	}
	if _, err := archive.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(archive.Close(), feed.Close(), <-done); err != nil {
		t.Fatal(err)
	}
	if got := p.run(t, "true"); got.Any() || got.Incomplete != "" {
		t.Errorf("afterwards: got %v, incomplete %q", p.told(got), got.Incomplete)
	}
}

var tarHeader = tar.Header{Name: "sent", Size: 1, Mode: 0o600}

// Commands and acts end at any moment of a look; each command is told what it did.
func TestFileChangesWhileOthersEnd(t *testing.T) {
	p := newPlace(t, nil, "keep")
	var writers sync.WaitGroup
	var all sync.Map // what each command made, by its operation
	for n := range 8 {
		writers.Go(func() {
			for i := range 12 {
				dir := fmt.Sprintf("dir-%d-%d", n, i)
				if _, err := p.Write(t.Context(), dir+"/f", strings.NewReader("x"), nil); err != nil {
					t.Error(err)
				}
				res, err := p.Run(t.Context(), &sandbox.Command{Line: "touch " + dir + "-made"})
				if err != nil {
					t.Error(err)
					return
				}
				all.Store(res.OperationID, dir+"-made")
				if err := p.Remove(t.Context(), dir, &sandbox.RemoveOptions{Recursive: true}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	for opID, name := range all.Range {
		if got := p.told(p.changes(t, opID.(string))); !slices.Contains(got, "+"+name.(string)+" >0") {
			t.Errorf("%s: got %v", name, got)
		}
	}
}
