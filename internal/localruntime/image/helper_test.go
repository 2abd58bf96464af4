package image_test

import (
	"archive/tar"
	"bytes"
	"io"
	"io/fs"
	"log" //nolint:depguard // the registry wants one, to be silent
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/glassboxhq/glassbox/internal/localruntime/image"
)

// entry is one of a layer. Its kind is told by the name's end and the link.
type entry = tar.Header

func file(name, content string) entry {
	return entry{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(content)), PAXRecords: map[string]string{"GLASSBOX.content": content}}
}

func dir(name string) entry { return entry{Name: name, Typeflag: tar.TypeDir, Mode: 0o755} }
func link(name, to string) entry {
	return entry{Name: name, Typeflag: tar.TypeSymlink, Linkname: to, Mode: 0o777}
}
func hard(name, to string) entry { return entry{Name: name, Typeflag: tar.TypeLink, Linkname: to} }

// tarOf writes entries as they are, good or bad.
func tarOf(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		content := e.PAXRecords["GLASSBOX.content"]
		e.PAXRecords = nil
		if e.ModTime.IsZero() {
			e.ModTime = time.Unix(1700000000, 0)
		}
		check(t, w.WriteHeader(&e))
		_, err := io.WriteString(w, content)
		check(t, err)
	}
	check(t, w.Close())
	return b.Bytes()
}

func layerOf(t testing.TB, content []byte) v1.Layer {
	t.Helper()
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil })
	check(t, err)
	return l
}

// imageOf makes an image for this machine.
func imageOf(t testing.TB, config v1.Config, layers ...[]byte) v1.Image {
	t.Helper()
	var all []v1.Layer
	for _, content := range layers {
		all = append(all, layerOf(t, content))
	}
	return platform(t, config, runtime.GOARCH, all...)
}

func platform(t testing.TB, config v1.Config, arch string, layers ...v1.Layer) v1.Image {
	t.Helper()
	img, err := mutate.AppendLayers(empty.Image, layers...)
	check(t, err)
	file, err := img.ConfigFile()
	check(t, err)
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Config = "linux", arch, config
	img, err = mutate.ConfigFile(img, file)
	check(t, err)
	return img
}

// hub is a registry on the loopback.
type hub struct {
	*httptest.Server
	before atomic.Pointer[answerer]
	asked  atomic.Pointer[func(*http.Request)]
}

// answerer may answer a request in the registry's place.
type answerer func(http.ResponseWriter, *http.Request) bool

// answer sets who may answer; nil: the registry alone. Requests of a pull that
// has failed may still be on their way.
func (h *hub) answer(before answerer) { h.before.Store(&before) }

func newHub(t testing.TB) *hub {
	t.Helper()
	h := &hub{}
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked := h.asked.Load(); asked != nil {
			(*asked)(r)
		}
		if before := h.before.Load(); before != nil && *before != nil && (*before)(w, r) {
			return
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(h.Close)
	return h
}

func (h *hub) name(repository string) string {
	return strings.TrimPrefix(h.URL, "http://") + "/" + repository
}

func (h *hub) push(t testing.TB, repository string, img v1.Image) string {
	t.Helper()
	ref, err := name.ParseReference(h.name(repository))
	check(t, err)
	check(t, remote.Write(ref, img))
	return h.name(repository)
}

func (h *hub) pushIndex(t testing.TB, repository string, index v1.ImageIndex) string {
	t.Helper()
	ref, err := name.ParseReference(h.name(repository))
	check(t, err)
	check(t, remote.WriteIndex(ref, index))
	return h.name(repository)
}

func open(t testing.TB, opts *image.Options) (*image.Store, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "images")
	return reopen(t, dir, opts), dir
}

func reopen(t testing.TB, dir string, opts *image.Options) *image.Store {
	t.Helper()
	if opts == nil {
		opts = &image.Options{}
	}
	opts.Points = image.Points{Dirs: []string{"/run/glassbox", "/.agent-history"}, Files: []string{"/opt/glassbox/recorder"}}
	s, err := image.Open(dir, opts)
	check(t, err)
	t.Cleanup(s.Close)
	return s
}

// nothingLeft fails if anything but whole images lies in a store.
func nothingLeft(t testing.TB, dir string, images int) {
	t.Helper()
	for name, want := range map[string]int{"work": 0, "unpacked": images} {
		entries, err := os.ReadDir(filepath.Join(dir, name))
		if err != nil || len(entries) != want {
			t.Errorf("%s holds %v (%v), want %d", name, entries, err, want)
		}
	}
}

// treeOf lists what a root holds: files with their content, links with their
// targets. What every image is furnished with is left out.
func treeOf(t testing.TB, root string) map[string]string {
	t.Helper()
	tree := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name := strings.TrimPrefix(path, root+"/")
		switch {
		case err != nil || path == root:
			return err
		case ours[name] && d.IsDir():
			return fs.SkipDir
		case ours[name]:
			return nil
		case d.Type() == fs.ModeSymlink:
			target, err := os.Readlink(path)
			tree[name] = "-> " + target
			return err
		case d.IsDir():
			tree[name] = "/"
			return nil
		}
		content, err := os.ReadFile(path)
		tree[name] = string(content)
		return err
	})
	check(t, err)
	return tree
}

var ours = map[string]bool{"dev": true, "proc": true, "sys": true, "etc": true, "run": true, "opt": true, "tmp": true, ".agent-history": true}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
