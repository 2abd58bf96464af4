package syncer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/history/sqlite"
	"github.com/glassboxhq/glassbox/internal/console/mirror"
	"github.com/glassboxhq/glassbox/internal/db"
	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/internal/localruntime"
	"github.com/glassboxhq/glassbox/internal/recorder"
	"github.com/glassboxhq/glassbox/internal/syncer"
	"github.com/glassboxhq/glassbox/record"
	"github.com/glassboxhq/glassbox/sandbox"
	"github.com/glassboxhq/glassbox/sandbox/native"
	"github.com/glassboxhq/glassbox/sandbox/recorded"
)

const token = "a token for tests"

// box is a recorder with a history, at work on this machine.
type box struct {
	*httptest.Server
	id, path string
	store    *sqlite.Store
}

// newBox starts a recorder. Its history lies in a file, which may be there.
func newBox(t *testing.T, boxID, path string, opts *sqlite.Options) *box {
	t.Helper()
	inner, err := native.New(&native.Options{Workdir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	b := &box{id: boxID, path: path}
	if b.store, err = sqlite.Open(path, opts); err != nil {
		t.Fatal(err)
	}
	session := record.New(inner, b.store, nil)
	b.Server = httptest.NewServer(recorder.New(session, b.store, &recorder.Options{Token: token}))
	t.Cleanup(func() {
		b.CloseClientConnections()
		b.Close()
		if err := errors.Join(session.Close(context.Background()), b.store.Close()); err != nil {
			t.Error(err)
		}
	})
	return b
}

func newBoxes(t *testing.T, n int) (list []*box) {
	t.Helper()
	for range n {
		boxID := id.New()
		list = append(list, newBox(t, boxID, filepath.Join(t.TempDir(), "history.sqlite3"), nil))
	}
	return list
}

func (b *box) session(t *testing.T) *recorded.Session {
	t.Helper()
	s := recorded.New(b.URL, &recorded.Options{Token: token})
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	return s
}

// run runs a command in the box, recorded.
func (b *box) run(t *testing.T, line string) *sandbox.Result {
	t.Helper()
	res, err := b.session(t).Run(t.Context(), &sandbox.Command{Line: line})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// settle waits until the recorder has told of each command what it did to files.
func (b *box) settle(t *testing.T) {
	t.Helper()
	eventually(t, "what commands did to files is known", func() bool {
		return !slices.ContainsFunc(read(t, b.store).Operations, func(op *history.Operation) bool { return op.Command != nil && op.Changes == nil })
	})
}

// fleet is services whose sandboxes are boxes.
type fleet struct {
	mu       sync.Mutex
	services map[string]map[string]*box
	kept     map[string]*syncer.Seen // histories of boxes that are gone, by their ids
	hanging  map[string]bool         // services that do not answer
}

func newFleet(boxes ...*box) *fleet {
	f := &fleet{services: map[string]map[string]*box{"local": {}}, kept: map[string]*syncer.Seen{}, hanging: map[string]bool{}}
	for _, b := range boxes {
		f.services["local"][b.id] = b
	}
	return f
}

func (f *fleet) Connections(context.Context) (list []syncer.Connection, _ error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name := range f.services {
		list = append(list, syncer.Connection{ID: name, Every: 100 * time.Millisecond})
	}
	return list, nil
}

// hang waits like a service that takes connections and says nothing.
func (f *fleet) hang(ctx context.Context, connection string) error {
	f.mu.Lock()
	hangs := f.hanging[connection]
	f.mu.Unlock()
	if hangs {
		<-ctx.Done()
	}
	return ctx.Err()
}

func (f *fleet) List(ctx context.Context, connection string) (list []*syncer.Seen, err error) {
	if err := f.hang(ctx, connection); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, b := range f.services[connection] {
		list = append(list, &syncer.Seen{Info: sandbox.Info{ID: b.id, Name: "box " + b.id, State: sandbox.Running}})
	}
	return list, nil
}

func (f *fleet) Kept(ctx context.Context, connection string) (list []*syncer.Seen, err error) {
	if err := f.hang(ctx, connection); err != nil || connection != "local" {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, seen := range f.kept {
		list = append(list, seen)
	}
	return list, nil
}

type living struct {
	*recorded.History
	s *recorded.Session
}

func (l *living) Close() error { return l.s.Close(context.Background()) }

type dead struct{ *sqlite.Store }

func (dead) Ended() bool { return true }

func (f *fleet) Open(ctx context.Context, connection, boxID string) (syncer.History, error) {
	if err := f.hang(ctx, connection); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	b, seen := f.services[connection][boxID], f.kept[boxID]
	switch {
	case b != nil && b.Server == nil:
		return nil, &sandbox.Error{Op: "open history", Code: sandbox.CodeUnsupported, Message: "not recorded"}
	case b != nil:
		s := recorded.New(b.URL, &recorded.Options{Token: token})
		return &living{s.History(), s}, nil
	case seen != nil:
		store, err := sqlite.Open(seen.Metadata["path"], &sqlite.Options{ReadOnly: true})
		if err != nil {
			return nil, err
		}
		return dead{store}, nil
	}
	return nil, &sandbox.Error{Op: "open history", Code: sandbox.CodeSandboxNotFound}
}

// remove lets a box go; its history is kept or not.
func (f *fleet) remove(b *box, keep bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, boxes := range f.services {
		delete(boxes, b.id)
	}
	if keep {
		f.kept[b.id] = &syncer.Seen{Info: sandbox.Info{ID: b.id, State: sandbox.Terminated, Metadata: map[string]string{"path": b.path}}, GoneAt: time.Now()}
	}
}

func (f *fleet) add(connection string, boxes ...*box) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.services[connection] == nil {
		f.services[connection] = map[string]*box{}
	}
	for _, b := range boxes {
		f.services[connection][b.id] = b
	}
}

// start runs a syncer until the test ends.
func start(t *testing.T, f syncer.Fleet, d *db.DB, opts *syncer.Options) (*syncer.Syncer, *mirror.Mirror) {
	t.Helper()
	logger := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
	m := mirror.New(d, &mirror.Options{Logger: logger})
	if opts == nil {
		opts = &syncer.Options{Wait: 2 * time.Second}
	}
	opts.Logger = logger
	s := syncer.New(f, m, opts)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(30 * time.Second):
			t.Error("the syncer does not end")
		}
	})
	return s, m
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(60 * time.Second)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("in vain: %s", what)
		}
		<-time.After(20 * time.Millisecond)
	}
}

