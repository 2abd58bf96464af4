// Package history holds the words and the port of what was done in a sandbox:
// operations in the order in which they began, the output of commands, and a
// feed of changes to follow.
//
//	err := store.Begin(ctx, op)               // durable when it returns
//	err = store.Append(ctx, op.ID, chunks)    // output, in order
//	err = store.Finish(ctx, op.ID, &history.End{Status: sandbox.Succeeded})
//
// An operation begins once and ends once. What a [Store] has acknowledged
// survives the death of its process.
package history

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"github.com/glassboxhq/glassbox/sandbox"
)

// The types of operations. Others may stand in a history too.
const (
	CommandExecute   = "command.execute"
	FileRead         = "file.read"
	FileWrite        = "file.write"
	FileList         = "file.list"
	FileDelete       = "file.delete"
	FileAppend       = "file.append"
	FileEdit         = "file.edit"
	FileStat         = "file.stat"
	FileMakeDir      = "file.mkdir"
	FileMove         = "file.move"
	FileSetMode      = "file.chmod"
	FileGlob         = "file.glob"
	FileGrep         = "file.grep"
	FileDownload     = "file.download" // of a tree; of one file it is a file.read
	FileUpload       = "file.upload"
	TerminalSession  = "terminal.session"
	SandboxCreate    = "sandbox.create"
	SandboxDelete    = "sandbox.delete"
	SandboxPause     = "sandbox.pause"
	SandboxResume    = "sandbox.resume"
	SandboxRenew     = "sandbox.renew"
	SandboxMetadata  = "sandbox.metadata"
	SandboxSnapshot  = "sandbox.snapshot"
	RecorderRestart  = "recorder.restarted" // a recorder took over from one that died
	HistoryGap       = "history.gap"        // operations ran that could not be recorded
	NetworkConnect   = "network.connect"    // an outgoing connection through the local runtime's proxy
	marker           = "recorder"           // key in Request that tells our rows from the Python SDK's
	FormatVersion    = 1
	RecorderProtocol = 1
)

// Types lists the types of operations.
func Types() []string {
	return []string{
		CommandExecute, TerminalSession, FileRead, FileWrite, FileList, FileDelete, FileAppend, FileEdit, FileStat, FileMakeDir, FileMove,
		FileSetMode, FileGlob, FileGrep, FileDownload, FileUpload, SandboxCreate, SandboxDelete, RecorderRestart, HistoryGap, NetworkConnect,
	}
}

// Operation is one recorded act.
type Operation struct {
	Seq         int64           `json:"seq"` // order of beginning in this history; set by the store
	ID          string          `json:"id"`  // UUIDv7
	Type        string          `json:"type"`
	Status      sandbox.Status  `json:"status"`
	Source      string          `json:"source"`
	Actor       Actor           `json:"actor"`
	StartedAt   time.Time       `json:"started_at"`
	CompletedAt time.Time       `json:"completed_at,omitzero"`
	Duration    time.Duration   `json:"-"`
	DurationMS  int64           `json:"duration_ms"`
	Request     json.RawMessage `json:"request,omitempty"`
	Result      json.RawMessage `json:"result,omitempty"`
	Command     *Command        `json:"command,omitempty"` // of a command.execute
	File        *File           `json:"file,omitempty"`    // of a file.*
	// Changes are what a command did to files; nil: that is not known, or not
	// yet.
	Changes *Changes `json:"changes,omitempty"`
	// Foreign is true for a row that the Python SDK wrote: its output has no
	// line breaks and its status of a failed command is unknown.
	Foreign bool `json:"foreign,omitempty"`
}

