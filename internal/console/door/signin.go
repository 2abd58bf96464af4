package door

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/glassboxhq/glassbox/internal/db"
	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/sandbox"
)

// From tells where a request comes from.
type From struct {
	Address string // without a port
	Agent   string // User-Agent; input
}

// SignIn is a browser that came in.
type SignIn struct {
	ID        string
	UserID    string
	UserName  string
	How       string // link or password
	Address   string
	Agent     string
	CreatedAt time.Time
	SeenAt    time.Time
	ExpiresAt time.Time
}

// In is what somebody gets who has signed in.
type In struct {
	Session Secret
	SignIn  *SignIn
	User    *User
}

// NewLink returns a secret that lets its holder in once, as a user. The first
// user is made when there is none.
func (d *Door) NewLink(ctx context.Context, name string) (Secret, time.Time, error) {
	if err := d.firstUser(ctx, name); err != nil {
		return "", time.Time{}, err
	}
	secret, hashed := newSecret(linkPrefix)
	now := d.opts.Now()
	expires := now.Add(d.opts.LinkLife)
	n, err := d.db.Exec(ctx, `insert into links (hash, user_id, created_at, expires_at)
		select ?, id, `+moment(now)+`, `+moment(expires)+` from users where name_key = ? and disabled = 0`, hashed, nameKey(name))
	if err == nil && n == 0 {
		err = &sandbox.Error{Op: "make sign-in link", Code: CodeUserNotFound, Message: "there is no user of this name who may sign in"}
	}
	return secret, expires, err
}

// moment is a time as a literal: PostgreSQL cannot tell the type of an
// argument in a list of what is selected.
func moment(t time.Time) string { return fmt.Sprintf("cast(%d as bigint)", t.UnixMicro()) }

func (d *Door) firstUser(ctx context.Context, name string) error {
	if name != FirstUser {
		return nil
	}
	var users int
	if err := d.db.QueryRow(ctx, `select count(*) from users`).Scan(&users); err != nil || users > 0 {
		return err
	}
	_, err := d.AddUser(ctx, FirstUser, Admin, "")
	if e, ok := errors.AsType[*sandbox.Error](err); ok && e.Code == CodeUserExists {
		return nil // somebody else was first
	}
	return err
}

// failed is the one answer to whoever may not come in.
func failed(how string) error {
	message := "the name or the password is wrong"
	if how == ViaLink {
		message = "this link was used before, has expired, or is none; glassbox login-link prints a new one"
	}
	return &sandbox.Error{Op: "sign in", Code: CodeSignIn, Message: message}
}

// TooMany tells how long to wait.
type TooMany struct{ After time.Duration }

// Error implements error.
func (t *TooMany) Error() string {
	return fmt.Sprintf("try again in %d seconds", int(t.After/time.Second)+1)
}

func (d *Door) admit(l *limiter, key string) error {
	if wait := l.wait(key, d.opts.Now()); wait > 0 {
		return &sandbox.Error{Op: "sign in", Code: CodeTooMany, Message: "there were too many attempts", Err: &TooMany{wait}}
	}
	return nil
}

