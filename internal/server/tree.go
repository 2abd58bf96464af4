package server

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/sandbox"
)

func (s *Server) routeTree() {
	tag := []string{"files"}
	work(s, huma.Operation{
		OperationID: "make-directory", Method: http.MethodPost, Path: boxPath + "/files/directories", Summary: "Make a directory, and those above it", Tags: tag,
		Description: "One that is there is no error.",
	},
		func(ctx context.Context, box *inside, in *struct {
			SandboxPath
			Body struct {
				BodyPath
				Mode string `json:"mode,omitempty" pattern:"^[0-7]{3,4}$" doc:"of new ones, in octal; 755 if it is absent"`
			}
		},
		) (*oneFile, error) {
			name, err := in.Body.name()
			if err != nil {
				return nil, err
			}
			box.about(name)
			opts := &sandbox.MakeDirOptions{}
			if in.Body.Mode != "" {
				if opts.Mode, err = wire.ParseMode(in.Body.Mode); err != nil {
					return nil, err
				}
			}
			return asFile(box.MakeDir(ctx, name, opts))
		})
	work(s, huma.Operation{OperationID: "move-file", Method: http.MethodPost, Path: boxPath + "/files/move", Summary: "Rename a file or a directory", Tags: tag}, moveFile)
	work(s, huma.Operation{OperationID: "set-mode", Method: http.MethodPost, Path: boxPath + "/files/mode", Summary: "Change the mode and the owner of a file", Tags: tag}, setMode)
	work(s, huma.Operation{
		OperationID: "delete-file", Method: http.MethodDelete, Path: boxPath + "/files", Summary: "Remove a file, a link or a directory", Tags: tag, DefaultStatus: http.StatusNoContent,
	},
		func(ctx context.Context, box *inside, in *struct {
			FileQuery
			Recursive bool `query:"recursive" doc:"a directory with all that it holds"`
		},
		) (*nothing, error) {
			name, err := in.name()
			if err != nil {
				return nil, err
			}
			box.about(name)
			return nil, box.Remove(ctx, name, &sandbox.RemoveOptions{Recursive: in.Recursive})
		})
	work(s, huma.Operation{
		OperationID: "copy-file", Method: http.MethodPost, Path: boxPath + "/files/copy", Summary: "Copy a file, a link or a directory with all that it holds", Tags: tag,
		Description: "Nothing is overwritten. A directory that was copied in part before a fault stays.",
	}, copyFile)
	work(s, huma.Operation{OperationID: "file-usage", Method: http.MethodGet, Path: boxPath + "/files/usage", Summary: "Count what a directory holds", Tags: tag}, usage)
	s.routeArchive()
	s.routeFind()
}

func moveFile(ctx context.Context, box *inside, in *struct {
	SandboxPath
	Body struct {
		From      string `json:"from,omitempty" maxLength:"4096"`
		FromBytes []byte `json:"from_base64,omitempty" maxLength:"8192"`
		To        string `json:"to,omitempty" maxLength:"4096"`
		ToBytes   []byte `json:"to_base64,omitempty" maxLength:"8192"`
		Replace   bool   `json:"replace,omitempty" doc:"takes the place of a file that is there, never of a directory"`
	}
},
) (*oneFile, error) {
	from, err := nameOf("from", in.Body.From, in.Body.FromBytes)
	if err != nil {
		return nil, err
	}
	to, err := nameOf("to", in.Body.To, in.Body.ToBytes)
	if err != nil {
		return nil, err
	}
	box.v.detail = detail(map[string]any{"from": clip(from), "to": clip(to)})
	return asFile(box.Move(ctx, from, to, &sandbox.MoveOptions{Replace: in.Body.Replace}))
}

func setMode(ctx context.Context, box *inside, in *struct {
	SandboxPath
	Body struct {
		BodyPath
		Mode      string `json:"mode,omitempty" pattern:"^[0-7]{3,4}$" doc:"in octal, as 0644"`
		Owner     string `json:"owner,omitempty" maxLength:"256" doc:"name or number"`
		Group     string `json:"group,omitempty" maxLength:"256"`
		Recursive bool   `json:"recursive,omitempty" doc:"all that a directory holds too; links stay as they are"`
	}
},
) (*oneFile, error) {
	b := &in.Body
	name, err := b.name()
	if err != nil {
		return nil, err
	}
	box.v.detail = detail(map[string]any{"path": clip(name), "mode": b.Mode, "owner": clip(b.Owner), "group": clip(b.Group), "recursive": b.Recursive})
	opts := &sandbox.ModeOptions{Owner: b.Owner, Group: b.Group, Recursive: b.Recursive}
	if b.Mode != "" {
		mode, err := wire.ParseMode(b.Mode)
		if err != nil {
			return nil, err
		}
		opts.Mode = &mode
	}
	return asFile(box.SetMode(ctx, name, opts))
}
