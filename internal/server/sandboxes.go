package server

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/glassboxhq/glassbox/internal/console/connection"
	"github.com/glassboxhq/glassbox/sandbox"
)

// Sandbox is a sandbox of a connection.
type Sandbox struct {
	sandbox.Info
	Connection string    `json:"connection" doc:"id of the connection"`
	GoneAt     time.Time `json:"gone_at,omitzero" doc:"when it ended; its history is kept for a while"`
}

// Answering tells how a service answers.
type Answering struct {
	ID                string    `json:"id"`
	Name              string    `json:"name"`
	SeenAt            time.Time `json:"seen_at,omitzero" doc:"when it answered last; absent: never"`
	NotAnsweringSince time.Time `json:"not_answering_since,omitzero"`
	Problem           *Problem  `json:"problem,omitempty"`
}

// Sandboxes is a part of all sandboxes.
type Sandboxes struct {
	Page[Sandbox]
	Connections []Answering `json:"connections" nullable:"false" doc:"those that were asked; what one that does not answer has is as it was seen last"`
	Now         time.Time   `json:"now" doc:"the server's clock, to compare with expires_at"`
}

// NewSandbox is what a sandbox is made from.
type NewSandbox struct {
	Image    string            `json:"image,omitempty" maxLength:"512" doc:"or a snapshot"`
	Snapshot string            `json:"snapshot,omitempty" maxLength:"128" doc:"id of one to begin from"`
	Name     string            `json:"name,omitempty" maxLength:"512"`
	Seconds  int64             `json:"expires_in_seconds,omitempty" minimum:"60" maximum:"31622400" doc:"absent: as the service says"`
	Workdir  string            `json:"workdir,omitempty" maxLength:"4096"`
	Network  string            `json:"network,omitempty" enum:"none,proxy" doc:"of the local runtime"`
	Env      map[string]string `json:"env,omitempty"`
	Metadata map[string]string `json:"metadata,omitempty"`
	Limits   map[string]string `json:"limits,omitempty" doc:"memory: 512Mi, cpu: 500m"`
}

// SandboxPath names a sandbox.
type SandboxPath struct {
	ConnectionPath
	Sandbox string `path:"sandbox" pattern:"^[A-Za-z0-9_-]{1,128}$"`
}

type oneSandbox struct{ Body Sandbox }

// place is where a sandbox stands in the order of all.
type place struct {
	At int64  `json:"t"`
	ID string `json:"i"`
}

func placeOf(b *connection.Sandbox) place {
	return place{b.CreatedAt.UnixMicro(), b.Connection + "/" + b.ID}
}

// behind reports whether a sandbox comes after a place.
func (p place) behind(b *connection.Sandbox) bool {
	at := placeOf(b)
	return p == place{} || at.At < p.At || at.At == p.At && at.ID < p.ID
}

func (s *Server) routeSandboxes() {
	tag := []string{"sandboxes"}
	const one = "/connections/{connection}/sandboxes/{sandbox}"
	route(s, huma.Operation{OperationID: "list-sandboxes", Method: http.MethodGet, Path: "/sandboxes", Summary: "List the sandboxes of every connection, newest first", Tags: tag}, s.listSandboxes)
	route(s, huma.Operation{OperationID: "get-sandbox", Method: http.MethodGet, Path: one, Summary: "Describe a sandbox", Tags: tag},
		func(ctx context.Context, _ *visit, in *SandboxPath) (*oneSandbox, error) {
			b, err := s.find(ctx, in)
			if err != nil {
				return nil, err
			}
			return &oneSandbox{Sandbox(*b)}, nil
		})
	route(s, huma.Operation{OperationID: "create-sandbox", Method: http.MethodPost, Path: "/connections/{connection}/sandboxes", Summary: "Make a sandbox", Tags: tag, DefaultStatus: http.StatusCreated},
		func(ctx context.Context, v *visit, in *struct {
			ConnectionPath
			Body NewSandbox
		},
		) (*oneSandbox, error) {
			b := &in.Body
			v.detail = detail(map[string]any{"name": clip(b.Name), "image": clip(b.Image), "snapshot": clip(b.Snapshot)})
			if (b.Image == "") == (b.Snapshot == "") {
				return nil, sandbox.Invalid("image", "or snapshot must be given, and not both")
			}
			service, err := s.opts.Fleet.Service(ctx, in.Connection)
			if err != nil {
				return nil, err
			}
			info, err := service.Create(ctx, &sandbox.Spec{
				Image: b.Image, Snapshot: b.Snapshot, Name: b.Name, Timeout: time.Duration(b.Seconds) * time.Second, Workdir: b.Workdir, Network: b.Network,
				Env: b.Env, Metadata: b.Metadata, Limits: b.Limits,
			})
			if err != nil {
				return nil, err
			}
			v.sandbox = timelineOf(in.Connection, info.ID)
			v.target = v.sandbox
			return &oneSandbox{Sandbox{Info: *info, Connection: in.Connection}}, nil
		})
	route(s, huma.Operation{OperationID: "delete-sandbox", Method: http.MethodDelete, Path: one, Summary: "End a sandbox", Tags: tag},
		func(ctx context.Context, _ *visit, in *SandboxPath) (*nothing, error) {
			service, err := s.opts.Fleet.Service(ctx, in.Connection)
			if err == nil {
				s.catchUp(ctx, in)
				err = service.Delete(ctx, in.Sandbox)
			}
			if err == nil {
				s.opts.Fleet.Deleted(in.Connection, in.Sandbox)
			}
			return nil, err
		})
	s.routeLives()
}

