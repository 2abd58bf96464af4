package image_test

import (
	"archive/tar"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/glassboxhq/glassbox/internal/localruntime/image"
	"github.com/glassboxhq/glassbox/internal/usertest"
)

func TestOrdinaryUser(t *testing.T) {
	usertest.Run(t, &usertest.Options{Tests: []string{"TestLayers", "TestHostile", "TestModes", "TestPull", "TestLoad", "TestRemove"}})
}

func TestLayers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		layers [][]entry
		want   map[string]string
	}{
		{"files, links and folders without an entry of their own", [][]entry{
			{file("./a/b", "one"), link("c", "a/b"), link("d", "/abs/olute"), hard("e", "a/b"), dir("f/")},
		}, map[string]string{"a": "/", "a/b": "one", "c": "-> a/b", "d": "-> /abs/olute", "e": "one", "f": "/"}},
		{"the upper one wins", [][]entry{
			{file("a", "lower"), file("b/c", "lower"), link("l", "a"), file("h", "lower"), hard("i", "h")},
			{file("a", "upper"), file("b/d", "upper"), file("l", "upper"), file("h", "upper")},
		}, map[string]string{"a": "upper", "b": "/", "b/c": "lower", "b/d": "upper", "l": "upper", "h": "upper", "i": "lower"}},
		{"a folder gives way to a file, and back", [][]entry{
			{file("a/b", "x"), file("c", "x")}, {file("a", "file"), dir("c"), file("c/d", "y")},
		}, map[string]string{"a": "file", "c": "/", "c/d": "y"}},
		{"a folder takes the place of a link", [][]entry{
			{file("real/x", "x"), link("lib", "real")}, {dir("lib"), file("lib/y", "y")},
		}, map[string]string{"real": "/", "real/x": "x", "lib": "/", "lib/y": "y"}},
		{"whiteouts", [][]entry{
			{file("a/b", "x"), file("a/c", "x"), file("d/e", "x"), link("l", "d")},
			{file("a/.wh.b", ""), file(".wh.d", ""), file(".wh.l", ""), file(".wh.never", ""), file("none/.wh.x", "")},
		}, map[string]string{"a": "/", "a/c": "x"}},
		{"a whiteout spares its own layer", [][]entry{
			{file("a/b", "lower"), file("a/c/d", "lower")},
			{file("a/c/e", "upper"), file("a/b", "upper"), file("a/.wh.b", ""), file("a/.wh.c", "")},
		}, map[string]string{"a": "/", "a/b": "upper", "a/c": "/", "a/c/e": "upper"}},
		{"an opaque folder, told first", [][]entry{
			{file("a/b", "lower"), file("a/c/d", "lower"), link("a/l", "b")},
			{dir("a"), file("a/.wh..wh..opq", ""), file("a/c/e", "upper")},
		}, map[string]string{"a": "/", "a/c": "/", "a/c/e": "upper"}},
		{"an opaque folder, told last", [][]entry{
			{file("a/b", "lower"), file("a/c/d", "lower")},
			{file("a/c/e", "upper"), file("a/.wh..wh..opq", "")},
		}, map[string]string{"a": "/", "a/c": "/", "a/c/e": "upper"}},
		{"a hard link to a lower layer", [][]entry{{file("a", "x")}, {hard("b", "a")}, {file(".wh.a", "")}}, map[string]string{"b": "x"}},
		{"devices in /dev", [][]entry{{entry{Name: "dev/null", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3}, file("a", "x")}}, map[string]string{"a": "x"}},
		{"aufs leftovers", [][]entry{{dir(".wh..wh.plnk"), file("a", "x")}}, map[string]string{"a": "x"}},
		{"a folder twice", [][]entry{{dir("a"), file("a/b", "x"), dir("a")}}, map[string]string{"a": "/", "a/b": "x"}},
		{"no layer", nil, map[string]string{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var layers [][]byte
			for _, entries := range tt.layers {
				layers = append(layers, tarOf(t, entries...))
			}
			h := newHub(t)
			s, dir := open(t, nil)
			img, err := s.Pull(t.Context(), h.push(t, "x:1", imageOf(t, v1.Config{}, layers...)), nil)
			check(t, err)
			if diff := cmp.Diff(tt.want, treeOf(t, img.Root())); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			nothingLeft(t, dir, 1)
		})
	}
}

