package native_test

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/glassboxhq/glassbox/sandbox"
	"github.com/glassboxhq/glassbox/sandbox/native"
)

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// names lists a directory, to see what was left in it.
func names(t *testing.T, dir string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		list = append(list, entry.Name())
	}
	return list
}

// Whoever writes at the same time, a file is one of what was written.
func TestWritersAtOnce(t *testing.T) {
	dir := t.TempDir()
	s := open(t, &native.Options{Workdir: dir})
	version := func(i int) []byte { return bytes.Repeat([]byte{byte('a' + i)}, 100_000+i) }
	var group sync.WaitGroup
	stop := make(chan struct{})
	var torn atomic.Int64
	group.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			text, err := os.ReadFile(filepath.Join(dir, "f"))
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil || len(text) == 0 || !bytes.Equal(text, version(int(text[0]-'a'))) {
				torn.Add(1)
			}
		}
	})
	var writers sync.WaitGroup
	for i := range 16 {
		writers.Go(func() {
			for range 10 {
				info, err := s.Write(t.Context(), "f", iotest.HalfReader(bytes.NewReader(version(i))), nil)
				if err != nil || info.Size != int64(100_000+i) {
					t.Errorf("writer %d: got %+v, %v", i, info, err)
				}
			}
		})
	}
	writers.Wait()
	close(stop)
	group.Wait()
	if n := torn.Load(); n > 0 {
		t.Errorf("%d times the file was none of the versions", n)
	}
	if got := names(t, dir); len(got) != 1 {
		t.Errorf("got %v, want the one file", got)
	}
}

