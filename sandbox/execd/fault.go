package execd

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/sandbox"
)

// answerFault is an error in any of the shapes that execd and the proxy before
// it have.
type answerFault struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Error   string `json:"error"`
	Detail  any    `json:"detail"`
}

// refusal reads an answer that is an error.
func refusal(resp *http.Response, text []byte) *sandbox.Error {
	var f answerFault
	_ = json.Unmarshal(text, &f) // a proxy on the way may answer with a page
	e := newFault(resp.StatusCode, &f)
	e.RequestID = resp.Header.Get("X-Request-ID")
	if code := resp.Header.Get(wire.HeaderCode); code != "" {
		e.Code = sandbox.Code(code) // it is one of ours
	}
	return e
}

// maxMessage bounds what of a message is told.
const maxMessage = 4 << 10

func newFault(status int, f *answerFault) *sandbox.Error {
	e := &sandbox.Error{Message: f.Message, ProviderCode: f.Code}
	if e.Message == "" {
		e.Message = f.Error
	}
	if detail, ok := f.Detail.(string); ok && e.Message == "" {
		e.Message = detail
	}
	if e.Message == "" {
		e.Message = "execd answered " + http.StatusText(status)
	}
	if len(e.Message) > maxMessage {
		e.Message = strings.ToValidUTF8(e.Message[:maxMessage], "") + "…"
	}
	e.Code = codeOf(status, f.Code, e.Message)
	// The proxy's own, of which execd knows nothing.
	e.Retryable = status == http.StatusBadGateway || status == http.StatusServiceUnavailable || status == http.StatusGatewayTimeout
	return e
}

// texts are how the system's errors read: execd answers 500 to ordinary ones.
var texts = []struct {
	text string
	code sandbox.Code
}{
	{"no such file or directory", sandbox.CodeFileNotFound},
	{"not a directory", sandbox.CodeNotDirectory},
	{"is a directory", sandbox.CodeIsDirectory},
	{"directory not empty", sandbox.CodeNotEmpty},
	{"destination path already exists", sandbox.CodeFileExists},
	{"permission denied", sandbox.CodePermission},
	{"operation not permitted", sandbox.CodePermission},
	{"read-only file system", sandbox.CodePermission},
	{"no space left on device", sandbox.CodeNoSpace},
	{"file name too long", sandbox.CodeInvalid},
}

func codeOf(status int, theirs, message string) sandbox.Code {
	if status == http.StatusBadGateway || status == http.StatusGatewayTimeout || status == http.StatusServiceUnavailable {
		return sandbox.CodeUnavailable
	}
	lower := strings.ToLower(message)
	for _, t := range texts {
		if strings.Contains(lower, t.text) {
			return t.code
		}
	}
	switch {
	case theirs == "FILE_NOT_FOUND":
		return sandbox.CodeFileNotFound
	case strings.HasSuffix(theirs, "SANDBOX_NOT_FOUND"):
		return sandbox.CodeSandboxNotFound
	case strings.Contains(lower, "command not found"), theirs == "COMMAND_NOT_FOUND":
		return sandbox.CodeOperationNotFound
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return sandbox.CodeUnauthorized
	case status == http.StatusBadRequest, status == http.StatusUnprocessableEntity:
		return sandbox.CodeInvalid
	case theirs == "NOT_SUPPORTED", status == http.StatusNotFound, status == http.StatusNotImplemented:
		return sandbox.CodeUnsupported // there is no such route
	}
	return sandbox.CodeProvider
}
