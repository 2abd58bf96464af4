package record_test

import (
	"testing"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/sandbox"
)

// What was done from outside is one operation, whoever tells it. Nothing that
// was told hides more than one act, nor an act of another kind or time.
func TestImportUntold(t *testing.T) {
	t.Parallel()
	s, store := newSession(t, nil)
	tell := func(kind string) string {
		t.Helper()
		op := &history.Operation{ID: id.New(), Type: kind, Source: history.SourceSDK, StartedAt: time.Now(), Request: history.EncodeRequest(map[string]any{})}
		if err := s.Announce(t.Context(), op, ""); err != nil {
			t.Fatal(err)
		}
		return op.ID
	}
	conclude := func(opID string) {
		t.Helper()
		if err := s.Conclude(t.Context(), opID, &history.End{Status: sandbox.Succeeded, At: time.Now()}); err != nil {
			t.Fatal(err)
		}
	}
	see := func(opID, kind string, at time.Time) {
		t.Helper()
		op := &history.Operation{
			ID: opID, Type: kind, Source: history.SourceLifecycle, Status: sandbox.Succeeded, StartedAt: at, CompletedAt: at.Add(time.Millisecond),
			Request: history.EncodeRequest(map[string]any{}), Result: history.Encode(nil),
		}
		if err := s.ImportUntold(t.Context(), op); err != nil {
			t.Fatal(err)
		}
	}
	count := func(what string, want int) {
		t.Helper()
		page, err := store.List(t.Context(), &history.Filter{Limit: 100})
		if err != nil || len(page.Operations) != want {
			t.Errorf("%s: %d operations, %v; want %d", what, len(page.Operations), err, want)
		}
	}
	now := time.Now()
	tell(history.SandboxPause)
	see(id.New(), history.SandboxPause, now)
	count("it was announced", 1)
	see(id.New(), history.SandboxPause, now)
	count("the second was not", 2)
	conclude(tell(history.SandboxResume))
	see(id.New(), history.SandboxResume, now)
	count("it was announced and concluded", 3)
	see(id.New(), history.SandboxResume, now)
	count("the second was not", 4)
	tell(history.SandboxPause)
	see(id.New(), history.SandboxRenew, now)
	count("another kind was announced", 6)

	opID := id.New()
	see(opID, history.SandboxMetadata, now)
	count("its client did not record it", 7)
	see(opID, history.SandboxMetadata, now.Add(time.Second))
	count("it did", 7)
	see(opID, history.SandboxMetadata, now.Add(time.Hour))
	count("that was an hour before", 8)
	see(opID, history.SandboxRenew, now)
	count("that was another act", 9)
}
