package image_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"github.com/glassboxhq/glassbox/internal/localruntime/image"
)

func TestPull(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	base := tarOf(t, file("base", "base"), file("etc/passwd", "root:x:0:0:r:/root:/bin/sh\nwork:x:7:8:w:/home/work:/bin/zsh\n"), file("etc/group", "extra:x:9:work,other\n"))
	one := h.push(t, "team/one:1", imageOf(t, v1.Config{User: "work", WorkingDir: "/srv", Env: []string{"A=b"}}, base, tarOf(t, file("one", "1"))))
	two := h.push(t, "two:latest", imageOf(t, v1.Config{}, base, tarOf(t, file("two", "2"))))
	n := h.fetches()
	s, dir := open(t, nil)
	img, err := s.Pull(t.Context(), one, nil)
	check(t, err)
	user := fmt.Sprintf("%+v", img.User)
	if user != "{Name:work UID:7 GID:8 Groups:[9] Home:/home/work Shell:/bin/zsh}" || img.Workdir != "/srv" || len(img.Env) != 1 || img.Size == 0 {
		t.Errorf("%+v", img)
	}
	if n.Load() != 3 {
		t.Errorf("fetched %d blobs, want a configuration and two layers", n.Load())
	}
	_, err = s.Pull(t.Context(), strings.TrimSuffix(two, ":latest"), nil)
	check(t, err)
	if n.Load() != 5 {
		t.Errorf("fetched %d blobs after the second image, want 5: they share a layer", n.Load())
	}
	_, err = s.Pull(t.Context(), one, nil)
	check(t, err)
	if n.Load() > 6 {
		t.Errorf("an image that is there was fetched again")
	}
	for _, word := range []string{one, img.ID, img.ID[7:19]} {
		if found, err := s.Find(t.Context(), word); err != nil || found.ID != img.ID || found.Names[0] != one {
			t.Errorf("find %s: %v %v", word, found, err)
		}
	}
	// Another process finds the same.
	s.Close()
	list, err := reopen(t, dir, nil).List(t.Context())
	if err != nil || len(list) != 2 {
		t.Errorf("%v %v", list, err)
	}
}

func TestPullByDigest(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	img := imageOf(t, v1.Config{}, tarOf(t, file("a", "x")))
	name := h.push(t, "x:1", img)
	digest, err := img.Digest()
	check(t, err)
	s, _ := open(t, nil)
	by := strings.TrimSuffix(name, ":1") + "@" + digest.String()
	_, err = s.Pull(t.Context(), by, nil)
	check(t, err)
	if _, err := s.Find(t.Context(), by); err != nil {
		t.Error(err)
	}
	_, err = s.Pull(t.Context(), strings.TrimSuffix(name, ":1")+"@sha256:"+strings.Repeat("0", 64), nil)
	if err == nil || !strings.Contains(err.Error(), "no such image") {
		t.Errorf("%v", err)
	}
}

func TestPlatforms(t *testing.T) {
	t.Parallel()
	other := map[string]string{"amd64": "arm64", "arm64": "amd64"}[runtime.GOARCH]
	ours, theirs := imageOf(t, v1.Config{}, tarOf(t, file("ours", "x"))), platform(t, v1.Config{}, other, layerOf(t, tarOf(t, file("theirs", "x"))))
	index := func(adds ...mutate.IndexAddendum) v1.ImageIndex { return mutate.AppendManifests(empty.Index, adds...) }
	at := func(img v1.Image, arch string) mutate.IndexAddendum {
		return mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}}}
	}
	h := newHub(t)
	s, dir := open(t, nil)
	img, err := s.Pull(t.Context(), h.pushIndex(t, "both:1", index(at(theirs, other), at(ours, runtime.GOARCH))), nil)
	check(t, err)
	if got := treeOf(t, img.Root()); got["ours"] != "x" {
		t.Errorf("%v", got)
	}
	_, err = s.Pull(t.Context(), h.pushIndex(t, "other:1", index(at(theirs, other))), nil)
	if err == nil || !strings.Contains(err.Error(), "linux/"+runtime.GOARCH) || !strings.Contains(err.Error(), "linux/"+other) {
		t.Errorf("index for others: %v", err)
	}
	_, err = s.Pull(t.Context(), h.push(t, "other:2", theirs), nil)
	if err == nil || !strings.Contains(err.Error(), "it is for linux/"+other) {
		t.Errorf("image for others: %v", err)
	}
	nothingLeft(t, dir, 1)
}

