package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// kept is an image whose layers are in the store.
func (s *Store) kept(config []byte, layers []v1.Descriptor) *content {
	c := &content{config: config}
	for _, layer := range layers {
		c.blobs = append(c.blobs, layer.Digest.String())
		c.layers = append(c.layers, func() (io.ReadCloser, error) { return os.Open(s.blobFile(layer.Digest)) })
	}
	return c
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
