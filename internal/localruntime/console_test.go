package localruntime_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestConsoleIsBounded floods the output of the sandbox's first process, which
// lies in a file of the host.
func TestConsoleIsBounded(t *testing.T) {
	opts := options(t, t.TempDir())
	opts.WatchEvery = 20 * time.Millisecond
	rt := startRuntime(t, opts)
	info := create(t, rt, nil)
	console := filepath.Join(opts.StateDir, "sandboxes", info.ID, "console.log")
	grew := false
	run(t, rt, info.ID, "(for i in $(seq 40); do head -c 100000 /dev/zero > /proc/1/fd/2; sleep 0.02; done) & true")
	eventually(t, "the console was long and is short again", func() bool {
		info, err := os.Lstat(console)
		if err != nil {
			t.Fatal(err)
		}
		grew = grew || info.Size() > 1<<20
		return grew && info.Size() < 1<<20
	})
	if out := run(t, rt, info.ID, "echo fine"); out.stdout != "fine\n" {
		t.Errorf("%+v", out)
	}
}
