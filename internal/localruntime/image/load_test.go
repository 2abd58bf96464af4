package image_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/glassboxhq/glassbox/internal/localruntime/image"
)

// saved is what docker save writes.
func saved(t testing.TB, tag string, img v1.Image) []byte {
	t.Helper()
	ref, err := name.NewTag(tag)
	check(t, err)
	var b bytes.Buffer
	check(t, tarball.Write(ref, img, &b))
	return b.Bytes()
}

func layoutTar(t testing.TB, annotations map[string]string, indexes ...v1.ImageIndex) (archive []byte, dir string) {
	t.Helper()
	dir = t.TempDir()
	path, err := layout.Write(dir, empty.Index)
	check(t, err)
	for _, index := range indexes {
		check(t, path.AppendIndex(index, layout.WithAnnotations(annotations)))
	}
	return tarDir(t, dir), dir
}

func tarDir(t testing.TB, dir string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	check(t, w.AddFS(os.DirFS(dir)))
	check(t, w.Close())
	return b.Bytes()
}

func TestLoad(t *testing.T) {
	t.Parallel()
	img := imageOf(t, v1.Config{User: "1000"}, tarOf(t, file("a", "lower")), tarOf(t, file("a", "upper")))
	index := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: runtime.GOARCH}}})
	docker := saved(t, "work/app:3", img)
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, err := z.Write(docker)
	check(t, errors.Join(err, z.Close()))
	named, _ := layoutTar(t, map[string]string{"io.containerd.image.name": "docker.io/work/app:3", "org.opencontainers.image.ref.name": "3"}, index)
	tagged, _ := layoutTar(t, map[string]string{"org.opencontainers.image.ref.name": "3"}, index)
	for _, tt := range []struct {
		name    string
		archive []byte
		as      string
		want    string
	}{
		{"docker save", docker, "", "work/app:3"},
		{"packed", packed.Bytes(), "", "work/app:3"},
		{"OCI", named, "", "work/app:3"},
		{"OCI with a tag only", tagged, "", ""},
		{"by another name", tagged, "mine", "mine:latest"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s, dir := open(t, nil)
			list, err := s.Load(t.Context(), bytes.NewReader(tt.archive), tt.as)
			check(t, err)
			if len(list) != 1 || strings.Join(list[0].Names, " ") != tt.want || list[0].User.UID != 1000 {
				t.Errorf("%+v", list)
			}
			if got := treeOf(t, list[0].Root()); got["a"] != "upper" {
				t.Errorf("%v", got)
			}
			nothingLeft(t, dir, 1)
		})
	}
}

func TestLoadHostile(t *testing.T) {
	t.Parallel()
	img := imageOf(t, v1.Config{}, tarOf(t, file("a", "x")))
	digest, err := img.Digest()
	check(t, err)
	changed := func(do func(dir string)) []byte {
		_, dir := layoutTar(t, nil, mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: img}))
		do(dir)
		return tarDir(t, dir)
	}
	for _, tt := range []struct {
		name    string
		archive []byte
		want    string
	}{
		{"nothing", nil, "no archive of images"},
		{"something else", tarOf(t, file("a", "x")), "no archive of images"},
		{"no tar", []byte(strings.Repeat("no tar at all", 100)), "read layer"},
		{"cut off", saved(t, "x:1", img)[:700], ""},
		{"climbs", tarOf(t, file("../x", "x")), "climbs"},
		{"an absolute link for a file", tarOf(t, link("manifest.json", "/etc/passwd")), "escapes"},
		{"a layer that leads out", tarOf(t, file("config.json", `{"os":"linux","rootfs":{"type":"layers","diff_ids":["sha256:`+strings.Repeat("0", 64)+`"]}}`),
			file("manifest.json", `[{"Config":"config.json","Layers":["../../etc/passwd"]}]`)), "escapes"},
		{"a manifest that was changed", changed(func(dir string) {
			check(t, os.WriteFile(filepath.Join(dir, "blobs/sha256", digest.Hex), []byte("{}"), 0o600))
		}), "not what comes under that digest"},
		{"a layer that was changed", changed(func(dir string) {
			layers, err := img.Layers()
			check(t, err)
			d, err := layers[0].Digest()
			check(t, err)
			check(t, os.WriteFile(filepath.Join(dir, "blobs/sha256", d.Hex), tarOf(t, file("a", "other")), 0o600))
		}), "not what its digest says"},
		{"a digest that is a path", tarOf(t, file("index.json", `{"manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha256:../../../etc/passwd","size":1}]}`)), ""},
		{"no image in it", tarOf(t, file("index.json", `{"manifests":[]}`)), "no image for this machine"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s, dir := open(t, nil)
			_, err := s.Load(t.Context(), bytes.NewReader(tt.archive), "")
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			nothingLeft(t, dir, 0)
		})
	}
}

// FuzzLayer applies any bytes as a layer, over one that holds a link out.
func FuzzLayer(f *testing.F) {
	outside := f.TempDir()
	check(f, os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o600))
	lower := tarOf(f, link("out", outside), link("up", "dir"), file("dir/file", "x"), hard("hard", "dir/file"))
	for _, seed := range [][]entry{
		{file("out/new", "x")},
		{file("dir/.wh.file", "")},
		{file("dir/.wh..wh..opq", "")},
		{hard("a", "out/secret")},
		{dir("dir"), link("dir/l", "../.."), file("dir/l/x", "x")},
		{link("a", "b"), hard("c", "a"), file("c/d", "x")},
	} {
		f.Add(tarOf(f, seed...))
	}
	f.Fuzz(func(t *testing.T, upper []byte) {
		root := t.TempDir()
		_ = image.Apply(t.Context(), root, lower, upper)
		check(t, os.RemoveAll(root))
		if got := treeOf(t, outside); len(got) != 1 || got["secret"] != "secret" {
			t.Fatalf("outside there is now %v", got)
		}
	})
}
