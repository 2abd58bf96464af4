package execd

import (
	"net/http"

	"github.com/glassboxhq/glassbox/sandbox"
)

// There is no Jupyter here, so there are no kernels and no contexts of any. What
// execd calls the language "command" is a line for the shell.

// languageCommand is also what no language means.
const languageCommand = "command"

func (h *Handler) runCode(w http.ResponseWriter, r *http.Request) error {
	var req struct {
		Context struct {
			ID       string `json:"id"`
			Language string `json:"language"`
			Dir      string `json:"cwd"`
		} `json:"context"`
		Code string `json:"code"`
	}
	if err := h.decode(w, r, &req); err != nil {
		return err
	}
	switch {
	case req.Context.ID != "":
		return errNoContext(req.Context.ID)
	case req.Context.Language != "" && req.Context.Language != languageCommand:
		return errNoKernel(req.Context.Language)
	}
	return h.execute(w, r, &commandRequest{Command: req.Code, Dir: req.Context.Dir})
}

func errNoKernel(language string) error {
	return &sandbox.Error{
		Op: "run code", Code: sandbox.CodeUnsupported, Field: "language",
		Message: "there is no kernel for " + language + " here; run its program as a command, or use the language \"command\"",
	}
}

func errNoContext(name string) error {
	return &refusal{http.StatusNotFound, fault{"CONTEXT_NOT_FOUND", "context not found: " + name}}
}

func (h *Handler) makeContext(w http.ResponseWriter, r *http.Request) error {
	var req struct {
		Language string `json:"language"`
	}
	if err := h.decode(w, r, &req); err != nil {
		return err
	}
	return errNoKernel(req.Language)
}

func (h *Handler) findContext(_ http.ResponseWriter, r *http.Request) error {
	return errNoContext(r.PathValue("id"))
}

func (h *Handler) listContexts(w http.ResponseWriter, _ *http.Request) error {
	return answer(w, []string{})
}

func (h *Handler) removeContexts(http.ResponseWriter, *http.Request) error { return nil }

// isolation tells clients who ask first that sessions of their own isolation
// are not to be had.
func (h *Handler) isolation(w http.ResponseWriter, _ *http.Request) error {
	return answer(w, map[string]any{"available": false, "message": noIsolation})
}

const noIsolation = "isolated sessions are not supported here: the sandbox itself is the isolation; make one for each"