// TestHostile pulls images that no honest tool makes. Beside the store lies a
// folder that must stay as it is.
func TestHostile(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	check(t, os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o600))
	device := entry{Name: "disk", Typeflag: tar.TypeBlock, Devmajor: 8}
	for _, tt := range []struct {
		name   string
		layers [][]entry
		want   string
	}{
		{"absolute", [][]entry{{file(outside+"/new", "x")}}, "absolute path"},
		{"climbs", [][]entry{{file("a/../../new", "x")}}, "climbs out"},
		{"climbs by its folder", [][]entry{{dir("../new")}}, "climbs out"},
		{"no name", [][]entry{{file(".", "x")}}, "names no file"},
		{"link out", [][]entry{{link("a/b", "../../new")}}, "leads out"},
		{"through a link", [][]entry{{link("a", outside), file("a/new", "x")}}, "is a link"},
		{"through a link of a lower layer", [][]entry{{link("a", outside)}, {file("a/new", "x")}}, "is a link"},
		{"through a link of a lower layer, two deep", [][]entry{{dir("b"), link("b/a", outside)}, {file("b/a/c/new", "x")}}, "is a link"},
		{"through a link within", [][]entry{{dir("b"), link("a", "b"), file("a/new", "x")}}, "is a link"},
		{"a folder that becomes a link", [][]entry{{dir("a"), link("a", outside), file("a/new", "x")}}, "comes twice"},
		{"a folder in passing that becomes a link", [][]entry{{file("a/x", "x"), link("a", outside), file("a/new", "x")}}, "something else in one layer"},
		{"a link that becomes a folder", [][]entry{{link("a", outside), dir("a"), file("a/new", "x")}}, "comes twice"},
		{"into a file", [][]entry{{file("a", "x"), file("a/b", "x")}}, "no folder"},
		{"whiteout through a link", [][]entry{{link("a", outside)}, {file("a/.wh.secret", "")}}, "is a link"},
		{"opaque through a link", [][]entry{{link("a", outside)}, {file("a/.wh..wh..opq", "")}}, "is a link"},
		{"whiteout of the folder", [][]entry{{file("a/.wh..", "")}}, "takes no name away"},
		{"whiteout of the folder above", [][]entry{{file("a/.wh...", "")}}, "takes no name away"},
		{"whiteout of nothing", [][]entry{{file("a/.wh.", "")}}, "takes no name away"},
		{"hard link out", [][]entry{{hard("a", outside+"/secret")}}, "absolute path"},
		{"hard link that climbs", [][]entry{{hard("a", "../../secret")}}, "climbs out"},
		{"hard link through a link", [][]entry{{link("a", outside), hard("b", "a/secret")}}, "is a link"},
		{"hard link to nothing", [][]entry{{hard("a", "b")}}, "not there"},
		{"hard link to itself", [][]entry{{file("a", "x")}, {hard("a", "a")}}, "no file"},
		{"hard link to a folder", [][]entry{{dir("a"), hard("b", "a")}}, "no file"},
		{"write through a hard link to a link", [][]entry{{link("a", outside+"/secret"), hard("b", "a")}, {file("b/new", "x")}}, "is a link"},
		{"device", [][]entry{{device}}, "a device"},
		{"pipe", [][]entry{{entry{Name: "pipe", Typeflag: tar.TypeFifo}}}, "or a pipe"},
		{"file twice", [][]entry{{file("a", "x"), file("a", "y")}}, "comes twice"},
		{"file twice, written differently", [][]entry{{file("a/b", "x"), file("./a//b", "y")}}, "comes twice"},
		{"too deep", [][]entry{{file(strings.Repeat("d/", 300)+"f", "x")}}, "too deep"},
		{"link to nowhere", [][]entry{{link("a", "")}}, "to nowhere"},
		{"a place of ours is a link", [][]entry{{link("opt", "usr")}}, "is a link"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var layers [][]byte
			for _, entries := range tt.layers {
				layers = append(layers, tarOf(t, entries...))
			}
			h := newHub(t)
			s, dir := open(t, nil)
			name := h.push(t, "x:1", imageOf(t, v1.Config{}, layers...))
			_, err := s.Pull(t.Context(), name, nil)
			if !errors.Is(err, image.ErrHostile) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want that it %s", err, tt.want)
			}
			if _, err := s.Find(t.Context(), name); !errors.Is(err, image.ErrAbsent) {
				t.Errorf("the image is there: %v", err)
			}
			nothingLeft(t, dir, 0)
		})
	}
	t.Cleanup(func() {
		if got := treeOf(t, outside); len(got) != 1 || got["secret"] != "secret" {
			t.Errorf("outside there is now %v", got)
		}
	})
}

