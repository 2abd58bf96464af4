package glassbox

import (
	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/sandbox"
	"github.com/glassboxhq/glassbox/sandbox/opensandbox"
)

// Secret is a value that is never printed, as an API key:
// Options{APIKey: glassbox.Secret(os.Getenv("KEY"))}.
type Secret = opensandbox.Secret

// Actor is who acts: see [WithActor].
type Actor = history.Actor

// An Operation is one recorded act.
type Operation = history.Operation

// Filter picks operations.
type Filter = history.Filter

// Command says what to run, and how.
type Command = sandbox.Command

// Result is what a command left.
type Result = sandbox.Result

// Process is a command that was started.
type Process = sandbox.Process

// A Chunk is a piece of output.
type Chunk = sandbox.Chunk

// Info describes a sandbox.
type Info = sandbox.Info

// FileInfo describes a file in a sandbox.
type FileInfo = sandbox.FileInfo

// ReadOptions bound a read.
type ReadOptions = sandbox.ReadOptions

// WriteOptions say how a file is written.
type WriteOptions = sandbox.WriteOptions

// RemoveOptions say how far a removal goes.
type RemoveOptions = sandbox.RemoveOptions

// Error is the type of every error.
type Error = sandbox.Error

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
