package server

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/glassboxhq/glassbox/internal/console/door"
)

// Token is a token as it is told: never its secret.
type Token struct {
	ID        string       `json:"id"`
	UserID    string       `json:"user_id"`
	UserName  string       `json:"user_name"`
	Name      string       `json:"name"`
	Scopes    []door.Scope `json:"scopes" nullable:"false"`
	CreatedAt time.Time    `json:"created_at"`
	SeenAt    time.Time    `json:"seen_at,omitzero" doc:"absent: it was never used"`
	ExpiresAt time.Time    `json:"expires_at"`
}

// NewToken is a token with its secret.
type NewToken struct {
	Token
	Secret string `json:"secret" doc:"to be sent as Authorization: Bearer …; it is told this once"`
}

func tokenOf(t *door.Token) Token { return Token(*t) }

func (s *Server) routeTokens() {
	tag := []string{"tokens"}
	route(s, huma.Operation{OperationID: "list-tokens", Method: http.MethodGet, Path: "/tokens", Summary: "List tokens, newest first", Tags: tag},
		func(ctx context.Context, v *visit, in *struct {
			Paging
			All
		},
		) (*listed[Token], error) {
			whose, err := in.whose(v)
			if err != nil {
				return nil, err
			}
			return pageOf(&in.Paging, func(before string, limit int) ([]*door.Token, error) {
				return s.opts.Door.Tokens(ctx, whose, before, limit)
			},
				func(t *door.Token) (Token, string) { return tokenOf(t), t.ID })
		})
	route(s, huma.Operation{OperationID: "create-token", Method: http.MethodPost, Path: "/tokens", Summary: "Make a token for a program", Tags: tag, DefaultStatus: http.StatusCreated},
		func(ctx context.Context, v *visit, in *struct {
			Body struct {
				Name    string       `json:"name" minLength:"1" maxLength:"256"`
				Scopes  []door.Scope `json:"scopes" minItems:"1" maxItems:"16" nullable:"false" doc:"sandboxes:read, sandboxes:write, history:read, connections:read, connections:write, admin"`
				Seconds int64        `json:"expires_in_seconds" minimum:"60" maximum:"31622400"`
			}
		},
		) (*struct{ Body NewToken }, error) {
			t, secret, err := s.opts.Door.AddToken(ctx, v.visitor.User.ID, in.Body.Name, in.Body.Scopes, time.Duration(in.Body.Seconds)*time.Second)
			if err != nil {
				return nil, err
			}
			t.UserName, v.target = v.visitor.User.Name, t.ID
			v.detail = detail(map[string]any{"name": t.Name, "scopes": t.Scopes})
			return &struct{ Body NewToken }{NewToken{tokenOf(t), string(secret)}}, nil
		})
	route(s, huma.Operation{OperationID: "delete-token", Method: http.MethodDelete, Path: "/tokens/{token}", Summary: "Revoke a token", Tags: tag},
		func(ctx context.Context, v *visit, in *struct {
			Token string `path:"token" format:"uuid" maxLength:"64"`
		},
		) (*nothing, error) {
			return nil, s.opts.Door.RemoveToken(ctx, in.Token, own(v))
		})
}

// detail writes more of an act.
func detail(fields map[string]any) string {
	text, err := json.Marshal(fields)
	if err != nil {
		panic(err) // plain values only
	}
	return string(text)
}
