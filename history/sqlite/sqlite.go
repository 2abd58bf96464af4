// Package sqlite keeps a history in one SQLite file of format version 1, the
// format of the published Python SDK.
//
//	store, err := sqlite.Open("/.agent-history/history.sqlite3", &sqlite.Options{SandboxID: id})
//	defer store.Close()
//
// One goroutine writes; records that are asked for at the same time are
// committed together, and each caller is answered after the commit. What has
// been acknowledged survives the death of the process. Readers have their own
// connections and read in short transactions.
//
// A file that comes from a sandbox is hostile: it is opened with
// [Options.ReadOnly].
package sqlite

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"io/fs"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/sandbox"
)

// The defaults of a store.
const (
	DefaultProviderKey = "opensandbox-default"
	DefaultSandboxID   = "local"
)

// Options says whose history a store keeps, and within which limits.
type Options struct {
	// ProviderKey, SandboxID and InstanceID say whose history this is. What
	// is empty is taken from the file; in a new file it is
	// [DefaultProviderKey], [DefaultSandboxID], and an instance derived from
	// both. A file that says otherwise is refused.
	ProviderKey, SandboxID, InstanceID string
	// SandboxName and Metadata are written into a new file for people.
	SandboxName string
	Metadata    map[string]string
	// SDKVersion is the version of the writer, put into a new file.
	SDKVersion string
	// Now is the clock; nil: time.Now.
	Now func() time.Time
	// ReadOnly opens a private copy of a file that nobody writes any more,
	// and trusts nothing in it.
	ReadOnly bool
	// Config says what is kept, for how long and in which form; nil: what the
	// file says, and in a new file the defaults.
	Config *history.Config
	// BusyTimeout bounds the wait for another process's lock, in the place of
	// what the configuration says; negative: no wait.
	BusyTimeout time.Duration
	// MaxDatabaseBytes is what a clean-up leaves in use, in the place of what
	// the configuration says; negative: no limit.
	MaxDatabaseBytes int64
	// TTL is how long an operation is answered after its end, in the place of
	// what the configuration says; negative: for ever.
	TTL time.Duration
	// LeaseOwner names this store in leases; empty: a new name. Who is alone
	// with a history gives one that stays, and so need not wait for the end of
	// a lease that it held when it was killed.
	LeaseOwner string
	// ManualCleanup cleans up only when Prune is called.
	ManualCleanup bool

	checkpointPages int          // pages in the log before they move into the file
	phase           func(string) // told what the writer does next; for tests
}

// Store is a history in a file. It implements [history.Store],
// [history.Recoverer], [history.Consumer], [history.Pruner],
// [history.Configurer] and [history.Leaser].
type Store struct {
	path string
	opts Options

	jobs    chan *job
	callers atomic.Int32 // that wait for a record
	closing chan struct{}
	writing sync.WaitGroup
	feed    notifier
	config  atomic.Pointer[stored] // what holds
	cleaner cleaner

	// gate is held for reading while a read transaction is open, so that the
	// writer can reset the log at a moment when nobody reads in it.
	gate sync.RWMutex

	mu       sync.Mutex
	writer   *writer     // nil until the first record
	closed   bool        // Close was called
	readers  *sql.DB     // nil until the file is there
	readFile fs.FileInfo // what they read; nil for a private copy
	remove   func()      // removes the private copy
}

var (
	_ history.Store     = (*Store)(nil)
	_ history.Recoverer = (*Store)(nil)
	_ history.Consumer  = (*Store)(nil)
	_ history.Pruner    = (*Store)(nil)

	_ history.Configurer = (*Store)(nil)
	_ history.Leaser     = (*Store)(nil)
)

// Open opens the history in the file path. A missing file is made at the
// first record, and reads as an empty history until then. A file that cannot
// be the caller's, or that is damaged or of a newer version, is refused; one
// that is locked, full or read-only is opened, and each call that cannot be
// done tells so.
func Open(path string, opts *Options) (*Store, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, &sandbox.Error{Op: "open history", Code: sandbox.CodeHistory, Err: err}
	}
	s := &Store{path: abs, jobs: make(chan *job), closing: make(chan struct{})}
	if opts != nil {
		s.opts = *opts
	}
	s.opts.fill()
	if err := s.opts.Config.Validate(); err != nil {
		return nil, err
	}
	s.config.Store(&stored{config: s.opts.Config.Filled()})
	s.cleaner.init()
	if s.opts.ReadOnly {
		err = s.openCopy()
	} else {
		_, err = s.reader()
	}
	if err != nil && (s.opts.ReadOnly || !passing(err)) {
		return nil, err
	}
	return s, nil
}

func (o *Options) fill() {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.LeaseOwner == "" {
		o.LeaseOwner = "cleanup-" + id.New()
	}
	if o.checkpointPages == 0 {
		o.checkpointPages = 1000
	}
	if o.phase == nil {
		o.phase = func(string) {}
	}
}

// passing reports whether an error of opening may pass by itself, so that a
// recorder can start and try again with each record.
func passing(err error) bool {
	switch sandbox.CodeOf(err) {
	case sandbox.CodeHistoryLocked, sandbox.CodeHistoryReadOnly, sandbox.CodeHistoryExhausted:
		return true
	}
	return errors.Is(err, errMoved)
}

// Close ends the writer and lets go of the file. Records that were accepted
// are committed first.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.mu.Unlock()
	s.cleaner.stop() // gives its lease back while the writer still works
	close(s.closing)

	// The readers go first, so that the writer is the last connection and
	// leaves one whole file, without a log beside it.
	s.gate.Lock()
	s.mu.Lock()
	s.closeReaders()
	s.mu.Unlock()
	s.gate.Unlock()
	s.writing.Wait()
	if s.remove != nil {
		s.remove()
	}
	return nil
}

// Path returns the absolute name of the file.
func (s *Store) Path() string { return s.path }

// Identity tells whose history a file holds.
type Identity struct {
	ProviderKey string            `json:"provider_key"`
	SandboxID   string            `json:"sandbox_id"`
	InstanceID  string            `json:"sandbox_instance_id"`
	SandboxName string            `json:"sandbox_name,omitempty"`
	Metadata    map[string]string `json:"sandbox_metadata,omitempty"`
	SDKVersion  string            `json:"sdk_version"`
	CreatedAt   time.Time         `json:"created_at,omitzero"`
}

// Identity returns whose history this is: what the file says, and before
// there is one what it will say.
func (s *Store) Identity(ctx context.Context) (*Identity, error) {
	id := s.opts.identity(time.Time{})
	err := s.read(ctx, "read identity of history", func(q *sql.Tx) error {
		meta, err := readMeta(ctx, q)
		if err == nil {
			id = identityFrom(meta)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return id, nil
}

// identity is what a new file says.
func (o *Options) identity(now time.Time) *Identity {
	id := &Identity{
		ProviderKey: o.ProviderKey, SandboxID: o.SandboxID, InstanceID: o.InstanceID,
		SandboxName: o.SandboxName, Metadata: o.Metadata, SDKVersion: o.SDKVersion, CreatedAt: now,
	}
	if id.ProviderKey == "" {
		id.ProviderKey = DefaultProviderKey
	}
	if id.SandboxID == "" {
		id.SandboxID = DefaultSandboxID
	}
	if id.InstanceID == "" {
		sum := sha256.Sum256([]byte(id.ProviderKey + ":" + id.SandboxID))
		id.InstanceID = "legacy-" + hex.EncodeToString(sum[:16])
	}
	if id.SDKVersion == "" {
		id.SDKVersion = "glassbox"
	}
	return id
}
