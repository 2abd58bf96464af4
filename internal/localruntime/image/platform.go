package image

import (
	"fmt"
	"runtime"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

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
