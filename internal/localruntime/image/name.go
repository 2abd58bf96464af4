package image

import (
	"context"
	"encoding/hex"
	"errors"
	"io/fs"
	"strconv"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/glassboxhq/glassbox/sandbox"
)

const hub = "index.docker.io/"

// Familiar writes a canonical name as people know it.
func Familiar(canonical string) string {
	if short, ok := strings.CutPrefix(canonical, hub); ok {
		return strings.TrimPrefix(short, "library/")
	}
	return canonical
}

// parse reads a name as docker does: without a registry it is Docker Hub's.
func parse(word string) (name.Reference, error) {
	ref, err := name.ParseReference(word)
	if err != nil {
		return nil, sandbox.Invalid("image", strconv.Quote(short(word))+" is no name of an image; it must be written as in python:3.12 or registry.example/team/image:tag")
	}
	return ref, nil
}

func short(word string) string {
	if r := []rune(word); len(r) > 128 {
		return string(r[:128]) + "…"
	}
	return word
}

// ErrAbsent is returned for an image that the store does not have.
var ErrAbsent = errors.New("this machine does not have it")

// Find returns the image that is meant: by a name, by its id, or by the
// beginning of one.
func (s *Store) Find(ctx context.Context, word string) (*Image, error) {
	if ref, err := parse(word); err == nil {
		s.mu.Lock()
		id, ok := s.names[ref.Name()]
		s.mu.Unlock()
		if ok {
			image, err := s.read(id)
			if errors.Is(err, fs.ErrNotExist) {
				err = ErrAbsent // it was removed by hand
			}
			return image, err
		}
	}
	digits := strings.TrimPrefix(word, algorithm)
	if len(digits) < minDigits || strings.ContainsFunc(digits, func(r rune) bool { return !strings.ContainsRune("0123456789abcdef", r) }) {
		return nil, ErrAbsent
	}
	return s.byID(ctx, digits)
}

// minDigits of an id stand for the image.
const minDigits = 6

func (s *Store) byID(ctx context.Context, digits string) (*Image, error) {
	if len(digits) == hex.EncodedLen(32) {
		image, err := s.read(algorithm + digits)
		if err != nil {
			return nil, ErrAbsent
		}
		return image, nil
	}
	list, err := s.List(ctx)
	if err != nil {
		return nil, err
	}
	var found *Image
	for _, image := range list {
		if strings.HasPrefix(image.ID, algorithm+digits) {
			if found != nil {
				return nil, sandbox.Invalid("image", strconv.Quote(digits)+" is the beginning of several; give more of the id")
			}
			found = image
		}
	}
	if found == nil {
		return nil, ErrAbsent
	}
	return found, nil
}
