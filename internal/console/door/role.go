package door

import (
	"slices"
	"strings"

	"github.com/glassboxhq/glassbox/sandbox"
)

// Role is what a user may do. Each role may do what those before it may.
type Role string

// The roles.
const (
	Viewer   Role = "viewer"   // looks
	Operator Role = "operator" // works with sandboxes
	Admin    Role = "admin"    // decides who comes in, and where to
)

var roles = []Role{Viewer, Operator, Admin}

// Includes reports whether a role may do what another may.
func (r Role) Includes(other Role) bool {
	has := slices.Index(roles, r)
	return has >= 0 && has >= slices.Index(roles, other) && slices.Contains(roles, other)
}

func (r Role) validate() error {
	if !slices.Contains(roles, r) {
		return sandbox.Invalid("role", "must be viewer, operator or admin")
	}
	return nil
}

// Scope is a part of the console that a token opens.
type Scope string

// The scopes.
const (
	SandboxesRead    Scope = "sandboxes:read"
	SandboxesWrite   Scope = "sandboxes:write"
	HistoryRead      Scope = "history:read"
	ConnectionsRead  Scope = "connections:read"
	ConnectionsWrite Scope = "connections:write"
	Administer       Scope = "admin" // users, acts, metrics
	// Account is of a person at a browser: no token has it.
	Account Scope = "account"
	// Any is of what every visitor may.
	Any Scope = "any"
)

// Scopes are those that a token may have.
var Scopes = []Scope{SandboxesRead, SandboxesWrite, HistoryRead, ConnectionsRead, ConnectionsWrite, Administer}

func validateScopes(list []Scope) error {
	if len(list) == 0 {
		return sandbox.Invalid("scopes", "must name at least one of "+joined(Scopes, ", "))
	}
	for _, s := range list {
		if !slices.Contains(Scopes, s) {
			return sandbox.Invalid("scopes", "must be some of "+joined(Scopes, ", "))
		}
	}
	return nil
}

func joined(list []Scope, by string) string {
	texts := make([]string, len(list))
	for i, s := range list {
		texts[i] = string(s)
	}
	return strings.Join(texts, by)
}

// The ways in.
const (
	ViaLink     = "link"
	ViaPassword = "password"
	ViaToken    = "token"
)

// Visitor is who a request comes from.
type Visitor struct {
	User *User
	// Entry is the id of the sign-in or the token; Via tells which.
	Entry  string
	Via    string
	Scopes []Scope // of a token
}

// May reports whether the visitor has a role, and by this way in the scope.
func (v *Visitor) May(role Role, scope Scope) bool {
	if !v.User.Role.Includes(role) {
		return false
	}
	return v.Via != ViaToken || scope == Any || scope != Account && slices.Contains(v.Scopes, scope)
}
