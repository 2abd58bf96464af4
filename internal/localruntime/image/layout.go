package image

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"runtime"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/sys/unix"
)

// layout is an unfolded archive of images.
type layout struct{ root *os.Root }

// loaded is an image of an archive.
type loaded struct {
	content
	names []string // canonical
}

func (l *layout) images() ([]*loaded, error) {
	var saved []struct {
		Config           string
		RepoTags, Layers []string
	}
	err := l.json("manifest.json", &saved)
	if errors.Is(err, fs.ErrNotExist) {
		return l.oci()
	}
	if err != nil {
		return nil, err
	}
	var list []*loaded
	for _, one := range saved {
		config, err := l.read(one.Config, maxConfig)
		if err != nil {
			return nil, err
		}
		f := &loaded{content: content{config: config}}
		for _, layer := range one.Layers {
			f.layers = append(f.layers, func() (io.ReadCloser, error) { return l.open(layer) })
		}
		f.name(one.RepoTags...)
		list = append(list, f)
	}
	return list, nil
}

// name keeps what is a name.
func (f *loaded) name(words ...string) {
	for _, word := range words {
		if ref, err := parse(word); err == nil && word != "" {
			f.names = append(f.names, ref.Name())
		}
	}
}

// What an index says of an image's name; the first is of containerd and docker,
// the other one is often a tag only.
const (
	nameAnnotation = "io.containerd.image.name"
	refAnnotation  = "org.opencontainers.image.ref.name"
)

// oci reads an OCI image layout.
func (l *layout) oci() ([]*loaded, error) {
	var index v1.IndexManifest
	err := l.json("index.json", &index)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("it is no archive of images: it holds neither manifest.json, as docker save writes it, nor index.json, as OCI tools do")
	}
	if err != nil {
		return nil, err
	}
	var list []*loaded
	var others error
	for _, d := range index.Manifests {
		f, err := l.image(d, maxIndexes)
		if errors.Is(err, errOtherMachine) {
			others = err
			continue
		}
		if err != nil {
			return nil, err
		}
		if f == nil {
			continue
		}
		if full := d.Annotations[nameAnnotation]; full != "" {
			f.name(full)
		} else if tag := d.Annotations[refAnnotation]; path.Base(tag) != tag || bytes.ContainsRune([]byte(tag), ':') {
			f.name(tag)
		}
		list = append(list, f)
	}
	if len(list) == 0 {
		return nil, errors.Join(others, errors.New("it holds no image for this machine"))
	}
	return list, nil
}

var errOtherMachine = fmt.Errorf("it is not made for this machine, which runs linux/%s", runtime.GOARCH)

// image reads what a descriptor leads to: an image, or an index of which one is
// for this machine. What is no image at all is nil.
func (l *layout) image(d v1.Descriptor, depth int) (*loaded, error) {
	if d.Platform != nil && d.Platform.OS == "unknown" {
		return nil, nil // an attestation
	}
	if d.Platform != nil && (d.Platform.OS != "linux" || d.Platform.Architecture != runtime.GOARCH) {
		return nil, fmt.Errorf("%w; it is there for %s", errOtherMachine, short(d.Platform.String()))
	}
	text, err := l.blob(d, maxConfig)
	if err != nil {
		return nil, err
	}
	switch {
	case d.MediaType.IsIndex() && depth > 0:
		return l.oneOf(text, depth)
	case d.MediaType != types.OCIManifestSchema1 && d.MediaType != types.DockerManifestSchema2:
		return nil, nil
	}
	var manifest v1.Manifest
	if err := json.Unmarshal(text, &manifest); err != nil {
		return nil, fmt.Errorf("read manifest %s: %w", d.Digest, err)
	}
	f := &loaded{}
	if f.config, err = l.blob(manifest.Config, maxConfig); err != nil {
		return nil, err
	}
	for _, layer := range manifest.Layers {
		if err := isDigest(layer.Digest); err != nil {
			return nil, err
		}
		f.layers = append(f.layers, func() (io.ReadCloser, error) { return l.open(blobName(layer.Digest)) })
	}
	return f, nil
}

func (l *layout) oneOf(text []byte, depth int) (*loaded, error) {
	var index v1.IndexManifest
	if err := json.Unmarshal(text, &index); err != nil {
		return nil, fmt.Errorf("read index: %w", err)
	}
	err := errOtherMachine
	for _, d := range index.Manifests {
		f, wrong := l.image(d, depth-1)
		if f != nil || wrong != nil && !errors.Is(wrong, errOtherMachine) {
			return f, wrong
		}
		if wrong != nil {
			err = wrong
		}
	}
	return nil, err
}

func blobName(digest v1.Hash) string { return path.Join("blobs", digest.Algorithm, digest.Hex) }

func (l *layout) blob(d v1.Descriptor, most int64) ([]byte, error) {
	if err := isDigest(d.Digest); err != nil {
		return nil, err
	}
	text, err := l.read(blobName(d.Digest), most)
	if err == nil {
		err = matches(text, d.Digest)
	}
	return text, err
}

func (l *layout) json(name string, into any) error {
	text, err := l.read(name, maxConfig)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	return nil
}

func (l *layout) read(name string, most int64) ([]byte, error) {
	f, err := l.open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("%w: %s is larger than %d bytes", ErrHostile, short(name), most)
	}
	return text, err
}

// open opens a file of the archive. Links within it lead to the same layer in
// another folder, as old versions of docker save them.
func (l *layout) open(name string) (*os.File, error) {
	f, err := l.root.OpenFile(path.Clean(name), os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(hostile(name, "is no plain file"), f.Close())
	}
	return f, nil
}
