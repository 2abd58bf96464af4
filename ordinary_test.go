package glassbox_test

import (
	"path/filepath"
	"testing"

	"github.com/glassboxhq/glassbox/internal/program"
	"github.com/glassboxhq/glassbox/internal/usertest"
)

// TestOrdinaryUser runs the SDK and a server of its own without root. They want
// the port, so our server makes room for them.
func TestOrdinaryUser(t *testing.T) {
	s := needLocal(t)
	runsc, err := program.Runsc().Look()
	if err != nil {
		t.Fatal(err)
	}
	s.stop()
	defer func() {
		if err := s.start(); err != nil {
			t.Fatal(err)
		}
	}()
	usertest.Run(t, &usertest.Options{
		Tests: []string{
			"TestSession", "TestActor", "TestHistoryConfig", "TestErrors", "TestTTL", "TestKillRecorder", "TestKillInit",
			"TestKillServer", "TestKillClient", "TestNothingCallsHome",
		},
		Programs: map[string]string{
			builtProgram: filepath.Join(s.bin, "glassbox"), "GLASSBOX_RECORDER": s.recorder, "GLASSBOX_RUNSC": runsc,
		},
		Env: []string{"GLASSBOX_KILL_ROUNDS=10"},
	})
}
