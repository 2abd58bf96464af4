package localruntime_test

import (
	"net/http/httptest"
	"testing"

	"github.com/glassboxhq/glassbox/internal/localruntime"
	"github.com/glassboxhq/glassbox/internal/localruntime/lifecycle"
	"github.com/glassboxhq/glassbox/sandbox/opensandbox"
	"github.com/glassboxhq/glassbox/sandbox/sandboxtest"
)

// TestLifecycleSuite asks the runtime itself, and over its API.
func TestLifecycleSuite(t *testing.T) {
	rt := startRuntime(t, options(t, t.TempDir()))
	t.Run("Runtime", func(t *testing.T) { sandboxtest.Lifecycle(t, rt, localruntime.ImageHost) })
	t.Run("HTTP", func(t *testing.T) {
		server := httptest.NewServer(lifecycle.New(rt, &lifecycle.Options{APIKey: "the-key"}))
		t.Cleanup(server.Close)
		p, err := opensandbox.New(server.URL, &opensandbox.Options{Key: "the-key"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { p.Close() })
		sandboxtest.Lifecycle(t, p, localruntime.ImageHost)
	})
}
