package server

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/console/mirror"
	"github.com/glassboxhq/glassbox/sandbox"
)

// Keeping says how much the mirror keeps, and how long.
type Keeping struct {
	AgeSeconds     int64 `json:"age_seconds" minimum:"0" maximum:"3155760000" doc:"of operations, since they began; 0: for ever"`
	BodyAgeSeconds int64 `json:"body_age_seconds" minimum:"0" maximum:"3155760000" doc:"of output, terminals and diffs; 0: as long as their operations"`
	Bytes          int64 `json:"bytes" minimum:"0" doc:"of all histories of one connection; the oldest go first; 0: any"`
	Dies           bool  `json:"dies_with_sandbox" doc:"the copy of a history is removed when its sandbox is gone"`
}

// MirrorSettings is how much the mirror keeps of which connection.
type MirrorSettings struct {
	Keeping
	Connections map[string]Keeping `json:"connections" nullable:"false" doc:"instead of that, by the id of a connection"`
	UpdatedAt   time.Time          `json:"updated_at,omitzero" readOnly:"true"`
}

type mirrorSettings struct {
	ETag string `header:"ETag"`
	Body MirrorSettings
}

func keepingOf(l mirror.Limits) Keeping {
	return Keeping{int64(l.Age / time.Second), int64(l.BodyAge / time.Second), l.Bytes, l.Dies}
}

func (k Keeping) limits() mirror.Limits {
	return mirror.Limits{
		Age: time.Duration(k.AgeSeconds) * time.Second, BodyAge: time.Duration(k.BodyAgeSeconds) * time.Second, Bytes: k.Bytes, Dies: k.Dies,
	}
}

func asMirrorSettings(s *mirror.Settings, err error) (*mirrorSettings, error) {
	if err != nil {
		return nil, err
	}
	out := &mirrorSettings{strconv.Quote(strconv.FormatInt(s.Revision, 10)), MirrorSettings{
		Keeping: keepingOf(s.Limits), Connections: map[string]Keeping{}, UpdatedAt: s.UpdatedAt,
	}}
	for name, own := range s.ByConnection {
		out.Body.Connections[name] = keepingOf(own)
	}
	return out, nil
}

func (s *Server) routeMirror() {
	tag := []string{"mirror"}
	route(s, huma.Operation{OperationID: "get-mirror-settings", Method: http.MethodGet, Path: "/settings/mirror", Summary: "How much the mirror keeps, and how long", Tags: tag},
		func(ctx context.Context, _ *visit, _ *nothing) (*mirrorSettings, error) {
			if err := s.needMirror("read settings of the mirror"); err != nil {
				return nil, err
			}
			return asMirrorSettings(s.opts.Mirror.Settings(ctx))
		})
	route(s, huma.Operation{
		OperationID: "set-mirror-settings", Method: http.MethodPut, Path: "/settings/mirror", Summary: "Say how much the mirror keeps, and how long",
		Description: "The whole of it. What is over the limits is removed within minutes, and cannot be had back.", Tags: tag,
	}, s.setMirror)
	route(s, huma.Operation{
		OperationID: "erase-history", Method: http.MethodPost, Path: "/connections/{connection}/sandboxes/{sandbox}/erase-history",
		Summary: "Remove all that the mirror has of a sandbox's history, for good",
		Description: "Operations, output and what search knows of them go; one operation stays, which says who did it. " +
			"A history inside the sandbox, or the file that one of this machine left, stays until its own retention.", Tags: tag,
	}, s.eraseHistory)
}

func (s *Server) needMirror(op string) error {
	if s.opts.Mirror == nil {
		return &sandbox.Error{Op: op, Code: codeNoMirror, Message: "this server keeps no copy of the histories"}
	}
	return nil
}

func (s *Server) setMirror(ctx context.Context, v *visit, in *struct {
	IfMatch string `header:"If-Match" maxLength:"64" doc:"the ETag that was read; absent: whatever it is now"`
	Body    MirrorSettings
},
) (*mirrorSettings, error) {
	if err := s.needMirror("set limits of the mirror"); err != nil {
		return nil, err
	}
	revision, err := readSettingsRevision(in.IfMatch)
	if err != nil {
		return nil, err
	}
	old, err := s.opts.Mirror.Settings(ctx)
	if err != nil {
		return nil, err
	}
	limits := in.Body.limits()
	limits.ByConnection = map[string]mirror.Limits{}
	for name, own := range in.Body.Connections {
		if _, known := old.ByConnection[name]; !known { // one that was removed may stay
			if _, err := s.opts.Fleet.Connection(ctx, name); err != nil {
				return nil, sandbox.Invalid("connections", fmt.Sprintf("%q is no id of a connection", clip(name)))
			}
		}
		limits.ByConnection[name] = own.limits()
	}
	v.detail = detail(map[string]any{"age_seconds": in.Body.AgeSeconds, "body_age_seconds": in.Body.BodyAgeSeconds, "bytes": in.Body.Bytes, "connections": in.Body.Connections})
	return asMirrorSettings(s.opts.Mirror.Set(ctx, revision, &limits))
}

// readSettingsRevision reads an ETag of settings, which begin with 0; -1:
// whichever.
func readSettingsRevision(tag string) (int64, error) {
	if tag == `"0"` {
		return 0, nil
	}
	n, err := readRevision(tag)
	if err != nil {
		return 0, &sandbox.Error{Code: mirror.CodeSettingsChanged, Field: "If-Match", Message: "is no ETag of these settings"}
	}
	if n == 0 {
		n = -1
	}
	return n, nil
}

func (s *Server) eraseHistory(ctx context.Context, v *visit, in *struct {
	SandboxPath
	Body struct {
		Confirm string `json:"confirm" maxLength:"512" doc:"the sandbox's name or id, typed by who wants it"`
	}
},
) (*struct{ Body history.Operation }, error) {
	if err := s.needMirror("erase history"); err != nil {
		return nil, err
	}
	box, err := s.opts.Mirror.Sandbox(ctx, in.Connection, in.Sandbox)
	if err != nil {
		return nil, err
	}
	if given := in.Body.Confirm; given != box.ID && (given != box.Name || given == "") {
		return nil, &sandbox.Error{Op: "erase history", Code: codeConfirm, Field: "confirm", Message: "must be the name or the id of the sandbox: what is erased cannot be had back"}
	}
	op, err := s.opts.Mirror.Erase(ctx, in.Connection, in.Sandbox, actorOf(v))
	if err != nil {
		return nil, err
	}
	return &struct{ Body history.Operation }{*op}, nil
}

// actorOf is who a request comes from, as histories tell it.
func actorOf(v *visit) history.Actor {
	return history.Actor{Type: history.User, ID: v.visitor.User.Name, Correlation: v.id}
}
