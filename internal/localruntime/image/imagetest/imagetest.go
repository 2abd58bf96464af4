// Package imagetest makes images of this machine's own programs, and serves them
// as a registry does, so that tests need no other machine.
//
//	at := imagetest.Registry(t, nil)
//	files := imagetest.Programs(t, map[string]string{}, "sh", "cat")
//	name := imagetest.Push(t, at+"/tools:1", v1.Config{}, imagetest.Layer(t, files))
package imagetest

import (
	"archive/tar"
	"bytes"
	"io"
	"log" //nolint:depguard // the registry wants one, to be silent
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Registry serves images on the loopback until the test ends, and returns its
// host and port. It tells before of every request; nil: nobody.
func Registry(t testing.TB, before func(*http.Request)) string {
	t.Helper()
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if before != nil {
			before(r)
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// Layer is a tar of files by name; one that ends in a slash is a folder.
func Layer(t testing.TB, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for name, content := range files {
		h := &tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(content)), ModTime: time.Unix(1700000000, 0)}
		if strings.HasSuffix(name, "/") {
			h.Typeflag, h.Size = tar.TypeDir, 0
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if h.Size > 0 {
			if _, err := io.WriteString(w, content); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Programs adds programs of this machine to files, in /bin, with the libraries
// that they need.
func Programs(t testing.TB, files map[string]string, words ...string) map[string]string {
	t.Helper()
	take := func(name, from string) {
		content, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimPrefix(name, "/")] = string(content)
	}
	for _, word := range words {
		found, err := exec.LookPath(word)
		if err != nil {
			t.Fatal(err)
		}
		take("/bin/"+word, found)
		out, err := exec.CommandContext(t.Context(), "ldd", found).Output()
		if err != nil {
			t.Fatalf("ldd %s: %v", found, err)
		}
		for field := range strings.FieldsSeq(string(out)) {
			if filepath.IsAbs(field) {
				take(field, field)
			}
		}
	}
	return files
}

// Push makes an image for this machine of layers, and pushes it to a name, which
// it returns.
func Push(t testing.TB, to string, config v1.Config, layers ...[]byte) string {
	t.Helper()
	img := empty.Image
	for _, content := range layers {
		l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil })
		if err == nil {
			img, err = mutate.AppendLayers(img, l)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	file, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Config = "linux", runtime.GOARCH, config
	ref, err := name.ParseReference(to)
	if err == nil {
		img, err = mutate.ConfigFile(img, file)
	}
	if err == nil {
		err = remote.Write(ref, img)
	}
	if err != nil {
		t.Fatal(err)
	}
	return to
}
