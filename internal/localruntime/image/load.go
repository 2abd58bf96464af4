package image

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/glassboxhq/glassbox/sandbox"
)

// Load takes the images of an archive in, as docker save or an OCI tool writes
// one, packed or not. They get the names that the archive has for them, or the
// one that is given, if there is one image.
func (s *Store) Load(ctx context.Context, archive io.Reader, as string) ([]*Image, error) {
	p := &Progress{}
	dir, err := os.MkdirTemp(s.work, "load-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if err := s.unfold(ctx, root, archive); err != nil {
		return nil, fmt.Errorf("load images: %w", err)
	}
	found, err := (&layout{root}).images()
	if err != nil {
		return nil, fmt.Errorf("load images: %w", err)
	}
	if as != "" {
		ref, err := parse(as)
		switch {
		case err != nil:
			return nil, err
		case len(found) != 1:
			return nil, sandbox.Invalid("name", fmt.Sprintf("cannot be given to %d images at once", len(found)))
		}
		found[0].names = []string{ref.Name()}
	}
	list := []*Image{}
	for _, f := range found {
		image, err := s.install(ctx, &f.content, p)
		if err == nil {
			err = s.name(image.ID, f.names...)
		}
		if err == nil {
			image, err = s.read(image.ID)
		}
		if err != nil {
			return nil, fmt.Errorf("load images: %w", err)
		}
		list = append(list, image)
	}
	return list, nil
}

// unfold writes the files of the archive below a folder, under the rules for
// those of a layer.
func (s *Store) unfold(ctx context.Context, root *os.Root, archive io.Reader) error {
	plain, err := decompress(archive)
	if err != nil {
		return err
	}
	defer plain.Close()
	u := newUnpacker(root, s.opts.Limits)
	from := s.room(io.LimitReader(plain, u.limits.Bytes+int64(u.limits.Entries)*4096))
	err = u.layer(ctx, from)
	if err == nil {
		_, err = io.Copy(io.Discard, from)
	}
	return err
}
