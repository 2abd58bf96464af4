package connection

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/glassboxhq/glassbox/internal/db"
	"github.com/glassboxhq/glassbox/internal/vault"
	"github.com/glassboxhq/glassbox/sandbox"
)

// Fleet is all services.
type Fleet struct {
	db    *db.DB
	vault *vault.Vault
	opts  Options
	began time.Time

	room    chan struct{} // bounds how many services are asked at once
	asking  sync.WaitGroup
	mu      sync.Mutex
	members map[string]*member // by the id of the connection
}

const (
	defaultTimeout  = 10 * time.Second
	defaultPatience = 2 * time.Second
	maxAsking       = 16
)

// NewFleet returns a fleet that has asked nobody yet.
func NewFleet(database *db.DB, keys *vault.Vault, opts *Options) *Fleet {
	f := &Fleet{db: database, vault: keys, opts: *opts, members: map[string]*member{}, room: make(chan struct{}, maxAsking)}
	if f.opts.Now == nil {
		f.opts.Now = time.Now
	}
	if f.opts.Timeout == 0 {
		f.opts.Timeout = defaultTimeout
	}
	if f.opts.Patience == 0 {
		f.opts.Patience = defaultPatience
	}
	f.began = f.opts.Now().UTC()
	return f
}

// Close waits until nobody is asked any more.
func (f *Fleet) Close() { f.asking.Wait() }

// Service returns the service of a connection that is enabled.
func (f *Fleet) Service(ctx context.Context, connectionID string) (Service, error) {
	c, err := f.Connection(ctx, connectionID)
	if err != nil {
		return nil, err
	}
	if !c.Enabled {
		return nil, &sandbox.Error{Op: "reach service", Code: CodeDisabled, Message: "this connection is disabled; an admin can enable it"}
	}
	m, err := f.member(c)
	if err != nil {
		return nil, err
	}
	return m.service, nil
}

// member is one service, with what was seen of it last.
type member struct {
	service  Service
	revision int64
	idle     func()

	mu      sync.Mutex
	asking  chan struct{} // closed when the answer is there; nil: nobody asks
	list    []*Sandbox
	seenAt  time.Time
	failed  time.Time // since when it does not answer; zero: it does
	problem error
}

// member finds the client of a service, or makes it.
func (f *Fleet) member(c *Connection) (*member, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if m := f.members[c.ID]; m != nil && m.revision == c.Revision {
		return m, nil
	}
	m := &member{service: f.opts.Local, revision: c.Revision, idle: func() {}}
	if c.ID != Local {
		key, err := f.unseal(c)
		if err != nil {
			return nil, err
		}
		transport := f.transport(c.Endpoint)
		m.idle = transport.CloseIdleConnections
		if m.service, err = f.opts.Dial(c, key, transport); err != nil {
			return nil, err
		}
	}
	if old := f.members[c.ID]; old != nil {
		old.idle()
	}
	f.members[c.ID] = m
	return m, nil
}

// drop forgets the client of a connection that was changed.
func (f *Fleet) drop(connectionID string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if m := f.members[connectionID]; m != nil {
		m.idle()
		delete(f.members, connectionID)
	}
}

// Deleted forgets a sandbox that was deleted through here, until the service
// is asked again.
func (f *Fleet) Deleted(connectionID, sandboxID string) {
	f.mu.Lock()
	m := f.members[connectionID]
	f.mu.Unlock()
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	// Whoever was told the list still reads it.
	m.list = slices.DeleteFunc(slices.Clone(m.list), func(b *Sandbox) bool { return b.ID == sandboxID })
}

// Seen is what was seen of a connection last.
type Seen struct {
	Connection *Connection
	Sandboxes  []*Sandbox
	// NotAnsweringSince is when it was asked first without an answer, and
	// Problem tells why; the sandboxes are those of SeenAt then.
	NotAnsweringSince time.Time
	Problem           error
	SeenAt            time.Time
}

// List asks every service that is enabled for its sandboxes, all at once, and
// waits a moment for them. What answers later is in the next list.
func (f *Fleet) List(ctx context.Context) ([]*Seen, error) {
	connections, err := f.Connections(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, f.opts.Patience)
	defer cancel()
	var list []*Seen
	var members []*member
	for _, c := range connections {
		if !c.Enabled {
			continue
		}
		m, err := f.member(c)
		if err != nil {
			list = append(list, &Seen{Connection: c, Problem: err, NotAnsweringSince: c.UpdatedAt})
			continue
		}
		members = append(members, m)
		f.ask(ctx, c, m)
		list = append(list, &Seen{Connection: c})
	}
	next := 0
	for _, seen := range list {
		if seen.Problem == nil {
			members[next].tell(ctx, seen, f.opts.Now())
			next++
		}
	}
	return list, nil
}

