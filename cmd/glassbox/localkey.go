package main

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/glassboxhq/glassbox/sandbox"
	"github.com/glassboxhq/glassbox/sandbox/opensandbox"
)

func (s *settings) keyFile() string { return filepath.Join(s.stateDir, "api_key") }

// localKey returns the key of this machine's lifecycle API, made when it is
// first asked for.
func (s *settings) localKey() (opensandbox.Secret, error) {
	for {
		text, err := os.ReadFile(s.keyFile())
		if err == nil {
			return opensandbox.Secret(strings.TrimSpace(string(text))), nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", &sandbox.Error{Op: "read API key", Code: sandbox.CodePermission, Err: err}
		}
		if err := s.makeKey(); err != nil && !errors.Is(err, fs.ErrExist) {
			return "", &sandbox.Error{Op: "make API key", Code: sandbox.CodePermission, Err: err}
		}
	}
}

// makeKey writes a new key whole, or finds that another process was first.
func (s *settings) makeKey() (err error) {
	if err := os.MkdirAll(s.stateDir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(s.stateDir, ".api_key-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(f.Name())) }()
	_, err = f.WriteString(rand.Text() + "\n")
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Link(f.Name(), s.keyFile())
}
