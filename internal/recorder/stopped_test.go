package recorder_test

import (
	"errors"
	"testing"

	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/internal/recorder"
	"github.com/glassboxhq/glassbox/sandbox"
)

// A stop may overtake the start of its command, which must not run then.
func TestStoppedBeforeStart(t *testing.T) {
	t.Parallel()
	session := newServer(t, recorder.Options{}).session(t)
	cmd := &sandbox.Command{ID: id.New(), Line: "echo ran >ran"}
	control, err := session.Control(t.Context(), cmd.ID)
	if err != nil {
		t.Fatal(err)
	}
	if err := control.Stop(t.Context()); !errors.Is(err, sandbox.ErrNotFound) {
		t.Errorf("stop: got %v, want that there is none yet", err)
	}
	if res, err := session.Run(t.Context(), cmd); !errors.Is(err, sandbox.ErrCancelled) {
		t.Errorf("got %+v, %v, want it cancelled", res, err)
	}
	if res, err := session.Run(t.Context(), &sandbox.Command{Line: "cat ran"}); err != nil || res.ExitCode == 0 {
		t.Errorf("got %+v, %v, want that it did not run", res, err)
	}
}
