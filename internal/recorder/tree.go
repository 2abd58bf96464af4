package recorder

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"

	"github.com/glassboxhq/glassbox/internal/idle"
	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/sandbox"
)

func (s *Server) statFile(w http.ResponseWriter, r *http.Request) error {
	f, err := s.files("stat file")
	if err != nil {
		return err
	}
	info, err := f.Stat(r.Context(), r.URL.Query().Get("path"))
	if err != nil {
		return err
	}
	return answer(w, wire.NewFile(info))
}

func (s *Server) makeDir(w http.ResponseWriter, r *http.Request) error {
	f, err := s.files("make directory")
	if err != nil {
		return err
	}
	opts := &sandbox.MakeDirOptions{ID: r.Header.Get(wire.HeaderID)}
	if opts.Mode, err = newMode(r.URL.Query().Get("mode")); err != nil {
		return err
	}
	info, err := f.MakeDir(r.Context(), r.URL.Query().Get("path"), opts)
	if err != nil {
		return err
	}
	return answer(w, wire.NewFile(info))
}

func (s *Server) moveFile(w http.ResponseWriter, r *http.Request) error {
	f, err := s.files("move")
	if err != nil {
		return err
	}
	query := r.URL.Query()
	opts := &sandbox.MoveOptions{ID: r.Header.Get(wire.HeaderID), Replace: query.Get("replace") == "1"}
	info, err := f.Move(r.Context(), query.Get("from"), query.Get("to"), opts)
	if err != nil {
		return err
	}
	return answer(w, wire.NewFile(info))
}

func (s *Server) setMode(w http.ResponseWriter, r *http.Request) error {
	f, err := s.files("set mode")
	if err != nil {
		return err
	}
	query := r.URL.Query()
	opts := &sandbox.ModeOptions{
		ID: r.Header.Get(wire.HeaderID), Owner: query.Get("owner"), Group: query.Get("group"), Recursive: query.Get("recursive") == "1",
	}
	if text := query.Get("mode"); text != "" {
		mode, err := wire.ParseMode(text)
		if err != nil {
			return err
		}
		opts.Mode = &mode
	}
	info, err := f.SetMode(r.Context(), query.Get("path"), opts)
	if err != nil {
		return err
	}
	return answer(w, wire.NewFile(info))
}

func (s *Server) glob(w http.ResponseWriter, r *http.Request) error {
	f, err := s.files("find files")
	if err != nil {
		return err
	}
	var query sandbox.GlobQuery
	if err := decode(w, r, maxQueryBytes, &query); err != nil {
		return err
	}
	query.ID, query.Path = r.Header.Get(wire.HeaderID), r.URL.Query().Get("path")
	res, err := f.Glob(r.Context(), &query)
	if err != nil {
		return err
	}
	return answer(w, &wire.GlobResult{Files: wire.NewFiles(res.Files), Truncated: res.Truncated, Skipped: res.Skipped})
}

func (s *Server) grep(w http.ResponseWriter, r *http.Request) error {
	f, err := s.files("search files")
	if err != nil {
		return err
	}
	var query sandbox.GrepQuery
	if err := decode(w, r, maxQueryBytes, &query); err != nil {
		return err
	}
	query.ID, query.Path = r.Header.Get(wire.HeaderID), r.URL.Query().Get("path")
	res, err := f.Grep(r.Context(), &query)
	if err != nil {
		return err
	}
	return answer(w, wire.NewGrepResult(res))
}

func (s *Server) downloadTree(w http.ResponseWriter, r *http.Request) error {
	f, err := s.files("download")
	if err != nil {
		return err
	}
	tar, err := f.Download(r.Context(), r.URL.Query().Get("path"), &sandbox.DownloadOptions{ID: r.Header.Get(wire.HeaderID)})
	if err != nil {
		return err
	}
	defer tar.Close()
	// A fault before the first byte can still be told.
	ahead := bufio.NewReaderSize(tar, 64<<10)
	if _, err := ahead.Peek(1); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	w.Header().Set("Content-Type", "application/x-tar")
	w.WriteHeader(http.StatusOK)
	n, err := io.Copy(idle.Answer(w, s.opts.Idle), ahead)
	if err == nil {
		_, err = w.Write(wire.TreeEnd(n))
	}
	if err != nil {
		panic(http.ErrAbortHandler) // a clean end would look like the whole tree
	}
	return nil
}

// uploadFault is an upload that failed, and what it left.
type uploadFault struct {
	error
	done *sandbox.Uploaded
}

func (e *uploadFault) Unwrap() error { return e.error }

func (s *Server) uploadTree(w http.ResponseWriter, r *http.Request) error {
	f, err := s.files("upload")
	if err != nil {
		return err
	}
	opts := &sandbox.UploadOptions{ID: r.Header.Get(wire.HeaderID)}
	files, err := number(r, "max_files", 0)
	if err != nil {
		return err
	}
	opts.MaxFiles = int(files)
	if opts.MaxBytes, err = number(r, "max_bytes", 0); err != nil {
		return err
	}
	done, err := f.Upload(r.Context(), r.URL.Query().Get("path"), r.Body, opts)
	if err != nil {
		return &uploadFault{err, done}
	}
	return answer(w, done)
}

// writeFault is wire.WriteError with a length, so that it is whole before the
// request is, and with what an upload left.
func writeFault(w http.ResponseWriter, err error) {
	body := wire.EncodeFault(err)
	if fault, ok := errors.AsType[*uploadFault](err); ok {
		if more, merr := json.Marshal(wire.UploadFault{Uploaded: fault.done}); merr == nil && fault.done != nil {
			body = append(append(body[:len(body)-1], ','), more[1:]...) // two objects become one
		}
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(wire.StatusOf(sandbox.CodeOf(err)))
	_, _ = w.Write(body) // the client may have gone
}
