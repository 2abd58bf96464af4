package sandboxtest_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/glassboxhq/glassbox/sandbox"
	"github.com/glassboxhq/glassbox/sandbox/native"
	"github.com/glassboxhq/glassbox/sandbox/sandboxtest"
)

// faults are sessions that do one thing wrong each, as real ones did.
var faults = map[string]func(sandbox.Session) sandbox.Session{
	"DropsTheLastByte": func(s sandbox.Session) sandbox.Session {
		return &faulty{Session: s, after: func(r *sandbox.Result) {
			if n := len(r.Stdout); n > 0 {
				r.Stdout = r.Stdout[:n-1]
			}
		}}
	},
	"MergesStreams": func(s sandbox.Session) sandbox.Session {
		return &faulty{Session: s, after: func(r *sandbox.Result) {
			r.Stdout, r.Stderr = append(r.Stdout, r.Stderr...), nil
		}}
	},
	"IgnoresTimeouts": func(s sandbox.Session) sandbox.Session {
		return &faulty{Session: s, before: func(c *sandbox.Command) { c.Timeout = 0 }}
	},
	"InventsExitZero": func(s sandbox.Session) sandbox.Session {
		return &faulty{Session: s, after: func(r *sandbox.Result) {
			r.ExitCode, r.Status = 0, sandbox.Succeeded
		}}
	},
	"RunsTwice": func(s sandbox.Session) sandbox.Session { return &faulty{Session: s, twice: true} },
}

type faulty struct {
	sandbox.Session
	before func(*sandbox.Command)
	after  func(*sandbox.Result)
	twice  bool
}

func (f *faulty) Run(ctx context.Context, cmd *sandbox.Command) (*sandbox.Result, error) {
	mine := *cmd
	if f.before != nil {
		f.before(&mine)
	}
	if f.twice && mine.Stdin == nil {
		if _, err := f.Session.Run(ctx, &mine); err != nil {
			return nil, err
		}
	}
	res, err := f.Session.Run(ctx, &mine)
	if res != nil && f.after != nil {
		f.after(res)
	}
	return res, err
}

const faultVariable = "SANDBOXTEST_FAULT"

// TestFaulty is the suite on a faulty session, when the test below asks for it.
func TestFaulty(t *testing.T) {
	wrap, ok := faults[os.Getenv(faultVariable)]
	if !ok {
		t.Skip("runs only as part of TestFaultsAreFound")
	}
	sandboxtest.TestSession(t, func(t *testing.T) sandbox.Session {
		s, err := native.New(&native.Options{Workdir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		return wrap(s)
	})
}

// The suite must fail each of them, and none without a fault.
func TestFaultsAreFound(t *testing.T) {
	for name := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// Nothing but the fault may fail, so the groups that show it are enough.
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFaulty$/^(Commands|Stop)$/^(timeout|FB-001.*|FB-011.*|FB-031.*|runs_once)$", "-test.timeout=45s")
			cmd.Env = append(os.Environ(), faultVariable+"="+name)
			out, err := cmd.CombinedOutput()
			if err == nil || !strings.Contains(string(out), "--- FAIL: TestFaulty") {
				t.Errorf("the suite passed: %v\n%s", err, out)
			}
		})
	}
}
