package lifecycle

import (
	"errors"
	"net/http"
	"time"

	"github.com/glassboxhq/glassbox/history"
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
	began := time.Now()
	info, err := a.rt.SetMetadata(r.Context(), at.parts[0], change)
	a.record(r, &done{opType: history.SandboxMetadata, sandbox: at.parts[0], began: began, request: map[string]any{"metadata": change}}, err)
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
