package image_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/glassboxhq/glassbox/internal/localruntime/image"
	"github.com/glassboxhq/glassbox/sandbox"
)

func isBlob(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/blobs/")
}

// fetches counts the blobs that a registry was asked for.
func (h *hub) fetches() *atomic.Int64 {
	n := &atomic.Int64{}
	asked := func(r *http.Request) {
		if isBlob(r) {
			n.Add(1)
		}
	}
	h.asked.Store(&asked)
	return n
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
			h.answer(func(w http.ResponseWriter, r *http.Request) bool {
				return isBlob(r) && strings.HasSuffix(r.URL.Path, digest.String()) && tt.answer(w, r)
			})
			s, dir := open(t, &image.Options{Stall: time.Second})
			_, err = s.Pull(t.Context(), name, nil)
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), name) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			nothingLeft(t, dir, 0)
			h.answer(nil)
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

// TestSignedURLs sees that the signature of an address to which a registry
// leads is not told.
func TestSignedURLs(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	name := h.push(t, "x:1", imageOf(t, v1.Config{}, tarOf(t, file("a", "x"))))
	h.answer(func(w http.ResponseWriter, r *http.Request) bool {
		if isBlob(r) {
			http.Redirect(w, r, "http://127.0.0.1:1/blob?signature=hunter2", http.StatusTemporaryRedirect)
			return true
		}
		return false
	})
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
	h.answer(func(w http.ResponseWriter, r *http.Request) bool {
		if user, password, ok := r.BasicAuth(); ok && user == "ann" && password == "hunter2" {
			return false
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="hub"`)
		http.Error(w, "who are you?", http.StatusUnauthorized)
		return true
	})
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