func TestModes(t *testing.T) {
	t.Parallel()
	program := file("program", "x")
	program.Mode, program.Uid, program.Gid = 0o4755, 1000, 1001
	closed := entry{Name: "closed", Typeflag: tar.TypeDir, Mode: 0o500}
	sticky := entry{Name: "sticky", Typeflag: tar.TypeDir, Mode: 0o3777, Uid: 7}
	h := newHub(t)
	s, dir := open(t, nil)
	name := h.push(t, "x:1", imageOf(t, v1.Config{}, tarOf(t, program, closed, file("closed/in", "x"), sticky)))
	img, err := s.Pull(t.Context(), name, nil)
	check(t, err)
	root := os.Geteuid() == 0
	closedMode := os.ModeDir | 0o500
	if !root {
		closedMode = os.ModeDir | 0o700 // its owner can remove it
	}
	for name, want := range map[string]os.FileMode{
		"program": 0o755, "closed": closedMode, "closed/in": 0o644, "sticky": os.ModeDir | os.ModeSticky | os.ModeSetgid | 0o777,
		"tmp": os.ModeDir | os.ModeSticky | 0o777, "opt/glassbox/recorder": 0o755, "run/glassbox": os.ModeDir | 0o755, "etc/hosts": 0o644,
	} {
		info, err := os.Lstat(filepath.Join(img.Root(), name))
		check(t, err)
		if info.Mode() != want {
			t.Errorf("%s has mode %v, want %v", name, info.Mode(), want)
		}
	}
	info, err := os.Lstat(filepath.Join(img.Root(), "program"))
	check(t, err)
	stat := info.Sys().(*syscall.Stat_t)
	if want := [2]uint32{1000, 1001}; root && [2]uint32{stat.Uid, stat.Gid} != want || !root && stat.Uid != uint32(os.Geteuid()) {
		t.Errorf("owner %d:%d", stat.Uid, stat.Gid)
	}
	if info.ModTime().Unix() != 1700000000 {
		t.Errorf("time %v", info.ModTime())
	}
	_, err = s.Remove(t.Context(), name)
	check(t, err)
	nothingLeft(t, dir, 0)
}

func TestLimits(t *testing.T) {
	t.Parallel()
	many := make([]entry, 200)
	for i := range many {
		many[i] = file(fmt.Sprint("f", i), "x")
	}
	zeros := tarOf(t, file("zeros", strings.Repeat("\x00", 3<<20)))
	for _, tt := range []struct {
		name   string
		layers [][]byte
	}{
		{"one file", [][]byte{zeros}},
		{"holes", [][]byte{sparse(t, "holes", 7<<30)}},
		{"many files", [][]byte{tarOf(t, many...)}},
		{"together", [][]byte{tarOf(t, file("a", strings.Repeat("a", 700<<10))), tarOf(t, file("b", strings.Repeat("b", 700<<10)))}},
		{"behind the last entry", [][]byte{append(tarOf(t, file("a", "x")), make([]byte, 8<<20)...)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := newHub(t)
			s, dir := open(t, &image.Options{Limits: image.Limits{Bytes: 1 << 20, Entries: 100}})
			_, err := s.Pull(t.Context(), h.push(t, "x:1", imageOf(t, v1.Config{}, tt.layers...)), nil)
			if !errors.Is(err, image.ErrHostile) || !strings.Contains(err.Error(), "larger than") && !strings.Contains(err.Error(), "more than") {
				t.Errorf("%v", err)
			}
			nothingLeft(t, dir, 0)
		})
	}
}

// sparse is a tar of one file that has only a hole, as old versions of GNU tar
// write it: a few bytes stand for as many as it likes.
func sparse(t testing.TB, name string, size int64) []byte {
	t.Helper()
	b := tarOf(t, file(name, ""))
	field := func(at int, n int64) { copy(b[at:], fmt.Sprintf("%011o\x00", n)) }
	b[156] = 'S'
	copy(b[257:], "ustar  \x00")
	field(386, size) // one piece, at the end,
	field(398, 0)    // with nothing in it
	field(483, size)
	copy(b[148:], "        ")
	sum := 0
	for _, c := range b[:512] {
		sum += int(c)
	}
	copy(b[148:], fmt.Sprintf("%06o\x00 ", sum))
	return b
}