// SignInByLink lets the holder of a link in. The link is void afterwards.
func (d *Door) SignInByLink(ctx context.Context, link Secret, from From) (*In, error) {
	if err := d.admit(d.addresses, network(from.Address)); err != nil {
		return nil, err
	}
	if !isOf(linkPrefix, link) {
		return nil, failed(ViaLink)
	}
	var userID string
	err := d.db.Tx(ctx, func(tx *db.Tx) error {
		var expires db.Time
		err := tx.QueryRow(ctx, `delete from links where hash = ? returning user_id, expires_at`, hash(link)).Scan(&userID, &expires)
		if errors.Is(err, sql.ErrNoRows) {
			return failed(ViaLink)
		}
		if err == nil && !d.opts.Now().Before(expires.Time) {
			userID = "" // and the link is gone
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	u, err := d.User(ctx, userID)
	if err != nil || u.Disabled {
		if e, ok := errors.AsType[*sandbox.Error](err); ok && e.Code == CodeUserNotFound || err == nil {
			return nil, failed(ViaLink)
		}
		return nil, err
	}
	return d.enter(ctx, u, ViaLink, from)
}

// SignInByPassword lets a user in.
func (d *Door) SignInByPassword(ctx context.Context, name string, password Secret, from From) (*In, error) {
	if err := d.admit(d.addresses, network(from.Address)); err != nil {
		return nil, err
	}
	if validateName(name) != nil {
		name = "" // nobody; a database may refuse to look for it
	}
	if err := d.admit(d.accounts, nameKey(name)); err != nil {
		return nil, err
	}
	var userID, kept string
	err := d.db.QueryRow(ctx, `select id, coalesce(password, '') from users where name_key = ? and disabled = 0`, nameKey(name)).Scan(&userID, &kept)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return nil, err
	}
	right, err := d.checkPassword(ctx, kept, password)
	if err != nil {
		return nil, err
	}
	if !right || kept == "" {
		return nil, failed(ViaPassword)
	}
	u, err := d.User(ctx, userID)
	if err != nil {
		return nil, err
	}
	return d.enter(ctx, u, ViaPassword, from)
}

const maxAgent = 256

func (d *Door) enter(ctx context.Context, u *User, how string, from From) (*In, error) {
	secret, hashed := newSecret(sessionPrefix)
	now := d.opts.Now().UTC()
	s := &SignIn{
		ID: id.New(), UserID: u.ID, UserName: u.Name, How: how, Address: from.Address,
		Agent: strings.ToValidUTF8(from.Agent[:min(len(from.Agent), maxAgent)], ""), CreatedAt: now, SeenAt: now, ExpiresAt: now.Add(d.opts.AbsoluteLife),
	}
	s.Agent = strings.ReplaceAll(s.Agent, "\x00", "")
	_, err := d.db.Exec(ctx, `insert into sign_ins (id, hash, user_id, how, address, agent, created_at, seen_at, expires_at) values (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		s.ID, hashed, u.ID, how, s.Address, s.Agent, db.At(now), db.At(now), db.At(s.ExpiresAt))
	return &In{Session: secret, SignIn: s, User: u}, err
}

// noteEvery spares the database a write for each request.
const noteEvery = time.Minute

// BySession returns who comes with the secret of a sign-in.
func (d *Door) BySession(ctx context.Context, secret Secret) (*Visitor, error) {
	needed := &sandbox.Error{Code: CodeSignInNeeded, Message: "sign in first: this sign-in has ended or never was"}
	if !isOf(sessionPrefix, secret) {
		return nil, needed
	}
	v := &Visitor{}
	var kept string
	var seen, expires db.Time
	u, err := scanUser(extended{d.db.QueryRow(ctx, `select `+userColumns+`, s.id, s.how, s.hash, s.seen_at, s.expires_at
		from sign_ins s join users u on u.id = s.user_id where s.hash = ?`, hash(secret)), []any{&v.Entry, &v.Via, &kept, &seen, &expires}})
	now := d.opts.Now()
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, needed
	case err != nil:
		return nil, err
	case !same(kept, hash(secret)) || u.Disabled || !now.Before(expires.Time) || !now.Before(seen.Add(d.opts.IdleLife)):
		return nil, needed
	}
	v.User = u
	if now.Sub(seen.Time) >= noteEvery {
		_, err = d.db.Exec(ctx, `update sign_ins set seen_at = ? where id = ?`, db.At(now), v.Entry)
	}
	return v, err
}

// extended scans the columns behind those that somebody else knows.
type extended struct {
	row  db.Row
	more []any
}

func (e extended) Scan(into ...any) error { return e.row.Scan(append(into, e.more...)...) }

// SignIns lists who is signed in: a user's own, or with an empty id everybody,
// newest first, before one.
func (d *Door) SignIns(ctx context.Context, userID, before string, limit int) ([]*SignIn, error) {
	if before == "" {
		before = "g" // behind every id, in any order of letters
	}
	now := d.opts.Now()
	return db.Collect(ctx, d.db, scanSignIn, `select s.id, s.user_id, u.name, s.how, s.address, s.agent, s.created_at, s.seen_at, s.expires_at
		from sign_ins s join users u on u.id = s.user_id
		where (s.user_id = ? or ? = '') and s.id < ? and s.expires_at > ? and s.seen_at > ? order by s.id desc limit ?`,
		userID, userID, before, db.At(now), db.At(now.Add(-d.opts.IdleLife)), limit)
}

func scanSignIn(row db.Row) (*SignIn, error) {
	s := &SignIn{}
	var created, seen, expires db.Time
	err := row.Scan(&s.ID, &s.UserID, &s.UserName, &s.How, &s.Address, &s.Agent, &created, &seen, &expires)
	s.CreatedAt, s.SeenAt, s.ExpiresAt = created.Time, seen.Time, expires.Time
	return s, err
}

// SignOut ends a sign-in: a user's own, or with an empty user id anybody's.
func (d *Door) SignOut(ctx context.Context, signInID, userID string) error {
	n, err := d.db.Exec(ctx, `delete from sign_ins where id = ? and (user_id = ? or ? = '')`, signInID, userID, userID)
	if err == nil && n == 0 {
		err = &sandbox.Error{Op: "sign out", Code: CodeEntryNotFound, Message: "there is no such sign-in; it may have ended"}
	}
	return err
}

// ChangePassword changes a visitor's own password. Who has one must know it:
// a browser that was left open is not enough. Other browsers are signed out.
func (d *Door) ChangePassword(ctx context.Context, v *Visitor, current, next Secret) (*User, error) {
	if err := d.admit(d.accounts, nameKey(v.User.Name)); err != nil {
		return nil, err
	}
	var kept string
	if err := d.db.QueryRow(ctx, `select coalesce(password, '') from users where id = ?`, v.User.ID).Scan(&kept); err != nil {
		return nil, err
	}
	if kept != "" {
		right, err := d.checkPassword(ctx, kept, current)
		if err != nil {
			return nil, err
		}
		if !right {
			return nil, sandbox.Invalid("current", "is not this user's password")
		}
	}
	return d.ChangeUser(ctx, v.User.ID, &UserChange{Password: &next}, v.Entry)
}
