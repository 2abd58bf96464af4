package server

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/glassboxhq/glassbox/internal/console/door"
)

// cookieName tells the cookies of servers apart that share a machine: browsers
// do not look at ports.
func (s *Server) cookieName() string {
	if s.secure() {
		return "__Host-glassbox"
	}
	return "glassbox_" + s.opts.Port
}

// secure reports whether browsers speak TLS with us, or with the proxy.
func (s *Server) secure() bool {
	return s.opts.TLS || s.opts.Public != nil && s.opts.Public.Scheme == "https"
}

func (s *Server) cookie(secret door.Secret, until time.Time) http.Cookie {
	c := http.Cookie{
		Name: s.cookieName(), Value: string(secret), Path: "/", Expires: until,
		HttpOnly: true, Secure: s.secure(), SameSite: http.SameSiteStrictMode,
	}
	if secret == "" {
		c.MaxAge = -1
	}
	return c
}

// signedIn is the answer to who has signed in.
type signedIn struct {
	SetCookie http.Cookie `header:"Set-Cookie"`
	Body      Me
}

// Me is who a request comes from.
type Me struct {
	User    User         `json:"user"`
	Via     string       `json:"via" enum:"link,password,token"`
	Scopes  []door.Scope `json:"scopes,omitempty" doc:"of a token"`
	Entry   string       `json:"entry" doc:"id of the sign-in or the token"`
	Version string       `json:"version" doc:"of the server"`
	Now     time.Time    `json:"now" doc:"the server's clock"`
}

// User is a user as it is told.
type User struct {
	ID          string    `json:"id"`
	Name        string    `json:"name"`
	Role        door.Role `json:"role" enum:"viewer,operator,admin"`
	HasPassword bool      `json:"has_password"`
	Disabled    bool      `json:"disabled"`
	CreatedAt   time.Time `json:"created_at"`
	UpdatedAt   time.Time `json:"updated_at"`
}

func userOf(u *door.User) User { return User(*u) }

func (s *Server) me(v *door.Visitor) Me {
	return Me{User: userOf(v.User), Via: v.Via, Scopes: v.Scopes, Entry: v.Entry, Version: s.opts.Version, Now: s.opts.Now().UTC()}
}

// SignIn is a browser that is signed in.
type SignIn struct {
	ID        string    `json:"id"`
	UserID    string    `json:"user_id"`
	UserName  string    `json:"user_name"`
	How       string    `json:"how" enum:"link,password"`
	Address   string    `json:"address"`
	Agent     string    `json:"agent"`
	Current   bool      `json:"current" doc:"it is the one of this request"`
	CreatedAt time.Time `json:"created_at"`
	SeenAt    time.Time `json:"seen_at"`
	ExpiresAt time.Time `json:"expires_at"`
}

type nothing struct{}

func (s *Server) routeAuth() {
	tag := []string{"auth"}
	route(s, huma.Operation{OperationID: "sign-in-by-link", Method: http.MethodPost, Path: "/auth/link", Summary: "Sign in with a one-time link", Tags: tag},
		func(ctx context.Context, v *visit, in *struct {
			UserAgent string `header:"User-Agent"`
			Body      struct {
				Link string `json:"link" maxLength:"200" doc:"what stands behind the # of the link"`
			}
		},
		) (*signedIn, error) {
			got, err := s.opts.Door.SignInByLink(ctx, door.Secret(in.Body.Link), door.From{Address: v.address, Agent: in.UserAgent})
			return s.signedIn(v, got, err)
		})
	route(s, huma.Operation{OperationID: "sign-in-by-password", Method: http.MethodPost, Path: "/auth/password", Summary: "Sign in with a password", Tags: tag},
		func(ctx context.Context, v *visit, in *struct {
			UserAgent string `header:"User-Agent"`
			Body      struct {
				Name     string `json:"name" maxLength:"256"`
				Password string `json:"password" maxLength:"1024" format:"password"`
			}
		},
		) (*signedIn, error) {
			v.target = clip(in.Body.Name)
			got, err := s.opts.Door.SignInByPassword(ctx, in.Body.Name, door.Secret(in.Body.Password), door.From{Address: v.address, Agent: in.UserAgent})
			return s.signedIn(v, got, err)
		})
	route(s, huma.Operation{OperationID: "sign-out", Method: http.MethodPost, Path: "/auth/sign-out", Summary: "Sign this browser out", Tags: tag, DefaultStatus: http.StatusNoContent},
		func(ctx context.Context, v *visit, _ *nothing) (*struct {
			SetCookie http.Cookie `header:"Set-Cookie"`
		}, error,
		) {
			out := &struct {
				SetCookie http.Cookie `header:"Set-Cookie"`
			}{s.cookie("", time.Unix(1, 0))}
			return out, s.opts.Door.SignOut(ctx, v.visitor.Entry, v.visitor.User.ID)
		})
	route(s, huma.Operation{OperationID: "get-me", Method: http.MethodGet, Path: "/auth/me", Summary: "Who this request comes from", Tags: tag},
		func(_ context.Context, v *visit, _ *nothing) (*struct{ Body Me }, error) {
			return &struct{ Body Me }{s.me(v.visitor)}, nil
		})
	s.routeSignIns()
}

