package execd

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/sandbox"
)

// maxListDepth is how deep a list of a directory may go.
const maxListDepth = 32

// listDirectory lists what a directory holds, down to a depth: each directory
// before what it holds, by name.
func (h *Handler) listDirectory(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	name, depth := query.Get("path"), 1
	if text := query.Get("depth"); text != "" {
		var err error
		if depth, err = strconv.Atoi(text); err != nil || depth < 0 {
			return sandbox.Invalid("depth", "must be a whole number, 0 or more")
		}
	}
	if name == "" {
		return sandbox.Invalid("path", "is missing in the query")
	}
	list, err := h.list(w, r, h.path(name), min(depth, maxListDepth))
	if err != nil {
		return err
	}
	slices.SortFunc(list, func(a, b *sandbox.FileInfo) int {
		return slices.Compare(strings.Split(a.Path, "/"), strings.Split(b.Path, "/"))
	})
	return answer(w, newFiles(list))
}

func (h *Handler) list(w http.ResponseWriter, r *http.Request, name string, depth int) ([]*sandbox.FileInfo, error) {
	switch depth {
	case 0:
		return nil, nil
	case 1:
		if said := h.helper.announced(history.FileList, r.URL.Query().Get("path")); said != "" {
			return h.helper.session.ListAnnounced(r.Context(), said, name)
		}
		return h.session.List(r.Context(), name)
	}
	levels := make([]string, depth)
	for i := range levels {
		levels[i] = strings.Repeat("*/", i) + "*"
	}
	res, err := h.session.Glob(r.Context(), &sandbox.GlobQuery{
		Path: name, Pattern: "{" + strings.Join(levels, ",") + "}", Hidden: true, Limit: sandbox.MaxFound,
	})
	if err != nil {
		return nil, err
	}
	if res.Truncated {
		w.Header().Set(headerTruncated, "1")
	}
	return res.Files, nil
}

// makeDirectories makes directories and those above them. Mode and owner are
// for those that are new.
func (h *Handler) makeDirectories(w http.ResponseWriter, r *http.Request) error {
	var req map[string]access
	if err := h.decode(w, r, &req); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(req)) {
		to := req[name]
		if err := h.makeDirectory(r, h.path(name), &to); err != nil {
			return err
		}
	}
	return nil
}

func (h *Handler) makeDirectory(r *http.Request, name string, to *access) error {
	mode, err := to.bits()
	if err != nil {
		return err
	}
	change, err := to.change()
	if err != nil {
		return err
	}
	if h.isDir(name) {
		change = nil
	}
	_, err = h.session.MakeDirWith(r.Context(), name, &sandbox.MakeDirOptions{Mode: mode.Perm()}, change)
	return err
}

// removeDirectories removes directories with all they hold, and files.
func (h *Handler) removeDirectories(_ http.ResponseWriter, r *http.Request) error {
	return h.remove(r, &sandbox.RemoveOptions{Recursive: true})
}
