package native_test

import (
	"testing"

	"github.com/glassboxhq/glassbox/sandbox"
	"github.com/glassboxhq/glassbox/sandbox/native"
	"github.com/glassboxhq/glassbox/sandbox/sandboxtest"
)

func newSession(t *testing.T) sandbox.Session {
	s, err := native.New(&native.Options{Workdir: t.TempDir(), Scripts: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(t.Context()) })
	return s
}

func TestSession(t *testing.T) { sandboxtest.TestSession(t, newSession) }
