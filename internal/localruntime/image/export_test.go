package image

import (
	"bytes"
	"context"
	"os"
)

// Apply applies layers, not compressed, below a folder.
func Apply(ctx context.Context, dir string, layers ...[]byte) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	u := newUnpacker(root, Limits{Bytes: 1 << 20, Entries: 1000})
	for _, layer := range layers {
		if err := u.layer(ctx, bytes.NewReader(layer)); err != nil {
			return err
		}
	}
	return u.finish()
}
