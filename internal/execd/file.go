package execd

import (
	"io"
	"io/fs"
	"maps"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/idle"
	"github.com/glassboxhq/glassbox/sandbox"
)

// file is a FileInfo as execd tells it.
type file struct {
	Path     string    `json:"path"`
	Type     string    `json:"type"`
	Size     int64     `json:"size"`
	Modified time.Time `json:"modified_at"`
	Created  time.Time `json:"created_at"` // which no file knows: as modified
	Owner    string    `json:"owner"`
	Group    string    `json:"group"`
	Mode     int       `json:"mode"` // octal digits, as if they were decimal
}

func newFile(info *sandbox.FileInfo) *file {
	return &file{
		Path: info.Path, Type: typeOf(info.Mode), Size: info.Size, Modified: info.Modified, Created: info.Modified,
		Owner: info.Owner, Group: info.Group, Mode: digits(info.Mode),
	}
}

func newFiles(list []*sandbox.FileInfo) []*file {
	files := make([]*file, len(list))
	for i, info := range list {
		files[i] = newFile(info)
	}
	return files
}

func typeOf(mode fs.FileMode) string {
	switch mode.Type() {
	case 0:
		return "file"
	case fs.ModeDir:
		return "directory"
	case fs.ModeSymlink:
		return "symlink"
	}
	return "other"
}

// digits writes permission bits as a number that reads like them: 0644 is 644.
func digits(mode fs.FileMode) int {
	n, _ := strconv.Atoi(strconv.FormatUint(uint64(mode.Perm()), 8))
	return n
}

// access is whose a file shall be and what may be done with it. The mode is
// its octal digits, as if they were decimal; 0: as it is.
type access struct {
	Owner string `json:"owner"`
	Group string `json:"group"`
	Mode  int    `json:"mode"`
}

// bits reads the mode; the first of four digits is setuid, setgid and sticky.
func (a *access) bits() (fs.FileMode, error) {
	n, err := strconv.ParseUint(strconv.Itoa(a.Mode), 8, 32)
	if err != nil || n > 0o7777 {
		return 0, sandbox.Invalid("mode", "must be octal digits, as in 644")
	}
	mode := fs.FileMode(n & 0o777)
	for bit, flag := range map[uint64]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if n&bit != 0 {
			mode |= flag
		}
	}
	return mode, nil
}

// change is what is asked for; nil: nothing.
func (a *access) change() (*sandbox.ModeOptions, error) {
	opts := &sandbox.ModeOptions{Owner: a.Owner, Group: a.Group}
	if a.Mode != 0 {
		mode, err := a.bits()
		if err != nil {
			return nil, err
		}
		opts.Mode = &mode
	}
	if opts.Mode == nil && opts.Owner == "" && opts.Group == "" {
		return nil, nil
	}
	return opts, nil
}

func (h *Handler) fileInfo(w http.ResponseWriter, r *http.Request) error {
	found := map[string]*file{}
	for _, name := range r.URL.Query()["path"] {
		info, err := h.session.Stat(r.Context(), h.path(name))
		if err != nil {
			return err
		}
		found[name] = newFile(info)
	}
	return answer(w, found)
}

// headerTruncated tells that a list is not whole, which execd's never is.
const headerTruncated = "X-Glassbox-Truncated"

// searchFiles finds files below a directory. A pattern without a slash is
// matched against names at any depth, as execd does it.
func (h *Handler) searchFiles(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	root, pattern := query.Get("path"), query.Get("pattern")
	switch {
	case root == "":
		return sandbox.Invalid("path", "is missing in the query")
	case pattern == "":
		pattern = "**"
	case !strings.Contains(pattern, "/"):
		pattern = "**/" + pattern
	}
	res, err := h.session.Glob(r.Context(), &sandbox.GlobQuery{Path: h.path(root), Pattern: pattern, Hidden: true, Limit: sandbox.MaxFound})
	if err != nil {
		return err
	}
	if res.Truncated {
		w.Header().Set(headerTruncated, "1")
	}
	files := slices.DeleteFunc(res.Files, func(f *sandbox.FileInfo) bool { return f.Mode.IsDir() })
	return answer(w, newFiles(files))
}

