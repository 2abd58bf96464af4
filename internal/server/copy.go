package server

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/glassboxhq/glassbox/sandbox"
)

type copyQuery struct {
	SandboxPath
	Body struct {
		From      string `json:"from,omitempty" maxLength:"4096"`
		FromBytes []byte `json:"from_base64,omitempty" maxLength:"8192"`
		To        string `json:"to,omitempty" maxLength:"4096"`
		ToBytes   []byte `json:"to_base64,omitempty" maxLength:"8192"`
	}
}

const opCopy = "copy file"

// copyFile copies what is in a sandbox to another place in it. The content
// comes here and goes back: the sandbox knows no copying.
func copyFile(ctx context.Context, box *inside, in *copyQuery) (*oneFile, error) {
	from, err := nameOf("from", in.Body.From, in.Body.FromBytes)
	if err != nil {
		return nil, err
	}
	to, err := nameOf("to", in.Body.To, in.Body.ToBytes)
	if err != nil {
		return nil, err
	}
	box.v.detail = detail(map[string]any{"from": clip(from), "to": clip(to)})
	source, err := box.Stat(ctx, from)
	if err != nil {
		return nil, err
	}
	above, err := box.Stat(ctx, path.Dir(to))
	if err != nil {
		return nil, err
	}
	to = path.Join(above.Path, path.Base(to))
	if err := absent(ctx, box, to); err != nil {
		return nil, err
	}
	switch source.Mode.Type() {
	case 0:
		err = copyContent(ctx, box, source, to)
	case fs.ModeDir:
		err = copyTree(ctx, box, source, to)
	case fs.ModeSymlink:
		err = copyLink(ctx, box, source, to)
	default:
		err = &sandbox.Error{Op: opCopy, Code: sandbox.CodePathNotAllowed, Message: "only files, directories and links are copied"}
	}
	if err != nil {
		return nil, err
	}
	return asFile(box.Stat(ctx, to))
}

// absent makes sure that nothing is overwritten.
func absent(ctx context.Context, box *inside, name string) error {
	_, err := box.Stat(ctx, name)
	if err == nil {
		return &sandbox.Error{Op: opCopy, Code: sandbox.CodeFileExists, Message: "there is such a file", Field: "to"}
	}
	if errors.Is(err, sandbox.ErrNotFound) {
		return nil
	}
	return err
}

func copyContent(ctx context.Context, box *inside, source *sandbox.FileInfo, to string) error {
	f, err := box.Read(ctx, source.Path, nil)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = box.Write(ctx, to, f, &sandbox.WriteOptions{Mode: source.Mode.Perm(), IfHash: sandbox.Absent})
	return err
}

func copyTree(ctx context.Context, box *inside, source *sandbox.FileInfo, to string) error {
	if err := apart(ctx, box, source.Path, to); err != nil {
		return err
	}
	tree, err := box.Download(ctx, source.Path, nil)
	if err != nil {
		return err
	}
	defer tree.Close()
	if _, err = box.MakeDir(ctx, to, &sandbox.MakeDirOptions{Mode: source.Mode.Perm()}); err != nil {
		return err
	}
	_, err = box.Upload(ctx, to, tree, nil)
	return err
}

// apart makes sure that a directory is not copied into itself, which would
// have no end. What is behind a link may lie anywhere.
func apart(ctx context.Context, box *inside, from, to string) error {
	if to == from || strings.HasPrefix(to, strings.TrimSuffix(from, "/")+"/") {
		return sandbox.Invalid("to", "must not lie in what is copied")
	}
	for dir := path.Dir(to); dir != "/" && dir != "."; dir = path.Dir(dir) {
		f, err := box.Stat(ctx, dir)
		if err != nil {
			return err
		}
		if f.Mode.Type() == fs.ModeSymlink {
			return sandbox.Invalid("to", "must not lie behind a link, as a directory is copied")
		}
	}
	return nil
}

func copyLink(ctx context.Context, box *inside, source *sandbox.FileInfo, to string) error {
	var content bytes.Buffer
	w := tar.NewWriter(&content)
	err := errors.Join(
		w.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: path.Base(to), Linkname: source.Target, Mode: 0o777, ModTime: time.Now()}),
		w.Close(),
	)
	if err == nil {
		_, err = box.Upload(ctx, path.Dir(to), &content, nil)
	}
	return err
}
