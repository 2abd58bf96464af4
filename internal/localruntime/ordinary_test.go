package localruntime_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/glassboxhq/glassbox/internal/usertest"
	"github.com/glassboxhq/glassbox/sandbox"
)

// TestOrdinaryUser runs without root what has to work without: sandboxes and
// their lives, what a sandbox cannot reach, and what is left of it.
func TestOrdinaryUser(t *testing.T) {
	usertest.Run(t, &usertest.Options{
		Tests: []string{
			"TestLife", "TestManyAtOnce", "TestCreateCancelled", "TestPauseAndResume", "TestRecorderKilledInside",
			"TestInitKilledInside", "TestExpiry", "TestExpiryWithoutServer", "TestServerKilled", "TestServerKilledDuringCreate",
			"TestManyInALoop", "TestServerKilledAtRandom", "TestRetention", "TestEndIsRecorded", "TestOnlyTheHistoryIsKept", "TestRightsTakenAway",
			"TestRemoveTree", "TestTreeSize", "TestHistoryCap", "TestDiskLimit", "TestLimitsWithoutRoot", "TestIDsInside",
			"TestStateSocket", "TestStateDirByLinks", "TestDoctor", "TestDoctorTriesTheStateDir", "TestPublicNetwork",
			"TestSnapshot", "TestSnapshotOfPaused", "TestSnapshotRefused", "TestSnapshotAndDelete", "TestSnapshotsStay", "TestSetMetadata", "TestDiagnose", "TestLifecycleSuite", "TestActsInHistory",
			"TestHostFilesAreNotSeen", "TestHostProcessesAreNotSeen", "TestHostSocketsAreNotReached",
			"TestHostLoopbackIsNotReached", "TestMetadataIsNotReached", "TestRunFolderCannotBeChanged",
			"TestHostProgramsCannotBeChanged", "TestOtherSandboxesAreNotReached", "TestPlantedLinks", "TestNetworkNone",
			"TestImage", "TestImageWithoutShell", "TestImageComesLater", "TestImageSnapshot",
		},
		Programs: map[string]string{"GLASSBOX_RUNSC": runsc(t), "GLASSBOX_RECORDER": recorderBinary(t)},
	})
}

// ordinary ends a test that says something for an ordinary user only.
func ordinary(t *testing.T) {
	t.Helper()
	if os.Geteuid() == 0 {
		t.Skip("it is about a user without root; TestOrdinaryUser runs it")
	}
}

// TestLimitsWithoutRoot tells of limits that are not held, and holds the rest.
func TestLimitsWithoutRoot(t *testing.T) {
	ordinary(t)
	rt := startRuntime(t, options(t, t.TempDir()))
	info := create(t, rt, &sandbox.Spec{Limits: map[string]string{"memory": "256Mi", "cpu": "500m", "disk": "64Mi"}})
	text := strings.Join(info.Warnings, "\n")
	for _, want := range []string{"the memory limit is not held", "the cpu limit is not held"} {
		if !strings.Contains(text, want) {
			t.Errorf("warnings: %q, want %q", text, want)
		}
	}
	if len(info.Warnings) != 2 {
		t.Errorf("warnings: %q", text)
	}
	again, err := rt.Get(t.Context(), info.ID)
	if err != nil || len(again.Warnings) != 2 {
		t.Errorf("later: %v %+v", err, again)
	}
	if out := run(t, rt, info.ID, `python3 -c 'b = b"x" * (300 << 20); print(len(b))'; head -c 100M /dev/zero > /tmp/big`); !strings.HasPrefix(out.stdout, "314572800\n") || !strings.Contains(out.stderr, "No space") {
		t.Errorf("%+v", out)
	}
}

// TestIDsInside shows which users there are in the sandbox of an ordinary one.
func TestIDsInside(t *testing.T) {
	ordinary(t)
	state := t.TempDir()
	rt := startRuntime(t, options(t, state))
	box := create(t, rt, nil).ID
	const own = `id -u; stat -c %u / /workspace /.agent-history /etc/passwd /opt/glassbox/glassbox-recorder | sort -u`
	if out := run(t, rt, box, own); out.stdout != "0\n0\n" {
		t.Errorf("%+v", out)
	}
	// The writable layer is gVisor's and knows all users; a folder of the host
	// knows this one.
	const others = `cd /tmp && touch a && chown 1000:1000 a && stat -c %u:%g a &&
		python3 -c 'import os; os.setgid(1000); os.setuid(1000); open("/tmp/b", "w"); print(os.stat("/tmp/b").st_uid)'`
	if out := run(t, rt, box, others); out.stdout != "1000:1000\n1000\n" {
		t.Errorf("%+v", out)
	}
	if out := run(t, rt, box, "touch /.agent-history/a && chown 1000 /.agent-history/a; stat -c %u /.agent-history/a"); out.stdout != "0\n" {
		t.Errorf("another owner in a folder of the host: %+v", out)
	}
	for _, name := range []string{"history", "history/a", "history/history.sqlite3"} {
		var stat unix.Stat_t
		err := unix.Lstat(filepath.Join(state, "sandboxes", box, name), &stat)
		if err != nil || int(stat.Uid) != os.Getuid() || int(stat.Gid) != os.Getgid() || name == "history" && stat.Mode&0o777 != 0o700 {
			t.Errorf("%s outside: %v %+v", name, err, stat)
		}
	}
}