// ask begins to ask a service, unless somebody does already.
func (f *Fleet) ask(ctx context.Context, c *Connection, m *member) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.asking != nil {
		return
	}
	asking := make(chan struct{})
	m.asking = asking
	began := f.opts.Now()
	// The answer is for everybody, and outlives who asked first.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), f.opts.Timeout)
	f.asking.Go(func() {
		defer cancel()
		list, err := f.listOf(ctx, c, m.service)
		m.mu.Lock()
		defer m.mu.Unlock()
		m.asking = nil
		close(asking)
		if m.problem = err; err != nil {
			if m.failed.IsZero() {
				m.failed = began
			}
			return
		}
		m.list, m.seenAt, m.failed = list, f.opts.Now(), time.Time{}
	})
}

func (f *Fleet) listOf(ctx context.Context, c *Connection, s Service) ([]*Sandbox, error) {
	select {
	case f.room <- struct{}{}:
		defer func() { <-f.room }()
	case <-ctx.Done():
		return nil, &sandbox.Error{Op: "list sandboxes", Code: sandbox.CodeUnavailable, Message: "too many services do not answer"}
	}
	infos, err := s.List(ctx)
	if err != nil {
		return nil, err
	}
	var list []*Sandbox
	for _, info := range infos {
		list = append(list, &Sandbox{Info: *info, Connection: c.ID})
	}
	if archive, ok := s.(Archive); ok {
		gone, err := archive.Gone(ctx)
		if err != nil {
			return nil, err
		}
		for _, box := range gone {
			box.Connection = c.ID
			list = append(list, box)
		}
	}
	slices.SortStableFunc(list, Newest)
	return list, nil
}

// Newest orders sandboxes by the time they were made, the newest first.
func Newest(a, b *Sandbox) int {
	if c := b.CreatedAt.Compare(a.CreatedAt); c != 0 {
		return c
	}
	return strings.Compare(b.Connection+"/"+b.ID, a.Connection+"/"+a.ID)
}

// tell waits for the answer, but not for a service that has failed before: it
// is asked all the same.
func (m *member) tell(ctx context.Context, seen *Seen, began time.Time) {
	m.mu.Lock()
	asking, failed := m.asking, m.failed
	m.mu.Unlock()
	if asking != nil && failed.IsZero() {
		select {
		case <-asking:
		case <-ctx.Done():
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	seen.Sandboxes, seen.SeenAt, seen.NotAnsweringSince, seen.Problem = m.list, m.seenAt, m.failed, m.problem
	if m.asking != nil && m.problem == nil && ctx.Err() != nil {
		m.failed = began // it is late, and may come yet
		m.problem = &sandbox.Error{Op: "list sandboxes", Code: sandbox.CodeTimeout, Message: "no answer yet"}
		seen.NotAnsweringSince, seen.Problem = m.failed, m.problem
	}
}

// Report is what a test of a connection found.
type Report struct {
	OK        bool
	Version   string // empty: the service does not say
	Latency   time.Duration
	Sandboxes int
	Problem   error
}

// Test asks a service what it is and what it has, now.
func (f *Fleet) Test(ctx context.Context, connectionID string) (*Report, error) {
	c, err := f.Connection(ctx, connectionID)
	if err != nil {
		return nil, err
	}
	m, err := f.member(c)
	if err != nil {
		return &Report{Problem: err}, nil
	}
	return f.report(ctx, m.service), nil
}

func (f *Fleet) report(ctx context.Context, s Service) *Report {
	ctx, cancel := context.WithTimeout(ctx, f.opts.Timeout)
	defer cancel()
	r := &Report{}
	began := time.Now()
	list, err := s.List(ctx)
	r.Latency, r.Sandboxes = time.Since(began), len(list)
	if versioned, ok := s.(Versioned); ok && err == nil {
		var late error
		if r.Version, late = versioned.Version(ctx); late != nil && !errors.Is(late, sandbox.ErrUnsupported) {
			err = late
		}
	}
	r.OK, r.Problem = err == nil, err
	return r
}
