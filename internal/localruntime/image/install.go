package image

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sys/unix"
)

// content is an image that is at hand, and not unpacked.
type content struct {
	config []byte
	layers []func() (io.ReadCloser, error) // as they came, the lowest first
	blobs  []string                        // digests of the layers that are kept
}

const (
	maxConfig = 8 << 20
	maxLayers = 512
)

// readConfig reads the configuration of an image that can be used here.
func readConfig(text []byte, layers int) (*v1.ConfigFile, error) {
	config, err := v1.ParseConfigFile(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("read its configuration: %w", err)
	}
	switch {
	case layers > maxLayers:
		return nil, fmt.Errorf("%w: it has more than %d layers", ErrHostile, maxLayers)
	case len(config.RootFS.DiffIDs) != layers:
		return nil, fmt.Errorf("%w: it has %d layers, and %d digests of them", ErrHostile, layers, len(config.RootFS.DiffIDs))
	}
	// An image made by hand may leave these out.
	if config.OS != "" && config.OS != "linux" || config.Architecture != "" && config.Architecture != runtime.GOARCH {
		return nil, fmt.Errorf("it is for %s/%s; this machine runs linux/%s", config.OS, config.Architecture, runtime.GOARCH)
	}
	return config, nil
}

// install unpacks an image, unless it is there. Whatever happens meanwhile, the
// image is there whole, or not.
func (s *Store) install(ctx context.Context, c *content, p *Progress) (*Image, error) {
	config, err := readConfig(c.config, len(c.layers))
	if err != nil {
		return nil, err
	}
	id := idOf(c.config)
	select {
	case s.unpacking <- struct{}{}: // one at a time: it takes the disk and memory
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-s.unpacking }()
	if known, err := s.read(id); err == nil {
		return known, nil
	}
	dir, err := os.MkdirTemp(s.work, "image-")
	if err != nil {
		return nil, err
	}
	image, err := s.unpack(ctx, dir, config, c, p)
	if err == nil {
		image.ID, image.Blobs, image.PulledAt = id, c.blobs, s.opts.Now().UTC()
		err = s.commit(dir, image)
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return image, s.clear()
}

// unpack lays an image out in dir/root.
func (s *Store) unpack(ctx context.Context, dir string, config *v1.ConfigFile, c *content, p *Progress) (*Image, error) {
	if err := os.Mkdir(filepath.Join(dir, "root"), 0o755); err != nil {
		return nil, err
	}
	if err := os.Chmod(filepath.Join(dir, "root"), 0o755); err != nil { //nolint:gosec // of every user of the sandbox; above it nobody comes in
		return nil, err
	}
	root, err := os.OpenRoot(filepath.Join(dir, "root"))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	u := newUnpacker(root, s.opts.Limits)
	left := s.opts.Limits.Bytes + int64(s.opts.Limits.Entries)*4096 // with what tar puts between files
	for i, open := range c.layers {
		p.phase(fmt.Sprintf("unpacking layer %d of %d", i+1, len(c.layers)))
		packed, err := open()
		if err == nil {
			left, err = s.apply(ctx, u, &packedLayer{packed, config.RootFS.DiffIDs[i], p}, left)
			err = errors.Join(err, packed.Close())
		}
		if err != nil {
			return nil, fmt.Errorf("layer %d of %d: %w", i+1, len(c.layers), err)
		}
	}
	if err := u.furnish(s.opts.Hostname, s.opts.Points); err != nil {
		return nil, err
	}
	if err := u.finish(); err != nil {
		return nil, err
	}
	user, err := findUser(root, config.Config.User)
	if err != nil {
		return nil, err
	}
	return &Image{
		Size: u.bytes, Files: u.entries, CreatedAt: config.Created.UTC(),
		Env: config.Config.Env, Workdir: config.Config.WorkingDir, User: *user,
	}, nil
}

// packedLayer is a layer as it came, and the digest of what is in it.
type packedLayer struct {
	io.Reader
	diffID   v1.Hash
	progress *Progress
}

// apply applies one layer, and returns how much may be unpacked after it.
func (s *Store) apply(ctx context.Context, u *unpacker, l *packedLayer, left int64) (int64, error) {
	if err := isDigest(l.diffID); err != nil {
		return 0, err
	}
	plain, err := decompress(l)
	if err != nil {
		return 0, fmt.Errorf("decompress: %w", err)
	}
	defer plain.Close()
	sum := newSum(l.progress.count(io.LimitReader(plain, left+1)))
	from := s.room(sum)
	if err = u.layer(ctx, from); err == nil {
		_, err = io.Copy(io.Discard, from) // what stands behind the last entry counts, too
	}
	switch {
	case sum.read > left:
		return 0, u.tooLarge()
	case err != nil:
		return 0, err
	case !sum.is(l.diffID):
		return 0, fmt.Errorf("%w: what is in it is not what its digest says", ErrHostile)
	}
	return left - sum.read, nil
}

// commit makes an unpacked image one of the store's.
func (s *Store) commit(dir string, image *Image) error {
	text, err := json.MarshalIndent(image, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "image.json"), append(text, '\n'), 0o600); err != nil {
		return err
	}
	if err := syncAll(dir); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// What is there already cannot be read, or it would have been taken. Sandboxes
	// that began from it keep what they have bound.
	if err := s.aside(image.ID); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(dir, s.folder(image.ID)); err != nil {
		return err
	}
	image.root = filepath.Join(s.folder(image.ID), "root")
	return syncAll(filepath.Dir(s.folder(image.ID)))
}

// syncAll writes out the file system of a folder: many small files at once.
func syncAll(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Syncfs(int(f.Fd()))
}

// folder is where an image is kept.
func (s *Store) folder(id string) string {
	return filepath.Join(s.dir, "unpacked", strings.TrimPrefix(id, algorithm))
}

const algorithm = "sha256:"

func idOf(config []byte) string {
	sum := newSum(bytes.NewReader(config))
	_, _ = io.Copy(io.Discard, sum) // from memory
	return algorithm + fmt.Sprintf("%x", sum.hash.Sum(nil))
}
