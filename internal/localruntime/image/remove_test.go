package image_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/glassboxhq/glassbox/internal/localruntime/image"
	"github.com/glassboxhq/glassbox/sandbox"
)

func TestRemove(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	base := tarOf(t, file("base", "base"))
	one := imageOf(t, v1.Config{}, base, tarOf(t, file("one", "1")))
	name, alias := h.push(t, "one:1", one), h.push(t, "one:latest", one)
	two := h.push(t, "two:1", imageOf(t, v1.Config{}, base))
	used := map[string][]string{}
	s, dir := open(t, &image.Options{InUse: func(id string) []string { return used[id] }})
	for _, n := range []string{name, alias, two} {
		_, err := s.Pull(t.Context(), n, nil)
		check(t, err)
	}
	gone, err := s.Remove(t.Context(), name)
	check(t, err)
	if len(gone.Images) != 0 || len(gone.Names) != 1 || gone.Names[0] != name {
		t.Errorf("%+v", gone)
	}
	img, err := s.Find(t.Context(), alias)
	check(t, err)
	used[img.ID] = []string{"box"}
	if _, err := s.Remove(t.Context(), alias); sandbox.CodeOf(err) != sandbox.CodeSandboxState || !strings.Contains(err.Error(), "box") {
		t.Errorf("%v", err)
	}
	// Of what is not used nothing stays; what is used stays whole.
	gone, err = s.Prune(t.Context())
	check(t, err)
	if len(gone.Images) != 1 || gone.Names[0] != two || gone.Bytes == 0 {
		t.Errorf("%+v", gone)
	}
	blobs, err := os.ReadDir(filepath.Join(dir, "blobs"))
	if err != nil || len(blobs) != 2 {
		t.Errorf("%v %v", blobs, err)
	}
	delete(used, img.ID)
	_, err = s.Remove(t.Context(), img.ID[7:20])
	check(t, err)
	blobs, err = os.ReadDir(filepath.Join(dir, "blobs"))
	if err != nil || len(blobs) != 0 {
		t.Errorf("%v %v", blobs, err)
	}
	nothingLeft(t, dir, 0)
	if _, err := s.Remove(t.Context(), alias); !errors.Is(err, image.ErrAbsent) {
		t.Errorf("%v", err)
	}
}
