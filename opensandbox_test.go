package glassbox_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/glassboxhq/glassbox"
	"github.com/glassboxhq/glassbox/sandbox"
	"github.com/glassboxhq/glassbox/sandbox/sandboxtest"
)

// needOpenSandbox returns the URL of the real server that `make
// test-opensandbox` starts.
func needOpenSandbox(t *testing.T) string {
	t.Helper()
	url := os.Getenv("GLASSBOX_OPENSANDBOX")
	if url == "" {
		t.Skip("runs in make test-opensandbox")
	}
	return url
}

// newRemote makes a sandbox on the real server that ends with the test.
func newRemote(t *testing.T, opts *glassbox.Options) *glassbox.Sandbox {
	t.Helper()
	url := needOpenSandbox(t)
	o := glassbox.Options{}
	if opts != nil {
		o = *opts
	}
	o.APIKey = glassbox.Secret(os.Getenv("GLASSBOX_OPENSANDBOX_KEY"))
	box, err := glassbox.Create(t.Context(), url, &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := box.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return box
}

func TestOpenSandboxSession(t *testing.T) {
	needOpenSandbox(t)
	sandboxtest.TestSession(t, func(t *testing.T) sandbox.Session { return newRemote(t, nil).Session() })
}

func TestOpenSandboxCreate(t *testing.T) {
	began := time.Now()
	box := newRemote(t, &glassbox.Options{Name: "研究员的工作区 42", Env: map[string]string{"FOO": "bar"}})
	t.Logf("created in %v", time.Since(began))
	ctx := glassbox.WithActor(t.Context(), glassbox.Actor{ID: "研究员", Thread: "t", Run: "r"})
	res, err := box.Run(ctx, `pwd; echo "$FOO"; python3 -c 'print(6 * 7)'`, nil)
	if err != nil || string(res.Stdout) != "/workspace\nbar\n42\n" || res.Recording != sandbox.RecordedWhole {
		t.Errorf("got %+v, %v, want it recorded", res, err)
	}
	ops := list(t, box, nil)
	if len(ops) != 2 || ops[1].Actor.ID != "研究员" {
		t.Errorf("got %+v, want the creation and the command of 研究员", ops)
	}
}
