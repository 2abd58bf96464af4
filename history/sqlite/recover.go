package sqlite

import (
	"context"
	"encoding/json"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/sandbox"
)

// Recover implements [history.Recoverer].
func (s *Store) Recover(ctx context.Context, reason string) ([]string, error) {
	if db, err := s.reader(); err != nil || db == nil {
		return nil, err // nothing was ever recorded, so there is nothing to write
	}
	var ids []string
	err := s.submit(ctx, "recover operations", 0, func(w *writer) error {
		var err error
		if ids, err = w.started(); err != nil {
			return err
		}
		for _, id := range ids {
			e := newEnding(&history.End{
				Status: sandbox.Lost, At: s.opts.Now(), Recording: sandbox.RecordedPart,
				Result: history.Encode(map[string]any{"reason": reason}),
			})
			if err := w.finish(id, e, &output{}); err != nil {
				return err
			}
		}
		return nil
	})
	return ids, err
}

// started returns the operations of ours that run.
func (w *writer) started() ([]string, error) {
	rows, err := w.conn.conn.QueryContext(context.Background(), `
		select event_id, coalesce(request_json, '') from history_events where status = 'started' order by seq`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	ids := []string{}
	for rows.Next() {
		var id, request string
		if err := rows.Scan(&id, &request); err != nil {
			return nil, err
		}
		if history.Ours(json.RawMessage(request)) {
			ids = append(ids, id)
		}
	}
	return ids, rows.Err()
}
