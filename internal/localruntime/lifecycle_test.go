package localruntime_test

import (
	"testing"
	"time"

	"github.com/glassboxhq/glassbox/sandbox"
)

func TestCreateRunDelete(t *testing.T) {
	rt := startRuntime(t, options(t, t.TempDir()))
	start := time.Now()
	info := create(t, rt, &sandbox.Spec{Name: "first"})
	t.Logf("create to the recorder's answer: %v", time.Since(start))
	start = time.Now()
	out := run(t, rt, info.ID, "id -un; pwd; uname -a; awk 'BEGIN{print 7}'; ls / /usr/local; python3 -c 'print(6*7)'; env | sort; df -h / /.agent-history; free -m; head -3 /proc/meminfo; nproc; mount")
	t.Logf("first command after %v: %d\n%s\n%s", time.Since(start), out.code, out.stdout, out.stderr)
	start = time.Now()
	if err := rt.Delete(t.Context(), info.ID); err != nil {
		t.Fatal(err)
	}
	t.Logf("delete took %v", time.Since(start))
}
