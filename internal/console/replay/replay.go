// Package replay keeps the answers of requests that must not be done twice, by
// the key that a client gave each of them.
//
//	reply, err := log.Begin(ctx, request)     // nil: it is to be done now
//	err = log.Finish(ctx, request, reply)     // or Release, where nothing was done
package replay

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"

	"github.com/glassboxhq/glassbox/internal/db"
	"github.com/glassboxhq/glassbox/sandbox"
)

// The codes of this package's errors.
const (
	CodeReused     sandbox.Code = "idempotency_key_reused"
	CodeInProgress sandbox.Code = "idempotency_in_progress"
	CodeLost       sandbox.Code = "idempotency_answer_lost"
)

// Kept is how long an answer is kept, and Patience how long a request may take
// before nobody is believed to answer it any more.
const (
	Kept     = 24 * time.Hour
	Patience = 10 * time.Minute
)

// Request is a request with a key.
type Request struct {
	User        string // id
	Operation   string // of the OpenAPI document
	Key         string
	Fingerprint string
}

// Fingerprint tells requests apart.
func Fingerprint(path string, body []byte) string {
	sum := sha256.New()
	sum.Write([]byte(path + "\n"))
	sum.Write(body)
	return hex.EncodeToString(sum.Sum(nil))
}

const maxKey = 255

// ValidateKey refuses what is no key.
func ValidateKey(key string) error {
	if key == "" || len(key) > maxKey || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return sandbox.Invalid("Idempotency-Key", "must be 1 to 255 visible ASCII characters, such as a UUID")
	}
	return nil
}

// Reply is an answer that was given.
type Reply struct {
	Status int
	Header map[string]string
	Body   []byte
}

// Log keeps replies.
type Log struct {
	db  *db.DB
	now func() time.Time
}

// New returns a log in a database.
func New(database *db.DB, now func() time.Time) *Log { return &Log{database, now} }

// Begin returns the answer that a request got before; nil: it is the caller's
// now, who has to finish or release it.
func (l *Log) Begin(ctx context.Context, r *Request) (*Reply, error) {
	now := l.now()
	if _, err := l.db.Exec(ctx, `delete from replies where began_at < ?`, db.At(now.Add(-Kept))); err != nil {
		return nil, err
	}
	n, err := l.db.Exec(ctx, `insert into replies (user_id, operation, key, fingerprint, began_at) values (?, ?, ?, ?, ?)
		on conflict (user_id, operation, key) do nothing`, r.User, r.Operation, r.Key, r.Fingerprint, db.At(now))
	if err != nil || n == 1 {
		return nil, err
	}
	list, err := db.Collect(ctx, l.db, scan, `select fingerprint, began_at, status, header, body from replies
		where user_id = ? and operation = ? and key = ?`, r.User, r.Operation, r.Key)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 { // it was just released
		return nil, inProgress()
	}
	return list[0].reply(r, now)
}

// kept is a reply as it is stored.
type kept struct {
	Reply
	fingerprint string
	began       db.Time
	header      string
}

func scan(row db.Row) (*kept, error) {
	k := &kept{}
	return k, row.Scan(&k.fingerprint, &k.began, &k.Status, &k.header, &k.Body)
}

func (k *kept) reply(r *Request, now time.Time) (*Reply, error) {
	switch {
	case k.fingerprint != r.Fingerprint:
		return nil, &sandbox.Error{Op: "repeat request", Code: CodeReused, Field: "Idempotency-Key", Message: "this key came with another request"}
	case k.Status == 0 && now.Sub(k.began.Time) > Patience:
		return nil, &sandbox.Error{Op: "repeat request", Code: CodeLost, Message: "nobody has seen how the request with this key ended; it may have been done"}
	case k.Status == 0:
		return nil, inProgress()
	}
	return &k.Reply, json.Unmarshal([]byte(k.header), &k.Header)
}

func inProgress() error {
	return &sandbox.Error{Op: "repeat request", Code: CodeInProgress, Message: "the request with this key is being answered", Retryable: true}
}

// Finish keeps the answer.
func (l *Log) Finish(ctx context.Context, r *Request, reply *Reply) error {
	header, err := json.Marshal(reply.Header)
	if err != nil {
		return err
	}
	_, err = l.db.Exec(ctx, `update replies set status = ?, header = ?, body = ? where user_id = ? and operation = ? and key = ?`,
		reply.Status, string(header), reply.Body, r.User, r.Operation, r.Key)
	return err
}

// Release forgets a request by which nothing was done: it may come again.
func (l *Log) Release(ctx context.Context, r *Request) error {
	_, err := l.db.Exec(ctx, `delete from replies where user_id = ? and operation = ? and key = ?`, r.User, r.Operation, r.Key)
	return err
}
