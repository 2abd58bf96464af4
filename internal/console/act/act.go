// Package act keeps what was done through the console: who, from where, what,
// and what came of it. Acts outlive the users and things that they name.
package act

import (
	"context"
	"time"

	"github.com/glassboxhq/glassbox/internal/db"
	"github.com/glassboxhq/glassbox/internal/id"
)

// Act is one thing that somebody did or tried.
type Act struct {
	ID        string
	At        time.Time
	UserID    string // empty: nobody who is known
	UserName  string
	Via       string // link, password or token
	Address   string
	Action    string // as in sandbox.delete
	Target    string // what it was about, as in connection/sandbox
	Outcome   Outcome
	Code      string // of the error; empty: none
	RequestID string
	Detail    string // more of it, in JSON; never a secret
}

// Outcome is what came of an act.
type Outcome string

// The outcomes.
const (
	Done   Outcome = "done"
	Denied Outcome = "denied"
	Failed Outcome = "failed"
)

// Log keeps acts.
type Log struct{ db *db.DB }

// New returns a log in a database.
func New(database *db.DB) *Log { return &Log{database} }

// Add keeps an act, and sets its id.
func (l *Log) Add(ctx context.Context, a *Act) error {
	a.ID = id.New()
	_, err := l.db.Exec(ctx, `insert into acts (id, at, user_id, user_name, via, address, action, target, outcome, code, request_id, detail)
		values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		a.ID, db.At(a.At), a.UserID, a.UserName, a.Via, a.Address, a.Action, a.Target, a.Outcome, a.Code, a.RequestID, a.Detail)
	return err
}

// Query picks acts; a zero field does not restrict.
type Query struct {
	Target string
	UserID string
	Before string // an id: those before it
	Limit  int
}

// List returns acts, newest first.
func (l *Log) List(ctx context.Context, q *Query) ([]*Act, error) {
	before := q.Before
	if before == "" {
		before = "g" // behind every id, in any order of letters
	}
	return db.Collect(ctx, l.db, scan, `select id, at, user_id, user_name, via, address, action, target, outcome, code, request_id, detail
		from acts where (target = ? or ? = '') and (user_id = ? or ? = '') and id < ? order by id desc limit ?`,
		q.Target, q.Target, q.UserID, q.UserID, before, q.Limit)
}

func scan(row db.Row) (*Act, error) {
	a := &Act{}
	var at db.Time
	err := row.Scan(&a.ID, &at, &a.UserID, &a.UserName, &a.Via, &a.Address, &a.Action, &a.Target, &a.Outcome, &a.Code, &a.RequestID, &a.Detail)
	a.At = at.Time
	return a, err
}

// Sweep removes acts that are older than a moment.
func (l *Log) Sweep(ctx context.Context, before time.Time) error {
	_, err := l.db.Exec(ctx, `delete from acts where at < ?`, db.At(before))
	return err
}
