package sqlite

import (
	"context"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/sandbox"
)

// AcquireLease implements [history.Leaser].
func (s *Store) AcquireLease(ctx context.Context, key, owner string, life time.Duration) (held bool, err error) {
	if err := checkLease(key, owner, life); err != nil {
		return false, err
	}
	now := s.opts.Now()
	return s.lease(ctx, "take lease "+key, `
		insert into history_leases (resource_key, owner_id, expires_at, updated_at) values (?, ?, ?, ?)
		on conflict (resource_key) do update set
			owner_id = excluded.owner_id, expires_at = excluded.expires_at, updated_at = excluded.updated_at
		where expires_at <= excluded.updated_at or owner_id = excluded.owner_id`,
		key, owner, history.FormatTime(now.Add(life)), history.FormatTime(now))
}

// RenewLease implements [history.Leaser].
func (s *Store) RenewLease(ctx context.Context, key, owner string, life time.Duration) (held bool, err error) {
	if err := checkLease(key, owner, life); err != nil {
		return false, err
	}
	now := s.opts.Now()
	return s.lease(ctx, "renew lease "+key, `
		update history_leases set expires_at = ?, updated_at = ?
		where resource_key = ? and owner_id = ? and expires_at > ?`,
		history.FormatTime(now.Add(life)), history.FormatTime(now), key, owner, history.FormatTime(now))
}

// ReleaseLease implements [history.Leaser].
func (s *Store) ReleaseLease(ctx context.Context, key, owner string) error {
	_, err := s.lease(ctx, "give back lease "+key,
		`delete from history_leases where resource_key = ? and owner_id = ?`, key, owner)
	return err
}

func (s *Store) lease(ctx context.Context, op, statement string, args ...any) (bool, error) {
	var held bool
	err := s.submit(ctx, op, 128, func(w *writer) error {
		res, err := w.conn.run(statement, args...)
		if err != nil {
			return err
		}
		n, err := res.RowsAffected()
		held = n == 1
		return err
	})
	if err != nil { // whoever stops waiting does not know
		return false, err
	}
	return held, nil
}

func checkLease(key, owner string, life time.Duration) error {
	switch {
	case key == "" || len(key) > history.MaxActorField:
		return sandbox.Invalid("key", "must be 1 to 256 bytes")
	case owner == "" || len(owner) > history.MaxActorField:
		return sandbox.Invalid("owner", "must be 1 to 256 bytes")
	case life < time.Millisecond:
		return sandbox.Invalid("life", "must be at least a millisecond")
	}
	return nil
}
