package recorder

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"strconv"

	"github.com/glassboxhq/glassbox/internal/idle"
	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/sandbox"
)

func (s *Server) readFile(w http.ResponseWriter, r *http.Request) error {
	opts := &sandbox.ReadOptions{ID: r.Header.Get(wire.HeaderID)}
	for name, to := range map[string]*int64{
		"offset": &opts.Offset, "length": &opts.Length, "line": &opts.Line, "lines": &opts.Lines,
	} {
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
	content := bufio.NewReaderSize(f, 64<<10)
	if _, err := content.Peek(1); err != nil && !errors.Is(err, io.EOF) {
		return err // it can be told as long as nothing was sent
	}
	if d, ok := f.(sandbox.Described); ok && d.Info() != nil {
		wire.SetFile(w.Header(), d.Info())
	}
	if part, ok := f.(sandbox.Ranged); ok {
		_, length := part.Range()
		w.Header().Set(wire.HeaderLength, strconv.FormatInt(length, 10))
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.WriteHeader(http.StatusOK)
	if _, err := io.Copy(idle.Answer(w, s.opts.Idle), content); err != nil {
		panic(http.ErrAbortHandler) // a clean end would look like the whole file
	}
	return nil
}

func (s *Server) writeFile(w http.ResponseWriter, r *http.Request) error {
	opts, err := writeOptions(r)
	if err != nil {
		return err
	}
	info, err := s.session.Write(r.Context(), r.URL.Query().Get("path"), r.Body, opts)
	if err != nil {
		return err
	}
	return answer(w, wire.NewFile(info))
}

func writeOptions(r *http.Request) (*sandbox.WriteOptions, error) {
	query := r.URL.Query()
	opts := &sandbox.WriteOptions{ID: r.Header.Get(wire.HeaderID), IfHash: query.Get("if_hash")}
	var err error
	opts.Mode, err = newMode(query.Get("mode"))
	return opts, err
}

// newMode reads the mode of what is made; empty is for the usual one, which
// no rights at all would be taken for.
func newMode(text string) (fs.FileMode, error) {
	if text == "" {
		return 0, nil
	}
	bits, err := strconv.ParseUint(text, 8, 32)
	if err != nil || bits == 0 || bits > 0o777 {
		return 0, sandbox.Invalid("mode", "must be permission bits in octal, as in 644, and not 0")
	}
	return fs.FileMode(bits), nil
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
	return answer(w, wire.NewFiles(list))
}
