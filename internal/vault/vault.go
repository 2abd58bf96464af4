// Package vault seals secrets that a database keeps. Each secret is sealed
// with a key of its own, and that key with the master key, which lies in a
// file beside the database and not in it.
//
//	v, err := vault.Open("/var/lib/glassbox/master_key")
//	sealed, err := v.Seal(secret, "connections/0198…/key")
//	secret, err = v.Unseal(sealed, "connections/0198…/key")
//
// The place is bound to what is sealed: a row copied over another one does not
// open there. After [Vault.Rotate] old secrets still open; [Vault.Reseal] seals
// them with the new key, and [Vault.Forget] then drops the old ones.
package vault

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
)

// Secret is a value that must not be printed.
type Secret string

// String hides the value.
func (Secret) String() string { return "***" }

// GoString hides the value.
func (Secret) GoString() string { return "***" }

// MarshalText hides the value.
func (Secret) MarshalText() ([]byte, error) { return []byte("***"), nil }

// ErrSealed is in the error of a secret that does not open: it was sealed with
// a key that is not here, for another place, or was changed.
var ErrSealed = errors.New("the secret does not open with the keys at hand")

const keySize = 32

// key is a master key. Its id, told by the key itself, stands in what it sealed.
type key struct {
	id    [idSize]byte
	bytes [keySize]byte
}

const idSize = 8

func newKey() *key {
	var b [keySize]byte
	rand.Read(b[:])
	return keyOf(b)
}

func keyOf(b [keySize]byte) *key {
	sum := sha256.Sum256(append([]byte("glassbox master key\x00"), b[:]...))
	k := &key{bytes: b}
	copy(k.id[:], sum[:])
	return k
}

// Vault holds master keys.
type Vault struct {
	file string
	mu   sync.Mutex
	keys []*key // the first one seals
}

// What is sealed: version, id of the master key, the sealed data key, the
// sealed secret. Each sealed part begins with its nonce.
const (
	version   = 1
	nonceSize = 12
	tagSize   = 16
	headSize  = 1 + idSize
	dataSize  = nonceSize + keySize + tagSize
)

// Seal seals a secret for a place.
func (v *Vault) Seal(secret Secret, place string) ([]byte, error) {
	v.mu.Lock()
	master := v.keys[0]
	v.mu.Unlock()
	var data [keySize]byte
	rand.Read(data[:])
	sealed := append([]byte{version}, master.id[:]...)
	var err error
	if sealed, err = seal(sealed, master.bytes, data[:], "key of "+place); err != nil {
		return nil, err
	}
	return seal(sealed, data, []byte(secret), place)
}

// Unseal opens what Seal sealed for the same place.
func (v *Vault) Unseal(sealed []byte, place string) (Secret, error) {
	master := v.keyOf(sealed)
	if master == nil || len(sealed) < headSize+dataSize {
		return "", ErrSealed
	}
	data, err := open(sealed[headSize:headSize+dataSize], master.bytes, "key of "+place)
	if err != nil {
		return "", err
	}
	secret, err := open(sealed[headSize+dataSize:], [keySize]byte(data), place)
	return Secret(secret), err
}

// Reseal seals with the newest key what an older one sealed. It tells if
// anything is new.
func (v *Vault) Reseal(sealed []byte, place string) (again []byte, changed bool, err error) {
	v.mu.Lock()
	newest := v.keys[0]
	v.mu.Unlock()
	if v.keyOf(sealed) == newest {
		return sealed, false, nil
	}
	secret, err := v.Unseal(sealed, place)
	if err != nil {
		return nil, false, err
	}
	again, err = v.Seal(secret, place)
	return again, err == nil, err
}

// keyOf returns the key that sealed something; nil: it is not here.
func (v *Vault) keyOf(sealed []byte) *key {
	if len(sealed) < headSize || sealed[0] != version {
		return nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, k := range v.keys {
		if string(k.id[:]) == string(sealed[1:headSize]) {
			return k
		}
	}
	return nil
}

func seal(to []byte, key [keySize]byte, text []byte, place string) ([]byte, error) {
	gcm, err := newGCM(key)
	if err != nil {
		return nil, err
	}
	var nonce [nonceSize]byte
	rand.Read(nonce[:])
	return gcm.Seal(append(to, nonce[:]...), nonce[:], text, []byte(place)), nil
}

func open(sealed []byte, key [keySize]byte, place string) ([]byte, error) {
	gcm, err := newGCM(key)
	if err != nil {
		return nil, err
	}
	if len(sealed) < nonceSize {
		return nil, ErrSealed
	}
	text, err := gcm.Open(nil, sealed[:nonceSize], sealed[nonceSize:], []byte(place))
	if err != nil {
		return nil, ErrSealed
	}
	return text, nil
}

func newGCM(key [keySize]byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key[:])
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	return cipher.NewGCM(block)
}
