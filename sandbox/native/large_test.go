package native_test

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/glassboxhq/glassbox/sandbox"
	"github.com/glassboxhq/glassbox/sandbox/native"
)

// watched runs an act and returns the most memory that was in use meanwhile.
func watched(act func()) uint64 {
	runtime.GC()
	stop, most := make(chan struct{}), make(chan uint64)
	go func() {
		var peak uint64
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			peak = max(peak, m.HeapInuse)
			select {
			case <-tick.C:
			case <-stop:
				most <- peak
				return
			}
		}
	}()
	act()
	close(stop)
	return <-most
}

const flat = 64 << 20 // of memory

// largeBytes is as much as the machine's time allows; GLASSBOX_LARGE asks for
// the whole 10 GiB.
func largeBytes(t *testing.T) int64 {
	switch {
	case os.Getenv("GLASSBOX_LARGE") != "":
		return 10 << 30
	case testing.Short():
		t.Skip("large")
	}
	return 256 << 20
}

// noise is content that is no text and does not repeat itself soon.
func noise() io.Reader { return rand.NewChaCha8([32]byte{1}) }

// However large a file is, it is written and read in little memory.
func TestLargeFile(t *testing.T) {
	size, dir := largeBytes(t), t.TempDir()
	s := open(t, &native.Options{Workdir: dir})
	peak := watched(func() {
		for range 2 { // the second time over the first
			if info, err := s.Write(t.Context(), "f", io.LimitReader(noise(), size), nil); err != nil || info.Size != size {
				t.Errorf("got %+v, %v", info, err)
			}
		}
		r, err := s.Read(t.Context(), "f", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if n, err := io.Copy(io.Discard, r); err != nil || n != size {
			t.Errorf("got %d bytes, %v", n, err)
		}
	})
	if peak > flat {
		t.Errorf("%d MiB in use, want at most %d", peak>>20, flat>>20)
	}
}

// However large a tree is, it goes through in little memory, both ways.
func TestLargeTree(t *testing.T) {
	size, dir := largeBytes(t), t.TempDir()
	s := open(t, &native.Options{Workdir: dir})
	if err := os.Mkdir(filepath.Join(dir, "from"), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, "from", "sparse"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "z"} {
		if err := os.WriteFile(filepath.Join(dir, "from", name), []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	peak := watched(func() {
		r, err := s.Download(t.Context(), "from", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		done, err := s.Upload(t.Context(), "to", r, nil)
		if err != nil || done.Files != 3 || done.Bytes != size+2 {
			t.Errorf("got %+v, %v", done, err)
		}
	})
	if peak > flat {
		t.Errorf("%d MiB in use, want at most %d", peak>>20, flat>>20)
	}
}

// The end of a context ends what goes through a lot.
func TestLongActsEnd(t *testing.T) {
	dir := t.TempDir()
	s := open(t, &native.Options{Workdir: dir})
	f, err := os.Create(filepath.Join(dir, "huge"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(1 << 42); err != nil {
		t.Skipf("no sparse files here: %v", err)
	}
	for name, act := range map[string]func(context.Context) error{
		"write": func(ctx context.Context) error {
			_, err := s.Write(ctx, "huge", strings.NewReader("x"), nil)
			return err
		},
		"append": func(ctx context.Context) error {
			_, err := s.Append(ctx, "huge", strings.NewReader("x"), &sandbox.WriteOptions{IfHash: strings.Repeat("0", 64)})
			return err
		},
		"lines": func(ctx context.Context) error {
			_, err := s.Read(ctx, "huge", &sandbox.ReadOptions{Line: 2})
			return err
		},
		"download": func(ctx context.Context) error {
			r, err := s.Download(ctx, "huge", nil)
			if err != nil {
				return err
			}
			defer r.Close()
			_, err = io.Copy(io.Discard, r)
			return err
		},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		began := time.Now()
		err := act(ctx)
		cancel()
		if took := time.Since(began); !errors.Is(err, sandbox.ErrTimeout) || took > 5*time.Second {
			t.Errorf("%s: got %v after %v, want it ended", name, err, took)
		}
	}
}

// A file that becomes shorter while it is packed breaks the tar; a small one
// is as it is at that moment.
func TestShrinkingFile(t *testing.T) {
	dir := t.TempDir()
	s := open(t, &native.Options{Workdir: dir})
	name := filepath.Join(dir, "f")
	if err := os.WriteFile(name, make([]byte, 8<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	r, err := s.Download(t.Context(), "f", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	in := tar.NewReader(r)
	if _, err := in.Next(); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(name, 1<<20); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, in); sandbox.CodeOf(err) != sandbox.CodeModified {
		t.Errorf("got %v, want it told that the file has changed", err)
	}
}

// A walk leaves out what the recorder keeps, and may not begin there.
func TestProtectedWalks(t *testing.T) {
	base := t.TempDir()
	kept := filepath.Join(base, "kept")
	for _, dir := range []string{"kept/sub", "work"} {
		if err := os.MkdirAll(filepath.Join(base, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"kept/secret", "kept/sub/secret", "work/f"} {
		if err := os.WriteFile(filepath.Join(base, name), []byte("token"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(kept, filepath.Join(base, "work", "link")); err != nil {
		t.Fatal(err)
	}
	s := open(t, &native.Options{Workdir: filepath.Join(base, "work"), Protected: []string{kept}})
	if res, err := s.Grep(t.Context(), &sandbox.GrepQuery{Pattern: "token", Path: base}); err != nil || len(res.Matches) != 1 {
		t.Errorf("grep: got %+v, %v, want the one match", res, err)
	}
	if res, err := s.Glob(t.Context(), &sandbox.GlobQuery{Pattern: "**/secret", Path: base}); err != nil || len(res.Files) != 0 {
		t.Errorf("glob: got %+v, %v, want nothing", res, err)
	}
	for _, dir := range []string{kept, filepath.Join(kept, "sub"), "link", "link/sub", "../kept"} {
		if _, err := s.Glob(t.Context(), &sandbox.GlobQuery{Pattern: "*", Path: dir}); !errors.Is(err, sandbox.ErrPermission) {
			t.Errorf("glob in %s: got %v", dir, err)
		}
		if r, err := s.Download(t.Context(), dir, nil); !errors.Is(err, sandbox.ErrPermission) {
			t.Errorf("download of %s: got %v", dir, err)
			if err == nil {
				r.Close()
			}
		}
		if !strings.HasPrefix(dir, "link") { // which may be moved itself
			if _, err := s.Move(t.Context(), dir, "away", nil); !errors.Is(err, sandbox.ErrPermission) {
				t.Errorf("move of %s: got %v", dir, err)
			}
		}
	}
	mode := os.FileMode(0o700)
	if _, err := s.SetMode(t.Context(), base, &sandbox.ModeOptions{Mode: &mode, Recursive: true}); !errors.Is(err, sandbox.ErrPermission) {
		t.Errorf("set mode of all: got %v", err)
	}
}
