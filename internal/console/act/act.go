// Package act keeps what was done through the console: who, from where, what,
// and what came of it. Acts outlive the users and things that they name.
package act

import (
	"context"
	"strings"
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
	Sandbox   string // connection/sandbox, in whose timeline it stands; empty: in none
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
	_, err := l.db.Exec(ctx, `insert into acts (`+columns+`) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		a.ID, db.At(a.At), a.UserID, a.UserName, a.Via, a.Address, a.Action, a.Target, a.Sandbox, a.Outcome, a.Code, a.RequestID, a.Detail)
	return err
}

const columns = `id, at, user_id, user_name, via, address, action, target, sandbox, outcome, code, request_id, detail`

// Query picks acts; a zero field does not restrict.
type Query struct {
	Target       string
	Sandbox      string
	UserID       string
	UserName     string
	RequestID    string
	Actions      []string
	Outcomes     []Outcome
	Since, Until time.Time // at or after, and before
	After        string    // an id: those behind it, the oldest first
	Before       string    // an id: those before it
	Oldest       bool      // first; else the newest
	Limit        int
}

// List returns acts in the order of their ids, which is that of time.
func (l *Log) List(ctx context.Context, q *Query) ([]*Act, error) {
	terms, args := []string{`1 = 1`}, []any{}
	add := func(wanted bool, term string, values ...any) {
		if wanted {
			terms, args = append(terms, term), append(args, values...)
		}
	}
	for column, value := range map[string]string{
		"target": q.Target, "sandbox": q.Sandbox, "user_id": q.UserID, "user_name": q.UserName, "request_id": q.RequestID,
	} {
		add(value != "", column+` = ?`, value)
	}
	in := func(column string, values []any) {
		add(len(values) > 0, column+` in (?`+strings.Repeat(`, ?`, max(0, len(values)-1))+`)`, values...)
	}
	in(`action`, anys(q.Actions))
	in(`outcome`, anys(q.Outcomes))
	add(!q.Since.IsZero(), `at >= ?`, db.At(q.Since))
	add(!q.Until.IsZero(), `at < ?`, db.At(q.Until))
	add(q.After != "", `id > ?`, q.After)
	add(q.Before != "", `id < ?`, q.Before)
	order := ` desc`
	if q.Oldest {
		order = ``
	}
	return db.Collect(ctx, l.db, scan, `select `+columns+` from acts where `+strings.Join(terms, " and ")+` order by id`+order+` limit ?`, append(args, q.Limit)...)
}

func anys[T ~string](list []T) (values []any) {
	for _, one := range list {
		values = append(values, string(one))
	}
	return values
}

// Get returns an act of a sandbox's timeline; nil: there is none of this id.
func (l *Log) Get(ctx context.Context, sandbox, actID string) (*Act, error) {
	list, err := db.Collect(ctx, l.db, scan, `select `+columns+` from acts where id = ? and sandbox = ?`, actID, sandbox)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return list[0], nil
}

func scan(row db.Row) (*Act, error) {
	a := &Act{}
	var at db.Time
	err := row.Scan(&a.ID, &at, &a.UserID, &a.UserName, &a.Via, &a.Address, &a.Action, &a.Target, &a.Sandbox, &a.Outcome, &a.Code, &a.RequestID, &a.Detail)
	a.At = at.Time
	return a, err
}

// Sweep removes acts that are older than a moment.
func (l *Log) Sweep(ctx context.Context, before time.Time) error {
	_, err := l.db.Exec(ctx, `delete from acts where at < ?`, db.At(before))
	return err
}
