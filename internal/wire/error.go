package wire

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/glassboxhq/glassbox/sandbox"
)

// statuses is the one table from codes to HTTP statuses; what is not in it is
// a 500.
var statuses = map[sandbox.Code]int{
	sandbox.CodeInvalid:           http.StatusBadRequest,
	sandbox.CodeSandboxNotFound:   http.StatusNotFound,
	sandbox.CodeSandboxState:      http.StatusConflict,
	sandbox.CodeSandboxDeleting:   http.StatusConflict,
	sandbox.CodeSnapshotNotFound:  http.StatusNotFound,
	sandbox.CodeSnapshotState:     http.StatusConflict,
	sandbox.CodeImageNotFound:     http.StatusNotFound,
	sandbox.CodeIsolation:         http.StatusNotImplemented,
	sandbox.CodeUnsupported:       http.StatusNotImplemented,
	sandbox.CodeUnauthorized:      http.StatusUnauthorized,
	sandbox.CodeProvider:          http.StatusBadGateway,
	sandbox.CodeUnavailable:       http.StatusServiceUnavailable,
	sandbox.CodeTimeout:           http.StatusGatewayTimeout,
	sandbox.CodeCommandQueue:      http.StatusGatewayTimeout,
	sandbox.CodeLock:              http.StatusGatewayTimeout,
	sandbox.CodeCancelled:         499, // as nginx says it: the client went away
	sandbox.CodeOperationNotFound: http.StatusNotFound,
	sandbox.CodeOperationExists:   http.StatusConflict,
	sandbox.CodeOperationConflict: http.StatusConflict,
	sandbox.CodeTerminalBusy:      http.StatusConflict,
	sandbox.CodeOutputGone:        http.StatusGone,
	sandbox.CodeFileNotFound:      http.StatusNotFound,
	sandbox.CodeFileExists:        http.StatusConflict,
	sandbox.CodeIsDirectory:       http.StatusConflict,
	sandbox.CodeNotDirectory:      http.StatusConflict,
	sandbox.CodeNotEmpty:          http.StatusConflict,
	sandbox.CodePathNotAllowed:    http.StatusForbidden,
	sandbox.CodePermission:        http.StatusForbidden,
	sandbox.CodeModified:          http.StatusPreconditionFailed,
	sandbox.CodeTooLarge:          http.StatusRequestEntityTooLarge,
	sandbox.CodeNoSpace:           http.StatusInsufficientStorage,
	sandbox.CodeNoMatch:           http.StatusConflict,
	sandbox.CodeAmbiguous:         http.StatusConflict,
	sandbox.CodeArchive:           http.StatusBadRequest,
	sandbox.CodeHistory:           http.StatusServiceUnavailable,
	sandbox.CodeHistoryLocked:     http.StatusServiceUnavailable,
	sandbox.CodeHistoryReadOnly:   http.StatusServiceUnavailable,
	sandbox.CodeHistoryCorrupt:    http.StatusServiceUnavailable,
	sandbox.CodeHistoryVersion:    http.StatusServiceUnavailable,
	sandbox.CodeHistoryExhausted:  http.StatusInsufficientStorage,
	sandbox.CodeHistoryConflict:   http.StatusConflict,
	sandbox.CodeHistoryConfig:     http.StatusBadRequest,
}

// StatusOf returns the HTTP status of a code.
func StatusOf(code sandbox.Code) int {
	if status, ok := statuses[code]; ok {
		return status
	}
	return http.StatusInternalServerError
}

// Fault is an error on the wire.
type Fault struct {
	Code      sandbox.Code `json:"code"`
	Op        string       `json:"op,omitempty"`
	Field     string       `json:"field,omitempty"`
	Message   string       `json:"message"`
	Retryable bool         `json:"retryable,omitempty"`
}

// EncodeFault writes err for the wire.
func EncodeFault(err error) []byte {
	fault := Fault{Code: sandbox.CodeOf(err), Message: err.Error()}
	if e, ok := errors.AsType[*sandbox.Error](err); ok {
		fault.Op, fault.Field, fault.Retryable = e.Op, e.Field, e.Retryable
		fault.Message = (&sandbox.Error{Message: e.Message, Err: e.Err}).Error()
		if e.Message == "" && e.Err == nil {
			fault.Message = ""
		}
	}
	b, err := json.Marshal(map[string]Fault{"error": fault})
	if err != nil {
		panic(err) // plain values only
	}
	return b
}

// DecodeFault reads an error from the wire, or makes one of the HTTP status
// where there is none.
func DecodeFault(status int, body []byte) *sandbox.Error {
	var answer struct {
		Error Fault `json:"error"`
	}
	if err := json.Unmarshal(body, &answer); err != nil || answer.Error.Code == "" {
		return &sandbox.Error{
			Code: sandbox.CodeProvider, Message: "the service answered " + http.StatusText(status),
			Retryable: status == http.StatusBadGateway || status == http.StatusServiceUnavailable || status == http.StatusGatewayTimeout,
		}
	}
	f := answer.Error
	return &sandbox.Error{Code: f.Code, Op: f.Op, Field: f.Field, Message: f.Message, Retryable: f.Retryable}
}

// DecodeAnswer is DecodeFault for an answer that may come from the lifecycle
// API on the way to the recorder: that says {"code", "message"}, with our own
// code in a header.
func DecodeAnswer(resp *http.Response, body []byte) *sandbox.Error {
	e := DecodeFault(resp.StatusCode, body)
	e.RequestID = resp.Header.Get("X-Request-Id")
	code := sandbox.Code(resp.Header.Get(HeaderCode))
	var theirs struct {
		Message string `json:"message"`
	}
	if code == "" || json.Unmarshal(body, &theirs) != nil || theirs.Message == "" {
		return e
	}
	e.Code, e.Message = code, theirs.Message
	return e
}

// WriteError answers a request with err.
func WriteError(w http.ResponseWriter, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(StatusOf(sandbox.CodeOf(err)))
	_, _ = w.Write(EncodeFault(err)) // the client may have gone
}
