package mirror

import (
	"context"
	"time"

	"github.com/glassboxhq/glassbox/internal/db"
	"github.com/glassboxhq/glassbox/sandbox"
)

// History is one generation of a sandbox's history.
type History struct {
	No           int64
	Connection   string
	Sandbox      string
	Generation   int64
	InstanceID   string
	Position     int64 // of its feed, up to which all is stored
	Acknowledged int64 // what the sandbox was told of that
	LastSeq      int64 // the highest number of an operation
	BeganAt      time.Time
	SyncedAt     time.Time
	EndedAt      time.Time // zero: more may come
	EndedWhy     string
	erasures     int64
	erasedSeq    int64
}

const historyColumns = `no, connection_id, sandbox_id, generation, instance_id, position, acknowledged, last_seq, began_at, synced_at, ended_at, ended_why,
	erasures, erased_seq`

func scanHistory(row db.Row) (*History, error) {
	h := &History{}
	var began, synced, ended db.Time
	err := row.Scan(&h.No, &h.Connection, &h.Sandbox, &h.Generation, &h.InstanceID, &h.Position, &h.Acknowledged, &h.LastSeq, &began, &synced, &ended,
		&h.EndedWhy, &h.erasures, &h.erasedSeq)
	h.BeganAt, h.SyncedAt, h.EndedAt = began.Time, synced.Time, ended.Time
	return h, err
}

// Histories lists the generations of a sandbox's history, the newest first.
func (m *Mirror) Histories(ctx context.Context, connectionID, sandboxID string) ([]*History, error) {
	return db.Collect(ctx, m.db, scanHistory, `select `+historyColumns+` from mirror_histories
		where connection_id = ? and sandbox_id = ? order by generation desc`, connectionID, sandboxID)
}

// History returns the newest generation of a sandbox's history; the first is
// made when it is asked for. Another instance has a generation of its own.
func (m *Mirror) History(ctx context.Context, connectionID, sandboxID, instanceID string) (*History, error) {
	list, err := m.Histories(ctx, connectionID, sandboxID)
	if err != nil {
		return nil, err
	}
	if len(list) > 0 && (list[0].InstanceID == instanceID || instanceID == "") {
		return list[0], nil
	}
	if len(list) > 0 && list[0].InstanceID != "" {
		return m.Replace(ctx, list[0], instanceID, "another container has taken its place")
	}
	if len(list) > 0 { // its instance is known only now
		_, err := m.db.Exec(ctx, `update mirror_histories set instance_id = ? where no = ?`, instanceID, list[0].No)
		list[0].InstanceID = instanceID
		return list[0], err
	}
	return m.begin(ctx, connectionID, sandboxID, instanceID, 1)
}

// begin makes a generation, unless somebody else just did.
func (m *Mirror) begin(ctx context.Context, connectionID, sandboxID, instanceID string, generation int64) (*History, error) {
	_, err := m.db.Exec(ctx, `insert into mirror_histories (connection_id, sandbox_id, generation, instance_id, began_at)
		values (?, ?, ?, ?, ?) on conflict (connection_id, sandbox_id, generation) do nothing`,
		connectionID, sandboxID, generation, instanceID, m.now())
	if err != nil {
		return nil, err
	}
	return scanHistory(m.db.QueryRow(ctx, `select `+historyColumns+` from mirror_histories
		where connection_id = ? and sandbox_id = ? and generation = ?`, connectionID, sandboxID, generation))
}

// Replace closes a history that its sandbox no longer has, and begins the next
// generation. The old one ends with a gap: what came after its last record, if
// anything did, is not known.
func (m *Mirror) Replace(ctx context.Context, old *History, instanceID, why string) (*History, error) {
	if err := m.End(ctx, old, why, true); err != nil {
		return nil, err
	}
	return m.begin(ctx, old.Connection, old.Sandbox, instanceID, old.Generation+1)
}

// Acknowledged keeps what the sandbox was told.
func (m *Mirror) Acknowledged(ctx context.Context, h *History, seq int64) error {
	_, err := m.db.Exec(ctx, `update mirror_histories set acknowledged = ? where no = ? and acknowledged < ?`, seq, h.No, seq)
	if err == nil {
		h.Acknowledged = max(h.Acknowledged, seq)
	}
	return err
}

// KnownChange returns the id of a change of a history's feed; empty: it is not
// stored.
func (m *Mirror) KnownChange(ctx context.Context, h *History, seq int64) (string, error) {
	list, err := db.Collect(ctx, m.db, func(row db.Row) (id string, err error) { return id, row.Scan(&id) },
		`select id from mirror_changes where history = ? and seq = ?`, h.No, seq)
	if err != nil || len(list) == 0 {
		return "", err
	}
	return list[0], nil
}

// reload reads a history as it is in a transaction, and refuses one that was
// erased since it was read.
func reload(ctx context.Context, tx *db.Tx, h *History) error {
	now, err := scanHistory(tx.QueryRow(ctx, `select `+historyColumns+` from mirror_histories where no = ?`, h.No))
	if err != nil {
		return err
	}
	if now.erasures != h.erasures {
		return &sandbox.Error{Op: "store history", Code: CodeErased, Sandbox: h.Sandbox, Message: "it was erased meanwhile"}
	}
	*h = *now
	return nil
}