// catchUpTime is how long a deletion waits for the rest of a history.
const catchUpTime = 10 * time.Second

// catchUp brings the rest of a history into the mirror, if it can be had.
func (s *Server) catchUp(ctx context.Context, in *SandboxPath) {
	if s.opts.Syncer == nil {
		return
	}
	waiting, cancel := context.WithTimeout(ctx, catchUpTime)
	defer cancel()
	if err := s.opts.Syncer.CatchUp(waiting, in.Connection, in.Sandbox); err != nil {
		s.opts.Logger.WarnContext(ctx, "a sandbox is deleted without the last of its history", "sandbox", in.Sandbox, "error", err)
	}
}

func (s *Server) routeLives() {
	tag := []string{"sandboxes"}
	const one = "/connections/{connection}/sandboxes/{sandbox}"
	s.turn("pause-sandbox", one+"/pause", "Pause a sandbox", func(ctx context.Context, service connection.Service, id string) (*sandbox.Info, error) {
		return service.Pause(ctx, id)
	})
	s.turn("resume-sandbox", one+"/resume", "Let a paused sandbox go on", func(ctx context.Context, service connection.Service, id string) (*sandbox.Info, error) {
		return service.Resume(ctx, id)
	})
	route(s, huma.Operation{OperationID: "renew-sandbox", Method: http.MethodPost, Path: one + "/renew", Summary: "Let a sandbox live from now on for some time", Tags: tag},
		func(ctx context.Context, v *visit, in *struct {
			SandboxPath
			Body struct {
				Seconds int64 `json:"expires_in_seconds" minimum:"60" maximum:"31622400"`
			}
		},
		) (*oneSandbox, error) {
			v.detail = detail(map[string]any{"expires_in_seconds": in.Body.Seconds})
			service, err := s.opts.Fleet.Service(ctx, in.Connection)
			if err != nil {
				return nil, err
			}
			info, err := service.Renew(ctx, in.Sandbox, s.opts.Now().Add(time.Duration(in.Body.Seconds)*time.Second))
			return asSandbox(in.Connection, info, err)
		})
}

func asSandbox(connectionID string, info *sandbox.Info, err error) (*oneSandbox, error) {
	if err != nil {
		return nil, err
	}
	return &oneSandbox{Sandbox{Info: *info, Connection: connectionID}}, nil
}

// turn serves what moves a sandbox from one state to another.
func (s *Server) turn(id, path, summary string, do func(context.Context, connection.Service, string) (*sandbox.Info, error)) {
	route(s, huma.Operation{OperationID: id, Method: http.MethodPost, Path: path, Summary: summary, Tags: []string{"sandboxes"}},
		func(ctx context.Context, _ *visit, in *SandboxPath) (*oneSandbox, error) {
			service, err := s.opts.Fleet.Service(ctx, in.Connection)
			if err != nil {
				return nil, err
			}
			info, err := do(ctx, service, in.Sandbox)
			return asSandbox(in.Connection, info, err)
		})
}