// whole is all that a history holds.
type whole struct {
	Operations     []*history.Operation
	Changes        []*history.Change
	Stdout, Stderr map[string]string
	Terminals      map[string][]history.TerminalEvent
}

// read reads all of a history.
func read(t *testing.T, h history.Reader) *whole {
	t.Helper()
	w := &whole{Stdout: map[string]string{}, Stderr: map[string]string{}, Terminals: map[string][]history.TerminalEvent{}}
	for filter := (history.Filter{Limit: 1000}); ; {
		page, err := h.List(t.Context(), &filter)
		if err != nil {
			t.Fatal(err)
		}
		w.Operations = append(w.Operations, page.Operations...)
		if !page.More {
			break
		}
		filter.After = w.Operations[len(w.Operations)-1].Seq
	}
	for query := (history.ChangeQuery{Limit: 1000}); ; {
		feed, err := h.Changes(t.Context(), &query)
		if err != nil {
			t.Fatal(err)
		}
		if len(feed.Changes) == 0 {
			break
		}
		w.Changes = append(w.Changes, feed.Changes...)
		query.After = feed.Next
	}
	for _, op := range w.Operations {
		w.Stdout[op.ID], w.Stderr[op.ID] = output(t, h, op.ID, sandbox.Stdout), output(t, h, op.ID, sandbox.Stderr)
		if moments, err := h.(history.TerminalReader).Terminal(t.Context(), op.ID); err != nil {
			t.Fatal(err)
		} else if len(moments) > 0 {
			w.Terminals[op.ID] = moments
		}
	}
	return w
}

func output(t *testing.T, h history.Reader, opID string, stream sandbox.Stream) string {
	t.Helper()
	var b bytes.Buffer
	for {
		data, err := h.Output(t.Context(), opID, stream, int64(b.Len()), 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		if len(data) == 0 {
			return b.String()
		}
		b.Write(data)
	}
}

// newest returns the reader of a sandbox's newest history, or nil.
func newest(t *testing.T, m *mirror.Mirror, connection, boxID string) *mirror.Reader {
	t.Helper()
	list, err := m.Histories(t.Context(), connection, boxID)
	if err != nil {
		t.Fatal(err)
	}
	if len(list) == 0 {
		return nil
	}
	return m.Reader(list[0].No)
}

// wantSame waits until the mirror has all of a store, and compares.
func wantSame(t *testing.T, s *syncer.Syncer, m *mirror.Mirror, connection string, b *box) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if err := s.CatchUp(ctx, connection, b.id); err != nil {
		t.Fatalf("catch up: %v", err)
	}
	// A recorder tells what a command did to files a while after its end.
	diff := ""
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); <-time.After(50 * time.Millisecond) {
		if diff = difference(t, m, connection, b.id, b.store); diff == "" {
			return
		}
	}
	t.Errorf("%s (-source +mirror):\n%s", b.id, diff)
}

func difference(t *testing.T, m *mirror.Mirror, connection, boxID string, source history.Reader) string {
	t.Helper()
	r := newest(t, m, connection, boxID)
	if r == nil {
		return "the mirror has no history of it"
	}
	want, got := read(t, source), read(t, r)
	// Over the wire a duration has milliseconds.
	return cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(history.Operation{}, "Duration"))
}

// gaps lists the records of a history that something is missing.
func gaps(w *whole) []*history.Operation {
	return slices.DeleteFunc(slices.Clone(w.Operations), func(op *history.Operation) bool { return op.Type != history.HistoryGap })
}

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "local-launch" {
		fmt.Fprintln(os.Stderr, localruntime.Launch(os.Args[2:]))
		os.Exit(1)
	}
	if len(os.Args) > 1 && os.Args[1] == "sync-for-test" {
		syncForTest(os.Args[2:])
		return
	}
	os.Exit(m.Run())
}

// remoteBox is a box of another process.
func remoteBox(boxID, url string) *box { return &box{id: boxID, Server: &httptest.Server{URL: url}} }
