package execd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"strconv"

	"github.com/glassboxhq/glassbox/sandbox"
)

// A File is one of those that Upload sends.
type File struct {
	Path    string
	Mode    fs.FileMode
	Content io.Reader
}

// Upload sends files in one request. They are written where they lie, so each
// should have a name that is new.
func (s *Session) Upload(ctx context.Context, files ...File) error {
	r, w := io.Pipe()
	form, sent := multipart.NewWriter(w), make(chan error, 1)
	go func() {
		var err error
		for _, f := range files {
			if err = appendFile(form, &f); err != nil {
				break
			}
		}
		if err == nil {
			err = form.Close()
		}
		w.CloseWithError(err)
		sent <- err
	}()
	resp, err := s.send(ctx, &request{
		op: "upload", method: http.MethodPost, path: "/files/upload", body: r, header: http.Header{"Content-Type": {form.FormDataContentType()}},
	})
	r.Close() // lets the copy above end
	sendErr := <-sent
	if err != nil {
		return err
	}
	resp.Body.Close()
	if sendErr != nil {
		return s.fault("upload", &sandbox.Error{Code: sandbox.CodeInternal, Err: sendErr})
	}
	return nil
}

// appendFile adds a pair of parts. Both need a file name, or execd does not
// see them.
func appendFile(form *multipart.Writer, f *File) error {
	mode, _ := strconv.Atoi(strconv.FormatUint(uint64(f.Mode.Perm()), 8))
	meta, err := json.Marshal(map[string]any{"path": f.Path, "mode": mode})
	if err != nil {
		return err
	}
	for _, part := range []struct {
		name, kind string
		content    io.Reader
	}{{"metadata", "application/json", bytes.NewReader(meta)}, {"file", "application/octet-stream", f.Content}} {
		w, err := form.CreatePart(textproto.MIMEHeader{
			"Content-Disposition": {fmt.Sprintf("form-data; name=%q; filename=%q", part.name, part.name)}, "Content-Type": {part.kind},
		})
		if err != nil {
			return err
		}
		if _, err := io.Copy(w, part.content); err != nil {
			return err
		}
	}
	return nil
}

func (s *Session) upload(ctx context.Context, op, full string, from io.Reader, mode fs.FileMode) (int64, error) {
	counted := &counting{r: from}
	if err := s.Upload(ctx, File{Path: full, Mode: mode, Content: counted}); err != nil {
		if e, ok := errors.AsType[*sandbox.Error](err); ok {
			e.Op = op
		}
		return 0, err
	}
	return counted.n, nil
}

type counting struct {
	r io.Reader
	n int64
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}
