package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/glassboxhq/glassbox/internal/program"
	"github.com/glassboxhq/glassbox/internal/usertest"
)

// bin holds the built programs. The scripts run them as a person does.
var bin, runsc string

func TestMain(m *testing.M) {
	code, err := testMain(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func testMain(m *testing.M) (int, error) {
	dir, err := os.MkdirTemp("", "glassbox-cli-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	bin = dir
	runsc, _ = program.Runsc().Look() // TestScriptsIsolated tells if there is none
	if built := os.Getenv(builtProgram); built != "" {
		bin = filepath.Dir(built)
		return m.Run(), nil
	}
	for _, name := range []string{"glassbox", "glassbox-recorder"} {
		cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", filepath.Join(bin, name), "../"+name)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return 1, fmt.Errorf("build %s: %w\n%s", name, err, out)
		}
	}
	return m.Run(), nil
}

// builtProgram is set for the tests that an ordinary user runs: where its
// program is, with the recorder beside it.
const builtProgram = "GLASSBOX_TEST_PROGRAM"

// Scripts below testdata/gvisor need isolation, those below testdata/any do
// not.
func TestScripts(t *testing.T) { scripts(t, "testdata/any") }

func TestScriptsIsolated(t *testing.T) {
	if os.Getenv("GLASSBOX_NO_ISOLATION") != "" {
		t.Skip("needs gVisor")
	}
	if runsc == "" {
		t.Fatal("runsc is not at hand; run make test, or set GLASSBOX_RUNSC")
	}
	scripts(t, "testdata/gvisor")
}

// deleteAll ends what a script leaves, also when it fails: a sandbox goes on
// without who made it.
func deleteAll(t *testing.T, env *testscript.Env) {
	glassbox := func(args ...string) ([]byte, error) {
		cmd := exec.Command(filepath.Join(bin, "glassbox"), args...)
		cmd.Dir, cmd.Env = env.WorkDir, append(slices.Clone(env.Vars), "GLASSBOX_URL=", "GLASSBOX_PORT=")
		return cmd.Output()
	}
	if _, err := os.Stat(filepath.Join(env.Getenv("GLASSBOX_STATE_DIR"), "sandboxes")); err != nil {
		return // it made none
	}
	text, err := glassbox("sandbox", "list", "-o", "json")
	var list []struct{ ID string }
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	if err != nil {
		t.Errorf("sandboxes that the script left: %v", err)
	}
	for _, box := range list {
		if _, err := glassbox("sandbox", "delete", box.ID); err != nil {
			t.Errorf("delete sandbox %s: %v", box.ID, err)
		}
	}
}

// TestScriptsOrdinary is what an ordinary user sees otherwise than root does.
func TestScriptsOrdinary(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("it is about a user without root; TestOrdinaryUser runs it")
	}
	if runsc == "" {
		t.Fatal("runsc is not at hand")
	}
	scripts(t, "testdata/ordinary")
}

func TestOrdinaryUser(t *testing.T) {
	if os.Getenv("GLASSBOX_NO_ISOLATION") != "" {
		t.Skip("needs gVisor")
	}
	usertest.Run(t, &usertest.Options{
		Tests: []string{"TestScriptsIsolated", "TestScriptsOrdinary"}, Folder: "testdata",
		Programs: map[string]string{
			builtProgram: filepath.Join(bin, "glassbox"), "GLASSBOX_RECORDER": filepath.Join(bin, "glassbox-recorder"), "GLASSBOX_RUNSC": runsc,
		},
	})
}

func scripts(t *testing.T, dir string) {
	testscript.Run(t, testscript.Params{
		Dir: dir, Deadline: time.Now().Add(8 * time.Minute), // what hangs tells where
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
			env.Setenv("GLASSBOX_STATE_DIR", filepath.Join(env.WorkDir, "state"))
			env.Setenv("GLASSBOX_RUNSC", runsc)
			env.Setenv("XDG_CACHE_HOME", filepath.Join(env.WorkDir, "cache"))
			env.Setenv("USER", "tester")
			env.Setenv("TZ", "UTC")
			env.Defer(func() { deleteAll(t, env) })
			if filepath.Base(env.WorkDir) == "script-image" {
				return giveImages(t, env)
			}
			return nil
		},
	})
}
