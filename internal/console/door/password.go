package door

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"

	"github.com/glassboxhq/glassbox/sandbox"
)

// The cost of a password, as OWASP advises for argon2id. Stored hashes tell
// theirs: another cost here leaves them valid.
const (
	argonMemory  = 19 << 10 // KiB
	argonTime    = 2
	argonThreads = 1
	argonKey     = 32
	saltSize     = 16
	// maxHashing passwords are hashed at once; the others wait.
	maxHashing = 4
)

const (
	minPassword = 12   // characters
	maxPassword = 1024 // bytes
)

// hashPassword returns a password in the form in which it is kept.
func (d *Door) hashPassword(ctx context.Context, password Secret) (string, error) {
	if utf8.RuneCountInString(string(password)) < minPassword || len(password) > maxPassword {
		return "", sandbox.Invalid("password", "must be 12 characters or more, up to 1024 bytes; some words in a row are good")
	}
	var salt [saltSize]byte
	rand.Read(salt[:])
	sum, err := d.argon(ctx, password, salt[:], &cost{argonMemory, argonTime, argonThreads})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, argonMemory, argonTime, argonThreads,
		base64.RawStdEncoding.EncodeToString(salt[:]), base64.RawStdEncoding.EncodeToString(sum)), nil
}

type cost struct {
	memory, time uint32
	threads      uint8
}

func (d *Door) argon(ctx context.Context, password Secret, salt []byte, c *cost) ([]byte, error) {
	select {
	case d.hashing <- struct{}{}:
		defer func() { <-d.hashing }()
	case <-ctx.Done():
		return nil, sandbox.FromContext(ctx, "sign in")
	}
	return argon2.IDKey([]byte(password), salt, c.time, c.memory, c.threads, argonKey), nil
}

// nobody stands for the hash of a user who is not there or has no password,
// so that the answer takes as long.
var nobody = fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, argonMemory, argonTime, argonThreads,
	base64.RawStdEncoding.EncodeToString(make([]byte, saltSize)), strings.Repeat("A", 43))

// checkPassword reports whether a password is the one that is kept.
func (d *Door) checkPassword(ctx context.Context, kept string, password Secret) (bool, error) {
	if kept == "" {
		kept = nobody
	}
	var v int
	c := &cost{}
	parts := strings.Split(kept, "$")
	if len(parts) != 6 || parts[1] != "argon2id" {
		return false, fmt.Errorf("a password is kept in an unknown form")
	}
	_, err := fmt.Sscanf(parts[2]+" "+parts[3], "v=%d m=%d,t=%d,p=%d", &v, &c.memory, &c.time, &c.threads)
	if err != nil || v != argon2.Version {
		return false, fmt.Errorf("a password is kept in an unknown form")
	}
	salt, err := base64.RawStdEncoding.DecodeString(parts[4])
	if err != nil {
		return false, fmt.Errorf("a password is kept in an unknown form")
	}
	if len(password) > maxPassword {
		password = ""
	}
	sum, err := d.argon(ctx, password, salt, c)
	if err != nil {
		return false, err
	}
	return same(base64.RawStdEncoding.EncodeToString(sum), parts[5]), nil
}
