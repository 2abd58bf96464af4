package server

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/glassboxhq/glassbox/internal/console/connection"
	"github.com/glassboxhq/glassbox/internal/vault"
	"github.com/glassboxhq/glassbox/sandbox"
)

// Connection is a connection as it is told: never its key.
type Connection struct {
	ID          string    `json:"id"`
	Name        string    `json:"name"`
	Endpoint    string    `json:"endpoint,omitempty" doc:"absent: the local runtime of this server"`
	HasKey      bool      `json:"has_key"`
	ServerProxy bool      `json:"server_proxy" doc:"sandboxes are reached through the service's own proxy"`
	Enabled     bool      `json:"enabled"`
	Revision    int64     `json:"revision"`
	CreatedAt   time.Time `json:"created_at"`
	UpdatedAt   time.Time `json:"updated_at"`
}

// Report is what a test of a connection found.
type Report struct {
	OK        bool     `json:"ok"`
	Version   string   `json:"version,omitempty" doc:"absent: the service does not say"`
	LatencyMS float64  `json:"latency_ms"`
	Sandboxes int      `json:"sandboxes"`
	Problem   *Problem `json:"problem,omitempty"`
}

type oneConnection struct {
	ETag string `header:"ETag"`
	Body Connection
}

func connectionOf(c *connection.Connection) Connection {
	return Connection{
		ID: c.ID, Name: c.Name, Endpoint: c.Endpoint, HasKey: c.HasKey, ServerProxy: c.ServerProxy, Enabled: c.Enabled,
		Revision: c.Revision, CreatedAt: c.CreatedAt, UpdatedAt: c.UpdatedAt,
	}
}

func asConnection(c *connection.Connection, err error) (*oneConnection, error) {
	if err != nil {
		return nil, err
	}
	return &oneConnection{strconv.Quote(strconv.FormatInt(c.Revision, 10)), connectionOf(c)}, nil
}

// ConnectionPath names a connection.
type ConnectionPath struct {
	Connection string `path:"connection" pattern:"^[a-z0-9-]{1,64}$" doc:"id of a connection; local is this server's own runtime"`
}

func (s *Server) routeConnections() {
	tag := []string{"connections"}
	route(s, huma.Operation{OperationID: "list-connections", Method: http.MethodGet, Path: "/connections", Summary: "List the services that the console works with", Tags: tag},
		func(ctx context.Context, _ *visit, _ *nothing) (*listed[Connection], error) {
			list, err := s.opts.Fleet.Connections(ctx)
			out := &listed[Connection]{Page[Connection]{Items: []Connection{}}}
			for _, c := range list {
				out.Body.Items = append(out.Body.Items, connectionOf(c))
			}
			return out, err
		})
	route(s, huma.Operation{OperationID: "create-connection", Method: http.MethodPost, Path: "/connections", Summary: "Add a service", Tags: tag, DefaultStatus: http.StatusCreated},
		func(ctx context.Context, v *visit, in *struct {
			Body struct {
				Name        string `json:"name" maxLength:"256"`
				Endpoint    string `json:"endpoint" maxLength:"512" doc:"root of an OpenSandbox service, as https://sandboxes.example"`
				Key         string `json:"key,omitempty" maxLength:"4096" format:"password"`
				ServerProxy *bool  `json:"server_proxy,omitempty" default:"true"`
				Enabled     *bool  `json:"enabled,omitempty" default:"true"`
			}
		},
		) (*oneConnection, error) {
			b := &in.Body
			c, err := s.opts.Fleet.Add(ctx, &connection.New{
				Name: b.Name, Endpoint: b.Endpoint, Key: vault.Secret(b.Key), ServerProxy: b.ServerProxy == nil || *b.ServerProxy, Enabled: b.Enabled == nil || *b.Enabled,
			})
			if err == nil {
				v.target, v.detail = c.ID, detail(map[string]any{"name": c.Name, "endpoint": c.Endpoint})
			}
			return asConnection(c, err)
		})
	s.routeConnection()
}

func (s *Server) routeConnection() {
	tag := []string{"connections"}
	route(s, huma.Operation{OperationID: "get-connection", Method: http.MethodGet, Path: "/connections/{connection}", Summary: "Describe a connection", Tags: tag},
		func(ctx context.Context, _ *visit, in *ConnectionPath) (*oneConnection, error) {
			return asConnection(s.opts.Fleet.Connection(ctx, in.Connection))
		})
	route(s, huma.Operation{
		OperationID: "update-connection", Method: http.MethodPatch, Path: "/connections/{connection}", Summary: "Change a connection",
		Description: "What is absent stays. Another endpoint needs the key anew.", Tags: tag,
	},
		func(ctx context.Context, v *visit, in *struct {
			ConnectionPath
			IfMatch string `header:"If-Match" maxLength:"64" doc:"the ETag that was read; absent: whatever it is now"`
			Body    struct {
				Name        *string `json:"name,omitempty" maxLength:"256"`
				Endpoint    *string `json:"endpoint,omitempty" maxLength:"512"`
				Key         *string `json:"key,omitempty" maxLength:"4096" format:"password" doc:"empty: takes it away"`
				ServerProxy *bool   `json:"server_proxy,omitempty"`
				Enabled     *bool   `json:"enabled,omitempty"`
			}
		},
		) (*oneConnection, error) {
			revision, err := readRevision(in.IfMatch)
			if err != nil {
				return nil, err
			}
			b := &in.Body
			v.detail = detail(map[string]any{"name": b.Name, "endpoint": b.Endpoint, "key": b.Key != nil, "server_proxy": b.ServerProxy, "enabled": b.Enabled})
			return asConnection(s.opts.Fleet.Alter(ctx, in.Connection, revision, &connection.Change{
				Name: b.Name, Endpoint: b.Endpoint, Key: (*vault.Secret)(b.Key), ServerProxy: b.ServerProxy, Enabled: b.Enabled,
			}))
		})
	route(s, huma.Operation{OperationID: "delete-connection", Method: http.MethodDelete, Path: "/connections/{connection}", Summary: "Remove a connection; its sandboxes go on", Tags: tag},
		func(ctx context.Context, _ *visit, in *ConnectionPath) (*nothing, error) {
			return nil, s.opts.Fleet.Remove(ctx, in.Connection)
		})
	route(s, huma.Operation{
		OperationID: "test-connection", Method: http.MethodPost, Path: "/connections/{connection}/test", Summary: "Ask a service what it is and what it has, now",
		Description: "The status is 200 whatever is found: problem tells what is wrong.", Tags: tag,
	},
		func(ctx context.Context, v *visit, in *ConnectionPath) (*struct{ Body Report }, error) {
			r, err := s.opts.Fleet.Test(ctx, in.Connection)
			if err != nil {
				return nil, err
			}
			body := Report{OK: r.OK, Version: r.Version, LatencyMS: float64(r.Latency.Microseconds()) / 1000, Sandboxes: r.Sandboxes}
			if r.Problem != nil {
				body.Problem = s.problemOf(r.Problem, v)
			}
			return &struct{ Body Report }{body}, nil
		})
}

// readRevision reads an ETag of ours; "" and * are whichever.
func readRevision(tag string) (int64, error) {
	if tag == "" || tag == "*" {
		return 0, nil
	}
	n, err := strconv.ParseInt(strings.Trim(tag, `"`), 10, 64)
	if err != nil || n < 1 {
		return 0, &sandbox.Error{Code: connection.CodeChanged, Field: "If-Match", Message: "is no ETag of a connection"}
	}
	return n, nil
}
