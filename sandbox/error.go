package sandbox

import (
	"context"
	"errors"
	"strconv"
	"strings"
)

// The kinds of errors, to be asked with errors.Is.
var (
	ErrInvalid      = errors.New("invalid argument")
	ErrNotFound     = errors.New("not found")
	ErrExists       = errors.New("already exists")
	ErrConflict     = errors.New("conflict")
	ErrState        = errors.New("not possible in this state")
	ErrUnsupported  = errors.New("not supported")
	ErrUnauthorized = errors.New("not authorized")
	ErrPermission   = errors.New("permission denied")
	ErrIsDirectory  = errors.New("is a directory")
	ErrNotDirectory = errors.New("not a directory")
	ErrTooLarge     = errors.New("too large")
	ErrNoSpace      = errors.New("no space left")
	ErrOutputGone   = errors.New("output is no longer kept")
	ErrInterrupted  = errors.New("interrupted, outcome not known")
	ErrUnavailable  = errors.New("not available")
	ErrTimeout      = errors.New("timed out")
	ErrCancelled    = errors.New("cancelled")
	ErrHistory      = errors.New("history")
)

// Code is the stable name of an error. Programs and the console match on it,
// never on text. The codes that the Python SDK knows keep their names.
type Code string

// The codes.
const (
	CodeInternal          Code = "sandbox_backend_error"
	CodeInvalid           Code = "invalid_argument"
	CodeSandboxNotFound   Code = "sandbox_not_found"
	CodeSandboxState      Code = "sandbox_state_error"
	CodeSandboxDeleting   Code = "sandbox_deleting"
	CodeSnapshotNotFound  Code = "snapshot_not_found"
	CodeSnapshotState     Code = "snapshot_state_error"
	CodeImageNotFound     Code = "image_not_found"
	CodeIsolation         Code = "isolation_unavailable"
	CodeUnsupported       Code = "unsupported_capability"
	CodeUnauthorized      Code = "unauthorized"
	CodeProvider          Code = "provider_error"
	CodeUnavailable       Code = "unavailable"
	CodeTimeout           Code = "timeout"
	CodeCancelled         Code = "cancelled"
	CodeCommand           Code = "command_execution_error"
	CodeCommandQueue      Code = "command_queue_timeout"    // no turn came in time
	CodeLock              Code = "lock_acquisition_timeout" // of an act on files
	CodeOperationNotFound Code = "operation_not_found"
	CodeOperationExists   Code = "operation_exists"
	CodeOperationConflict Code = "operation_conflict" // the id names another operation
	CodeOutputGone        Code = "output_gone"
	CodeInterrupted       Code = "stream_interrupted"
	CodeTerminalBusy      Code = "terminal_busy" // another client types
	CodeFileNotFound      Code = "file_not_found"
	CodeFileExists        Code = "file_exists"
	CodeIsDirectory       Code = "is_directory"
	CodeNotDirectory      Code = "not_directory"
	CodeNotEmpty          Code = "directory_not_empty"
	CodePathNotAllowed    Code = "path_not_allowed"
	CodePermission        Code = "permission_denied"
	CodeModified          Code = "concurrent_modification"
	CodeTooLarge          Code = "too_large"
	CodeNoSpace           Code = "no_space"
	CodeNoMatch           Code = "text_not_found"  // an edit's old text is not in the file
	CodeAmbiguous         Code = "text_not_unique" // it is there more than once
	CodeArchive           Code = "upload_archive_security_error"
	CodeHistory           Code = "history_database_error"
	CodeHistoryLocked     Code = "history_locked"
	CodeHistoryReadOnly   Code = "history_read_only"
	CodeHistoryCorrupt    Code = "history_corrupt"
	CodeHistoryVersion    Code = "history_version_unsupported"
	CodeHistoryExhausted  Code = "history_storage_exhausted"
	CodeHistoryConflict   Code = "history_config_conflict"
	CodeHistoryConfig     Code = "history_config_validation"
)

