package execd

import (
	"encoding/json"
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/idle"
	"github.com/glassboxhq/glassbox/sandbox"
)

// uploadFiles writes files as they come, none of them whole in memory. A form
// that is refused early is answered at once, and what the client still sends
// is let pass, else it would see a broken connection instead of the answer.
func (h *Handler) uploadFiles(w http.ResponseWriter, r *http.Request) error {
	control := http.NewResponseController(w)
	_ = control.EnableFullDuplex() // HTTP/2 needs no asking
	body := r.Body
	r.Body = idle.Body(w, body, h.opts.Idle)
	if err := h.takeForm(r); err != nil {
		h.opts.Logger.DebugContext(r.Context(), "upload refused", "error", err)
		tell(w, err)
	} else {
		w.Header().Set("Content-Length", "0")
		w.WriteHeader(http.StatusOK)
	}
	if control.Flush() == nil && control.SetReadDeadline(time.Now().Add(idle.LetPass)) == nil {
		_, _ = io.Copy(io.Discard, body)
	}
	return nil
}

// uploaded is the metadata of a file that follows.
type uploaded struct {
	Path string `json:"path"`
	access
}

const maxMetadata = 64 << 10

// takeForm reads a form of parts "metadata" and "file". The first file belongs
// to the first metadata, and so on.
func (h *Handler) takeForm(r *http.Request) error {
	form, err := r.MultipartReader()
	if err != nil {
		return &sandbox.Error{Op: "read form", Code: sandbox.CodeInvalid, Field: "body", Err: err}
	}
	var waiting []*uploaded
	for files := 0; ; {
		p, err := form.NextPart()
		switch {
		case errors.Is(err, io.EOF) && len(waiting) > 0:
			return sandbox.Invalid("file", "is missing for "+waiting[0].Path)
		case errors.Is(err, io.EOF) && files == 0:
			return sandbox.Invalid("metadata", "is missing: the form has no files")
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return &sandbox.Error{Op: "read form", Code: sandbox.CodeInvalid, Field: "body", Err: err}
		}
		switch p.FormName() {
		case "metadata":
			meta := &uploaded{}
			if err := json.NewDecoder(io.LimitReader(p, maxMetadata)).Decode(meta); err != nil || meta.Path == "" {
				return &sandbox.Error{Op: "read form", Code: sandbox.CodeInvalid, Field: "metadata", Message: "must be JSON with a path", Err: err}
			}
			waiting = append(waiting, meta)
		case "file":
			if len(waiting) == 0 {
				return sandbox.Invalid("metadata", "must stand before its file")
			}
			if err := h.takeFile(r, waiting[0], p); err != nil {
				return err
			}
			waiting = waiting[1:]
			files++
		}
	}
}

// newFileMode is what execd gives to a new file without a mode.
const newFileMode = 0o755

func (h *Handler) takeFile(r *http.Request, meta *uploaded, content *multipart.Part) error {
	if h.helper.owns(meta.Path) {
		return h.helper.take(meta.Path, content)
	}
	name := h.path(meta.Path)
	mode, err := meta.bits()
	if err != nil {
		return err
	}
	opts := &sandbox.WriteOptions{ID: h.helper.announced(history.FileWrite, meta.Path), Mode: mode.Perm()}
	if mode == 0 {
		opts.Mode = newFileMode
	}
	change, err := meta.change()
	if err != nil {
		return err
	}
	_, err = h.session.WriteWith(r.Context(), name, content, opts, change)
	return err
}
