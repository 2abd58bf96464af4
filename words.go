package glassbox

import (
	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/sandbox"
)

// The words of packages sandbox and history that a program needs.
type (
	Actor         = history.Actor
	Operation     = history.Operation
	Filter        = history.Filter
	Command       = sandbox.Command
	Result        = sandbox.Result
	Process       = sandbox.Process
	Chunk         = sandbox.Chunk
	Info          = sandbox.Info
	FileInfo      = sandbox.FileInfo
	ReadOptions   = sandbox.ReadOptions
	WriteOptions  = sandbox.WriteOptions
	RemoveOptions = sandbox.RemoveOptions
	Error         = sandbox.Error
)

// The kinds of errors, to be asked with errors.Is.
var (
	ErrInvalid      = sandbox.ErrInvalid
	ErrNotFound     = sandbox.ErrNotFound
	ErrExists       = sandbox.ErrExists
	ErrConflict     = sandbox.ErrConflict
	ErrState        = sandbox.ErrState
	ErrUnsupported  = sandbox.ErrUnsupported
	ErrUnauthorized = sandbox.ErrUnauthorized
	ErrPermission   = sandbox.ErrPermission
	ErrIsDirectory  = sandbox.ErrIsDirectory
	ErrNotDirectory = sandbox.ErrNotDirectory
	ErrTooLarge     = sandbox.ErrTooLarge
	ErrNoSpace      = sandbox.ErrNoSpace
	ErrOutputGone   = sandbox.ErrOutputGone
	ErrInterrupted  = sandbox.ErrInterrupted
	ErrUnavailable  = sandbox.ErrUnavailable
	ErrTimeout      = sandbox.ErrTimeout
	ErrCancelled    = sandbox.ErrCancelled
	ErrHistory      = sandbox.ErrHistory
)
