package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/glassboxhq/glassbox/internal/console/door"
	"github.com/glassboxhq/glassbox/internal/owner"
	"github.com/glassboxhq/glassbox/internal/server"
	"github.com/glassboxhq/glassbox/sandbox"
)

func (a *app) loginLinkCommand() *cobra.Command {
	var user string
	cmd := &cobra.Command{
		Use: "login-link", Short: "Print a link that signs in to the console of the running server, once", Args: cobra.NoArgs,
		Long: `Login-link prints a link that signs in to the console of the server that runs
on this state folder. It works once, and for 15 minutes. Only the user whose
server it is can ask for one.`,
		Example: `  glassbox login-link
  glassbox login-link --user ann`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			link, err := owner.LoginLink(cmd.Context(), a.settings.stateDir, user)
			if err != nil {
				return err
			}
			return a.print(link, func(t *table) { t.line(link.URL) })
		},
	}
	cmd.Flags().StringVar(&user, "user", door.FirstUser, "`name` of the user who signs in")
	return cmd
}

// newLink makes a link that leads to where the server is reached.
func (c *console) newLink(ctx context.Context, user string) (*owner.Link, error) {
	secret, expires, err := c.door.NewLink(ctx, user)
	if err != nil {
		return nil, err
	}
	return &owner.Link{URL: c.base.String() + server.LinkPath(secret), ExpiresAt: expires.UTC().Truncate(time.Second)}, nil
}

// serveLoginLink answers at the state socket, which only this user reaches.
func (c *console) serveLoginLink(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		http.NotFound(w, r)
		return
	}
	link, err := c.newLink(r.Context(), r.URL.Query().Get("user"))
	w.Header().Set("Content-Type", "application/json")
	if err == nil {
		_ = json.NewEncoder(w).Encode(link) // the client may have gone
		return
	}
	refusal := owner.Refusal{Code: sandbox.CodeOf(err), Message: err.Error()}
	if e, ok := errors.AsType[*sandbox.Error](err); ok {
		refusal.Message = e.Message
	}
	w.WriteHeader(http.StatusConflict)
	_ = json.NewEncoder(w).Encode(refusal) // as above
}