// Command is what a history keeps of a command beside its output.
type Command struct {
	Line           string            `json:"line"`
	Dir            string            `json:"cwd"`
	Env            map[string]string `json:"env,omitempty"` // names; the values are masked
	TimeoutMS      int64             `json:"timeout_ms,omitempty"`
	ExitCode       *int              `json:"exit_code,omitempty"` // nil until it is known
	OutputComplete bool              `json:"output_complete"`
	Recording      sandbox.Recording `json:"recording"`
	// StdoutBytes and StderrBytes count what is kept.
	StdoutBytes int64 `json:"stdout_kept_bytes"`
	StderrBytes int64 `json:"stderr_kept_bytes"`
}

// File is what a history keeps of an act on a file.
type File struct {
	Path       string `json:"path"`
	OldPath    string `json:"old_path,omitempty"`
	Change     string `json:"change_type"` // the operation's type without "file."
	BeforeHash string `json:"before_hash,omitempty"`
	AfterHash  string `json:"after_hash,omitempty"`
	BeforeSize *int64 `json:"before_size,omitempty"`
	AfterSize  *int64 `json:"after_size,omitempty"`
	Diff       string `json:"diff,omitempty"` // unified, of text
	// DiffTruncated: the diff is cut, or was too large to be made.
	DiffTruncated bool `json:"diff_truncated,omitempty"`
}

// End is how an operation ended.
type End struct {
	Status   sandbox.Status
	At       time.Time // zero: the store's now
	Result   json.RawMessage
	Chunks   []sandbox.Chunk // the last output, stored in the same transaction
	ExitCode *int
	// OutputComplete is false when output is missing for another reason than
	// the cap.
	OutputComplete bool
	Recording      sandbox.Recording
	File           *File // what became of the file, for a file.*
}

// Store keeps one history. Its methods may be called at the same time.
type Store interface {
	Writer
	Reader
	io.Closer
}

// Writer is the recording half of a Store. An error whose kind is
// sandbox.ErrHistory means that the history cannot take the record now.
type Writer interface {
	// Begin records that op starts; op.Seq is set. If the id is known, Begin
	// changes nothing and returns an error of the kind sandbox.ErrExists.
	Begin(ctx context.Context, op *Operation) error
	// Append adds output to an operation that runs, in order and without gaps
	// in each stream. It is durable when Append returns. What lies before the
	// end of what is kept is skipped, so that it may be repeated.
	Append(ctx context.Context, id string, chunks []sandbox.Chunk) error
	// Finish records the end of an operation. The same end again changes
	// nothing; another is an error of the kind sandbox.ErrConflict.
	Finish(ctx context.Context, id string, end *End) error
	// Import adds an operation that has already ended elsewhere. A known id
	// changes nothing.
	Import(ctx context.Context, op *Operation) error
}

// Reader is the reading half of a Store.
type Reader interface {
	// Get returns one operation, or an error of the kind sandbox.ErrNotFound.
	Get(ctx context.Context, id string) (*Operation, error)
	// List returns operations by a filter.
	List(ctx context.Context, filter *Filter) (*Page, error)
	// Output returns up to length kept bytes of a stream from offset on; none
	// at the end of what is kept. The store may return fewer than it has.
	Output(ctx context.Context, id string, stream sandbox.Stream, offset, length int64) ([]byte, error)
	// Changes returns what changed after a place in the feed. With Wait it
	// blocks until there is something or the time is over.
	Changes(ctx context.Context, query *ChangeQuery) (*Feed, error)
}

// Recoverer is a Store that can settle what a dead recorder left running.
type Recoverer interface {
	// Recover gives every operation of ours that is still started the status
	// unknown with the reason, and returns their ids. It is called once,
	// before anything begins.
	Recover(ctx context.Context, reason string) ([]string, error)
}

// Consumer acknowledges what it has read of the feed, so that retention may
// delete it.
type Consumer interface {
	// Acknowledge keeps the larger of the old and the new place.
	Acknowledge(ctx context.Context, consumer string, seq int64) error
}

// ConsumerLister tells of the consumers that what they have not read is kept
// for.
type ConsumerLister interface {
	Consumers(ctx context.Context) ([]*ConsumerState, error)
}

