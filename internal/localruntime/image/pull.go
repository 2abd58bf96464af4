package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/glassboxhq/glassbox/sandbox"
)

// Puller pulls images with somebody's credentials.
type Puller struct {
	store *Store
	auth  *sandbox.RegistryAuth
}

// As returns who pulls with these credentials; nil: with those of this machine.
// What was pulled so is there for everybody.
func (s *Store) As(auth *sandbox.RegistryAuth) Puller { return Puller{s, auth} }

// Pull is that of a Puller with the credentials of this machine.
func (s *Store) Pull(ctx context.Context, word string, see func(Status)) (*Image, error) {
	return s.As(nil).Pull(ctx, word, see)
}

// Pull fetches an image by its name, whether the store has one of that name or
// not, and tells how far it is, if see is not nil. Who pulls the same image at
// the same time shares the work. When ctx ends and nobody else waits for it, so does the pull;
// the layers that came whole are kept for the next one.
func (p Puller) Pull(ctx context.Context, word string, see func(Status)) (*Image, error) {
	key, f, err := p.board(ctx, word)
	if err != nil {
		return nil, err
	}
	defer p.store.leave(key, f)
	image, err := f.follow(ctx, see)
	if err != nil {
		return nil, fmt.Errorf("pull %s: %w", Familiar(key.name), explain(err))
	}
	return image, nil
}

// Begin pulls an image for nobody in particular, and returns at once. Nobody
// ends that but [Store.Remove] and [Store.Close].
func (p Puller) Begin(ctx context.Context, word string) error {
	_, _, err := p.board(ctx, word)
	return err
}

func (p Puller) board(ctx context.Context, word string) (flightKey, *flight, error) {
	ref, err := parse(word)
	if err != nil {
		return flightKey{}, nil, err
	}
	key := flightKey{name: ref.Name()}
	keychain := p.store.opts.Keychain
	if p.auth != nil {
		key.auth = *p.auth
		keychain = &only{ref.Context().RegistryStr(), p.auth}
	}
	f, err := p.store.board(ctx, key, func(ctx context.Context, progress *Progress) (*Image, error) {
		return p.store.pull(ctx, ref, keychain, progress)
	})
	return key, f, err
}

// only knows the credentials of one registry.
type only struct {
	registry string
	auth     *sandbox.RegistryAuth
}

func (o *only) Resolve(resource authn.Resource) (authn.Authenticator, error) {
	if resource.RegistryStr() != o.registry {
		return authn.Anonymous, nil
	}
	return &authn.Basic{Username: o.auth.Username, Password: o.auth.Password}, nil
}

// explain makes what a registry answers shorter, and keeps what is secret in
// it out: an URL to a blob may hold a signature.
func explain(err error) error {
	e, ok := errors.AsType[*transport.Error](err)
	if !ok {
		return &unsigned{err}
	}
	var texts []string
	for _, d := range e.Errors {
		texts = append(texts, short(strings.ToLower(string(d.Code))+": "+d.Message))
	}
	why := strings.TrimSuffix(fmt.Sprintf("the registry answers %d %s (%s", e.StatusCode, http.StatusText(e.StatusCode), strings.Join(texts, "; ")), " (")
	if len(texts) > 0 {
		why += ")"
	}
	switch e.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		why += "; there is no such image, or it needs credentials, which docker login leaves where they are found"
	case http.StatusNotFound:
		why += "; it has no such image"
	}
	return errors.New(why)
}

// unsigned is an error without what stands behind the question marks of URLs.
type unsigned struct{ err error }

var query = regexp.MustCompile(`\?[^"\s]+`)

func (u *unsigned) Error() string { return query.ReplaceAllString(u.err.Error(), "?…") }
func (u *unsigned) Unwrap() error { return u.err }

func (s *Store) pull(ctx context.Context, ref name.Reference, keychain authn.Keychain, p *Progress) (*Image, error) {
	s.opts.Logger.InfoContext(ctx, "image is pulled", "image", Familiar(ref.Name()))
	p.phase("asking " + ref.Context().RegistryStr())
	registry, err := remote.NewPuller(s.remote(ctx, keychain)...)
	if err != nil {
		return nil, err
	}
	got, err := registry.Get(ctx, ref)
	if err != nil {
		return nil, err
	}
	remoteImage, err := choose(got.MediaType, got.Image, got.ImageIndex)
	if err != nil {
		return nil, err
	}
	manifest, config, err := describe(remoteImage)
	if err != nil {
		return nil, err
	}
	if _, err := readConfig(config, len(manifest.Layers)); err != nil {
		return nil, err // before the layers are fetched
	}
	id := idOf(config)
	image, err := s.read(id)
	if err != nil {
		if err := s.fetch(ctx, &source{registry, ref.Context()}, manifest.Layers, p); err != nil {
			return nil, err
		}
		if image, err = s.install(ctx, s.kept(config, manifest.Layers), p); err != nil {
			return nil, err
		}
	}
	if err := s.name(id, ref.Name()); err != nil {
		return nil, err
	}
	return s.read(image.ID)
}

// kept is an image whose layers are in the store.
func (s *Store) kept(config []byte, layers []v1.Descriptor) *content {
	c := &content{config: config}
	for _, layer := range layers {
		c.blobs = append(c.blobs, layer.Digest.String())
		c.layers = append(c.layers, func() (io.ReadCloser, error) { return os.Open(s.blobFile(layer.Digest)) })
	}
	return c
}

