package server

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"path"
)

// A selection is the tars of several things in a directory, as one.
type selection struct {
	*io.PipeReader
	done chan struct{}
}

// selected joins what names are below a directory. Each comes as it is reached.
func selected(ctx context.Context, box *inside, directory string, names []string) io.ReadCloser {
	r, w := io.Pipe()
	s := &selection{r, make(chan struct{})}
	go func() {
		defer close(s.done)
		out := tar.NewWriter(w)
		var err error
		for _, name := range names {
			if err = add(ctx, box, out, path.Join(directory, name)); err != nil {
				break
			}
		}
		if err == nil {
			err = out.Close()
		}
		_ = w.CloseWithError(err) // it never fails
	}()
	return s
}

// Close ends what is still being read, and waits for it.
func (s *selection) Close() error {
	err := s.PipeReader.Close()
	<-s.done
	return err
}

// add adds a file, or a directory with its name.
func add(ctx context.Context, box *inside, out *tar.Writer, name string) error {
	f, err := box.Stat(ctx, name)
	if err != nil {
		return err
	}
	below := ""
	if f.Mode.IsDir() {
		below = path.Base(name) + "/"
		if err := out.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: below, Mode: int64(f.Mode.Perm()), ModTime: f.Modified}); err != nil {
			return err
		}
	}
	tree, err := box.Download(ctx, name, nil)
	if err != nil {
		return err
	}
	defer tree.Close()
	return join(out, tree, below)
}

// join adds what a tar holds, below a directory.
func join(out *tar.Writer, tree io.Reader, below string) error {
	in := tar.NewReader(tree)
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			_, err = io.Copy(io.Discard, tree) // only its end tells that it was whole
			return err
		}
		if err != nil {
			return err
		}
		if h.Typeflag != tar.TypeXGlobalHeader {
			if path.Clean(h.Name) == "." {
				continue // the directory itself
			}
			if h.Typeflag == tar.TypeLink {
				h.Linkname = below + h.Linkname
			}
			h.Name = below + h.Name
		}
		h.Format = tar.FormatUnknown
		if err := out.WriteHeader(h); err != nil {
			return err
		}
		if _, err := io.Copy(out, in); err != nil {
			return err
		}
	}
}
