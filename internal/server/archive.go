package server

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/glassboxhq/glassbox/internal/idle"
	"github.com/glassboxhq/glassbox/internal/server/repack"
	"github.com/glassboxhq/glassbox/sandbox"
)

const tarType = "application/x-tar"

func (s *Server) routeArchive() {
	tag := []string{"files"}
	one := bytesOf(tarType, map[string]string{"200": "the archive"})
	one["200"].Content["application/zip"] = one["200"].Content[tarType]
	route(s, huma.Operation{
		OperationID: "download-tree", Method: http.MethodGet, Path: boxPath + "/files/archive", Summary: "Download a directory, or a file, as an archive", Tags: tag,
		Description: "No name in it leads out of where it is unpacked. A zip has no links, and other names where Windows knows none such. What is left out is told in the tar's last header, or the zip's comment.",
		Responses:   one,
	}, s.download)
	work(s, huma.Operation{
		OperationID: "upload-tree", Method: http.MethodPost, Path: boxPath + "/files/archive", Summary: "Unpack a tar below a directory", Tags: tag,
		Description: "Each file is replaced whole, and no name leads out of the directory. What was unpacked before a fault stays.",
		RequestBody: raw("a tar, not compressed", tarType),
	},
		func(ctx context.Context, box *inside, in *struct {
			FileQuery
			Content
		},
		) (*struct{ Body sandbox.Uploaded }, error) {
			name, err := in.name()
			if err != nil {
				return nil, err
			}
			box.about(name)
			done, err := box.Upload(ctx, name, in.body, nil)
			in.done(err)
			if e, ok := errors.AsType[*sandbox.Error](err); ok && done != nil && done.Files+done.Directories+done.Links > 0 {
				told := *e
				told.Message = fmt.Sprintf("%s; %d files, %d directories and %d links were unpacked before", publicText(e), done.Files, done.Directories, done.Links)
				told.Op, told.Field = "", ""
				err = &told
			}
			if err != nil {
				return nil, err
			}
			return &struct{ Body sandbox.Uploaded }{*done}, nil
		})
}

type archiveQuery struct {
	FileQuery
	Format    string   `query:"format" enum:"tar,zip" default:"tar"`
	Only      []string `query:"only,explode" maxItems:"1000" doc:"names in the directory: these alone, each with its name"`
	OnlyBytes []string `query:"only_base64,explode" maxItems:"1000" doc:"names that are no UTF-8"`
}

// open opens the directory, or what was picked in it.
func (q *archiveQuery) open(ctx context.Context, box *inside, name string) (io.ReadCloser, error) {
	names := slices.Clone(q.Only)
	for _, raw := range q.OnlyBytes {
		name, err := base64.StdEncoding.DecodeString(raw)
		if err != nil {
			return nil, sandbox.Invalid("only_base64", "must be base64")
		}
		names = append(names, string(name))
	}
	for _, one := range names {
		if one == "" || one == "." || one == ".." || strings.ContainsAny(one, "/\x00") {
			return nil, sandbox.Invalid("only", "must be names of what the directory holds")
		}
		if _, err := box.Stat(ctx, path.Join(name, one)); err != nil {
			return nil, err
		}
	}
	if len(names) == 0 {
		return box.Download(ctx, name, nil)
	}
	return selected(ctx, box, name, names), nil
}

func (s *Server) download(ctx context.Context, v *visit, in *archiveQuery) (*huma.StreamResponse, error) {
	name, err := in.name()
	if err != nil {
		return nil, err
	}
	ctx, box, err := s.open(ctx, v, &in.SandboxPath)
	if err != nil {
		return nil, err
	}
	box.about(name)
	tree, err := in.open(ctx, box, name)
	if err != nil {
		box.leave()
		return nil, err
	}
	return s.stream(box, tree, func(w http.ResponseWriter, _ *http.Request) error {
		pack, kind := repack.Tar, tarType
		if in.Format == "zip" {
			pack, kind = repack.Zip, "application/zip"
		}
		w.Header().Set("Content-Type", kind)
		w.Header().Set("Content-Disposition", attachment(path.Base(name)+"."+in.Format))
		err := pack(idle.Answer(w, idleClient), tree)
		if err == nil {
			_, err = io.Copy(io.Discard, tree) // only its end tells that it was whole
		}
		return err
	}), nil
}
