package server

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/glassboxhq/glassbox/sandbox"
)

// SnapshotPath names a snapshot of a sandbox.
type SnapshotPath struct {
	SandboxPath
	Snapshot string `path:"snapshot" pattern:"^[A-Za-z0-9_.-]{1,128}$"`
}

type oneSnapshot struct{ Body sandbox.Snapshot }

func (s *Server) routeSnapshots() {
	tag := []string{"snapshots"}
	const all = boxPath + "/snapshots"
	route(s, huma.Operation{
		OperationID: "list-snapshots", Method: http.MethodGet, Path: all, Summary: "List the snapshots of a sandbox, newest first", Tags: tag,
		Description: "They outlive it. create-sandbox begins from one.",
	},
		func(ctx context.Context, _ *visit, in *SandboxPath) (*listed[sandbox.Snapshot], error) {
			service, err := s.snapshotter(ctx, in)
			if err != nil {
				return nil, err
			}
			list, err := service.ListSnapshots(ctx, in.Sandbox)
			out := &listed[sandbox.Snapshot]{Page[sandbox.Snapshot]{Items: []sandbox.Snapshot{}}}
			for _, snapshot := range list {
				out.Body.Items = append(out.Body.Items, *snapshot)
			}
			return out, err
		})
	route(s, huma.Operation{
		OperationID: "take-snapshot", Method: http.MethodPost, Path: all, Summary: "Keep the files of a sandbox", Tags: tag, DefaultStatus: http.StatusCreated,
		Description: "The answer may be Creating: ask for it until it is Ready or Failed.",
	},
		func(ctx context.Context, v *visit, in *struct {
			SandboxPath
			Body struct {
				Name string `json:"name,omitempty" maxLength:"128"`
			}
		},
		) (*oneSnapshot, error) {
			service, err := s.snapshotter(ctx, &in.SandboxPath)
			if err != nil {
				return nil, err
			}
			snapshot, err := service.TakeSnapshot(ctx, in.Sandbox, in.Body.Name)
			if err != nil {
				return nil, err
			}
			v.detail = detail(map[string]any{"snapshot": snapshot.ID, "name": clip(in.Body.Name)})
			return &oneSnapshot{*snapshot}, nil
		})
	s.routeSnapshot(all + "/{snapshot}")
}

func (s *Server) routeSnapshot(one string) {
	tag := []string{"snapshots"}
	route(s, huma.Operation{OperationID: "get-snapshot", Method: http.MethodGet, Path: one, Summary: "Describe a snapshot", Tags: tag},
		func(ctx context.Context, _ *visit, in *SnapshotPath) (*oneSnapshot, error) {
			_, snapshot, err := s.snapshot(ctx, in)
			if err != nil {
				return nil, err
			}
			return &oneSnapshot{*snapshot}, nil
		})
	route(s, huma.Operation{
		OperationID: "delete-snapshot", Method: http.MethodDelete, Path: one, Summary: "Remove a snapshot; sandboxes made from it stay", Tags: tag, DefaultStatus: http.StatusNoContent,
	},
		func(ctx context.Context, v *visit, in *SnapshotPath) (*nothing, error) {
			v.detail = detail(map[string]any{"snapshot": in.Snapshot})
			service, _, err := s.snapshot(ctx, in)
			if err != nil {
				return nil, err
			}
			return nil, service.DeleteSnapshot(ctx, in.Snapshot)
		})
}

func (s *Server) snapshotter(ctx context.Context, in *SandboxPath) (sandbox.Snapshotter, error) {
	service, err := s.opts.Fleet.Service(ctx, in.Connection)
	if err != nil {
		return nil, err
	}
	if snapshotter, ok := service.(sandbox.Snapshotter); ok {
		return snapshotter, nil
	}
	return nil, &sandbox.Error{Op: "find snapshots", Code: sandbox.CodeUnsupported, Sandbox: in.Sandbox, Message: "this service has no snapshots"}
}

// snapshot finds a snapshot, of this very sandbox.
func (s *Server) snapshot(ctx context.Context, in *SnapshotPath) (sandbox.Snapshotter, *sandbox.Snapshot, error) {
	service, err := s.snapshotter(ctx, &in.SandboxPath)
	if err != nil {
		return nil, nil, err
	}
	snapshot, err := service.GetSnapshot(ctx, in.Snapshot)
	if err == nil && snapshot.Sandbox != in.Sandbox {
		err = &sandbox.Error{Op: "find snapshot", Code: sandbox.CodeSnapshotNotFound, Sandbox: in.Sandbox, Message: "the sandbox has no such snapshot"}
	}
	return service, snapshot, err
}
