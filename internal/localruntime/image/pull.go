package image

import (
	"context"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

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

func (s *Store) remote(ctx context.Context, keychain authn.Keychain) []remote.Option {
	return []remote.Option{
		remote.WithContext(ctx), remote.WithAuthFromKeychain(keychain), remote.WithUserAgent("glassbox"),
		remote.WithTransport(&loopbackOrTLS{s.opts.Transport}),
		remote.WithRetryBackoff(remote.Backoff{Duration: 200 * time.Millisecond, Factor: 4, Jitter: 0.1, Steps: 2}),
	}
}
