// Package door decides who may come into the console: users with roles, who
// sign in by a one-time link or a password, and programs with tokens.
//
//	d := door.New(database, nil)
//	link, err := d.NewLink(ctx, door.FirstUser)       // glassbox login-link
//	in, err := d.SignInByLink(ctx, link, from)        // once
//	visitor, err := d.BySession(ctx, in.Session)      // each request
//	if !visitor.May(door.Operator, door.SandboxesWrite) { … }
//
// Whatever opens the door is random, is shown once, and is kept as its hash.
package door

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"strings"
	"time"

	"github.com/glassboxhq/glassbox/internal/db"
	"github.com/glassboxhq/glassbox/internal/vault"
	"github.com/glassboxhq/glassbox/sandbox"
)

// Secret is what opens the door. It is not printed by accident.
type Secret = vault.Secret

// The codes of this package's errors, beside those of package sandbox.
const (
	CodeSignIn        sandbox.Code = "sign_in_failed"
	CodeSignInNeeded  sandbox.Code = "sign_in_needed"
	CodeToken         sandbox.Code = "token_invalid"
	CodeTooMany       sandbox.Code = "too_many_attempts"
	CodeUserNotFound  sandbox.Code = "user_not_found"
	CodeUserExists    sandbox.Code = "user_exists"
	CodeLastAdmin     sandbox.Code = "last_admin"
	CodeEntryNotFound sandbox.Code = "sign_in_not_found"
	CodeTokenNotFound sandbox.Code = "token_not_found"
)

// Options bound how long a door stays open.
type Options struct {
	LinkLife     time.Duration    // 0: 15 minutes
	IdleLife     time.Duration    // of a sign-in that is not used; 0: 24 hours
	AbsoluteLife time.Duration    // of any sign-in; 0: 14 days
	Now          func() time.Time // nil: time.Now
}

// Door knows users and what they come in with.
type Door struct {
	db        *db.DB
	opts      Options
	addresses *limiter
	accounts  *limiter
	hashing   chan struct{} // bounds the memory that passwords take
}

// New returns a door over a database. It starts nothing; Run does.
func New(database *db.DB, opts *Options) *Door {
	d := &Door{
		db: database, addresses: newLimiter(perAddress), accounts: newLimiter(perAccount),
		hashing: make(chan struct{}, maxHashing),
	}
	if opts != nil {
		d.opts = *opts
	}
	for life, standard := range map[*time.Duration]time.Duration{
		&d.opts.LinkLife: 15 * time.Minute, &d.opts.IdleLife: 24 * time.Hour, &d.opts.AbsoluteLife: 14 * 24 * time.Hour,
	} {
		if *life == 0 {
			*life = standard
		}
	}
	if d.opts.Now == nil {
		d.opts.Now = time.Now
	}
	return d
}

const sweepEvery = time.Hour

// Run removes what has expired, until ctx ends.
func (d *Door) Run(ctx context.Context) error {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		if err := d.Sweep(ctx); err != nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Sweep removes what has expired.
func (d *Door) Sweep(ctx context.Context) error {
	now := d.opts.Now()
	var errs error
	for query, before := range map[string]time.Time{
		`delete from links where expires_at <= ?`:    now,
		`delete from sign_ins where expires_at <= ?`: now,
		`delete from sign_ins where seen_at <= ?`:    now.Add(-d.opts.IdleLife),
		`delete from tokens where expires_at <= ?`:   now.Add(-expiredTokens),
	} {
		_, err := d.db.Exec(ctx, query, db.At(before))
		errs = errors.Join(errs, err)
	}
	return errs
}

// expiredTokens stay listed for a while: who wonders why a program stopped
// finds out.
const expiredTokens = 30 * 24 * time.Hour

// The kinds of secrets, told by their beginning, so that people and scanners
// know what they found.
const (
	linkPrefix    = "gbl_"
	sessionPrefix = "gbs_"
	tokenPrefix   = "gbt_"
)

// newSecret returns a secret of 130 random bits, and its hash. It needs no
// salt and no slow hash: nobody can guess it.
func newSecret(prefix string) (Secret, string) {
	s := Secret(prefix + rand.Text())
	return s, hash(s)
}

func hash(s Secret) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// maxSecret is longer than any secret of ours.
const maxSecret = 64

func isOf(prefix string, s Secret) bool {
	return len(s) <= maxSecret && strings.HasPrefix(string(s), prefix)
}

// same compares in a time that does not tell how much agrees. What it compares
// are hashes that a look-up has found equal already: it guards against a
// database that compares otherwise than by bytes.
func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
