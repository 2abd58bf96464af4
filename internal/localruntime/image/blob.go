package image

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"golang.org/x/sys/unix"
)

// blobFile is where a layer is kept as it came, so that the next image that has
// it need not fetch it again.
func (s *Store) blobFile(digest v1.Hash) string { return filepath.Join(s.dir, "blobs", digest.Hex) }

// keep writes a blob that was announced with a digest and a size, if that is
// what comes.
func (s *Store) keep(digest v1.Hash, size int64, content io.Reader) (err error) {
	f, err := os.CreateTemp(s.work, "blob-")
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, f.Close())
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	sum := newSum(io.LimitReader(content, size+1))
	switch _, err := io.Copy(f, s.room(sum)); {
	case err != nil:
		return err
	case sum.read != size || !sum.is(digest):
		return fmt.Errorf("%w: %s is not what comes under that digest", ErrHostile, digest)
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return os.Rename(f.Name(), s.blobFile(digest))
}

// sum reads, and knows what it has read.
type sum struct {
	r    io.Reader
	hash hash.Hash
	read int64
}

func newSum(r io.Reader) *sum { return &sum{r: r, hash: sha256.New()} }

func (s *sum) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	s.hash.Write(p[:n])
	s.read += int64(n)
	return n, err
}

func (s *sum) is(digest v1.Hash) bool {
	return digest.Algorithm == "sha256" && hex.EncodeToString(s.hash.Sum(nil)) == digest.Hex
}

// isDigest sees that a digest is one that can be checked, and a file's name.
func isDigest(digest v1.Hash) error {
	if raw, err := hex.DecodeString(digest.Hex); digest.Algorithm != "sha256" || err != nil || len(raw) != sha256.Size {
		return fmt.Errorf("%w: it has a digest that is not sha256", ErrHostile)
	}
	return nil
}

// matches sees that content has a digest.
func matches(content []byte, digest v1.Hash) error {
	sum := newSum(bytes.NewReader(content))
	if _, err := io.Copy(io.Discard, sum); err != nil {
		return err
	}
	if !sum.is(digest) {
		return fmt.Errorf("%w: %s is not what comes under that digest", ErrHostile, digest)
	}
	return nil
}

// roomEvery is how much is written between two looks at the free space.
const roomEvery = 16 << 20

// room reads until the disk is nearly full.
func (s *Store) room(r io.Reader) io.Reader { return &roomReader{r: r, store: s} }

type roomReader struct {
	r     io.Reader
	store *Store
	left  int64
}

func (r *roomReader) Read(p []byte) (int, error) {
	if r.left <= 0 {
		if err := r.store.hasRoom(); err != nil {
			return 0, err
		}
		r.left = roomEvery
	}
	n, err := r.r.Read(p)
	r.left -= int64(n)
	return n, err
}

func (s *Store) hasRoom() error {
	var stat unix.Statfs_t
	if err := unix.Statfs(s.dir, &stat); err != nil {
		return fmt.Errorf("look at the free space: %w", err)
	}
	if free := int64(stat.Bavail) * stat.Bsize; free < s.opts.Reserve {
		return fmt.Errorf("the disk of %s has only %d MiB left, of which %d are kept free; glassbox image prune removes what is not used", s.dir, free>>20, s.opts.Reserve>>20)
	}
	return nil
}

// decompress reads what is packed with gzip or zstd, or not at all: the bytes
// tell, whatever the media type says.
func decompress(r io.Reader) (io.ReadCloser, error) {
	buffered := bufio.NewReaderSize(r, 64<<10)
	magic, err := buffered.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		return gzip.NewReader(buffered)
	case bytes.Equal(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		d, err := zstd.NewReader(buffered, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(128<<20))
		if err != nil {
			return nil, err
		}
		return d.IOReadCloser(), nil
	}
	return io.NopCloser(buffered), nil
}