// kinds is the one table from codes to kinds.
var kinds = map[Code]error{
	CodeInvalid:           ErrInvalid,
	CodeSandboxNotFound:   ErrNotFound,
	CodeSandboxState:      ErrState,
	CodeSandboxDeleting:   ErrState,
	CodeSnapshotNotFound:  ErrNotFound,
	CodeSnapshotState:     ErrState,
	CodeImageNotFound:     ErrNotFound,
	CodeIsolation:         ErrUnsupported,
	CodeUnsupported:       ErrUnsupported,
	CodeUnauthorized:      ErrUnauthorized,
	CodeProvider:          ErrUnavailable,
	CodeUnavailable:       ErrUnavailable,
	CodeTimeout:           ErrTimeout,
	CodeCancelled:         ErrCancelled,
	CodeCommandQueue:      ErrTimeout,
	CodeLock:              ErrTimeout,
	CodeOperationNotFound: ErrNotFound,
	CodeOperationExists:   ErrExists,
	CodeOperationConflict: ErrConflict,
	CodeOutputGone:        ErrOutputGone,
	CodeInterrupted:       ErrInterrupted,
	CodeTerminalBusy:      ErrConflict,
	CodeFileNotFound:      ErrNotFound,
	CodeFileExists:        ErrExists,
	CodeIsDirectory:       ErrIsDirectory,
	CodeNotDirectory:      ErrNotDirectory,
	CodeNotEmpty:          ErrState,
	CodePathNotAllowed:    ErrPermission,
	CodePermission:        ErrPermission,
	CodeModified:          ErrConflict,
	CodeTooLarge:          ErrTooLarge,
	CodeNoSpace:           ErrNoSpace,
	CodeNoMatch:           ErrConflict,
	CodeAmbiguous:         ErrConflict,
	CodeArchive:           ErrInvalid,
	CodeHistory:           ErrHistory,
	CodeHistoryLocked:     ErrHistory,
	CodeHistoryReadOnly:   ErrHistory,
	CodeHistoryCorrupt:    ErrHistory,
	CodeHistoryVersion:    ErrHistory,
	CodeHistoryExhausted:  ErrHistory,
	CodeHistoryConflict:   ErrHistory,
	CodeHistoryConfig:     ErrInvalid,
}

// Error is the one error type of sandboxes and histories. Its text names what
// was tried and why it did not work; it never holds a secret.
type Error struct {
	Op           string // what was tried, as in "write file"
	Code         Code
	Message      string // why, and what to do
	Field        string // the argument that is wrong, if one is
	Sandbox      string // id
	Provider     string // name of the service
	ProviderCode string // the service's own code
	RequestID    string // the service's id of the request
	Retryable    bool   // the same call may work later
	Err          error  // cause, if it is worth telling
}

// Error implements error.
func (e *Error) Error() string {
	var parts []string
	for _, part := range []string{e.Op, e.Field, e.Message} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	if e.Message == "" && e.Err == nil {
		parts = append(parts, strings.ReplaceAll(string(e.Code), "_", " "))
	}
	if e.Err != nil {
		parts = append(parts, e.Err.Error())
	}
	text := strings.Join(parts, ": ")
	if e.ProviderCode != "" {
		text += " (" + e.ProviderCode + ")"
	}
	if e.RequestID != "" {
		text += " (request " + e.RequestID + ")"
	}
	return text
}

// Unwrap gives errors.Is the kind and the cause.
func (e *Error) Unwrap() []error {
	var errs []error
	if kind, ok := kinds[e.Code]; ok {
		errs = append(errs, kind)
	}
	if e.Err != nil {
		errs = append(errs, e.Err)
	}
	return errs
}

// Invalid returns an error about one argument: its name, and the rule that it
// breaks.
func Invalid(field, rule string) *Error {
	return &Error{Code: CodeInvalid, Field: field, Message: rule}
}

// CodeOf returns the code of err: its own, or one for what the standard
// library reports.
func CodeOf(err error) Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	switch {
	case errors.Is(err, context.Canceled):
		return CodeCancelled
	case errors.Is(err, context.DeadlineExceeded):
		return CodeTimeout
	}
	return CodeInternal
}

// FromContext turns the end of a context into an error of this package.
func FromContext(ctx context.Context, op string) *Error {
	code := CodeCancelled
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		code = CodeTimeout
	}
	return &Error{Op: op, Code: code, Err: context.Cause(ctx)}
}

func quote(s string) string {
	if len(s) > 64 {
		s = s[:64] + "…"
	}
	return strconv.Quote(s)
}
