package vault

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// keyPrefix begins each line of a key file, so that nobody takes it for
// something else.
const keyPrefix = "glassbox-key-1:"

// maxKeyFile bounds what is read of a key file, in bytes.
const maxKeyFile = 64 << 10

// Open reads the keys in a file, the newest first, and makes the file with a
// new key if there is none. Others than its owner must not be able to read it.
func Open(file string) (*Vault, error) {
	v := &Vault{file: file}
	for {
		err := v.load()
		if err == nil {
			return v, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("read key file %s: %w", file, err)
		}
		if err := writeNew(file, encode([]*key{newKey()})); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("make key file %s: %w", file, err)
		}
	}
}

func (v *Vault) load() error {
	info, err := os.Stat(v.file) // through links: that is how secrets are mounted into containers
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular() || info.Size() > maxKeyFile:
		return errors.New("it is no key file")
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("others can read it (mode %04o); run: chmod 600 on it, and rotate the key if somebody may have read it", info.Mode().Perm())
	}
	text, err := os.ReadFile(v.file)
	if err != nil {
		return err
	}
	v.keys, err = decode(text)
	return err
}

func encode(keys []*key) []byte {
	var b bytes.Buffer
	for _, k := range keys {
		fmt.Fprintln(&b, keyPrefix+base64.StdEncoding.EncodeToString(k.bytes[:]))
	}
	return b.Bytes()
}

// decode never quotes what it cannot read.
func decode(text []byte) (keys []*key, err error) {
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		coded, ours := strings.CutPrefix(line, keyPrefix)
		b, err := base64.StdEncoding.DecodeString(coded)
		if !ours || err != nil || len(b) != keySize {
			return nil, errors.New("a line of it is no key; each must be " + keyPrefix + " and 32 bytes in base64")
		}
		keys = append(keys, keyOf([keySize]byte(b)))
	}
	if len(keys) == 0 {
		return nil, errors.New("it holds no key")
	}
	return keys, nil
}

// Rotate makes a new key, which seals from now on. The older ones stay for
// what they have sealed.
func (v *Vault) Rotate() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.store(append([]*key{newKey()}, v.keys...))
}

// Forget drops all keys but the newest. What was not resealed is lost.
func (v *Vault) Forget() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.store(v.keys[:1:1])
}

// store replaces the file, whole or not at all. The lock is held.
func (v *Vault) store(keys []*key) error {
	file, err := filepath.EvalSymlinks(v.file)
	if err == nil {
		temp := file + ".new"
		_ = os.Remove(temp) // left by a crash
		if err = writeNew(temp, encode(keys)); err == nil {
			err = os.Rename(temp, file)
		}
		if err == nil {
			err = syncFolder(file)
		}
	}
	if err != nil {
		return fmt.Errorf("write key file: %w", err)
	}
	v.keys = keys
	return nil
}

// writeNew makes a file that is whole when it appears under its name, and
// that only its owner reads.
func writeNew(file string, text []byte) (err error) {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(file), ".key-*") // mode 0600
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(f.Name())) }()
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), file); err != nil {
		return err
	}
	return syncFolder(file)
}

func syncFolder(file string) error {
	dir, err := os.Open(filepath.Dir(file))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
