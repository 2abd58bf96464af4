package recorder

import (
	"net/http"

	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/sandbox"
)

// files is the rest of what the session can do with files.
func (s *Server) files(op string) (sandbox.Files, error) {
	if f, ok := s.session.(sandbox.Files); ok {
		return f, nil
	}
	return nil, &sandbox.Error{Op: op, Code: sandbox.CodeUnsupported}
}

// Bounds of a request's body.
const (
	maxEditBytes  = wire.MaxRequestBytes
	maxQueryBytes = 1 << 20
)

func (s *Server) appendFile(w http.ResponseWriter, r *http.Request) error {
	f, err := s.files("append to file")
	if err != nil {
		return err
	}
	opts, err := writeOptions(r)
	if err != nil {
		return err
	}
	info, err := f.Append(r.Context(), r.URL.Query().Get("path"), r.Body, opts)
	if err != nil {
		return err
	}
	return answer(w, wire.NewFile(info))
}

func (s *Server) editFile(w http.ResponseWriter, r *http.Request) error {
	f, err := s.files("edit file")
	if err != nil {
		return err
	}
	var edit sandbox.Edit
	if err := decode(w, r, maxEditBytes, &edit); err != nil {
		return err
	}
	edit.ID = r.Header.Get(wire.HeaderID)
	if edit.MaxBytes, err = number(r, "max_bytes", 0); err != nil {
		return err
	}
	done, err := f.Edit(r.Context(), r.URL.Query().Get("path"), &edit)
	if err != nil {
		return err
	}
	return answer(w, &wire.Edited{File: *wire.NewFile(&done.FileInfo), Replaced: done.Replaced})
}
