// Package connection keeps the services that the console works with, and
// reaches them: the local runtime of this machine, and OpenSandbox services.
//
//	fleet := connection.New(database, vault, &connection.Options{Dial: dial, Local: local})
//	list, err := fleet.List(ctx)                        // of every connection, at once
//	service, err := fleet.Service(ctx, connectionID)
//	info, err := service.Get(ctx, sandboxID)
//
// A service that hangs slows nobody: a list tells what was seen of it last,
// and since when it does not answer.
package connection

import (
	"context"
	"database/sql"
	"errors"
	"net/netip"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/glassboxhq/glassbox/internal/db"
	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/internal/vault"
	"github.com/glassboxhq/glassbox/sandbox"
)

// Local is the id and the name of the connection that is built in: the local
// runtime of this server.
const Local = "local"

// The codes of this package's errors, beside those of package sandbox.
const (
	CodeNotFound sandbox.Code = "connection_not_found"
	CodeExists   sandbox.Code = "connection_exists"
	CodeDisabled sandbox.Code = "connection_disabled"
	CodeBuiltIn  sandbox.Code = "connection_built_in"
	CodeChanged  sandbox.Code = "connection_changed"
	CodeAddress  sandbox.Code = "address_not_allowed"
	CodeSealed   sandbox.Code = "credentials_unreadable"
)

// Connection is a service with the way to it.
type Connection struct {
	ID          string
	Name        string
	Endpoint    string // root of the service; empty: the local runtime
	HasKey      bool
	ServerProxy bool // sandboxes are reached through the service's own proxy
	Enabled     bool
	Revision    int64 // counts its changes
	CreatedAt   time.Time
	UpdatedAt   time.Time
	sealed      []byte
}

// Options say how services are reached.
type Options struct {
	// Dial makes the client of a service. It starts nothing.
	Dial Dial
	// Local is the local runtime; nil: there is none.
	Local Service
	// Allowed are networks in which services may be although such addresses
	// are refused: metadata services, link-local and reserved ones.
	Allowed []netip.Prefix
	// Now stands in for time.Now, in tests.
	Now func() time.Time
	// Timeout bounds one list of a service; 0: 10 s. Patience bounds the wait
	// of whoever asks for all of them; 0: 2 s.
	Timeout, Patience time.Duration
}

const columns = `id, name, endpoint, sealed_key, server_proxy, enabled, revision, created_at, updated_at`

func scan(row db.Row) (*Connection, error) {
	c := &Connection{}
	var proxy, enabled int
	var created, updated db.Time
	err := row.Scan(&c.ID, &c.Name, &c.Endpoint, &c.sealed, &proxy, &enabled, &c.Revision, &created, &updated)
	c.HasKey, c.ServerProxy, c.Enabled = len(c.sealed) > 0, proxy != 0, enabled != 0
	c.CreatedAt, c.UpdatedAt = created.Time, updated.Time
	return c, err
}

func (f *Fleet) local() *Connection {
	return &Connection{ID: Local, Name: Local, ServerProxy: true, Enabled: true, Revision: 1, CreatedAt: f.began, UpdatedAt: f.began}
}

// Connections lists the connections by name, the local one first.
func (f *Fleet) Connections(ctx context.Context) ([]*Connection, error) {
	list, err := db.Collect(ctx, f.db, scan, `select `+columns+` from connections order by name_key`)
	if err == nil && f.opts.Local != nil {
		list = append([]*Connection{f.local()}, list...)
	}
	return list, err
}

// Connection returns one connection.
func (f *Fleet) Connection(ctx context.Context, connectionID string) (*Connection, error) {
	if connectionID == Local && f.opts.Local != nil {
		return f.local(), nil
	}
	c, err := scan(f.db.QueryRow(ctx, `select `+columns+` from connections where id = ?`, connectionID))
	if errors.Is(err, sql.ErrNoRows) {
		return nil, &sandbox.Error{Op: "find connection", Code: CodeNotFound, Message: "there is no such connection"}
	}
	return c, err
}

// New is what a connection is made of.
type New struct {
	Name        string
	Endpoint    string
	Key         vault.Secret
	ServerProxy bool
	Enabled     bool
}

// Add makes a connection. It does not ask the service; Test does.
func (f *Fleet) Add(ctx context.Context, n *New) (*Connection, error) {
	if err := validateName(n.Name); err != nil {
		return nil, err
	}
	endpoint, err := f.validateEndpoint(n.Endpoint)
	if err != nil {
		return nil, err
	}
	now := f.opts.Now().UTC()
	c := &Connection{
		ID: id.New(), Name: n.Name, Endpoint: endpoint, HasKey: n.Key != "", ServerProxy: n.ServerProxy, Enabled: n.Enabled,
		Revision: 1, CreatedAt: now, UpdatedAt: now,
	}
	if c.sealed, err = f.seal(c.ID, n.Key); err != nil {
		return nil, err
	}
	_, err = f.db.Exec(ctx, `insert into connections (id, name, name_key, endpoint, sealed_key, server_proxy, enabled, revision, created_at, updated_at)
		values (?, ?, ?, ?, ?, ?, ?, 1, ?, ?)`,
		c.ID, c.Name, strings.ToLower(c.Name), c.Endpoint, c.sealed, number(c.ServerProxy), number(c.Enabled), db.At(now), db.At(now))
	if f.db.Exists(err) {
		return nil, exists("add connection")
	}
	return c, err
}

