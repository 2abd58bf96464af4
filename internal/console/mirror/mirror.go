// Package mirror keeps a central copy of the histories of sandboxes, which
// outlives them, and searches in all of them.
//
//	m := mirror.New(database, nil)
//	h, err := m.History(ctx, connectionID, sandboxID)   // what a syncer fills
//	err = m.Store(ctx, h, &mirror.Batch{Operations: ops, Position: feed.Next})
//	page, err := m.Reader(h.No).List(ctx, filter)       // as of a living sandbox
//	found, err := m.List(ctx, &mirror.Query{Filter: history.Filter{Text: "退款"}})
//
// A history is named by its connection, its sandbox and a generation: one that
// was replaced in its sandbox is kept, and another generation begins. What is
// stored twice is stored once.
package mirror

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/glassboxhq/glassbox/internal/db"
	"github.com/glassboxhq/glassbox/sandbox"
)

// The codes of this package's errors, beside those of package sandbox.
const (
	// CodeErased: the history was erased while a batch was on its way.
	CodeErased sandbox.Code = "history_erased"
	// CodeHistoryNotFound: there is no such history in the mirror.
	CodeHistoryNotFound sandbox.Code = "history_not_found"
)

// Options of a mirror.
type Options struct {
	// Now stands in for time.Now, in tests.
	Now func() time.Time
	// Logger; nil: silent.
	Logger *slog.Logger
	// SearchTime is how long one search looks before it answers with what it
	// has; 0: 2 s.
	SearchTime time.Duration
}

// Mirror is the central copy.
type Mirror struct {
	db   *db.DB
	opts Options

	mu     sync.Mutex
	waiter chan struct{} // closed at the next change; nil while nobody waits
	work   chan struct{} // something is to be indexed
}

const defaultSearchTime = 2 * time.Second

// New returns the mirror in a database.
func New(database *db.DB, opts *Options) *Mirror {
	m := &Mirror{db: database, work: make(chan struct{}, 1)}
	if opts != nil {
		m.opts = *opts
	}
	if m.opts.Now == nil {
		m.opts.Now = time.Now
	}
	if m.opts.Logger == nil {
		m.opts.Logger = slog.New(slog.DiscardHandler)
	}
	if m.opts.SearchTime == 0 {
		m.opts.SearchTime = defaultSearchTime
	}
	return m
}

// writing is the number of the lock that writers of a PostgreSQL hold, so that
// what is committed later has the higher number, as in SQLite.
const writing = 0x676c6173 // "glas"

// tx writes in one transaction, one after the other.
func (m *Mirror) tx(ctx context.Context, do func(*db.Tx) error) error {
	return m.db.Tx(ctx, func(tx *db.Tx) error {
		if m.db.Kind() == "postgres" {
			if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(?)`, int64(writing)); err != nil {
				return err
			}
		}
		return do(tx)
	})
}

// changed wakes who waits for a change, and the index.
func (m *Mirror) changed() {
	m.mu.Lock()
	if m.waiter != nil {
		close(m.waiter)
		m.waiter = nil
	}
	m.mu.Unlock()
	select {
	case m.work <- struct{}{}:
	default:
	}
}

func (m *Mirror) wait() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.waiter == nil {
		m.waiter = make(chan struct{})
	}
	return m.waiter
}

func (m *Mirror) now() db.Time { return db.At(m.opts.Now()) }
