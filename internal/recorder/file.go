package recorder

import (
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"strconv"

	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/sandbox"
)

func (s *Server) readFile(w http.ResponseWriter, r *http.Request) error {
	opts := &sandbox.ReadOptions{ID: r.Header.Get(wire.HeaderID)}
	for name, to := range map[string]*int64{"offset": &opts.Offset, "length": &opts.Length} {
		var err error
		if *to, err = number(r, name, 0); err != nil {
			return err
		}
	}
	f, err := s.session.Read(r.Context(), r.URL.Query().Get("path"), opts)
	if err != nil {
		return err
	}
	defer f.Close()
	if d, ok := f.(sandbox.Described); ok && d.Info() != nil {
		info, err := json.Marshal(d.Info())
		if err != nil {
			return &sandbox.Error{Op: "read file", Code: sandbox.CodeInternal, Err: err}
		}
		w.Header().Set(wire.HeaderFile, url.PathEscape(string(info)))
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.WriteHeader(http.StatusOK)
	if _, err := io.Copy(w, f); err != nil {
		panic(http.ErrAbortHandler) // a clean end would look like the whole file
	}
	return nil
}

func (s *Server) writeFile(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	opts := &sandbox.WriteOptions{ID: r.Header.Get(wire.HeaderID), IfHash: query.Get("if_hash")}
	if mode := query.Get("mode"); mode != "" {
		bits, err := strconv.ParseUint(mode, 8, 32)
		if err != nil || bits > 0o777 {
			return sandbox.Invalid("mode", "must be permission bits in octal, as in 644")
		}
		opts.Mode = fs.FileMode(bits)
	}
	info, err := s.session.Write(r.Context(), query.Get("path"), r.Body, opts)
	if err != nil {
		return err
	}
	return answer(w, info)
}

func (s *Server) removeFile(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	opts := &sandbox.RemoveOptions{ID: r.Header.Get(wire.HeaderID), Recursive: query.Get("recursive") == "1"}
	if err := s.session.Remove(r.Context(), query.Get("path"), opts); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (s *Server) listFiles(w http.ResponseWriter, r *http.Request) error {
	list, err := s.session.List(r.Context(), r.URL.Query().Get("path"))
	if err != nil {
		return err
	}
	return answer(w, list)
}