func exists(op string) error {
	return &sandbox.Error{Op: op, Code: CodeExists, Message: "there is a connection of this name already"}
}

// Change is what becomes of a connection; nil leaves a part as it is. An empty
// Key takes the key away. Another endpoint needs the key anew: the old one was
// given for the old address.
type Change struct {
	Name, Endpoint       *string
	Key                  *vault.Secret
	ServerProxy, Enabled *bool
}

// Alter changes a connection if it still has a revision; 0: whichever.
func (f *Fleet) Alter(ctx context.Context, connectionID string, revision int64, change *Change) (*Connection, error) {
	if connectionID == Local {
		return nil, builtIn()
	}
	c, err := f.Connection(ctx, connectionID)
	if err != nil {
		return nil, err
	}
	changed := &sandbox.Error{Op: "change connection", Code: CodeChanged, Message: "somebody else has changed it; read it again"}
	if revision != 0 && revision != c.Revision {
		return nil, changed
	}
	if err := f.apply(c, change); err != nil {
		return nil, err
	}
	n, err := f.db.Exec(ctx, `update connections set name = ?, name_key = ?, endpoint = ?, sealed_key = ?, server_proxy = ?, enabled = ?,
		revision = revision + 1, updated_at = ? where id = ? and revision = ?`,
		c.Name, strings.ToLower(c.Name), c.Endpoint, c.sealed, number(c.ServerProxy), number(c.Enabled), db.At(f.opts.Now()), c.ID, c.Revision)
	switch {
	case f.db.Exists(err):
		return nil, exists("change connection")
	case err != nil:
		return nil, err
	case n == 0:
		return nil, changed
	}
	f.drop(c.ID)
	return f.Connection(ctx, c.ID)
}

func (f *Fleet) apply(c *Connection, change *Change) (err error) {
	if change.Name != nil {
		if err := validateName(*change.Name); err != nil {
			return err
		}
		c.Name = *change.Name
	}
	if change.Endpoint != nil {
		endpoint, err := f.validateEndpoint(*change.Endpoint)
		if err != nil {
			return err
		}
		if endpoint != c.Endpoint && c.HasKey && change.Key == nil {
			return sandbox.Invalid("key", "must be given anew with another endpoint: it would be sent there")
		}
		c.Endpoint = endpoint
	}
	if change.Key != nil {
		if c.sealed, err = f.seal(c.ID, *change.Key); err != nil {
			return err
		}
	}
	if change.ServerProxy != nil {
		c.ServerProxy = *change.ServerProxy
	}
	if change.Enabled != nil {
		c.Enabled = *change.Enabled
	}
	return nil
}

// Remove removes a connection. Its sandboxes go on.
func (f *Fleet) Remove(ctx context.Context, connectionID string) error {
	if connectionID == Local {
		return builtIn()
	}
	n, err := f.db.Exec(ctx, `delete from connections where id = ?`, connectionID)
	if err == nil && n == 0 {
		err = &sandbox.Error{Op: "remove connection", Code: CodeNotFound, Message: "there is no such connection"}
	}
	f.drop(connectionID)
	return err
}

func builtIn() error {
	return &sandbox.Error{Op: "change connection", Code: CodeBuiltIn, Message: "the local runtime is a part of this server, and stays as it is"}
}

// place binds a key to its row.
func place(connectionID string) string { return "connections/" + connectionID + "/key" }

func (f *Fleet) seal(connectionID string, key vault.Secret) ([]byte, error) {
	if key == "" {
		return nil, nil
	}
	if len(key) > maxKey || strings.ContainsFunc(string(key), func(r rune) bool { return r < ' ' || r == 0x7f || r == utf8.RuneError }) {
		return nil, sandbox.Invalid("key", "must be at most 4096 bytes without line breaks and other control characters")
	}
	return f.vault.Seal(key, place(connectionID))
}

func (f *Fleet) unseal(c *Connection) (vault.Secret, error) {
	if !c.HasKey {
		return "", nil
	}
	key, err := f.vault.Unseal(c.sealed, place(c.ID))
	if err != nil {
		err = &sandbox.Error{
			Op: "read key of connection", Code: CodeSealed, Err: err,
			Message: "give the key of this connection anew, or restore the key file that belongs to this database",
		}
	}
	return key, err
}

// Rotate seals every key with a new master key, and forgets the old ones.
func (f *Fleet) Rotate(ctx context.Context) error {
	if err := f.vault.Rotate(); err != nil {
		return err
	}
	list, err := db.Collect(ctx, f.db, scan, `select `+columns+` from connections where sealed_key is not null`)
	if err != nil {
		return err
	}
	for _, c := range list {
		sealed, changed, err := f.vault.Reseal(c.sealed, place(c.ID))
		if err != nil {
			return err // the old keys stay
		}
		if !changed {
			continue
		}
		// Who changed the row meanwhile has sealed with the new key.
		if _, err := f.db.Exec(ctx, `update connections set sealed_key = ? where id = ? and revision = ?`, sealed, c.ID, c.Revision); err != nil {
			return err
		}
	}
	return f.vault.Forget()
}

const (
	maxName = 64
	maxKey  = 4096
)

func validateName(name string) error {
	if strings.TrimSpace(name) != name || name == "" || !utf8.ValidString(name) || utf8.RuneCountInString(name) > maxName ||
		strings.ContainsFunc(name, unicode.IsControl) || strings.EqualFold(name, Local) {
		return sandbox.Invalid("name", "must be 1 to 64 characters, without spaces around it, and not "+Local)
	}
	return nil
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}
