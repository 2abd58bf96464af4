package localruntime_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/glassboxhq/glassbox/sandbox"
)

// TestPidsLimit ends a sandbox that makes processes without end, and leaves
// this machine its own.
func TestPidsLimit(t *testing.T) {
	rt := startRuntime(t, options(t, t.TempDir()))
	info := create(t, rt, &sandbox.Spec{Limits: map[string]string{"pids": "100", "memory": "1Gi"}})
	if text := strings.Join(info.Warnings, "\n"); strings.Contains(text, "pids") {
		t.Skipf("needs control groups: %s", text)
	}
	if out := run(t, rt, info.ID, "for i in $(seq 80); do sleep 5 & done; echo made"); out.stdout != "made\n" || out.code != 0 {
		t.Errorf("80 of 100: %+v", out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	out, err := try(ctx, rt, info.ID, "for i in $(seq 2000); do sleep 300 & done; echo made; wait")
	t.Logf("%v %+v", err, out)
	if err == nil {
		t.Errorf("2000 of 100: %+v", out)
	}
	wantFailed(t, rt, info.ID, "limit of processes")
}
