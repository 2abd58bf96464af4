package lifecycle

import (
	"errors"
	"net/http"

	"github.com/glassboxhq/glassbox/sandbox"
)

// setMetadata merges the body into the metadata of a sandbox: null removes.
func (a *api) setMetadata(w http.ResponseWriter, r *http.Request, at *route) {
	var change map[string]*string
	if !readBody(w, r, &change) {
		return
	}
	if change == nil {
		unprocessable(w, "the body must be a JSON object", "body")
		return
	}
	info, err := a.rt.SetMetadata(r.Context(), at.parts[0], change)
	switch {
	case errors.Is(err, sandbox.ErrInvalid):
		w.Header().Set(headerCode, string(sandbox.CodeInvalid))
		writeError(w, http.StatusBadRequest, "INVALID_METADATA_LABEL", err.Error()) // without the prefix that a creation has
	case err != nil:
		fail(w, err, codeNotRunning)
	default:
		writeJSON(w, http.StatusOK, a.describe(r, info))
	}
}