// replaceText replaces a text in files, wherever it stands. Where it does not,
// the file stays as it is.
func (h *Handler) replaceText(w http.ResponseWriter, r *http.Request) error {
	var req map[string]struct {
		Old string `json:"old"`
		New string `json:"new"`
	}
	if err := h.decode(w, r, &req); err != nil {
		return err
	}
	type replaced struct {
		Count int `json:"replacedCount"`
	}
	counts := map[string]replaced{}
	for _, name := range slices.Sorted(maps.Keys(req)) {
		done, err := h.session.Edit(r.Context(), h.path(name), &sandbox.Edit{Old: req[name].Old, New: req[name].New, All: true, MayMiss: true})
		if err != nil {
			return err
		}
		counts[name] = replaced{done.Replaced}
	}
	if verbose, _ := strconv.ParseBool(r.URL.Query().Get("verbose")); verbose {
		return answer(w, counts)
	}
	return nil
}

func (h *Handler) setPermissions(w http.ResponseWriter, r *http.Request) error {
	var req map[string]access
	if err := h.decode(w, r, &req); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(req)) {
		to := req[name]
		change, err := to.change()
		if err != nil {
			return err
		}
		if change == nil {
			continue
		}
		if _, err := h.session.SetMode(r.Context(), h.path(name), change); err != nil {
			return err
		}
	}
	return nil
}

func (h *Handler) moveFiles(w http.ResponseWriter, r *http.Request) error {
	var req []struct {
		From string `json:"src"`
		To   string `json:"dest"`
	}
	if err := h.decode(w, r, &req); err != nil {
		return err
	}
	for _, move := range req {
		if _, err := h.session.Move(r.Context(), h.path(move.From), h.path(move.To), nil); err != nil {
			return err
		}
	}
	return nil
}

// removeFiles removes files, never directories that hold something. What is
// missing is no error.
func (h *Handler) removeFiles(_ http.ResponseWriter, r *http.Request) error {
	return h.remove(r, &sandbox.RemoveOptions{})
}

func (h *Handler) remove(r *http.Request, opts *sandbox.RemoveOptions) error {
	for _, name := range r.URL.Query()["path"] {
		if h.helper.owns(name) {
			h.helper.drop(name)
			continue
		}
		opts.ID = h.helper.announced(history.FileDelete, name)
		err := h.session.Remove(r.Context(), h.path(name), opts)
		if err != nil && sandbox.CodeOf(err) != sandbox.CodeFileNotFound {
			return err
		}
	}
	return nil
}

// downloadFile answers with the bytes of a file: all, a range, or lines.
func (h *Handler) downloadFile(w http.ResponseWriter, r *http.Request) error {
	name := h.path(r.URL.Query().Get("path"))
	part, err := h.askedPart(r, name)
	if err != nil {
		return err
	}
	part.ID = h.helper.announced(history.FileRead, r.URL.Query().Get("path"))
	f, err := h.session.Read(r.Context(), name, &part.ReadOptions)
	if err != nil {
		return err
	}
	defer f.Close()
	status := part.describe(w.Header(), f)
	if status == http.StatusRequestedRangeNotSatisfiable {
		answerStatus(w, status, &fault{"INVALID_FILE", "the range lies behind the end of the file"})
		return nil
	}
	w.WriteHeader(status)
	if _, err := io.Copy(idle.Answer(w, h.opts.Idle), f); err != nil {
		panic(http.ErrAbortHandler) // a clean end would look like the whole file
	}
	return nil
}

// disposition names a file for who saves it.
func disposition(name string) string {
	return "attachment; filename*=UTF-8''" + escapeName(path.Base(name))
}

// escapeName is RFC 5987's way to write what a header cannot hold.
func escapeName(name string) string {
	var b strings.Builder
	for i := range len(name) {
		c := name[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~", c) >= 0 {
			b.WriteByte(c)
		} else {
			b.WriteString("%" + strings.ToUpper(strconv.FormatUint(uint64(c)|0x100, 16)[1:]))
		}
	}
	return b.String()
}