// TestPullOnce pulls an image from many sides; one of them gives up, which
// disturbs nobody.
func TestPullOnce(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	name := h.push(t, "x:1", imageOf(t, v1.Config{}, tarOf(t, file("a", "x"))))
	n := h.fetches()
	inside, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	h.answer(func(_ http.ResponseWriter, r *http.Request) bool {
		if isBlob(r) {
			once.Do(func() { close(inside) })
			<-goOn
		}
		return false
	})
	s, _ := open(t, nil)
	impatient, giveUp := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() {
		if _, err := s.Pull(impatient, name, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("who gave up: %v", err)
		}
	})
	<-inside
	seen := make(chan image.Status, 1000)
	for range 8 {
		all.Go(func() {
			if _, err := s.Pull(t.Context(), name, func(st image.Status) { seen <- st }); err != nil {
				t.Error(err)
			}
		})
	}
	if st := <-seen; st.Phase == "" {
		t.Errorf("%+v", st)
	}
	giveUp()
	<-seen
	close(goOn)
	all.Wait()
	if n.Load() != 2 {
		t.Errorf("fetched %d blobs, want 2", n.Load())
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	name := h.push(t, "x:1", imageOf(t, v1.Config{}, tarOf(t, file("a", "x"))))
	inside := make(chan struct{}, 10)
	h.answer(func(_ http.ResponseWriter, r *http.Request) bool {
		if isBlob(r) {
			inside <- struct{}{}
			<-r.Context().Done() // until the client goes
			return true
		}
		return false
	})
	s, dir := open(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { _, err := s.Pull(ctx, name, nil); ended <- err }()
	<-inside
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	// By its removal.
	go func() { _, err := s.Pull(t.Context(), name, nil); ended <- err }()
	<-inside
	_, err := s.Remove(t.Context(), name)
	check(t, err)
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "removed") {
		t.Errorf("%v", err)
	}
	// By the end of the server.
	go func() { _, err := s.Pull(t.Context(), name, nil); ended <- err }()
	<-inside
	s.Close()
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "stopping") {
		t.Errorf("%v", err)
	}
	nothingLeft(t, dir, 0)
}

// TestAfterCrash opens what a process left that was killed while it unpacked.
func TestAfterCrash(t *testing.T) {
	t.Parallel()
	_, dir := open(t, nil)
	half := filepath.Join(dir, "work", "image-1", "root", "etc")
	check(t, os.MkdirAll(half, 0o700))
	check(t, os.WriteFile(filepath.Join(dir, "work", "blob-1"), []byte("half"), 0o600))
	check(t, os.MkdirAll(filepath.Join(dir, "unpacked", "0000", "root"), 0o700)) // by hand: nothing tells what it is
	s := reopen(t, dir, nil)
	list, err := s.List(t.Context())
	if err != nil || len(list) != 0 {
		t.Errorf("%v %v", list, err)
	}
	nothingLeft(t, dir, 1)
	// An image of which the description was lost comes again.
	h := newHub(t)
	name := h.push(t, "x:1", imageOf(t, v1.Config{}, tarOf(t, file("a", "x"))))
	img, err := s.Pull(t.Context(), name, nil)
	check(t, err)
	check(t, os.Remove(filepath.Join(img.Root(), "..", "image.json")))
	if _, err := s.Find(t.Context(), name); !errors.Is(err, image.ErrAbsent) {
		t.Errorf("%v", err)
	}
	if _, err := s.Pull(t.Context(), name, nil); err != nil {
		t.Error(err)
	}
	nothingLeft(t, dir, 2)
}

func TestDiskIsFull(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	s, dir := open(t, &image.Options{Reserve: 1 << 60})
	_, err := s.Pull(t.Context(), h.push(t, "x:1", imageOf(t, v1.Config{}, tarOf(t, file("a", "x")))), nil)
	if err == nil || !strings.Contains(err.Error(), "glassbox image prune") {
		t.Errorf("%v", err)
	}
	nothingLeft(t, dir, 0)
}
