package image

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/glassboxhq/glassbox/sandbox"
)

// Removed tells what was removed.
type Removed struct {
	Names  []string `json:"names,omitempty"`  // that lead nowhere now
	Images []string `json:"images,omitempty"` // ids
	Bytes  int64    `json:"bytes"`            // that are free again
}

// Remove takes a name away, and the image with its last name. By its id it goes
// with all its names. One that a sandbox uses is not removed.
func (s *Store) Remove(ctx context.Context, word string) (*Removed, error) {
	if s.stop(word) {
		return &Removed{}, nil
	}
	image, err := s.Find(ctx, word)
	if err != nil {
		return nil, err
	}
	gone := &Removed{Names: image.Names}
	if ref, err := parse(word); err == nil && slices.Contains(image.Names, Familiar(ref.Name())) {
		gone.Names = []string{Familiar(ref.Name())}
	}
	if len(gone.Names) < len(image.Names) {
		return gone, s.forget(gone.Names)
	}
	if err := s.drop(image); err != nil {
		return nil, err
	}
	gone.Images, gone.Bytes = []string{image.ID}, image.Size
	freed, err := s.sweep(ctx)
	gone.Bytes += freed
	return gone, err
}

// stop ends the pull of an image, if one goes on, and there is no image of that
// name yet.
func (s *Store) stop(word string) bool {
	ref, err := parse(word)
	if err != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, there := s.names[ref.Name()]; there {
		return false
	}
	stopped := false
	for key, f := range s.flights {
		if key.name == ref.Name() {
			f.cancel(errors.New("the image was removed while it was pulled"))
			delete(s.flights, key)
			stopped = true
		}
	}
	return stopped
}

// forget takes names away.
func (s *Store) forget(familiar []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := maps.Clone(s.names)
	maps.DeleteFunc(next, func(name, _ string) bool { return slices.Contains(familiar, Familiar(name)) })
	return s.saveNames(next)
}

// drop removes an image. Whoever begins to use one looks after that whether it
// is still there, so it is seen by one of the two.
func (s *Store) drop(image *Image) error {
	s.mu.Lock()
	if users := s.opts.InUse(image.ID); len(users) > 0 {
		s.mu.Unlock()
		return &sandbox.Error{
			Op: "remove image", Code: sandbox.CodeSandboxState,
			Message: "it is in use; delete its sandboxes first: " + strings.Join(users, " "),
		}
	}
	next := maps.Clone(s.names)
	maps.DeleteFunc(next, func(_, id string) bool { return id == image.ID })
	err := s.saveNames(next)
	if err == nil {
		err = s.aside(image.ID)
	}
	s.mu.Unlock()
	if err != nil {
		return fmt.Errorf("remove image: %w", err)
	}
	return s.clear()
}

// removed is the prefix of what lies in the work folder to be removed.
const removed = "removed-"

// aside makes an image none, at once. Its caller holds mu.
func (s *Store) aside(id string) error {
	return os.Rename(s.folder(id), filepath.Join(s.work, removed+strings.TrimPrefix(id, algorithm)+"-"+rand.Text()))
}

// clear removes what was put aside, which may take a while.
func (s *Store) clear() error {
	entries, err := os.ReadDir(s.work)
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), removed) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(s.work, entry.Name())))
		}
	}
	return err
}

// Prune removes the images that no sandbox uses, and the layers that no image
// has.
func (s *Store) Prune(ctx context.Context) (*Removed, error) {
	list, err := s.List(ctx)
	if err != nil {
		return nil, err
	}
	gone := &Removed{}
	for _, image := range list {
		if ctx.Err() != nil {
			return gone, context.Cause(ctx)
		}
		if len(s.opts.InUse(image.ID)) > 0 {
			continue
		}
		if err := s.drop(image); err != nil {
			if sandbox.CodeOf(err) == sandbox.CodeSandboxState {
				continue // just now
			}
			return gone, err
		}
		gone.Names, gone.Images = append(gone.Names, image.Names...), append(gone.Images, image.ID)
		gone.Bytes += image.Size
	}
	freed, err := s.sweep(ctx)
	gone.Bytes += freed
	return gone, err
}

// sweep removes the layers that no image has. While something is pulled all
// stay: it may be about to use them.
func (s *Store) sweep(ctx context.Context) (freed int64, err error) {
	list, err := s.List(ctx)
	if err != nil {
		return 0, err
	}
	used := map[string]bool{}
	for _, image := range list {
		for _, digest := range image.Blobs {
			used[strings.TrimPrefix(digest, algorithm)] = true
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.flights) > 0 {
		return 0, nil
	}
	entries, err := os.ReadDir(filepath.Join(s.dir, "blobs"))
	if err != nil {
		return 0, err
	}
	for _, entry := range entries {
		if used[entry.Name()] {
			continue
		}
		info, err := entry.Info()
		if err == nil {
			err = os.Remove(filepath.Join(s.dir, "blobs", entry.Name()))
		}
		if err != nil {
			return freed, err
		}
		freed += info.Size()
	}
	return freed, nil
}
