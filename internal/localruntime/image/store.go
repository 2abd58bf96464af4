// Package image keeps OCI images for the local runtime: pulled from a registry
// or loaded from a file, unpacked once, and shared by the sandboxes that begin
// from them.
//
//	store, err := image.Open(dir, nil)
//	img, err := store.Pull(ctx, "python:3.12", nil)
//	root := img.Root() // a root filesystem, to be used read-only
//
// An image is known by the digest of its configuration, which in the end vouches
// for every byte of it. Names lead to images. An image is there when its folder
// is, which comes by one rename; a name is there when names.json says so, which
// is replaced whole.
//
// Registries, archives and images are strangers: whatever they send is bounded
// and checked, and nothing of it is started or followed on this machine.
package image

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
)

// Image is an image of the store.
type Image struct {
	ID        string    `json:"id"`                  // digest of its configuration
	Names     []string  `json:"names"`               // that lead to it
	Size      int64     `json:"size"`                // of its files, in bytes
	Files     int       `json:"files"`               // entries of its layers
	CreatedAt time.Time `json:"created_at,omitzero"` // as its maker says
	PulledAt  time.Time `json:"pulled_at"`

	Env     []string `json:"env,omitempty"`
	Workdir string   `json:"workdir,omitempty"`
	User    User     `json:"user"`
	Blobs   []string `json:"blobs,omitempty"` // digests of its layers as they came, where those are kept

	root string
}

// Root is the root filesystem of the image. It must not be written to.
func (i *Image) Root() string { return i.root }

// Limits bound what an image may unpack to.
type Limits struct {
	Bytes   int64 // 0: 64 GiB
	Entries int   // files and folders; 0: 1 000 000
}

// Options say how images are fetched and kept.
type Options struct {
	Limits Limits
	// Points are made in every image.
	Points Points
	// Hostname is what every sandbox is called.
	Hostname string
	// Reserve is how much of the disk is left free, in bytes; 0: 256 MiB.
	Reserve int64
	// Keychain knows the credentials of registries; nil: docker's own file.
	Keychain authn.Keychain
	// Transport reaches registries; nil: one with timeouts.
	Transport http.RoundTripper
	// Stall ends a transfer in which nothing comes for so long; 0: a minute.
	Stall time.Duration
	// InUse tells which sandboxes use an image; nil: none ever does.
	InUse  func(id string) []string
	Logger *slog.Logger     // nil: silent
	Now    func() time.Time // nil: time.Now
}

// Store is a folder of images. One process uses it at a time.
type Store struct {
	dir, work string
	opts      Options
	unpacking chan struct{}
	pulls     sync.WaitGroup

	mu      sync.Mutex
	names   map[string]string // canonical name → id
	flights map[flightKey]*flight
	closed  bool
}

// Open opens the store in a folder, which is made if absent. What an earlier
// process did not finish goes.
func Open(dir string, opts *Options) (*Store, error) {
	s := &Store{dir: dir, work: filepath.Join(dir, "work"), unpacking: make(chan struct{}, 1), names: map[string]string{}, flights: map[flightKey]*flight{}}
	if opts != nil {
		s.opts = *opts
	}
	s.withDefaults()
	if err := os.RemoveAll(s.work); err != nil {
		return nil, fmt.Errorf("open images: %w", err)
	}
	for _, name := range []string{s.work, filepath.Join(dir, "unpacked"), filepath.Join(dir, "blobs")} {
		if err := os.MkdirAll(name, 0o700); err != nil {
			return nil, fmt.Errorf("open images: %w", err)
		}
	}
	text, err := os.ReadFile(s.namesFile())
	if err == nil {
		err = json.Unmarshal(text, &s.names)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("open images: read %s: %w; remove the file to forget the names of images, they can be pulled again", s.namesFile(), err)
	}
	return s, nil
}

func (s *Store) withDefaults() {
	o := &s.opts
	o.Limits.Bytes, o.Limits.Entries = cmp.Or(o.Limits.Bytes, 64<<30), cmp.Or(o.Limits.Entries, 1_000_000)
	o.Reserve, o.Stall, o.Hostname = cmp.Or(o.Reserve, 256<<20), cmp.Or(o.Stall, time.Minute), cmp.Or(o.Hostname, "glassbox")
	if o.Keychain == nil {
		o.Keychain = authn.DefaultKeychain
	}
	if o.Transport == nil {
		o.Transport = newTransport()
	}
	if o.InUse == nil {
		o.InUse = func(string) []string { return nil }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
}

// Close ends what is being pulled, and waits for it.
func (s *Store) Close() {
	s.mu.Lock()
	s.closed = true
	for _, f := range s.flights {
		f.cancel(errors.New("the server is stopping"))
	}
	s.mu.Unlock()
	s.pulls.Wait()
}

func (s *Store) namesFile() string { return filepath.Join(s.dir, "names.json") }

// saveNames replaces the file of names. Its caller holds mu.
func (s *Store) saveNames(names map[string]string) (err error) {
	text, err := json.MarshalIndent(names, "", "  ")
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(s.work, "names-") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), s.namesFile())
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	s.names = names
	return nil
}

// name lets names lead to an image.
func (s *Store) name(id string, names ...string) error {
	if len(names) == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	next := maps.Clone(s.names)
	for _, name := range names {
		next[name] = id
	}
	return s.saveNames(next)
}

// read reads what is known of an image. A folder of which nothing can be read
// is no image.
func (s *Store) read(id string) (*Image, error) {
	text, err := os.ReadFile(filepath.Join(s.folder(id), "image.json"))
	if err != nil {
		return nil, err
	}
	image := &Image{}
	if err := json.Unmarshal(text, image); err != nil {
		return nil, err
	}
	image.root = filepath.Join(s.folder(id), "root")
	s.mu.Lock()
	defer s.mu.Unlock()
	image.Names = []string{}
	for _, name := range slices.Sorted(maps.Keys(s.names)) {
		if s.names[name] == id {
			image.Names = append(image.Names, Familiar(name))
		}
	}
	return image, nil
}

// List returns all images, the newest first.
func (s *Store) List(ctx context.Context) ([]*Image, error) {
	entries, err := os.ReadDir(filepath.Join(s.dir, "unpacked"))
	if err != nil {
		return nil, fmt.Errorf("list images: %w", err)
	}
	list := []*Image{}
	for _, entry := range entries {
		image, err := s.read(algorithm + entry.Name())
		if err != nil {
			s.opts.Logger.WarnContext(ctx, "image cannot be read", "image", entry.Name(), "error", err)
			continue
		}
		list = append(list, image)
	}
	slices.SortFunc(list, func(a, b *Image) int { return b.PulledAt.Compare(a.PulledAt) })
	return list, nil
}
