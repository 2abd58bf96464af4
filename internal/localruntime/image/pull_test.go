package image_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"github.com/glassboxhq/glassbox/internal/localruntime/image"
	"github.com/glassboxhq/glassbox/sandbox"
)

func isBlob(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/blobs/")
}

// fetches counts the blobs that a registry was asked for.
func (h *hub) fetches() *atomic.Int64 {
	n := &atomic.Int64{}
	h.asked = func(r *http.Request) {
		if isBlob(r) {
			n.Add(1)
		}
	}
	return n
}

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

// TestRegistryFaults pulls from registries that are broken, or worse.
func TestRegistryFaults(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		answer func(http.ResponseWriter, *http.Request) bool
		want   string
	}{
		{"hangs before it answers", func(_ http.ResponseWriter, r *http.Request) bool { <-r.Context().Done(); return true }, "nothing came"},
		{"hangs within", func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Content-Length", "1000000")
			_, _ = io.WriteString(w, "begin")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return true
		}, "nothing came"},
		{"is cut off", func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Content-Length", "1000000")
			_, _ = io.WriteString(w, "begin")
			panic(http.ErrAbortHandler)
		}, "EOF"},
		{"sends something else", func(w http.ResponseWriter, _ *http.Request) bool {
			_, _ = io.WriteString(w, strings.Repeat("other", 100))
			return true
		}, "sha256:"},
		{"has lost it", func(w http.ResponseWriter, _ *http.Request) bool {
			http.Error(w, "gone", http.StatusNotFound)
			return true
		}, "404"},
		{"refuses", func(w http.ResponseWriter, _ *http.Request) bool {
			http.Error(w, "no", http.StatusForbidden)
			return true
		}, "docker login"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := newHub(t)
			img := imageOf(t, v1.Config{}, tarOf(t, file("a", strings.Repeat("x", 5000))))
			name := h.push(t, "x:1", img)
			layers, err := img.Layers()
			check(t, err)
			digest, err := layers[0].Digest()
			check(t, err)
			h.before = func(w http.ResponseWriter, r *http.Request) bool {
				return isBlob(r) && strings.HasSuffix(r.URL.Path, digest.String()) && tt.answer(w, r)
			}
			s, dir := open(t, &image.Options{Stall: time.Second})
			_, err = s.Pull(t.Context(), name, nil)
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), name) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			nothingLeft(t, dir, 0)
			h.before = nil
			if _, err := s.Pull(t.Context(), name, nil); err != nil {
				t.Errorf("when the registry works again: %v", err)
			}
		})
	}
}

func TestNoSuchImage(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	s, _ := open(t, nil)
	for word, want := range map[string]string{
		h.name("none:1"):         "no such image",
		"127.0.0.1:1/none":       "refused",
		"Upper Case":             "no name of an image",
		"":                       "no name of an image",
		"registry.invalid/x@sha": "no name of an image",
	} {
		if _, err := s.Pull(t.Context(), word, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", word, err, want)
		}
	}
}

type refuse struct{ t *testing.T }

func (r refuse) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme == "http" {
		r.t.Errorf("asked %s in plain text", req.URL)
	}
	return nil, errors.New("no TLS there")
}

// TestPlainText sees that nothing goes to another machine without TLS, not even
// to a private address, which the library would do.
func TestPlainText(t *testing.T) {
	t.Parallel()
	s, _ := open(t, &image.Options{Transport: refuse{t}})
	for _, name := range []string{"10.0.0.1:5000/x", "192.168.1.1/x", "registry.local/x"} {
		if _, err := s.Pull(t.Context(), name, nil); err == nil {
			t.Errorf("%s was pulled", name)
		}
	}
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
	h.before = func(_ http.ResponseWriter, r *http.Request) bool {
		if isBlob(r) {
			once.Do(func() { close(inside) })
			<-goOn
		}
		return false
	}
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
	h.before = func(_ http.ResponseWriter, r *http.Request) bool {
		if isBlob(r) {
			inside <- struct{}{}
			<-r.Context().Done() // until the client goes
			return true
		}
		return false
	}
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

func TestUsers(t *testing.T) {
	t.Parallel()
	base := tarOf(t, file("etc/passwd", "root:x:0:0:r:/root:/bin/sh\nbroken\nwork:x:7:8:w:/home/work:\n"), file("etc/group", "staff:x:50:\n"))
	for text, want := range map[string]string{
		"": "root 0 0", "work": "work 7 8", "7": "work 7 8", "work:staff": "work 7 50", "work:9": "work 7 9", "1234": " 1234 0", "1234:5": " 1234 5",
		"nobody": "!nobody", "work:none": "!none", "-1": "!-1", "4294967296": "!4294967296",
	} {
		h := newHub(t)
		s, _ := open(t, nil)
		img, err := s.Pull(t.Context(), h.push(t, "x:1", imageOf(t, v1.Config{User: text}, base)), nil)
		if missing, ok := strings.CutPrefix(want, "!"); ok {
			if err == nil || !strings.Contains(err.Error(), missing) {
				t.Errorf("%s: %v", text, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if got := fmt.Sprint(img.User.Name, " ", img.User.UID, " ", img.User.GID); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

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

// TestSignedURLs sees that the signature of an address to which a registry
// leads is not told.
func TestSignedURLs(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	name := h.push(t, "x:1", imageOf(t, v1.Config{}, tarOf(t, file("a", "x"))))
	h.before = func(w http.ResponseWriter, r *http.Request) bool {
		if isBlob(r) {
			http.Redirect(w, r, "http://127.0.0.1:1/blob?signature=hunter2", http.StatusTemporaryRedirect)
			return true
		}
		return false
	}
	s, _ := open(t, nil)
	if _, err := s.Pull(t.Context(), name, nil); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("%v", err)
	}
}

// TestCredentials sends those of docker's file to the registry that they are
// for, and tells nobody.
func TestCredentials(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	name := h.push(t, "x:1", imageOf(t, v1.Config{}, tarOf(t, file("a", "x"))))
	h.before = func(w http.ResponseWriter, r *http.Request) bool {
		if user, password, ok := r.BasicAuth(); ok && user == "ann" && password == "hunter2" {
			return false
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="hub"`)
		http.Error(w, "who are you?", http.StatusUnauthorized)
		return true
	}
	anonymous, _ := open(t, nil)
	if _, err := anonymous.Pull(t.Context(), name, nil); err == nil || !strings.Contains(err.Error(), "docker login") {
		t.Errorf("%v", err)
	}
	s, _ := open(t, &image.Options{Keychain: keychain{"ann", "hunter2"}})
	if _, err := s.Pull(t.Context(), name, nil); err != nil {
		t.Error(err)
	}
	theirs, _ := open(t, nil)
	if _, err := theirs.As(&sandbox.RegistryAuth{Username: "ann", Password: "hunter2"}).Pull(t.Context(), name, nil); err != nil {
		t.Error(err)
	}
	wrong, _ := open(t, &image.Options{Keychain: keychain{"ann", "tiger3"}})
	if _, err := wrong.Pull(t.Context(), name, nil); err == nil || strings.Contains(err.Error(), "tiger3") {
		t.Errorf("%v", err)
	}
}

type keychain struct{ user, password string }

func (k keychain) Resolve(authn.Resource) (authn.Authenticator, error) {
	return &authn.Basic{Username: k.user, Password: k.password}, nil
}
