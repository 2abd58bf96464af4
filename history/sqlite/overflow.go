package sqlite

import (
	"fmt"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/sandbox"
)

// admit refuses an operation that the history has no room for, if the policy
// is not to delete the oldest. That something is missing is always recorded.
func (w *writer) admit(op string, r *row) error {
	policy, limit := w.s.settings().OverflowPolicy, w.s.maxBytes()
	if policy == history.DeleteOldest || limit <= 0 || r.kind == history.HistoryGap {
		return nil
	}
	used, err := w.used()
	if err != nil || used < limit {
		return err
	}
	var known int
	err = w.conn.row(`select count(*) from history_events where event_id = ?`, []any{r.id}, &known)
	if err != nil || known > 0 {
		return err
	}
	if w.s.since(&w.s.cleaner.last) >= fullEvery {
		w.s.touch(&w.s.cleaner.last)
		w.s.cleaner.wake()
	}
	full := &sandbox.Error{
		Op: op, Code: sandbox.CodeHistoryExhausted, Err: history.ErrFull, Retryable: true,
		Message: fmt.Sprintf("the history has %d bytes of at most %d, and its policy is %s; raise max_database_bytes, or set overflow_policy to delete_oldest", used, limit, policy),
	}
	if policy == history.StopRecording {
		full.Err = history.ErrStopped
	}
	return full
}
