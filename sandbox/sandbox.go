// Package sandbox holds the words and the two ports of the place where work
// happens: a [Provider] makes sandboxes, a [Session] works in one.
//
//	session, err := provider.Open(ctx, info.ID)
//	result, err := session.Run(ctx, &sandbox.Command{Line: "make test"})
//	fmt.Println(result.ExitCode, string(result.Stdout))
//
// What only some sessions can do is a small interface of its own, such as
// [Starter]; ask for it with a type assertion. Every error is an [*Error],
// and its kind is asked with errors.Is: errors.Is(err, sandbox.ErrNotFound).
package sandbox

import (
	"context"
	"encoding/json"
	"io"
	"time"
)

// State tells where a sandbox is in its life. The values are those of the
// OpenSandbox lifecycle API.
type State string

// The states of a sandbox.
const (
	Pending    State = "Pending"
	Running    State = "Running"
	Paused     State = "Paused"
	Terminated State = "Terminated" // ended by itself or deleted
	Failed     State = "Failed"     // ended by a fault; Info.Message tells which
	Unknown    State = "Unknown"
)

// Info describes a sandbox.
type Info struct {
	ID         string            `json:"id"`
	InstanceID string            `json:"instance_id,omitempty"`
	Name       string            `json:"name,omitempty"`
	State      State             `json:"state"`
	Reason     string            `json:"reason,omitempty"`
	Message    string            `json:"message,omitempty"`
	Image      string            `json:"image,omitempty"`
	Snapshot   string            `json:"snapshot,omitempty"` // id of that from which it was made
	Metadata   map[string]string `json:"metadata,omitempty"`
	CreatedAt  time.Time         `json:"created_at"`
	ChangedAt  time.Time         `json:"changed_at,omitzero"` // when the state changed last, where that is known
	ExpiresAt  time.Time         `json:"expires_at,omitzero"` // zero: it does not expire
	Warnings   []string          `json:"warnings,omitempty"`  // what was asked and cannot be held
}

// Spec says what sandbox to create. The zero value of a field leaves the
// choice to the service.
type Spec struct {
	Image string `json:"image,omitempty"`
	// ImageAuth opens the registry from which the image is fetched if need be;
	// nil: with what the service has. It is never recorded.
	ImageAuth *RegistryAuth `json:"-"`
	// Snapshot is the id of one to begin from, instead of an image.
	Snapshot   string            `json:"snapshot,omitempty"`
	Name       string            `json:"name,omitempty"` // shown to people, need not be unique
	Env        map[string]string `json:"-"`              // values may be secrets, so they are never recorded
	Metadata   map[string]string `json:"metadata,omitempty"`
	Entrypoint []string          `json:"entrypoint,omitempty"`
	Timeout    time.Duration     `json:"timeout,omitempty"` // life of the sandbox
	Limits     map[string]string `json:"limits,omitempty"`  // memory "512Mi", cpu "500m"
	Network    string            `json:"network,omitempty"` // local runtime: none or proxy
	Workdir    string            `json:"workdir,omitempty"`
	// History is "" (recorded, or refused), "best_effort" (what cannot be
	// recorded runs all the same) or "none".
	History string `json:"history,omitempty"`
	// NoFileChanges does not look for what commands do to files.
	NoFileChanges bool `json:"no_file_changes,omitempty"`
	// HistoryConfig says what the history keeps: a history.Config in JSON.
	HistoryConfig json.RawMessage `json:"history_config,omitempty"`
	// Concurrency bounds what works in it at once; nil: the defaults.
	Concurrency *Concurrency `json:"concurrency,omitempty"`
}

// RegistryAuth is what a registry of images asks for. It prints as ***.
type RegistryAuth struct{ Username, Password string }

// String keeps it out of logs.
func (RegistryAuth) String() string { return "***" }

// GoString keeps it out of logs.
func (RegistryAuth) GoString() string { return "***" }

// Provider is a service that makes sandboxes.
type Provider interface {
	Create(ctx context.Context, spec *Spec) (*Info, error)
	Get(ctx context.Context, id string) (*Info, error)
	List(ctx context.Context) ([]*Info, error)
	Delete(ctx context.Context, id string) error
	// Open returns the data plane of a sandbox that runs.
	Open(ctx context.Context, id string) (Session, error)
	Close() error
}

// Session is the open data plane of one sandbox.
type Session interface {
	// Run runs a command to its end. The error is nil whenever the command
	// came to an end of its own or by its timeout; Result tells which. When
	// ctx ends first, the command is stopped and Run returns what it printed
	// together with an error of the kind ErrCancelled.
	Run(ctx context.Context, cmd *Command) (*Result, error)
	// Read opens a file. The caller closes it.
	Read(ctx context.Context, path string, opts *ReadOptions) (io.ReadCloser, error)
	// Write replaces a file by what content holds, whole or not at all.
	Write(ctx context.Context, path string, content io.Reader, opts *WriteOptions) (*FileInfo, error)
	// List returns what a directory holds, by name.
	List(ctx context.Context, path string) ([]*FileInfo, error)
	// Remove removes a file, a link or a directory.
	Remove(ctx context.Context, path string, opts *RemoveOptions) error
	Capabilities() Capabilities
	// Close ends the session. Commands that run go on.
	Close(ctx context.Context) error
}

// Capabilities tells what a session can do.
type Capabilities struct {
	ExactBytes bool `json:"exact_bytes"` // output arrives as it was written, streams apart
	Recorded   bool `json:"recorded"`    // every operation is kept in a history
	Stdin      bool `json:"stdin"`       // commands can be given input
	Signals    bool `json:"signals"`     // commands can be sent signals
	Background bool `json:"background"`  // commands can outlive the call
	Attach     bool `json:"attach"`      // a running command's stream can be resumed
	Terminals  bool `json:"terminals"`   // commands can run on a terminal
	Files      bool `json:"files"`       // all of the interface Files
}
