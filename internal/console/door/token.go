package door

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/glassboxhq/glassbox/internal/db"
	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/sandbox"
)

// Token lets a program in, as a user and not further than its scopes.
type Token struct {
	ID        string
	UserID    string
	UserName  string
	Name      string
	Scopes    []Scope
	CreatedAt time.Time
	SeenAt    time.Time // zero: never used
	ExpiresAt time.Time
}

// maxTokenLife is long enough for any program whose owner is still there.
const maxTokenLife = 366 * 24 * time.Hour

// AddToken makes a token of a user. The secret is told this once.
func (d *Door) AddToken(ctx context.Context, userID, name string, scopes []Scope, life time.Duration) (*Token, Secret, error) {
	switch {
	case strings.TrimSpace(name) == "" || !utf8.ValidString(name) || utf8.RuneCountInString(name) > maxName || strings.ContainsFunc(name, unicode.IsControl):
		return nil, "", sandbox.Invalid("name", "must be 1 to 64 characters")
	case life < time.Minute || life > maxTokenLife:
		return nil, "", sandbox.Invalid("expires_in_seconds", "must be a minute to a year")
	}
	if err := validateScopes(scopes); err != nil {
		return nil, "", err
	}
	secret, hashed := newSecret(tokenPrefix)
	now := d.opts.Now().UTC()
	t := &Token{ID: id.New(), UserID: userID, Name: name, Scopes: scopes, CreatedAt: now, ExpiresAt: now.Add(life)}
	_, err := d.db.Exec(ctx, `insert into tokens (id, hash, user_id, name, scopes, created_at, expires_at) values (?, ?, ?, ?, ?, ?, ?)`,
		t.ID, hashed, userID, name, joined(scopes, " "), db.At(now), db.At(t.ExpiresAt))
	return t, secret, err
}

// ByToken returns who comes with a token.
func (d *Door) ByToken(ctx context.Context, secret Secret) (*Visitor, error) {
	invalid := &sandbox.Error{Code: CodeToken, Message: "the token has expired, was revoked, or is none"}
	if !isOf(tokenPrefix, secret) {
		return nil, invalid
	}
	v := &Visitor{Via: ViaToken}
	var kept, scopes string
	var seen, expires db.Time
	u, err := scanUser(extended{d.db.QueryRow(ctx, `select `+userColumns+`, t.id, t.hash, t.scopes, t.seen_at, t.expires_at
		from tokens t join users u on u.id = t.user_id where t.hash = ?`, hash(secret)), []any{&v.Entry, &kept, &scopes, &seen, &expires}})
	now := d.opts.Now()
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, invalid
	case err != nil:
		return nil, err
	case !same(kept, hash(secret)) || u.Disabled || !now.Before(expires.Time):
		return nil, invalid
	}
	v.User, v.Scopes = u, readScopes(scopes)
	if now.Sub(seen.Time) >= noteEvery {
		_, err = d.db.Exec(ctx, `update tokens set seen_at = ? where id = ?`, db.At(now), v.Entry)
	}
	return v, err
}

func readScopes(text string) (list []Scope) {
	for s := range strings.FieldsSeq(text) {
		list = append(list, Scope(s))
	}
	return list
}

// Tokens lists tokens as SignIns lists sign-ins.
func (d *Door) Tokens(ctx context.Context, userID, before string, limit int) ([]*Token, error) {
	if before == "" {
		before = "g"
	}
	return db.Collect(ctx, d.db, scanToken, `select t.id, t.user_id, u.name, t.name, t.scopes, t.created_at, t.seen_at, t.expires_at
		from tokens t join users u on u.id = t.user_id where (t.user_id = ? or ? = '') and t.id < ? order by t.id desc limit ?`, userID, userID, before, limit)
}

func scanToken(row db.Row) (*Token, error) {
	t := &Token{}
	var scopes string
	var created, seen, expires db.Time
	err := row.Scan(&t.ID, &t.UserID, &t.UserName, &t.Name, &scopes, &created, &seen, &expires)
	t.Scopes, t.CreatedAt, t.SeenAt, t.ExpiresAt = readScopes(scopes), created.Time, seen.Time, expires.Time
	return t, err
}

// RemoveToken revokes a token as SignOut ends a sign-in.
func (d *Door) RemoveToken(ctx context.Context, tokenID, userID string) error {
	n, err := d.db.Exec(ctx, `delete from tokens where id = ? and (user_id = ? or ? = '')`, tokenID, userID, userID)
	if err == nil && n == 0 {
		err = &sandbox.Error{Op: "revoke token", Code: CodeTokenNotFound, Message: "there is no such token"}
	}
	return err
}
