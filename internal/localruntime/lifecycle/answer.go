package lifecycle

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/glassboxhq/glassbox/internal/idle"
	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/sandbox"
)

func writeJSON(w http.ResponseWriter, status int, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // plain values only
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(text) // the client may have gone
}

func writeError(w http.ResponseWriter, status int, code, message string) {
	if status == http.StatusUnauthorized || status == http.StatusForbidden {
		idle.Refused(w) // a stranger may send on for a moment, not for ever
	}
	writeJSON(w, status, map[string]string{"code": code, "message": message})
}

// notFound, wrongMethod and unprocessable answer as the framework of the
// original does, before its own code is reached.
func notFound(w http.ResponseWriter) {
	writeJSON(w, http.StatusNotFound, map[string]string{"detail": "Not Found"})
}

func wrongMethod(w http.ResponseWriter) {
	writeJSON(w, http.StatusMethodNotAllowed, map[string]string{"detail": "Method Not Allowed"})
}

// unprocessable tells which part of a request cannot be read. Unlike the
// original it does not send the part back: it may hold a secret.
func unprocessable(w http.ResponseWriter, message string, place ...string) {
	type detail struct {
		Type  string   `json:"type"`
		Place []string `json:"loc"`
		Text  string   `json:"msg"`
	}
	writeJSON(w, http.StatusUnprocessableEntity, map[string][]detail{"detail": {{Type: "value_error", Place: place, Text: message}}})
}

func notSupported(w http.ResponseWriter, what string) {
	writeError(w, http.StatusNotImplemented, "SANDBOX::API_NOT_SUPPORTED", "the local runtime has no "+what)
}

// fail answers with an error of the runtime. state is the code for one about
// the state of the sandbox, which depends on what was asked.
func fail(w http.ResponseWriter, err error, state string) {
	code := sandbox.CodeOf(err)
	w.Header().Set(headerCode, string(code))
	theirs := "GLASSBOX::" + strings.ToUpper(string(code))
	status := wire.StatusOf(code)
	switch code {
	case sandbox.CodeSandboxNotFound:
		theirs = "DOCKER::SANDBOX_NOT_FOUND"
	case sandbox.CodeImageNotFound:
		theirs, status = "DOCKER::SANDBOX_IMAGE_PULL_FAILED", http.StatusInternalServerError // as the original
	case sandbox.CodeSandboxState, sandbox.CodeSandboxDeleting:
		theirs = state
	case sandbox.CodeSnapshotNotFound:
		theirs = "SNAPSHOT::NOT_FOUND"
	case sandbox.CodeSnapshotState:
		theirs = "SNAPSHOT::NOT_READY"
	case sandbox.CodeInvalid:
		theirs = "SANDBOX::INVALID_PARAMETER"
		if e, ok := errors.AsType[*sandbox.Error](err); ok && e.Field == "metadata" {
			theirs = "SANDBOX::INVALID_METADATA_LABEL"
		}
	}
	message := err.Error()
	if e, ok := errors.AsType[*sandbox.Error](err); ok && e.Op != "" {
		message = strings.TrimPrefix(message, e.Op+": ") // the client knows what it tried
	}
	writeError(w, status, theirs, message)
}