// FB-067: of those who saw the same version, one may replace it.
func TestFB067OneWins(t *testing.T) {
	dir := t.TempDir()
	s := open(t, &native.Options{Workdir: dir})
	for round := range 20 {
		hash := sandbox.Absent
		if round > 0 {
			sum := sha256.Sum256([]byte(read(t, filepath.Join(dir, "f"))))
			hash = hex.EncodeToString(sum[:])
		}
		var won, lost atomic.Int64
		begin := make(chan struct{})
		var group sync.WaitGroup
		for i := range 16 {
			group.Go(func() {
				<-begin
				_, err := s.Write(t.Context(), "f", strings.NewReader(fmt.Sprint(round, i)), &sandbox.WriteOptions{IfHash: hash})
				switch {
				case err == nil:
					won.Add(1)
				case errors.Is(err, sandbox.ErrConflict), errors.Is(err, sandbox.ErrExists):
					lost.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		close(begin)
		group.Wait()
		if won.Load() != 1 || lost.Load() != 15 {
			t.Fatalf("round %d: %d won and %d lost, want one", round, won.Load(), lost.Load())
		}
	}
	t.Run("changed while the content came", func(t *testing.T) {
		sum := sha256.Sum256([]byte(read(t, filepath.Join(dir, "f"))))
		slow := io.MultiReader(strings.NewReader("mine"), readerFunc(func([]byte) (int, error) {
			if err := os.WriteFile(filepath.Join(dir, "f"), []byte("an agent's"), 0o644); err != nil {
				t.Error(err)
			}
			return 0, io.EOF
		}))
		_, err := s.Write(t.Context(), "f", slow, &sandbox.WriteOptions{IfHash: hex.EncodeToString(sum[:])})
		if !errors.Is(err, sandbox.ErrConflict) || read(t, filepath.Join(dir, "f")) != "an agent's" {
			t.Errorf("got %v, want a conflict and the agent's version kept", err)
		}
		if got := names(t, dir); len(got) != 1 {
			t.Errorf("got %v, want no temporary file", got)
		}
	})
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// FB-047: a full disk keeps the old file, its mode and its owner, and nothing
// of the new one.
func TestFB047DiskFull(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root to mount a file system")
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("needs to mount a file system: %v", err)
	}
	defer func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	}()
	s := open(t, &native.Options{Workdir: dir})
	name := filepath.Join(dir, "f")
	old := strings.Repeat("o", 300_000)
	if err := os.WriteFile(name, []byte(old), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(name, 12, 34); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "fill"), make([]byte, 300_000), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := s.Write(t.Context(), "f", bytes.NewReader(make([]byte, 600_000)), nil)
	if !errors.Is(err, sandbox.ErrNoSpace) || strings.Contains(err.Error(), ".glassbox") {
		t.Errorf("got %v, want that there is no space left for %s", err, name)
	}
	_, err = s.Write(t.Context(), "new/file", bytes.NewReader(make([]byte, 600_000)), nil)
	if !errors.Is(err, sandbox.ErrNoSpace) {
		t.Errorf("a new file: got %v, want no space", err)
	}
	if _, err := s.Append(t.Context(), "f", bytes.NewReader(make([]byte, 600_000)), nil); !errors.Is(err, sandbox.ErrNoSpace) {
		t.Errorf("append: got %v, want no space", err)
	}
	if _, err := s.Edit(t.Context(), "f", &sandbox.Edit{Old: "o", New: "ooo", All: true}); !errors.Is(err, sandbox.ErrNoSpace) {
		t.Errorf("edit: got %v, want no space", err)
	}
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	_ = w.WriteHeader(&tar.Header{Name: "f", Mode: 0o644, Size: 600_000})
	_, _ = w.Write(make([]byte, 600_000))
	_ = w.Close()
	if _, err := s.Upload(t.Context(), ".", &archive, nil); !errors.Is(err, sandbox.ErrNoSpace) {
		t.Errorf("upload: got %v, want no space", err)
	}
	var stat unix.Stat_t
	if err := unix.Stat(name, &stat); err != nil {
		t.Fatal(err)
	}
	if read(t, name) != old || stat.Mode&0o777 != 0o640 || stat.Uid != 12 || stat.Gid != 34 {
		t.Errorf("got %d bytes, mode %o, owner %d:%d, want the old file", stat.Size, stat.Mode, stat.Uid, stat.Gid)
	}
	if got := append(names(t, dir), names(t, filepath.Join(dir, "new"))...); len(got) != 3 {
		t.Errorf("got %v, want the two files and the directory", got)
	}
	if err := os.Remove(filepath.Join(dir, "fill")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Write(t.Context(), "f", strings.NewReader("new"), nil); err != nil {
		t.Errorf("with space again: %v", err)
	}
	if err := unix.Stat(name, &stat); err != nil || stat.Mode&0o777 != 0o640 || stat.Uid != 12 {
		t.Errorf("got mode %o, owner %d, %v, want those of the old file", stat.Mode, stat.Uid, err)
	}
}

// A write whose content ends in a fault changes nothing.
func TestContentThatBreaks(t *testing.T) {
	dir := t.TempDir()
	s := open(t, &native.Options{Workdir: dir})
	if err := os.WriteFile(filepath.Join(dir, "f"), []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("cut")
	for _, name := range []string{"f", "new"} {
		_, err := s.Write(t.Context(), name, io.MultiReader(strings.NewReader("half"), iotest.ErrReader(broken)), nil)
		if !errors.Is(err, broken) {
			t.Errorf("%s: got %v, want the fault", name, err)
		}
	}
	if got := names(t, dir); len(got) != 1 || read(t, filepath.Join(dir, "f")) != "old" {
		t.Errorf("got %v, want the old file alone", got)
	}
}

// A file that an agent holds a lease on is refused at once, rather than asked
// for again and again.
func TestLease(t *testing.T) {
	dir := t.TempDir()
	s := open(t, &native.Options{Workdir: dir})
	name := filepath.Join(dir, "leased")
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		t.Skipf("no leases here: %v", err)
	}
	began := time.Now()
	_, err = s.Read(t.Context(), "leased", nil)
	if took := time.Since(began); !errors.Is(err, sandbox.ErrUnavailable) || took > 2*time.Second {
		t.Errorf("got %v after %v, want that it is not available", err, took)
	}
}

// What the recorder keeps is out of reach by every way to it.
func TestProtected(t *testing.T) {
	base := t.TempDir()
	kept := filepath.Join(base, "kept")
	work := filepath.Join(base, "work")
	alias := filepath.Join(base, "alias") // how the recorder was told of it
	for _, dir := range []string{kept, work, filepath.Join(base, "other")} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{
		alias: base, filepath.Join(work, "up"): "..", filepath.Join(work, "kept"): kept, filepath.Join(work, "root"): "/",
	} {
		if err := os.Symlink(target, link); err != nil {
			t.Fatal(err)
		}
	}
	secret := filepath.Join(kept, "history")
	s := open(t, &native.Options{Workdir: filepath.Join(alias, "work"), Protected: []string{filepath.Join(alias, "kept")}})
	for _, name := range []string{
		secret, "../kept/history", "kept/history", "up/kept/history", filepath.Join("root", secret),
		filepath.Join("/proc/self/root", secret), filepath.Join(alias, "kept", "new", "dir", "f"), "up/kept/a/b",
	} {
		if err := os.WriteFile(secret, []byte("true"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Write(t.Context(), name, strings.NewReader("false"), nil); err == nil {
			t.Errorf("%s was written", name)
		}
		if err := s.Remove(t.Context(), name, &sandbox.RemoveOptions{Recursive: true}); err == nil {
			t.Errorf("%s was removed", name)
		}
	}
	for _, name := range []string{
		kept, base, "..", "../kept", "up/kept", filepath.Join("root", base), filepath.Join("root", kept),
		work, ".", filepath.Join("root", work), filepath.Join(alias, "work"), "up/work",
	} {
		if err := s.Remove(t.Context(), name, &sandbox.RemoveOptions{Recursive: true}); err == nil {
			t.Errorf("%s was removed, and what the recorder keeps with it", name)
		}
	}
	if got := read(t, secret); got != "true" {
		t.Errorf("got %q", got)
	}
	if got := names(t, kept); len(got) != 1 {
		t.Errorf("got %v, want the one file", got)
	}
	// What is beside it can be removed, and a link to it as a link.
	for _, name := range []string{"up/other", "kept"} {
		if err := s.Remove(t.Context(), name, nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// No path leads a write or a removal into what is protected, whatever links
// there are.
func FuzzProtected(f *testing.F) {
	for _, name := range []string{
		"a", "../kept/history", "l/kept/history", "l/../kept/x", "k", "k/x", "./k/../k/y", "/", "//", "..", ".", "l", "l/kept", "l/kept/",
		"a/b/c/d", "up/up/kept", "k\x00", "\xff", "l/l/l/kept/z", "/proc/self/root", "/proc/self/cwd/x", "l/work", "r" + "/etc/nothing/here",
		strings.Repeat("l/", 50) + "kept/x", strings.Repeat("a", 300), "...", "k/./../../kept/./w",
	} {
		f.Add(name, true)
		f.Add(name, false)
	}
	f.Fuzz(func(t *testing.T, name string, write bool) {
		base := t.TempDir()
		kept, work := filepath.Join(base, "kept"), filepath.Join(base, "work")
		for _, dir := range []string{kept, work, filepath.Join(work, "a")} {
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		for link, target := range map[string]string{"l": base, "k": kept, "up": ".."} {
			if err := os.Symlink(target, filepath.Join(work, link)); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(kept, "history"), []byte("true"), 0o600); err != nil {
			t.Fatal(err)
		}
		// Beyond the base the machine is not ours to try on.
		outside := filepath.Clean(filepath.Join(work, name))
		if filepath.IsAbs(name) {
			outside = filepath.Clean(name)
		}
		if !strings.HasPrefix(outside, base) {
			t.Skip("it leads out of the folder of this test")
		}
		s, err := native.New(&native.Options{Workdir: work, Protected: []string{kept}})
		if err != nil {
			t.Fatal(err)
		}
		if write {
			_, _ = s.Write(t.Context(), name, strings.NewReader("false"), nil)
		} else {
			_ = s.Remove(t.Context(), name, &sandbox.RemoveOptions{Recursive: true})
		}
		entries, err := os.ReadDir(kept)
		if err != nil || len(entries) != 1 {
			t.Fatalf("%q: got %v, %v in what is protected", name, entries, err)
		}
		if text, err := os.ReadFile(filepath.Join(kept, "history")); err != nil || string(text) != "true" {
			t.Fatalf("%q: got %q, %v in what is protected", name, text, err)
		}
		if _, err := os.Stat(work); err != nil {
			t.Fatalf("%q: the working directory is gone: %v", name, err)
		}
	})
}
