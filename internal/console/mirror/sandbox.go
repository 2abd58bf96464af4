package mirror

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/glassboxhq/glassbox/internal/db"
	"github.com/glassboxhq/glassbox/sandbox"
)

// Recording tells whether a sandbox has a history that can be mirrored.
type Recording string

// The values of Recording.
const (
	RecordingUnknown Recording = "unknown" // it was not looked at yet
	Recorded         Recording = "recorded"
	NotRecorded      Recording = "not_recorded"
)

// Sandbox is a sandbox as it was seen last, and how far its histories are here.
type Sandbox struct {
	sandbox.Info
	Connection string
	GoneAt     time.Time // zero: it is there
	Recording  Recording
	// Problem tells why its history cannot be read, since FailingSince.
	Problem      string
	FailingSince time.Time
}

const sandboxColumns = `connection_id, sandbox_id, instance_id, name, image, state, message, metadata, created_at, expires_at, gone_at,
	recording, problem, failing_since`

func scanSandbox(row db.Row) (*Sandbox, error) {
	s := &Sandbox{}
	var metadata string
	var created, expires, gone, failing db.Time
	err := row.Scan(&s.Connection, &s.ID, &s.InstanceID, &s.Name, &s.Image, &s.State, &s.Message, &metadata, &created, &expires, &gone,
		&s.Recording, &s.Problem, &failing)
	if err == nil && metadata != "" {
		err = json.Unmarshal([]byte(metadata), &s.Metadata)
	}
	s.CreatedAt, s.ExpiresAt, s.GoneAt, s.FailingSince = created.Time, expires.Time, gone.Time, failing.Time
	return s, err
}

// Sandboxes lists what was ever seen of a connection and has not been erased,
// the newest first; of all connections for the empty id.
func (m *Mirror) Sandboxes(ctx context.Context, connectionID string) ([]*Sandbox, error) {
	return db.Collect(ctx, m.db, scanSandbox, `select `+sandboxColumns+` from mirror_sandboxes
		where connection_id = ? or ? = '' order by created_at desc, sandbox_id desc`, connectionID, connectionID)
}

// Sandbox returns one sandbox.
func (m *Mirror) Sandbox(ctx context.Context, connectionID, sandboxID string) (*Sandbox, error) {
	list, err := db.Collect(ctx, m.db, scanSandbox, `select `+sandboxColumns+` from mirror_sandboxes
		where connection_id = ? and sandbox_id = ?`, connectionID, sandboxID)
	if err == nil && len(list) == 0 {
		err = &sandbox.Error{Op: "find sandbox", Code: sandbox.CodeSandboxNotFound, Sandbox: sandboxID, Message: "the mirror has never seen it"}
	}
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

// See keeps what a service tells of a sandbox. Recording, problem and the
// moment of its end stay as they are, unless it is told that it is gone.
func (m *Mirror) See(ctx context.Context, connectionID string, info *sandbox.Info, gone time.Time) error {
	metadata, err := json.Marshal(info.Metadata)
	if err != nil {
		return err
	}
	_, err = m.db.Exec(ctx, `insert into mirror_sandboxes (`+sandboxColumns+`)
		values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'unknown', '', null)
		on conflict (connection_id, sandbox_id) do update set instance_id = excluded.instance_id, name = excluded.name, image = excluded.image,
			state = excluded.state, message = excluded.message, metadata = excluded.metadata, created_at = excluded.created_at,
			expires_at = excluded.expires_at, gone_at = excluded.gone_at`,
		connectionID, info.ID, plain(info.InstanceID), plain(info.Name), plain(info.Image), string(info.State), plain(info.Message), string(metadata),
		db.At(info.CreatedAt), db.At(info.ExpiresAt), db.At(gone))
	return err
}

// Gone tells that a service no longer has a sandbox.
func (m *Mirror) Gone(ctx context.Context, connectionID, sandboxID string) error {
	_, err := m.db.Exec(ctx, `update mirror_sandboxes set gone_at = ?, state = ? where connection_id = ? and sandbox_id = ? and gone_at is null`,
		m.now(), string(sandbox.Terminated), connectionID, sandboxID)
	return err
}

// SetRecording tells whether a sandbox is recorded, and what keeps its history
// from being read; nil: nothing does.
func (m *Mirror) SetRecording(ctx context.Context, connectionID, sandboxID string, recording Recording, problem error) error {
	text, since := "", db.Time{}
	if problem != nil {
		text, since = plain(problem.Error()), m.now()
	}
	_, err := m.db.Exec(ctx, `update mirror_sandboxes set recording = ?, failing_since = case when ? = '' then null else coalesce(failing_since, ?) end, problem = ?
		where connection_id = ? and sandbox_id = ? and (recording <> ? or problem <> ?)`,
		string(recording), text, since, text, connectionID, sandboxID, string(recording), text)
	return err
}

// plain is text as both databases take it.
func plain(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}
