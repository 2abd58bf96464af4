package recorded_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/sandbox"
	"github.com/glassboxhq/glassbox/sandbox/recorded"
)

// zeros is endless content.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func tarOf(t *testing.T, sizes ...int64) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for i, size := range sizes {
		if err := w.WriteHeader(&tar.Header{Name: string(rune('a' + i)), Mode: 0o644, Size: size}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.CopyN(w, zeros{}, size); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// A tar that breaks off is never taken for a whole one, even where the answer
// was properly ended by somebody on the way.
func TestCutDownload(t *testing.T) {
	tree := tarOf(t, 5, 3000)
	whole := append(bytes.Clone(tree), wire.TreeEnd(int64(len(tree)))...)
	for name, n := range map[string]int{"nothing": 0, "between two files": 1024, "in a file": 2000, "before the end": len(tree) - 1024, "without the end": len(tree), "in the end": len(whole) - 1, "whole": len(whole)} {
		s := newStub(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(whole[:n]) })
		r, err := s.session(t, nil).Download(t.Context(), "d", nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(iotest.OneByteReader(r))
		r.Close()
		if n == len(whole) {
			if err != nil || !bytes.Equal(got, tree) {
				t.Errorf("%s: got %d bytes, %v", name, len(got), err)
			}
		} else if !errors.Is(err, sandbox.ErrInterrupted) {
			t.Errorf("%s: got %d bytes, %v, want it interrupted", name, len(got), err)
		}
	}
}

// What goes wrong in the middle of a tree breaks the stream.
func TestBrokenDownload(t *testing.T) {
	s := newStub(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(tarOf(t, 5)[:1024])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	r, err := s.session(t, nil).Download(t.Context(), "d", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := io.ReadAll(r); !errors.Is(err, sandbox.ErrInterrupted) {
		t.Errorf("got %v, want it interrupted", err)
	}
}

// What is refused early is told, however much there is to be sent.
func TestRefusedEarly(t *testing.T) {
	s := recorded.New(newRecorder(t).URL, &recorded.Options{Token: token})
	t.Cleanup(func() { _ = s.Close(t.Context()) })
	const much = 1 << 30
	for range 10 {
		content := io.LimitReader(zeros{}, much)
		if _, err := s.Write(t.Context(), "f", content, &sandbox.WriteOptions{IfHash: strings.Repeat("0", 64)}); !errors.Is(err, sandbox.ErrConflict) {
			t.Errorf("write: got %v, want a conflict", err)
		}
		if _, err := s.Append(t.Context(), "/proc/self/comm", io.LimitReader(zeros{}, much), nil); !errors.Is(err, sandbox.ErrPermission) {
			t.Errorf("append: got %v, want it refused", err)
		}
		r, w := io.Pipe()
		go func() {
			archive := tar.NewWriter(w)
			_ = archive.WriteHeader(&tar.Header{Name: "a", Mode: 0o644})
			_ = archive.WriteHeader(&tar.Header{Name: "../b", Mode: 0o644, Size: much})
			_, err := io.CopyN(archive, zeros{}, much)
			_ = w.CloseWithError(err)
		}()
		done, err := s.Upload(t.Context(), "u", r, nil)
		if sandbox.CodeOf(err) != sandbox.CodeArchive || done == nil || done.Files != 1 {
			t.Errorf("upload: got %+v, %v, want what came of it", done, err)
		}
		r.Close()
	}
}

// An act whose answer is lost is asked for again under its id, and done once.
func TestLostAnswers(t *testing.T) {
	var fail bool
	s := newStub(t, func(w http.ResponseWriter, r *http.Request) {
		if fail = !fail; fail {
			_, _ = io.Copy(io.Discard, r.Body)
			reset(hijack(t, w))
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, `{"path":"/x","matches":[],"files":0}`)
	})
	session := s.session(t, nil)
	ctx := t.Context()
	for name, act := range map[string]func() error{
		"append": func() error { _, err := session.Append(ctx, "f", bytes.NewReader([]byte("x")), nil); return err },
		"edit":   func() error { _, err := session.Edit(ctx, "f", &sandbox.Edit{Old: "a", New: "b"}); return err },
		"stat":   func() error { _, err := session.Stat(ctx, "f"); return err },
		"mkdir":  func() error { _, err := session.MakeDir(ctx, "f", nil); return err },
		"move":   func() error { _, err := session.Move(ctx, "f", "g", nil); return err },
		"chmod":  func() error { _, err := session.SetMode(ctx, "f", &sandbox.ModeOptions{Owner: "0"}); return err },
		"grep":   func() error { _, err := session.Grep(ctx, &sandbox.GrepQuery{Pattern: "x"}); return err },
		"upload": func() error { _, err := session.Upload(ctx, "f", bytes.NewReader(tarOf(t, 1)), nil); return err },
	} {
		before := s.count("")
		s.mu.Lock()
		s.ids = map[string]bool{}
		s.mu.Unlock()
		fail = false
		if err := act(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if tries, ids := s.count("")-before, len(s.ids); tries != 2 || ids > 1 {
			t.Errorf("%s: got %d tries under %d ids, want two under one", name, tries, ids)
		}
	}
	fail = false
	before := s.count("PUT " + wire.PathTree)
	once := struct{ io.Reader }{bytes.NewReader(tarOf(t, 1))}
	if _, err := session.Upload(ctx, "f", once, nil); !errors.Is(err, sandbox.ErrUnavailable) || s.count("PUT "+wire.PathTree)-before != 1 {
		t.Errorf("content that cannot be read again: got %v, want one try and its error", err)
	}
}

// A read of lines that is cut is seen, though only the recorder knew how many
// bytes the lines have.
func TestCutLines(t *testing.T) {
	s := newStub(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(wire.HeaderLength, "10")
		_, _ = io.WriteString(w, "12345")
	})
	r, err := s.session(t, nil).Read(t.Context(), "f", &sandbox.ReadOptions{Line: 2, Lines: 3})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got, err := io.ReadAll(r); !errors.Is(err, sandbox.ErrInterrupted) {
		t.Errorf("got %q, %v, want it interrupted", got, err)
	}
}