func (s *Server) routeSignIns() {
	tag := []string{"auth"}
	route(s, huma.Operation{
		OperationID: "change-own-password", Method: http.MethodPut, Path: "/auth/password", Summary: "Change one's own password",
		Description: "Signs out every other browser of this user. An empty new password takes it away.", Tags: tag,
	},
		func(ctx context.Context, v *visit, in *struct {
			Body struct {
				Current string `json:"current,omitempty" maxLength:"1024" format:"password" doc:"needed by who has one"`
				New     string `json:"new" maxLength:"1024" format:"password"`
			}
		},
		) (*struct{ Body User }, error) {
			u, err := s.opts.Door.ChangePassword(ctx, v.visitor, door.Secret(in.Body.Current), door.Secret(in.Body.New))
			if err != nil {
				return nil, err
			}
			return &struct{ Body User }{userOf(u)}, nil
		})
	route(s, huma.Operation{OperationID: "list-sign-ins", Method: http.MethodGet, Path: "/sign-ins", Summary: "List the browsers that are signed in", Tags: tag},
		func(ctx context.Context, v *visit, in *struct {
			Paging
			All
		},
		) (*listed[SignIn], error) {
			whose, err := in.whose(v)
			if err != nil {
				return nil, err
			}
			return pageOf(&in.Paging, func(before string, limit int) ([]*door.SignIn, error) {
				return s.opts.Door.SignIns(ctx, whose, before, limit)
			},
				func(e *door.SignIn) (SignIn, string) {
					return SignIn{
						ID: e.ID, UserID: e.UserID, UserName: e.UserName, How: e.How, Address: e.Address, Agent: e.Agent, Current: e.ID == v.visitor.Entry,
						CreatedAt: e.CreatedAt, SeenAt: e.SeenAt, ExpiresAt: e.ExpiresAt,
					}, e.ID
				})
		})
	route(s, huma.Operation{OperationID: "end-sign-in", Method: http.MethodDelete, Path: "/sign-ins/{sign_in}", Summary: "Sign a browser out", Tags: tag},
		func(ctx context.Context, v *visit, in *struct {
			SignIn string `path:"sign_in" format:"uuid" maxLength:"64"`
		},
		) (*nothing, error) {
			return nil, s.opts.Door.SignOut(ctx, in.SignIn, own(v))
		})
}

func (s *Server) signedIn(v *visit, in *door.In, err error) (*signedIn, error) {
	if err != nil {
		return nil, err
	}
	v.visitor = &door.Visitor{User: in.User, Entry: in.SignIn.ID, Via: in.SignIn.How}
	return &signedIn{SetCookie: s.cookie(in.Session, in.SignIn.ExpiresAt), Body: s.me(v.visitor)}, nil
}

// own is whose things a visitor may end: an admin anybody's, told as empty.
func own(v *visit) string {
	if v.visitor.User.Role == door.Admin {
		return ""
	}
	return v.visitor.User.ID
}

// All asks for everybody's things.
type All struct {
	All bool `query:"all" doc:"of every user; for admins"`
}

func (a All) whose(v *visit) (string, error) {
	if !a.All {
		return v.visitor.User.ID, nil
	}
	if need := (access{role: door.Admin, scope: door.Account}); !v.visitor.May(need.role, need.scope) {
		return "", forbidden(v, need)
	}
	return "", nil
}
