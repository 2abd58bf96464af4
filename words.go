package glassbox

import (
	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/record/redact"
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

// An Archive is where Close can leave a history: see [Options.Archive].
type Archive = history.Writer

// HistoryConfig says what a history keeps, for how long and in which form.
type HistoryConfig = history.Config

// Redaction says which secrets are masked in a history.
type Redaction = redact.Rules

// Command says what to run, and how.
type Command = sandbox.Command

// Result is what a command left.
type Result = sandbox.Result

// Concurrency bounds what works at once in a sandbox.
type Concurrency = sandbox.Concurrency

// Process is a command that was started.
type Process = sandbox.Process

// A Chunk is a piece of output.
type Chunk = sandbox.Chunk

// Offsets name a place in a command's output.
type Offsets = sandbox.Offsets

// A Terminal is what a [Process] is, too, that runs on one: see
// [Command.Terminal].
type Terminal = sandbox.Terminal

// TerminalSize is the size of a terminal, in characters.
type TerminalSize = sandbox.TerminalSize

// Info describes a sandbox.
type Info = sandbox.Info

// Snapshot describes the kept files of a sandbox.
type Snapshot = sandbox.Snapshot

// FileInfo describes a file in a sandbox.
type FileInfo = sandbox.FileInfo

// ReadOptions bound a read.
type ReadOptions = sandbox.ReadOptions

// WriteOptions say how a file is written.
type WriteOptions = sandbox.WriteOptions

// RemoveOptions say how far a removal goes.
type RemoveOptions = sandbox.RemoveOptions

// Edit asks for text to be replaced.
type Edit = sandbox.Edit

// Edited is what an edit did.
type Edited = sandbox.Edited

// MakeDirOptions say how a directory is made.
type MakeDirOptions = sandbox.MakeDirOptions

// MoveOptions say how a file is moved.
type MoveOptions = sandbox.MoveOptions

// ModeOptions say what of a file is changed.
type ModeOptions = sandbox.ModeOptions

// GlobQuery asks for files by name.
type GlobQuery = sandbox.GlobQuery

// GlobResult holds what was found, by path.
type GlobResult = sandbox.GlobResult

// GrepQuery asks for lines by their content.
type GrepQuery = sandbox.GrepQuery

// GrepResult holds the matching lines, by path and line.
type GrepResult = sandbox.GrepResult

// Match is a line that matched.
type Match = sandbox.Match

// DownloadOptions say what a tree is taken out with.
type DownloadOptions = sandbox.DownloadOptions

// UploadOptions bound what an upload may bring.
type UploadOptions = sandbox.UploadOptions

// Uploaded is what an upload left.
type Uploaded = sandbox.Uploaded

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