func (s *Store) remote(ctx context.Context, keychain authn.Keychain) []remote.Option {
	return []remote.Option{
		remote.WithContext(ctx), remote.WithAuthFromKeychain(keychain), remote.WithUserAgent("glassbox"),
		remote.WithTransport(&loopbackOrTLS{s.opts.Transport}),
		remote.WithRetryBackoff(remote.Backoff{Duration: 200 * time.Millisecond, Factor: 4, Jitter: 0.1, Steps: 2}),
	}
}

// describe reads what an image consists of, and checks it.
func describe(image v1.Image) (*v1.Manifest, []byte, error) {
	manifest, err := image.Manifest()
	if err != nil {
		return nil, nil, err
	}
	if manifest.Config.Size > maxConfig {
		return nil, nil, fmt.Errorf("%w: its configuration is larger than %d bytes", ErrHostile, maxConfig)
	}
	for _, blob := range append(slices.Clone(manifest.Layers), manifest.Config) {
		switch err := isDigest(blob.Digest); {
		case err != nil:
			return nil, nil, err
		case blob.Size < 0:
			return nil, nil, fmt.Errorf("%w: it has a size below zero", ErrHostile)
		}
	}
	for _, layer := range manifest.Layers {
		if len(layer.URLs) > 0 || !layer.MediaType.IsLayer() || !layer.MediaType.IsDistributable() {
			return nil, nil, fmt.Errorf("it has a layer of the kind %q, which is not fetched", short(string(layer.MediaType)))
		}
	}
	config, err := image.RawConfigFile()
	if err == nil {
		err = matches(config, manifest.Config.Digest)
	}
	return manifest, config, err
}

// choose returns the image for this machine.
func choose(kind types.MediaType, image func() (v1.Image, error), index func() (v1.ImageIndex, error)) (v1.Image, error) {
	if !kind.IsIndex() {
		return image()
	}
	list, err := index()
	if err != nil {
		return nil, err
	}
	return forThisMachine(list, maxIndexes)
}

// maxIndexes is how deep indexes may lie in indexes.
const maxIndexes = 3

func forThisMachine(list v1.ImageIndex, depth int) (v1.Image, error) {
	manifest, err := list.IndexManifest()
	if err != nil {
		return nil, err
	}
	var others []string
	for _, d := range manifest.Manifests {
		switch {
		case d.Platform == nil && d.MediaType.IsIndex() && depth > 0:
			inner, err := list.ImageIndex(d.Digest)
			if err != nil {
				return nil, err
			}
			return forThisMachine(inner, depth-1)
		case d.Platform == nil && d.MediaType.IsImage() && len(manifest.Manifests) == 1:
			return list.Image(d.Digest) // its configuration tells
		case d.Platform == nil || d.Platform.OS == "unknown" || !d.MediaType.IsImage():
			continue // an attestation, a signature
		case d.Platform.OS == "linux" && d.Platform.Architecture == runtime.GOARCH:
			return list.Image(d.Digest)
		}
		others = append(others, short(d.Platform.String()))
	}
	return nil, fmt.Errorf("it is not made for this machine, which runs linux/%s; it is there for: %s", runtime.GOARCH, strings.Join(others, ", "))
}

const (
	maxFetches = 3 // at a time, of one image
	maxTries   = 3
)

// fetch fetches the layers that are not kept yet.
func (s *Store) fetch(ctx context.Context, from *source, layers []v1.Descriptor, p *Progress) error {
	var missing []v1.Descriptor
	var total int64
	for _, layer := range layers {
		if _, err := os.Lstat(s.blobFile(layer.Digest)); err == nil || slices.ContainsFunc(missing, func(d v1.Descriptor) bool { return d.Digest == layer.Digest }) {
			continue
		}
		if total += layer.Size; total > s.opts.Limits.Bytes || total < 0 {
			return fmt.Errorf("%w: it is larger than %d bytes", ErrHostile, s.opts.Limits.Bytes)
		}
		missing = append(missing, layer)
	}
	p.of("fetching", total)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var fetching sync.WaitGroup
	room := make(chan struct{}, maxFetches)
	for _, layer := range missing {
		fetching.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			if err := s.fetchOne(ctx, from, layer, p); err != nil {
				cancel(err) // the first one tells why
			}
		})
	}
	fetching.Wait()
	return context.Cause(ctx)
}

// source is a repository of a registry.
type source struct {
	*remote.Puller
	repository name.Repository
}

// fetchOne fetches a layer, and begins again when the transfer is cut.
func (s *Store) fetchOne(ctx context.Context, from *source, layer v1.Descriptor, p *Progress) error {
	var err error
	for range maxTries {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err = s.transfer(ctx, from, layer, p); err == nil || errors.Is(err, ErrHostile) {
			return err
		}
	}
	return fmt.Errorf("fetch %s: %w", layer.Digest, err)
}

func (s *Store) transfer(ctx context.Context, from *source, layer v1.Descriptor, p *Progress) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	alive := time.AfterFunc(s.opts.Stall, func() { cancel(fmt.Errorf("nothing came for %s", s.opts.Stall)) })
	defer alive.Stop()
	// By its digest alone: a manifest may name other places to fetch it from,
	// of its maker's choice.
	blob, err := from.Layer(ctx, from.repository.Digest(layer.Digest.String()))
	var body io.ReadCloser
	if err == nil {
		body, err = blob.Compressed()
	}
	if err == nil {
		counted := p.count(&watched{body, alive, s.opts.Stall})
		if err = s.keep(layer.Digest, layer.Size, counted); err != nil {
			counted.undo()
		}
		err = errors.Join(err, body.Close())
	}
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// watched puts the end off with every byte that comes.
type watched struct {
	io.Reader
	alive *time.Timer
	stall time.Duration
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	if n > 0 {
		w.alive.Reset(w.stall)
	}
	return n, err
}
