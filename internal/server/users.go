package server

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/glassboxhq/glassbox/internal/console/act"
	"github.com/glassboxhq/glassbox/internal/console/door"
)

// Link is a sign-in link.
type Link struct {
	Link      string    `json:"link" doc:"path and fragment, to be put behind this server's address; it signs in once"`
	ExpiresAt time.Time `json:"expires_at"`
}

// LinkPath is where a link leads. Its secret stands behind the #: browsers
// send that to nobody, and it is in no log.
func LinkPath(secret door.Secret) string {
	return "/sign-in#" + url.PathEscape(string(secret))
}

// Act is what somebody did or tried.
type Act struct {
	ID        string    `json:"id"`
	At        time.Time `json:"at"`
	UserID    string    `json:"user_id,omitempty"`
	UserName  string    `json:"user_name,omitempty"`
	Via       string    `json:"via,omitempty"`
	Address   string    `json:"address"`
	Action    string    `json:"action"`
	Target    string    `json:"target,omitempty"`
	Outcome   string    `json:"outcome" enum:"done,denied,failed"`
	Code      string    `json:"code,omitempty"`
	RequestID string    `json:"request_id"`
	Detail    string    `json:"detail,omitempty"`
}

// UserPath names a user.
type UserPath struct {
	User string `path:"user" format:"uuid" maxLength:"64"`
}

type oneUser struct{ Body User }

func asUser(u *door.User, err error) (*oneUser, error) {
	if err != nil {
		return nil, err
	}
	return &oneUser{userOf(u)}, nil
}

func (s *Server) routeUsers() {
	tag := []string{"users"}
	route(s, huma.Operation{OperationID: "list-users", Method: http.MethodGet, Path: "/users", Summary: "List users by name", Tags: tag},
		func(ctx context.Context, _ *visit, in *Paging) (*listed[User], error) {
			return pageOf(in, func(after string, limit int) ([]*door.User, error) { return s.opts.Door.Users(ctx, after, limit) },
				func(u *door.User) (User, string) { return userOf(u), u.Name })
		})
	route(s, huma.Operation{OperationID: "create-user", Method: http.MethodPost, Path: "/users", Summary: "Make a user", Tags: tag, DefaultStatus: http.StatusCreated},
		func(ctx context.Context, v *visit, in *struct {
			Body struct {
				Name     string    `json:"name" maxLength:"256"`
				Role     door.Role `json:"role" enum:"viewer,operator,admin"`
				Password string    `json:"password,omitempty" maxLength:"1024" format:"password" doc:"absent: signs in by links only"`
			}
		},
		) (*oneUser, error) {
			u, err := s.opts.Door.AddUser(ctx, in.Body.Name, in.Body.Role, door.Secret(in.Body.Password))
			if err == nil {
				v.target = u.ID
				v.detail = detail(map[string]any{"name": u.Name, "role": u.Role})
			}
			return asUser(u, err)
		})
	s.routeUser()
}

func (s *Server) routeUser() {
	tag := []string{"users"}
	route(s, huma.Operation{OperationID: "get-user", Method: http.MethodGet, Path: "/users/{user}", Summary: "Describe a user", Tags: tag},
		func(ctx context.Context, _ *visit, in *UserPath) (*oneUser, error) {
			return asUser(s.opts.Door.User(ctx, in.User))
		})
	route(s, huma.Operation{
		OperationID: "update-user", Method: http.MethodPatch, Path: "/users/{user}", Summary: "Change a user",
		Description: "What is absent stays. The user is signed out everywhere.", Tags: tag,
	},
		func(ctx context.Context, v *visit, in *struct {
			UserPath
			Body struct {
				Role     *door.Role `json:"role,omitempty" enum:"viewer,operator,admin"`
				Disabled *bool      `json:"disabled,omitempty"`
				Password *string    `json:"password,omitempty" maxLength:"1024" format:"password" doc:"empty: takes it away"`
			}
		},
		) (*oneUser, error) {
			keep := ""
			if in.User == v.visitor.User.ID {
				keep = v.visitor.Entry
			}
			v.detail = detail(map[string]any{"role": in.Body.Role, "disabled": in.Body.Disabled, "password": in.Body.Password != nil})
			return asUser(s.opts.Door.ChangeUser(ctx, in.User, &door.UserChange{
				Role: in.Body.Role, Disabled: in.Body.Disabled, Password: (*door.Secret)(in.Body.Password),
			}, keep))
		})
	route(s, huma.Operation{OperationID: "delete-user", Method: http.MethodDelete, Path: "/users/{user}", Summary: "Remove a user with all tokens", Tags: tag},
		func(ctx context.Context, _ *visit, in *UserPath) (*nothing, error) {
			return nil, s.opts.Door.RemoveUser(ctx, in.User)
		})
	route(s, huma.Operation{OperationID: "create-user-link", Method: http.MethodPost, Path: "/users/{user}/link", Summary: "Make a sign-in link of a user", Tags: tag, DefaultStatus: http.StatusCreated},
		func(ctx context.Context, _ *visit, in *UserPath) (*struct{ Body Link }, error) {
			u, err := s.opts.Door.User(ctx, in.User)
			if err != nil {
				return nil, err
			}
			secret, expires, err := s.opts.Door.NewLink(ctx, u.Name)
			return &struct{ Body Link }{Link{LinkPath(secret), expires.UTC()}}, err
		})
}

func (s *Server) routeActs() {
	tag := []string{"acts"}
	route(s, huma.Operation{OperationID: "list-acts", Method: http.MethodGet, Path: "/acts", Summary: "List what was done through this server, newest first", Tags: tag},
		func(ctx context.Context, _ *visit, in *struct {
			Paging
			Target string `query:"target" maxLength:"512" doc:"what it was about, as connection/sandbox"`
			User   string `query:"user" maxLength:"64" doc:"id of who did it"`
		},
		) (*listed[Act], error) {
			return pageOf(&in.Paging, func(before string, limit int) ([]*act.Act, error) {
				return s.opts.Acts.List(ctx, &act.Query{Target: clip(in.Target), UserID: clip(in.User), Before: before, Limit: limit})
			}, func(a *act.Act) (Act, string) {
				return Act{
					ID: a.ID, At: a.At, UserID: a.UserID, UserName: a.UserName, Via: a.Via, Address: a.Address, Action: a.Action, Target: a.Target,
					Outcome: string(a.Outcome), Code: a.Code, RequestID: a.RequestID, Detail: a.Detail,
				}, a.ID
			})
		})
	route(s, huma.Operation{
		OperationID: "rotate-keys", Method: http.MethodPost, Path: "/keys/rotate", Summary: "Seal the keys of all connections with a new master key",
		Description: "Keep the new key file with the next backup of the database: the old one does not open it.", Tags: tag, DefaultStatus: http.StatusNoContent,
	},
		func(ctx context.Context, _ *visit, _ *nothing) (*nothing, error) {
			return nil, s.opts.Fleet.Rotate(ctx)
		})
}