// ConsumerState is how far a consumer has read.
type ConsumerState struct {
	ID           string    `json:"id"`
	Acknowledged int64     `json:"acknowledged_seq"`
	UpdatedAt    time.Time `json:"updated_at"`
}

// Pruner is a Store that can delete by age and size.
type Pruner interface {
	Prune(ctx context.Context) (*Pruned, error)
}

// Leaser gives a right to one of several processes that share a history, until
// a time: who dies with it loses it.
type Leaser interface {
	// AcquireLease takes the lease, unless another owner has it; its own it
	// prolongs.
	AcquireLease(ctx context.Context, key, owner string, life time.Duration) (held bool, err error)
	// RenewLease prolongs a lease that owner still has.
	RenewLease(ctx context.Context, key, owner string, life time.Duration) (held bool, err error)
	// ReleaseLease gives it back; one that owner has lost stays.
	ReleaseLease(ctx context.Context, key, owner string) error
}

// Pruned tells what a clean-up did.
type Pruned struct {
	Operations int64  `json:"deleted_operations"`
	Bytes      int64  `json:"database_bytes"` // in use afterwards
	Reason     string `json:"reason"`         // age, size, or why nothing was done
}

// Filter picks operations. A zero field does not restrict.
type Filter struct {
	Types       []string         `json:"type,omitempty"`
	Statuses    []sandbox.Status `json:"status,omitempty"`
	Sources     []string         `json:"source,omitempty"`
	ActorType   string           `json:"actor_type,omitempty"`
	ActorID     string           `json:"actor,omitempty"`
	Thread      string           `json:"thread,omitempty"`
	Run         string           `json:"run,omitempty"`
	Correlation string           `json:"correlation,omitempty"`
	Since       time.Time        `json:"since,omitzero"` // begun at or after
	Until       time.Time        `json:"until,omitzero"` // begun before
	// Path picks acts on this file, or on what lies below this directory, and
	// commands that changed such a file.
	Path     string `json:"path,omitempty"`
	ExitCode *int   `json:"exit_code,omitempty"`
	// Text is looked for, without regard to ASCII case, in commands, paths,
	// those of changed files too, requests, results and kept output.
	Text string `json:"text,omitempty"`
	// After and Before bound Seq, both excluded: the cursors of paging.
	After  int64 `json:"after,omitempty"`
	Before int64 `json:"before,omitempty"`
	// Limit is the size of a page; 0: 100, at most 1000.
	Limit int `json:"limit,omitempty"`
	// Newest first; else oldest first.
	Newest bool `json:"newest,omitempty"`
}

// Page is a part of a list.
type Page struct {
	Operations []*Operation `json:"operations"`
	More       bool         `json:"more"` // there are further ones beyond the last
}

// The types of changes.
const (
	Created        = "created"
	OutputAppended = "output_appended"
	Completed      = "completed"
	StorageChanged = "storage_state_changed"
)

// Change is one entry of the feed.
type Change struct {
	Seq       int64     `json:"seq"`
	ID        string    `json:"id"`
	Operation string    `json:"operation_id"`
	Type      string    `json:"type"`
	At        time.Time `json:"changed_at"`
}

// ChangeQuery asks for a part of the feed.
type ChangeQuery struct {
	After int64         // the last seq that was read; 0: from the beginning
	Limit int           // 0: 100, at most 1000
	Wait  time.Duration // how long to wait for a change; at most a minute
}

// Feed is a part of the feed.
type Feed struct {
	Changes []*Change `json:"changes"`
	Next    int64     `json:"next_change_seq"`          // ask After this
	Min     int64     `json:"min_available_change_seq"` // the oldest that is kept, 0: none
	Max     int64     `json:"max_change_seq"`
	// Reset tells that the place asked for lies before what is kept, or
	// beyond the end: the history was cut or replaced.
	Reset bool `json:"reset_required"`
}
