package recorded_test

import (
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/glassboxhq/glassbox/history/sqlite"
	"github.com/glassboxhq/glassbox/internal/recorder"
	"github.com/glassboxhq/glassbox/record"
	"github.com/glassboxhq/glassbox/sandbox"
	"github.com/glassboxhq/glassbox/sandbox/native"
	"github.com/glassboxhq/glassbox/sandbox/recorded"
	"github.com/glassboxhq/glassbox/sandbox/sandboxtest"
)

const token = "a token for tests"

// newRecorder serves a recorder of this machine.
func newRecorder(t *testing.T) *httptest.Server { return newRecorderWith(t, &record.Options{}) }

func newRecorderWith(t *testing.T, opts *record.Options) *httptest.Server {
	t.Helper()
	inner, err := native.New(&native.Options{Workdir: t.TempDir(), Scripts: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	store, err := sqlite.Open(filepath.Join(t.TempDir(), "history", "history.sqlite3"), nil)
	if err != nil {
		t.Fatal(err)
	}
	opts.Spool = t.TempDir()
	session := record.New(inner, store, opts)
	server := httptest.NewServer(recorder.New(session, store, &recorder.Options{Token: token}))
	t.Cleanup(func() {
		server.Close()
		_ = session.Close(t.Context())
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return server
}

func TestSession(t *testing.T) {
	sandboxtest.TestSession(t, func(t *testing.T) sandbox.Session {
		s := recorded.New(newRecorder(t).URL, &recorded.Options{Token: token})
		t.Cleanup(func() { _ = s.Close(t.Context()) })
		return s
	})
}
