package image

import (
	"context"
	"fmt"

	"github.com/google/go-containerregistry/pkg/authn"

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
