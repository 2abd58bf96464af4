package connection

import (
	"context"
	"errors"
	"strings"

	"github.com/glassboxhq/glassbox/internal/db"
	"github.com/glassboxhq/glassbox/internal/vault"
	"github.com/glassboxhq/glassbox/sandbox"
)

// Configured is a connection as an operator's configuration tells it. What is
// nil stays as it is; a new connection has no key, uses the service's own proxy
// and is enabled then.
type Configured struct {
	Name                 string
	Endpoint             string
	Key                  *vault.Secret
	ServerProxy, Enabled *bool
}

// Configure adds a connection, or changes the one of that name, so that it is
// as configured. changed tells whether it was not so before.
func (f *Fleet) Configure(ctx context.Context, n *Configured) (c *Connection, changed bool, err error) {
	endpoint, err := f.validateEndpoint(n.Endpoint)
	if err != nil {
		return nil, false, err
	}
	for { // until no other server of this database comes between
		list, err := db.Collect(ctx, f.db, scan, `select `+columns+` from connections where name_key = ?`, strings.ToLower(n.Name))
		switch {
		case err != nil:
			return nil, false, err
		case len(list) == 0:
			c, err = f.Add(ctx, n.whole())
		default:
			change := f.difference(list[0], n, endpoint)
			if change == nil {
				return list[0], false, nil
			}
			c, err = f.Alter(ctx, list[0].ID, list[0].Revision, change)
		}
		if e, ok := errors.AsType[*sandbox.Error](err); ok && (e.Code == CodeExists || e.Code == CodeChanged) {
			continue
		}
		return c, err == nil, err
	}
}

func (n *Configured) whole() *New {
	whole := &New{Name: n.Name, Endpoint: n.Endpoint, ServerProxy: n.ServerProxy == nil || *n.ServerProxy, Enabled: n.Enabled == nil || *n.Enabled}
	if n.Key != nil {
		whole.Key = *n.Key
	}
	return whole
}

// difference is what has to change; nil: nothing.
func (f *Fleet) difference(c *Connection, n *Configured, endpoint string) *Change {
	change := &Change{}
	if c.Name != n.Name {
		change.Name = &n.Name
	}
	if c.Endpoint != endpoint {
		change.Endpoint, change.Key = &endpoint, n.Key
	}
	if n.Key != nil {
		if known, err := f.unseal(c); err != nil || known != *n.Key { // one that cannot be read is had anew
			change.Key = n.Key
		}
	}
	if n.ServerProxy != nil && *n.ServerProxy != c.ServerProxy {
		change.ServerProxy = n.ServerProxy
	}
	if n.Enabled != nil && *n.Enabled != c.Enabled {
		change.Enabled = n.Enabled
	}
	if *change == (Change{}) {
		return nil
	}
	return change
}
