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

// User is a person, or what stands for one.
type User struct {
	ID          string
	Name        string
	Role        Role
	HasPassword bool
	Disabled    bool
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

// FirstUser is the admin that is made when the first link is asked for.
const FirstUser = "admin"

const userColumns = `u.id, u.name, u.role, u.password is not null, u.disabled, u.created_at, u.updated_at`

func scanUser(row db.Row) (*User, error) {
	u := &User{}
	var created, updated db.Time
	var disabled int
	err := row.Scan(&u.ID, &u.Name, &u.Role, &u.HasPassword, &disabled, &created, &updated)
	u.Disabled, u.CreatedAt, u.UpdatedAt = disabled != 0, created.Time, updated.Time
	return u, err
}

// Users lists the users by name, after one.
func (d *Door) Users(ctx context.Context, after string, limit int) ([]*User, error) {
	return db.Collect(ctx, d.db, scanUser, `select `+userColumns+` from users u where u.name_key > ? order by u.name_key limit ?`, nameKey(after), limit)
}

// User returns one user.
func (d *Door) User(ctx context.Context, userID string) (*User, error) {
	u, err := scanUser(d.db.QueryRow(ctx, `select `+userColumns+` from users u where u.id = ?`, userID))
	if errors.Is(err, sql.ErrNoRows) {
		return nil, noUser()
	}
	return u, err
}

func noUser() error {
	return &sandbox.Error{Op: "find user", Code: CodeUserNotFound, Message: "there is no such user"}
}

// AddUser makes a user, with a password or with none.
func (d *Door) AddUser(ctx context.Context, name string, role Role, password Secret) (*User, error) {
	if err := errors.Join(validateName(name), role.validate()); err != nil {
		return nil, err
	}
	hashed := sql.NullString{}
	if password != "" {
		text, err := d.hashPassword(ctx, password)
		if err != nil {
			return nil, err
		}
		hashed = sql.NullString{String: text, Valid: true}
	}
	now := d.opts.Now().UTC()
	u := &User{ID: id.New(), Name: name, Role: role, HasPassword: hashed.Valid, CreatedAt: now, UpdatedAt: now}
	_, err := d.db.Exec(ctx, `insert into users (id, name, name_key, role, password, disabled, created_at, updated_at) values (?, ?, ?, ?, ?, 0, ?, ?)`,
		u.ID, name, nameKey(name), role, hashed, db.At(now), db.At(now))
	if d.db.Exists(err) {
		return nil, &sandbox.Error{Op: "add user", Code: CodeUserExists, Message: "there is a user of this name already"}
	}
	return u, err
}

// UserChange is what becomes of a user; nil leaves a part as it is. An empty
// Password takes the password away.
type UserChange struct {
	Role     *Role
	Disabled *bool
	Password *Secret
}

// ChangeUser changes a user. Who loses rights or gets another password is
// signed out everywhere, but for the sign-in that is kept.
func (d *Door) ChangeUser(ctx context.Context, userID string, change *UserChange, keep string) (*User, error) {
	hashed := sql.NullString{}
	if change.Role != nil {
		if err := change.Role.validate(); err != nil {
			return nil, err
		}
	}
	if change.Password != nil && *change.Password != "" {
		text, err := d.hashPassword(ctx, *change.Password)
		if err != nil {
			return nil, err
		}
		hashed = sql.NullString{String: text, Valid: true}
	}
	err := d.whileAdmins(ctx, func(tx *db.Tx) error {
		if err := apply(ctx, tx, userID, change, hashed); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `delete from sign_ins where user_id = ? and id <> ?`, userID, keep); err != nil {
			return err
		}
		n, err := tx.Exec(ctx, `update users set updated_at = ? where id = ?`, db.At(d.opts.Now()), userID)
		if err == nil && n == 0 {
			err = noUser()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return d.User(ctx, userID)
}

// apply makes the change itself, with the hash of the new password.
func apply(ctx context.Context, tx *db.Tx, userID string, change *UserChange, hashed sql.NullString) error {
	if change.Role != nil {
		if _, err := tx.Exec(ctx, `update users set role = ? where id = ?`, *change.Role, userID); err != nil {
			return err
		}
	}
	if change.Disabled != nil {
		if _, err := tx.Exec(ctx, `update users set disabled = ? where id = ?`, number(*change.Disabled), userID); err != nil {
			return err
		}
	}
	if change.Password != nil {
		if _, err := tx.Exec(ctx, `update users set password = ? where id = ?`, hashed, userID); err != nil {
			return err
		}
	}
	return nil
}

// RemoveUser removes a user with all that opens the door for it.
func (d *Door) RemoveUser(ctx context.Context, userID string) error {
	return d.whileAdmins(ctx, func(tx *db.Tx) error {
		n, err := tx.Exec(ctx, `delete from users where id = ?`, userID)
		if err == nil && n == 0 {
			err = noUser()
		}
		return err
	})
}

// whileAdmins makes a change after which somebody can still administer.
func (d *Door) whileAdmins(ctx context.Context, change func(*db.Tx) error) error {
	return d.db.Tx(ctx, func(tx *db.Tx) error {
		// An update locks the rows on every database: two who remove each
		// other come one after the other.
		if _, err := tx.Exec(ctx, `update users set updated_at = updated_at where role = ?`, Admin); err != nil {
			return err
		}
		if err := change(tx); err != nil {
			return err
		}
		var left int
		if err := tx.QueryRow(ctx, `select count(*) from users where role = ? and disabled = 0`, Admin).Scan(&left); err != nil {
			return err
		}
		if left == 0 {
			return &sandbox.Error{Op: "change user", Code: CodeLastAdmin, Message: "this is the last admin; make another one first"}
		}
		return nil
	})
}

const maxName = 64

func validateName(name string) error {
	odd := strings.IndexFunc(name, func(r rune) bool {
		return !unicode.In(r, unicode.L, unicode.M, unicode.N) && !strings.ContainsRune("._@-", r)
	})
	if name == "" || !utf8.ValidString(name) || utf8.RuneCountInString(name) > maxName || odd >= 0 {
		return sandbox.Invalid("name", "must be 1 to 64 letters and digits of any script, or . _ @ -")
	}
	return nil
}

// nameKey is a name as it is compared.
func nameKey(name string) string { return strings.ToLower(name) }

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}