// find describes a sandbox that is there, or one that is gone and whose
// history is kept.
func (s *Server) find(ctx context.Context, in *SandboxPath) (*connection.Sandbox, error) {
	service, err := s.opts.Fleet.Service(ctx, in.Connection)
	if err != nil {
		return nil, err
	}
	info, err := service.Get(ctx, in.Sandbox)
	if err == nil {
		return &connection.Sandbox{Info: *info, Connection: in.Connection}, nil
	}
	archive, ok := service.(connection.Archive)
	if !ok || sandbox.CodeOf(err) != sandbox.CodeSandboxNotFound {
		return nil, err
	}
	gone, goneErr := archive.Gone(ctx)
	if goneErr != nil {
		return nil, goneErr
	}
	at := slices.IndexFunc(gone, func(b *connection.Sandbox) bool { return b.ID == in.Sandbox })
	if at < 0 {
		return nil, err
	}
	gone[at].Connection = in.Connection
	return gone[at], nil
}

type sandboxQuery struct {
	Paging
	State      []string `query:"state,explode" maxItems:"8" doc:"Running, Paused, Pending, Failed, Terminated, Unknown"`
	Connection string   `query:"connection" maxLength:"64" doc:"id of a connection"`
	Text       string   `query:"q" maxLength:"256" doc:"a part of the name or the id"`
}

func (q *sandboxQuery) picks(b *connection.Sandbox) bool {
	ofState := func(state string) bool { return strings.EqualFold(state, string(b.State)) }
	text := strings.ToLower(q.Text)
	return (len(q.State) == 0 || slices.ContainsFunc(q.State, ofState)) && (q.Connection == "" || q.Connection == b.Connection) &&
		(strings.Contains(strings.ToLower(b.Name), text) || strings.Contains(b.ID, text))
}

// remembered adds what only the mirror knows still.
func (s *Server) remembered(ctx context.Context, in *sandboxQuery, after place, seen []*connection.Seen, list []*connection.Sandbox) ([]*connection.Sandbox, error) {
	if s.opts.Mirror == nil {
		return list, nil
	}
	listed := map[string]bool{}
	for _, one := range seen {
		for _, b := range one.Sandboxes {
			listed[b.Connection+"/"+b.ID] = true
		}
	}
	boxes, err := s.opts.Mirror.Sandboxes(ctx, "")
	if err != nil {
		return nil, err
	}
	for _, box := range boxes {
		b := &connection.Sandbox{Info: box.Info, Connection: box.Connection, GoneAt: box.GoneAt}
		if !box.GoneAt.IsZero() && !listed[b.Connection+"/"+b.ID] && in.picks(b) && after.behind(b) {
			list = append(list, b)
		}
	}
	return list, nil
}

func (s *Server) listSandboxes(ctx context.Context, v *visit, in *sandboxQuery) (*struct{ Body Sandboxes }, error) {
	var after place
	if err := readCursor(in.Cursor, &after); err != nil {
		return nil, err
	}
	seen, err := s.opts.Fleet.List(ctx)
	if err != nil {
		return nil, err
	}
	out := &struct{ Body Sandboxes }{Sandboxes{Page: Page[Sandbox]{Items: []Sandbox{}}, Connections: []Answering{}, Now: s.opts.Now().UTC()}}
	var list []*connection.Sandbox
	for _, one := range seen {
		a := Answering{ID: one.Connection.ID, Name: one.Connection.Name, SeenAt: one.SeenAt.UTC(), NotAnsweringSince: one.NotAnsweringSince.UTC()}
		if one.Problem != nil {
			a.Problem = s.problemOf(one.Problem, v)
		}
		out.Body.Connections = append(out.Body.Connections, a)
		for _, b := range one.Sandboxes {
			if in.picks(b) && after.behind(b) {
				list = append(list, b)
			}
		}
	}
	if list, err = s.remembered(ctx, in, after, seen, list); err != nil {
		return nil, err
	}
	slices.SortFunc(list, connection.Newest)
	for i, b := range list {
		if i == in.Limit {
			out.Body.Next = cursor(placeOf(list[i-1]))
			break
		}
		out.Body.Items = append(out.Body.Items, Sandbox(*b))
	}
	return out, nil
}
